"""Tables of an agent platform, for those who have none. Field names are public: people load data."""

import zoneinfo
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from history_access.models import AbstractMessage, AbstractSession, AbstractTurn
from history_access.models.conversations import Role
from settings_catalog.keys import uuid7

_NAME = 200


def _check_time_zone(name: str) -> None:
    """A ValidationError unless this machine knows the time zone."""
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise ValidationError(_("%(name)s is not a known time zone."), params={"name": name}) from None


class _Keyed(models.Model):
    """A row under a key that sorts by time."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)

    class Meta:
        abstract = True


class Workspace(_Keyed):
    """One business on the platform, with its own time zone."""

    name = models.CharField(_("name"), max_length=_NAME)
    time_zone = models.CharField(_("time zone"), max_length=64, default="UTC", validators=[_check_time_zone])

    class Meta:
        verbose_name = _("workspace")
        verbose_name_plural = _("workspaces")

    def __str__(self) -> str:
        return self.name


class Agent(_Keyed):
    """An agent of one workspace."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, verbose_name=_("workspace"))
    name = models.CharField(_("name"), max_length=_NAME)

    class Meta:
        verbose_name = _("agent")
        verbose_name_plural = _("agents")

    def __str__(self) -> str:
        return self.name


class Account(_Keyed):
    """A customer of a workspace."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, verbose_name=_("workspace"))
    name = models.CharField(_("name"), max_length=_NAME)

    class Meta:
        verbose_name = _("account")
        verbose_name_plural = _("accounts")

    def __str__(self) -> str:
        return self.name


class Permission(models.TextChoices):
    """What a person may do in a workspace."""

    READ_SESSIONS = "sessions:read", _("read other people's conversations")
    WRITE_SETTINGS = "settings:write", _("change settings")
    AUDIT_READS = "reads:audit", _("audit what agents read")


class Authority(_Keyed):
    """A right that a person holds: for one agent, or (without one) for the whole workspace."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, verbose_name=_("workspace"))
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, verbose_name=_("person"))
    permission = models.CharField(_("permission"), max_length=20, choices=Permission.choices)
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, blank=True, verbose_name=_("agent"))

    class Meta:
        verbose_name = _("authority")
        verbose_name_plural = _("authorities")
        indexes = [
            models.Index(fields=["person", "workspace", "permission"], name="platform_authority_person")
        ]

    def __str__(self) -> str:
        return self.permission


class TriggerKind(models.TextChoices):
    """What starts a triggered turn."""

    SCHEDULE = "schedule", _("schedule")
    WEBHOOK = "webhook", _("webhook")


class Trigger(_Keyed):
    """A schedule or a webhook that runs an agent; its turns read as its owner (`reach-trigger-owner`).

    What it does, and who owns it, is changed by `services.edit_trigger` alone: `edition` counts the times,
    and the table refuses a change that is no next edition.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, verbose_name=_("workspace"))
    agent = models.ForeignKey(Agent, models.CASCADE, verbose_name=_("agent"))
    kind = models.CharField(_("kind"), max_length=10, choices=TriggerKind.choices)
    name = models.CharField(_("name"), max_length=_NAME)
    instructions = models.TextField(_("instructions"), blank=True, default="")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, verbose_name=_("owner")
    )
    edition = models.PositiveIntegerField(_("edition"), default=1, editable=False)

    class Meta:
        verbose_name = _("trigger")
        verbose_name_plural = _("triggers")

    def __str__(self) -> str:
        return self.name


_STANDING = Q(deleted_at__isnull=True)
_NEWEST_FIRST = (F("last_moved_at").desc(), F("id").desc())


class Session(_Keyed, AbstractSession):
    """One conversation. Written by `services`, which keeps counts and times right under concurrency.

    `erased_before` is the first number whose words no erasure took: no summary may draw on those before.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, verbose_name=_("workspace"))
    agent = models.ForeignKey(Agent, models.CASCADE, verbose_name=_("agent"), db_index=False)
    account = models.ForeignKey(Account, models.RESTRICT, null=True, blank=True, verbose_name=_("account"))
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, verbose_name=_("person")
    )
    erased_before = models.PositiveIntegerField(_("erased before"), default=1)

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        indexes = [
            models.Index(*_NEWEST_FIRST, name="platform_session_moved", condition=_STANDING),
            models.Index("agent", *_NEWEST_FIRST, name="platform_session_agent", condition=_STANDING),
            models.Index(
                "agent", "account", *_NEWEST_FIRST, name="platform_session_account", condition=_STANDING
            ),
            models.Index(
                "agent",
                *_NEWEST_FIRST,
                name="platform_session_no_account",
                condition=_STANDING & Q(account__isnull=True),
            ),
            models.Index("agent", "person", *_NEWEST_FIRST, name="platform_session_own", condition=_STANDING),
            models.Index(
                "agent",
                "person",
                "account",
                *_NEWEST_FIRST,
                name="platform_session_own_account",
                condition=_STANDING,
            ),
        ]

    def __str__(self) -> str:
        return f"session {self.pk}"


class Message(_Keyed, AbstractMessage):
    """One entry of a session."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, verbose_name=_("workspace"), db_index=False)
    session = models.ForeignKey(
        Session, models.CASCADE, related_name="messages", verbose_name=_("session"), db_index=False
    )

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        constraints = [
            models.UniqueConstraint(fields=["session", "number"], name="agent_platform_message_number")
        ]
        indexes = [
            models.Index(
                fields=["session", "number"],
                name="platform_message_readable",
                condition=Q(hidden=False, role__in=[Role.PERSON, Role.AGENT]),
            )
        ]

    def __str__(self) -> str:
        return f"message {self.number} of session {self.session_id}"


class Turn(_Keyed, AbstractTurn):
    """One run of the agent inside a session, sent by a person or started by a trigger.

    It keeps the kind of its trigger, since triggers are edited and deleted (`record-label`).
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, verbose_name=_("workspace"))
    session = models.ForeignKey(Session, models.CASCADE, related_name="turns", verbose_name=_("session"))
    sender = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, verbose_name=_("sender")
    )
    trigger = models.ForeignKey(Trigger, models.SET_NULL, null=True, blank=True, verbose_name=_("trigger"))
    trigger_kind = models.CharField(
        _("kind of its trigger"), max_length=10, choices=TriggerKind.choices, blank=True, default=""
    )

    class Meta:
        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        constraints = [
            models.CheckConstraint(
                condition=Q(trigger__isnull=True) | Q(trigger_kind__in=TriggerKind.values),
                name="agent_platform_turn_keeps_kind",
            ),
            models.CheckConstraint(
                condition=Q(sender__isnull=True) | Q(trigger__isnull=True),
                name="agent_platform_turn_one_reader",
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.pk}"

    @classmethod
    def started_by_webhook(cls) -> Q:
        """Those that were started by what was a webhook then, whatever became of it."""
        return Q(trigger_kind=TriggerKind.WEBHOOK)

    @property
    def account_id(self) -> Any:
        """The account of its session; None where that has none."""
        return self.session.account_id
