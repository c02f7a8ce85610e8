"""The record in the admin: which turn read what, to look at only. It holds keys and counts, no words."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from history_access import audited
from history_access.admin import columns, filters
from history_access.admin.auditing import WorkspaceAuditAdmin
from history_access.admin.visitors import Visitor
from history_access.admin.waiting import waiting_words
from history_access.entries import HISTORY_ACCESS
from history_access.models import TurnConversationRead, What
from settings_catalog.admin import words


@admin.register(TurnConversationRead)
class TurnConversationReadAdmin(columns.TurnColumns, WorkspaceAuditAdmin[TurnConversationRead]):
    """Reads, newest first; searched by whole keys alone, never by a name.

    The table only grows, so it is never counted whole: the list counts and pages through its newest
    thousand rows, and a filter or a key finds the older ones.
    """

    asked, key = "reads", "read"
    list_display = ("at", "who", "given_of", "accounts", "how_under")
    list_filter = (
        filters.WorkspaceFilter,
        filters.ReadWhenFilter,
        filters.CrossedFilter,
        filters.AccountAbsentFilter,
        filters.TurnAccountAbsentFilter,
        filters.HowFilter,
        filters.WhatFilter,
        filters.SettingFilter,
    )
    search_fields = (
        "turn_id",
        "session_id",
        "agent_id",
        "reader_id",
        "trigger_id",
        "turn_account_id",
        "session_account_id",
        "session_person_id",
    )
    search_help_text = _(
        "The whole key of a turn, a conversation, an agent, a person, a trigger or an account."
    )
    fieldsets = (
        (None, {"fields": ("at", "given", "characters", "how_under", "crossed_account")}),
        (_("Who read"), {"fields": ("workspace", "agent", "reader", "trigger", "turn_key", "turn_account")}),
        (
            _("What was read"),
            {"fields": ("conversation_key", "conversation_account", "conversation_person")},
        ),
        (_("Keys"), {"fields": ("keys",)}),
    )

    def rows(self) -> "QuerySet[TurnConversationRead]":
        """Reads, each with whether it crossed an account line."""
        return audited.reads()

    def prepared(self, rows: list[TurnConversationRead]) -> list[TurnConversationRead]:
        """The reads with the names that were recorded beside them."""
        return columns.with_names(rows, audited.shown_reads)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """With how long reads wait unsealed, for those who see the seals, which cover every workspace."""
        waiting = {"subtitle": waiting_words()} if Visitor.of(request).everywhere else {}
        return super().changelist_view(request, {**waiting, **(extra_context or {})})

    @admin.display(description=_("read at"))
    def at(self, read: TurnConversationRead) -> SafeString:
        """When, to the second."""
        return words.moment(read.read_at)

    @admin.display(description=_("conversation"))
    def conversation_key(self, read: TurnConversationRead) -> str:
        """Its key."""
        return words.inert(read.session_id)

    @admin.display(description=_("turn's account"))
    def turn_account(self, read: Any) -> str:
        """Its name."""
        return columns.account(read, "turn_account")

    @admin.display(description=_("conversation's account"))
    def conversation_account(self, read: Any) -> str:
        """Its name."""
        return columns.account(read, "conversation_account")

    @admin.display(description=_("conversation's person"))
    def conversation_person(self, read: Any) -> str:
        """The name of the person, where it was recorded."""
        return columns.name(read, "conversation_person")

    @admin.display(description=_("crossed account"))
    def crossed_account(self, read: Any) -> str:
        """Whether the conversation's account is not the turn's own; a red cross for "no" would mislead."""
        if read.seen["crossed_account"] is None:
            return gettext("unknown: both accounts were erased")
        return (
            format_html("<strong>{}</strong>", gettext("Yes"))
            if read.seen["crossed_account"]
            else gettext("No")
        )

    @admin.display(description=_("accounts"))
    def accounts(self, read: Any) -> SafeString:
        """The conversation's and the turn's, and whether the one is not the other."""
        return columns.lines(
            (
                (gettext("conversation's"), self.conversation_account(read)),
                (gettext("turn's"), self.turn_account(read)),
                (gettext("crossed"), self.crossed_account(read)),
            )
        )

    @admin.display(description=_("how"))
    def how_under(self, read: TurnConversationRead) -> str:
        """By history or by reference, and the setting at that moment, in today's words."""
        return f"{read.get_how_display()}: {words.label(HISTORY_ACCESS.key, read.setting)}"

    @admin.display(description=_("what"))
    def given_of(self, read: TurnConversationRead) -> str:
        """What the turn was given, and the conversation's key; its title is not recorded."""
        return gettext("%(what)s of %(key)s") % {
            "what": self.given(read),
            "key": words.inert(read.session_id),
        }

    @admin.display(description=_("what"))
    def given(self, read: TurnConversationRead) -> str:
        """What the turn was given, with the numbers of messages."""
        if read.what == What.MESSAGES:
            numbers = {"first": read.first_number, "last": read.last_number}
            return gettext("messages %(first)s–%(last)s") % numbers
        if read.what == What.SUMMARY and read.last_number is not None:
            return gettext("summary through message %(last)s") % {"last": read.last_number}
        return read.get_what_display()
