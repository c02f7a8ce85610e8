"""REST for auditors, to look at only: `path("api/history/", include("history_access.api.urls"))`."""
