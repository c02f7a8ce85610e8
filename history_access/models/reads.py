"""The record: which conversation was read by which turn. No foreign keys, no titles, no words."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from settings_catalog.keys import uuid7

KEY_LENGTH = 255


class How(models.TextChoices):
    """What let the turn read: the setting, or a person who handed the conversation over."""

    HISTORY = "history", _("history")
    REFERENCE = "reference", _("reference")


class What(models.TextChoices):
    """What the turn was given of the conversation."""

    TITLE = "title", _("title")
    MESSAGES = "messages", _("messages")
    SUMMARY = "summary", _("summary")
    EXCERPT = "excerpt", _("excerpt")


class TurnConversationRead(models.Model):
    """One conversation that a turn was given something of (`record-every-read`).

    Keys are copied as text and point nowhere, so that nothing can delete or block the row
    (`record-outlives`); the database refuses to change or remove it (`record-append-only`). `setting` is
    the value of history_access at that moment. Numbers are there for messages; for a summary, the last
    number is the one that it covers through. Written by `history_access.record` alone.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace_id = models.CharField(_("workspace"), max_length=KEY_LENGTH)
    agent_id = models.CharField(_("agent"), max_length=KEY_LENGTH)
    turn_id = models.CharField(_("turn"), max_length=KEY_LENGTH)
    turn_account_id = models.CharField(_("turn's account"), max_length=KEY_LENGTH, null=True)
    reader_id = models.CharField(_("read as"), max_length=KEY_LENGTH)
    trigger_id = models.CharField(_("trigger"), max_length=KEY_LENGTH, null=True)
    session_id = models.CharField(_("conversation"), max_length=KEY_LENGTH)
    session_account_id = models.CharField(_("conversation's account"), max_length=KEY_LENGTH, null=True)
    session_person_id = models.CharField(_("conversation's person"), max_length=KEY_LENGTH, null=True)
    setting = models.CharField(_("setting at the time"), max_length=100)
    how = models.CharField(_("how"), max_length=10, choices=How.choices)
    what = models.CharField(_("what"), max_length=10, choices=What.choices)
    first_number = models.PositiveIntegerField(_("from message"), null=True)
    last_number = models.PositiveIntegerField(_("to message"), null=True)
    characters = models.PositiveIntegerField(_("characters"))
    read_at = models.DateTimeField(_("read at"))

    class Meta:
        verbose_name = _("read of a conversation")
        verbose_name_plural = _("reads of conversations")
        permissions = [("audit_reads", "Can audit the reads of every workspace")]
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["turn_id", "workspace_id"], name="history_access_read_turn"),
            models.Index(fields=["session_id", "workspace_id"], name="history_access_read_session"),
            models.Index(fields=["workspace_id", "id"], name="history_access_read_workspace"),
        ]

    def __str__(self) -> str:
        return f"turn {self.turn_id} read {self.what} of conversation {self.session_id}"

    @classmethod
    def crossed_account(cls) -> Q:
        """Reads of a conversation whose account is not the turn's own, the absent account included."""
        both = Q(session_account_id__isnull=False, turn_account_id__isnull=False)
        return (
            Q(session_account_id__isnull=False, turn_account_id__isnull=True)
            | Q(session_account_id__isnull=True, turn_account_id__isnull=False)
            | (both & ~Q(session_account_id=models.F("turn_account_id")))
        )


class Named(models.TextChoices):
    """What a recorded name belongs to."""

    WORKSPACE = "workspace", _("workspace")
    AGENT = "agent", _("agent")
    ACCOUNT = "account", _("account")
    PERSON = "person", _("person")
    TRIGGER = "trigger", _("trigger")


class RecordedName(models.Model):
    """A name as it was when a read was recorded, kept apart so that it can be erased (`record-outlives`)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace_id = models.CharField(_("workspace"), max_length=KEY_LENGTH)
    kind = models.CharField(_("kind"), max_length=10, choices=Named.choices)
    key = models.CharField(_("key"), max_length=KEY_LENGTH)
    name = models.CharField(_("name"), max_length=200)

    class Meta:
        verbose_name = _("recorded name")
        verbose_name_plural = _("recorded names")
        constraints = [
            models.UniqueConstraint(
                fields=["workspace_id", "kind", "key", "name"], name="history_access_name_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"
