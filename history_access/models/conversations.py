"""What a platform's own tables look like to history access: three abstract models to subclass.

A platform subclasses them over its tables or views: `managed = False` and `db_column` where names differ.
The relations are the subclass's to declare, as foreign keys or as plain columns: only their column
attributes (`agent_id`, `account_id` …) are read. The class methods are the places where a platform says
what differs; each is one definition that every query uses. A column that a platform does not keep is None in
its subclass, where `OPTIONAL` names it or its class methods do without it.
"""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.db.models.expressions import Combinable
from django.utils.translation import gettext_lazy as _

from history_access.models.text import ToolNames

MOST_TOOL_NAMES = 50
TOOL_NAME_CHARACTERS = 100


class Role(models.TextChoices):
    """Who wrote a message."""

    PERSON = "person", _("person")
    AGENT = "agent", _("agent")
    TOOL = "tool", _("tool")
    SYSTEM = "system", _("system")


class AbstractSession(models.Model):
    """One conversation with one agent.

    A subclass also has `workspace_id`, `agent_id`, `account_id` and `person_id` (the last two may be NULL),
    of foreign keys or plain columns. `message_count` is what `AbstractMessage.readable` leaves
    (`tool-count`); `trimmed_before` is the first number that is kept, `summary_through` the last one that
    the summary covers.
    """

    title = models.CharField(_("title"), max_length=300, blank=True, default="")
    started_at = models.DateTimeField(_("started at"))
    last_moved_at = models.DateTimeField(_("last moved at"))
    message_count = models.PositiveIntegerField(_("messages"), default=0)
    trimmed_before = models.PositiveIntegerField(_("trimmed before"), default=1)
    summary = models.TextField(_("summary"), null=True, blank=True)
    summary_through = models.PositiveIntegerField(_("summary covers through"), null=True, blank=True)
    deleted_at = models.DateTimeField(_("deleted at"), null=True, blank=True)

    OPTIONAL: ClassVar[frozenset[str]] = frozenset(
        {"trimmed_before", "summary", "summary_through", "deleted_at"}
    )

    workspace_name: ClassVar[str | None] = "workspace__name"
    time_zone: ClassVar[str | None] = "workspace__time_zone"
    agent_name: ClassVar[str | None] = "agent__name"
    account_name: ClassVar[str | None] = "account__name"
    person_name: ClassVar[str | None] = "person__username"

    class Meta:
        abstract = True

    @classmethod
    def not_deleted(cls) -> Q:
        """Which rows still stand (`reach-not-deleted`); a platform may delete softly in its own way."""
        return Q(deleted_at__isnull=True)


class AbstractMessage(models.Model):
    """One entry of a session. A subclass has `workspace_id` and a foreign key `session`.

    `number` rises within the session, from 1, and never changes: the record and excerpts name messages by it.
    """

    number = models.PositiveIntegerField(_("number"))
    role = models.CharField(_("role"), max_length=10, choices=Role.choices)
    hidden = models.BooleanField(_("hidden"), default=False)
    text = models.TextField(_("text"), blank=True, default="")
    tool_calls = models.JSONField(_("tool calls"), blank=True, default=list)
    created_at = models.DateTimeField(_("created at"))

    OPTIONAL: ClassVar[frozenset[str]] = frozenset({"role", "hidden", "text", "tool_calls"})

    class Meta:
        abstract = True

    @classmethod
    def readable(cls) -> Q:
        """Which entries are read and counted: the person's and the agent's words, nothing hidden."""
        return Q(role__in=(Role.PERSON, Role.AGENT), hidden=False)

    @classmethod
    def by_agent(cls) -> Q:
        """Which of the readable entries are the agent's words; the others are the person's."""
        return Q(role=Role.AGENT)

    @classmethod
    def words(cls) -> Combinable:
        """The text that a person saw, as SQL; a platform that keeps parts joins them with `PartsText`."""
        return F("text")

    @classmethod
    def tool_names(cls) -> Combinable:
        """The names of the tools that a message called, as a JSON list, without their arguments.

        One name and one character more than are shown, so that a cut can be told.
        """
        return ToolNames(F("tool_calls"), most=MOST_TOOL_NAMES + 1, length=TOOL_NAME_CHARACTERS + 1)


class AbstractTurn(models.Model):
    """One run of the agent inside a session.

    A subclass has a foreign key `session`, and `workspace_id`, `sender_id` and `trigger_id` of foreign keys
    or plain columns. A turn with both a sender and a trigger reads as nobody, and so does a triggered one
    where `trigger_owner` is None, as on a platform that has no triggers.
    """

    started_at = models.DateTimeField(_("started at"))
    ended_at = models.DateTimeField(_("ended at"), null=True, blank=True)

    OPTIONAL: ClassVar[frozenset[str]] = frozenset({"started_at", "ended_at"})

    trigger_owner: ClassVar[str | None] = "trigger__owner_id"
    trigger_name: ClassVar[str | None] = "trigger__name"

    class Meta:
        abstract = True

    @classmethod
    def live(cls) -> Q:
        """Which turns are still running (`reach-live-turn`)."""
        return Q(ended_at__isnull=True)

    @classmethod
    def started_by_webhook(cls) -> Q | None:
        """Which turns a webhook started (`record-label`); None: those whose trigger is a webhook now.

        Triggers are edited and deleted: a platform whose turns keep what started them says so here.
        """
        return None
