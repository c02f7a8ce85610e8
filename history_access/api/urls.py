"""The addresses: `path("api/history/", include("history_access.api.urls"))`."""

from django.urls import path

from history_access.api import agents, audit

app_name = "history_access_api"

urlpatterns = [
    path("reads/", audit.Reads.as_view(), name="reads"),
    path("reads/export.csv", audit.ExportCSV.as_view(), name="export-csv"),
    path("reads/export.jsonl", audit.ExportJSONLines.as_view(), name="export-jsonl"),
    path("reads/<str:read>/", audit.OneRead.as_view(), name="read"),
    path("turns/<str:turn>/conversations/", audit.ConversationsOfTurn.as_view(), name="turn-conversations"),
    path("turns/<str:turn>/references/", audit.ReferencesOfTurn.as_view(), name="turn-references"),
    path(
        "conversations/<str:conversation>/turns/",
        audit.TurnsOfConversation.as_view(),
        name="conversation-turns",
    ),
    path("refusals/", audit.Refusals.as_view(), name="refusals"),
    path("seals/", audit.Seals.as_view(), name="seals"),
    path("agents/<str:agent>/history-access/", agents.AgentAccess.as_view(), name="agent-access"),
]
