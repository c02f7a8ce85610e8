"""Sessions and turns: when and whose, to look at only, without titles, summaries and messages."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from history_access.agent_platform.admin.columns import NameColumns
from history_access.agent_platform.models import Session, Turn
from settings_catalog.admin.lists import KnownValues, ReadOnlyAdmin
from settings_catalog.admin.words import NOTHING, moment


@admin.register(Session)
class SessionAdmin(NameColumns, ReadOnlyAdmin[Session]):
    """The sessions that still stand, those that moved last first, without a word of what is in them."""

    list_display = (
        "id",
        "workspace_name",
        "agent_name",
        "account_name",
        "person_name",
        "started",
        "last_moved",
        "message_count",
    )
    list_select_related = ("workspace", "agent", "account", "person")
    ordering = ("-last_moved_at", "-pk")
    search_fields = ("id", "workspace", "agent", "account", "person")
    search_help_text = _("The whole key of a session, a workspace, an agent, an account or a person.")
    fields = (*list_display, "trimmed_before", "summary_through")

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Session]":
        """Sessions that are not deleted (`reach-not-deleted`); their words stay in the database."""
        return super().get_queryset(request).filter(Session.not_deleted()).defer("title", "summary")

    @admin.display(description=_("last moved"))
    def last_moved(self, session: Session) -> SafeString:
        """When, to the second."""
        return moment(session.last_moved_at)


class RunningFilter(KnownValues):
    """Turns that still run, or that have ended."""

    title = _("state")
    parameter_name = "state"
    known = (("running", _("Running")), ("ended", _("Ended")))

    def condition(self, value: str) -> Q:
        """By the model's own definition of a live turn."""
        return Turn.live() if value == "running" else ~Turn.live()


@admin.register(Turn)
class TurnAdmin(NameColumns, ReadOnlyAdmin[Turn]):
    """Turns, and whom each reads as."""

    list_display = (
        "id",
        "workspace_name",
        "session_key",
        "started_by",
        "started",
        "ended",
    )
    list_select_related = ("workspace", "sender", "trigger")
    list_filter = (RunningFilter,)
    search_fields = ("id", "session", "sender", "trigger", "workspace")
    search_help_text = _("The whole key of a turn, a session, a person, a trigger or a workspace.")
    fields = ("id", "workspace_name", "session_key", "sender_name", "trigger_name", "started", "ended")

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Turn]":
        """Turns without the instructions of their triggers."""
        return super().get_queryset(request).defer("trigger__instructions")

    @admin.display(description=_("session"))
    def session_key(self, turn: Any) -> str:
        """The key of its session, also where that is deleted."""
        return str(turn.session_id)

    @admin.display(description=_("started by"))
    def started_by(self, turn: Any) -> SafeString | str:
        """Its sender, or its trigger."""
        if turn.trigger is None:
            return self.sender_name(turn)
        return format_html("{} <em>{}</em>", self.trigger_name(turn), turn.trigger.get_kind_display())

    @admin.display(description=_("ended"))
    def ended(self, turn: Turn) -> SafeString | str:
        """When, to the second; a dash while it runs."""
        return NOTHING if turn.ended_at is None else moment(turn.ended_at)
