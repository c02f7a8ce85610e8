"""The record in the admin: which turn read what, to look at only. It holds keys and counts, no words."""

from typing import Any

from django.contrib import admin
from django.db.models import BooleanField, Case, QuerySet, Value, When
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from history_access.admin import filters
from history_access.admin.names import RecordedNames
from history_access.entries import HISTORY_ACCESS
from history_access.models import Named, TurnConversationRead, What
from settings_catalog.admin import words
from settings_catalog.admin.lists import ReadOnlyAdmin


@admin.register(TurnConversationRead)
class TurnConversationReadAdmin(ReadOnlyAdmin[TurnConversationRead]):
    """Reads, newest first; searched by whole keys alone, never by a name.

    The table only grows, so it is never counted whole: the list counts and pages through its newest
    thousand rows, and a filter or a key finds the older ones.
    """

    list_display = (
        "at",
        "agent",
        "reader",
        "given_of",
        "session_account",
        "turn_account",
        "crossed",
        "how_under",
    )
    list_filter = (
        filters.WhenFilter,
        filters.CrossedFilter,
        filters.AbsentFilter,
        filters.HowFilter,
        filters.WhatFilter,
        filters.SettingFilter,
    )
    search_fields = (
        "turn_id",
        "session_id",
        "agent_id",
        "reader_id",
        "turn_account_id",
        "session_account_id",
    )
    search_help_text = _("The whole key of a turn, a conversation, an agent, a reader or an account.")
    fieldsets = (
        (None, {"fields": ("at", "given", "characters", "how_under", "crossed")}),
        (_("Who read"), {"fields": ("workspace", "agent", "reader", "trigger", "turn_id", "turn_account")}),
        (_("What was read"), {"fields": ("session_id", "session_account")}),
        (
            _("Keys"),
            {
                "fields": (
                    "workspace_id",
                    "agent_id",
                    "reader_id",
                    "trigger_id",
                    "turn_account_id",
                    "session_account_id",
                )
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> "QuerySet[TurnConversationRead]":
        """Reads, each with whether it crossed an account line."""
        crossed = When(TurnConversationRead.crossed_account(), then=Value(True))
        is_crossed = Case(crossed, default=Value(False), output_field=BooleanField())
        return super().get_queryset(request).annotate(is_crossed=is_crossed)

    def prepared(self, rows: list[TurnConversationRead]) -> list[TurnConversationRead]:
        """The reads with the names that were recorded beside them."""
        names = RecordedNames(rows)
        for row in rows:
            vars(row)["names"] = names
        return rows

    @admin.display(description=_("read at"))
    def at(self, read: TurnConversationRead) -> str:
        """When, to the second."""
        return words.moment(read.read_at)

    @admin.display(description=_("workspace"))
    def workspace(self, read: Any) -> str:
        """Its name."""
        return _name(read, Named.WORKSPACE, read.workspace_id)

    @admin.display(description=_("agent"))
    def agent(self, read: Any) -> str:
        """Its name."""
        return _name(read, Named.AGENT, read.agent_id)

    @admin.display(description=_("read as"))
    def reader(self, read: Any) -> str:
        """The name of the person that the turn read as."""
        return _name(read, Named.PERSON, read.reader_id)

    @admin.display(description=_("trigger"))
    def trigger(self, read: Any) -> str:
        """Its name."""
        return _name(read, Named.TRIGGER, read.trigger_id)

    @admin.display(description=_("turn's account"))
    def turn_account(self, read: Any) -> str:
        """Its name."""
        return _account(read, read.turn_account_id)

    @admin.display(description=_("its account"))
    def session_account(self, read: Any) -> str:
        """Its name."""
        return _account(read, read.session_account_id)

    @admin.display(description=_("crossed"))
    def crossed(self, read: Any) -> str:
        """Whether the conversation's account is not the turn's own; a red cross for "no" would mislead."""
        return format_html("<strong>{}</strong>", gettext("Yes")) if read.is_crossed else gettext("No")

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


def _name(read: Any, kind: Named, key: str | None) -> str:
    names: RecordedNames = read.names
    return names.of(read, kind, key)


def _account(read: Any, key: str | None) -> str:
    """Its name; the absent account looks like no name, not even like an account that is named "none"."""
    if key is None:
        return format_html("<em>{}</em>", gettext("no account"))
    return _name(read, Named.ACCOUNT, key)
