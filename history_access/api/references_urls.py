"""The addresses for people who hand conversations to their turns:
`path("api/references/", include("history_access.api.references_urls"))`.
"""

from django.db.transaction import non_atomic_requests
from django.urls import path

from history_access.api import references

app_name = "history_access_references"

urlpatterns = [
    path("turns/<str:turn>/references/", references.TurnReferences.as_view(), name="references"),
    path(
        "turns/<str:turn>/references/<str:reference>/",
        references.TurnReference.as_view(),
        name="reference",
    ),
    path(
        "turns/<str:turn>/excerpts/",
        # A read and its record are a transaction of their own (`record-or-nothing`).
        non_atomic_requests(references.TurnExcerpts.as_view()),
        name="excerpts",
    ),
    path("conversations/", references.Offers.as_view(), name="offers"),
    path("conversations/<str:offered>/", references.Offered.as_view(), name="preview"),
]
