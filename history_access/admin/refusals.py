"""Refused calls in the admin: which, never what was asked for (`record-refusals`)."""

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from history_access import audited
from history_access.admin import columns, filters
from history_access.admin.auditing import WorkspaceAuditAdmin
from history_access.models import Refusal
from settings_catalog.admin import words


@admin.register(Refusal)
class RefusalAdmin(columns.TurnColumns, WorkspaceAuditAdmin[Refusal]):
    """Refused calls, newest first."""

    asked, key = "refusals", "refusal"
    list_display = ("at", "who", "tool_called", "why", "turn_key")
    list_filter = (
        filters.WorkspaceFilter,
        filters.RefusedWhenFilter,
        filters.ToolFilter,
        filters.CodeFilter,
    )
    search_fields = ("turn_id", "agent_id", "reader_id", "trigger_id")
    search_help_text = _("The whole key of a turn, an agent, a person or a trigger.")
    fieldsets = (
        (None, {"fields": ("at", "tool_called", "code_given", "argument_named")}),
        (_("Who called"), {"fields": ("workspace", "agent", "reader", "trigger", "turn_key")}),
        (_("Keys"), {"fields": ("keys",)}),
    )

    def prepared(self, rows: list[Refusal]) -> list[Refusal]:
        """The refusals with the names that were recorded beside their keys."""
        return columns.with_names(rows, audited.shown_refusals)

    @admin.display(description=_("refused at"))
    def at(self, refusal: Refusal) -> SafeString:
        """When, to the second."""
        return words.moment(refusal.refused_at)

    @admin.display(description=_("tool"))
    def tool_called(self, refusal: Refusal) -> str:
        """The tool that was called; a dash for one that there is not."""
        return words.inert(refusal.tool) or words.NOTHING

    @admin.display(description=_("argument"))
    def argument_named(self, refusal: Refusal) -> str:
        """The argument that was refused, by name."""
        return words.NOTHING if refusal.argument is None else words.inert(refusal.argument)

    @admin.display(description=_("code"))
    def code_given(self, refusal: Refusal) -> str:
        """Which refusal."""
        return words.inert(refusal.code)

    @admin.display(description=_("code and argument"))
    def why(self, refusal: Refusal) -> SafeString:
        """Which refusal, and of which argument."""
        return format_html("{}<br>{}", self.code_given(refusal), self.argument_named(refusal))
