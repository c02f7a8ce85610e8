"""The change log of settings: who changed what, where, and why. To read only."""

from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from settings_catalog.admin import words
from settings_catalog.admin.filters import LevelFilter, SettingFilter
from settings_catalog.admin.lists import ReadOnlyAdmin
from settings_catalog.models import SettingChange


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """The names that the list shows beside a row."""

    place: str
    by: str


@admin.register(SettingChange)
class SettingChangeAdmin(ReadOnlyAdmin[SettingChange]):
    """The newest first, with the labels of today and the names of those who still exist."""

    list_display = ("at", "setting", "where", "by", "change", "why_short")
    list_filter = (SettingFilter, LevelFilter)
    search_fields = ("workspace_id", "agent_id", "by_id")
    search_help_text = _("The whole key of a workspace, an agent or a person.")
    fields = ("at", "setting", "where", "by", "change", "why")

    def prepared(self, rows: list[SettingChange]) -> list[SettingChange]:
        """The rows with the names of their places and of those who made them."""
        places, people = words.PlaceNames(row.place for row in rows), words.people(row.by_id for row in rows)
        for row in rows:
            vars(row)["shown"] = _Shown(place=places[row.place], by=people[row.by_id])
        return rows

    @admin.display(description=_("changed at"))
    def at(self, row: SettingChange) -> SafeString:
        """When, to the second."""
        return words.moment(row.changed_at)

    @admin.display(description=_("setting"))
    def setting(self, row: SettingChange) -> str:
        """Its title."""
        return words.title(row.entry)

    @admin.display(description=_("where"))
    def where(self, row: Any) -> str:
        """The name of its place."""
        return str(row.shown.place)

    @admin.display(description=_("changed by"))
    def by(self, row: Any) -> str:
        """The name of the person."""
        return str(row.shown.by)

    @admin.display(description=_("change"))
    def change(self, row: SettingChange) -> SafeString:
        """What was asked for and allowed before and after, of the two what was changed."""
        changed = [
            (gettext("Asks for:"), row.value_before, row.value_after),
            (gettext("Allows at most:"), row.ceiling_before, row.ceiling_after),
        ]
        words_of_both = (
            (what, words.label(row.entry, before), words.label(row.entry, after))
            for what, before, after in changed
            if before != after
        )
        return format_html_join("", "<div>{} {} → <strong>{}</strong></div>", words_of_both)

    @admin.display(description=_("why"))
    def why_short(self, row: SettingChange) -> str:
        """The beginning of the reason."""
        return words.shortened(row.why)
