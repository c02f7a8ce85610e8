"""What whoever looks at a page may audit, asked once for the whole page."""

from functools import cached_property
from typing import Any

from django.http import HttpRequest

from history_access import auditors
from settings_catalog.admin.words import inert
from settings_catalog.keys import key_text

MOST_OFFERED = 20
"""How many workspaces a list offers to choose from; others are named in its address, or searched for."""


class Visitor:
    """The person behind one request. It tells what to offer; what is shown, `auditors.Scope` decides."""

    def __init__(self, person_id: Any) -> None:
        self._person_id = person_id

    @classmethod
    def of(cls, request: HttpRequest) -> "Visitor":
        """The visitor of this request, the same one each time."""
        visitor: Visitor = vars(request).setdefault("history_access_visitor", cls(request.user.pk))
        return visitor

    @cached_property
    def everywhere(self) -> bool:
        """Whether the person may audit every workspace."""
        return auditors.audits_everywhere(self._person_id)

    @cached_property
    def workspaces(self) -> dict[str, str]:
        """The names of the first workspaces that the person may audit, by their keys."""
        rows = auditors.audited_workspaces(self._person_id)[:MOST_OFFERED]
        return {key_text(row.pk): inert(row) for row in rows}
