"""The log of what auditors asked, in the admin; looking at it is logged too."""

from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from history_access.admin import columns, filters
from history_access.admin.auditing import AuditAdmin
from history_access.leaves import ERASED
from history_access.models import AuditQuery
from settings_catalog.admin import words


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """The name that the list shows beside a row."""

    by: str


@admin.register(AuditQuery)
class AuditQueryAdmin(AuditAdmin[AuditQuery]):
    """Queries, newest first, with the names of those who still exist."""

    asked, key = "queries", "query"
    list_display = ("at", "by", "asked_for", "filters_given")
    list_filter = (filters.AskedWhenFilter,)
    search_fields = ("by_id", "asked")
    search_help_text = _("The whole key of a person, or what was asked for, such as “reads”.")
    fields = ("at", "by", "by_key", "asked_for", "filters_given")

    def prepared(self, rows: list[AuditQuery]) -> list[AuditQuery]:
        """The queries with the names of those who asked."""
        people = words.people(row.by_id for row in rows)
        for row in rows:
            by = ERASED if row.by_id == ERASED else people[row.by_id]
            vars(row)["shown"] = _Shown(by=by)
        return rows

    @admin.display(description=_("asked at"))
    def at(self, query: AuditQuery) -> SafeString:
        """When, to the second."""
        return words.moment(query.asked_at)

    @admin.display(description=_("by"))
    def by(self, query: Any) -> str:
        """The name of the person."""
        return str(query.shown.by)

    @admin.display(description=_("key of the person"))
    def by_key(self, query: AuditQuery) -> str:
        """Whose key it is, also once the person is gone."""
        return words.inert(query.by_id)

    @admin.display(description=_("asked for"))
    def asked_for(self, query: AuditQuery) -> str:
        """Which question."""
        return words.inert(query.asked)

    @admin.display(description=_("filters"))
    def filters_given(self, query: AuditQuery) -> SafeString | str:
        """What was asked of it; a dash for everything."""
        return columns.told(query.filters) or words.NOTHING
