"""What a person handed to one turn: conversations that it may read, and excerpts copied for it."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from history_access.models.reads import KEY_LENGTH
from settings_catalog.keys import uuid7

MOST_SUBMISSION_KEY = 200


class ReferenceKind(models.TextChoices):
    """The two kinds, which never turn into each other (`refs-two-kinds`)."""

    CONVERSATION = "conversation", _("conversation")
    EXCERPT = "excerpt", _("excerpt")


class TurnReference(models.Model):
    """That a person handed a conversation, or an excerpt of one, to one turn (`refs-per-turn`).

    Keys are copied as text, and there are no titles, so that the row stays when the conversation is gone.
    `ended_at` is when it was taken back or the turn ended; the database lets nothing else change.
    Written by `history_access.references` alone.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace_id = models.CharField(_("workspace"), max_length=KEY_LENGTH)
    agent_id = models.CharField(_("agent"), max_length=KEY_LENGTH)
    turn_id = models.CharField(_("turn"), max_length=KEY_LENGTH)
    person_id = models.CharField(_("handed over by"), max_length=KEY_LENGTH)
    kind = models.CharField(_("kind"), max_length=20, choices=ReferenceKind.choices)
    session_id = models.CharField(_("conversation"), max_length=KEY_LENGTH)
    session_account_id = models.CharField(_("conversation's account"), max_length=KEY_LENGTH, null=True)
    session_person_id = models.CharField(_("conversation's person"), max_length=KEY_LENGTH, null=True)
    bound_at = models.DateTimeField(_("handed over at"))
    ended_at = models.DateTimeField(_("ended at"), null=True)

    class Meta:
        verbose_name = _("reference")
        verbose_name_plural = _("references")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["turn_id", "workspace_id", "session_id"],
                condition=Q(kind="conversation", ended_at__isnull=True),
                name="history_access_reference_once",
            )
        ]
        indexes = [
            models.Index(fields=["turn_id", "workspace_id"], name="history_access_reference_turn"),
            models.Index(fields=["session_id", "workspace_id"], name="history_access_ref_session"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.session_id} handed to turn {self.turn_id}"


class ReferenceSubmission(models.Model):
    """What one submission handed to a turn, so that a retry of it hands over nothing else (`refs-admission`).

    `conversations` are their keys, sorted.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace_id = models.CharField(_("workspace"), max_length=KEY_LENGTH)
    turn_id = models.CharField(_("turn"), max_length=KEY_LENGTH)
    submission_key = models.CharField(_("submission key"), max_length=MOST_SUBMISSION_KEY)
    conversations = models.JSONField(_("conversations"))

    class Meta:
        verbose_name = _("submission of references")
        verbose_name_plural = _("submissions of references")
        constraints = [
            models.UniqueConstraint(
                fields=["turn_id", "workspace_id", "submission_key"], name="history_access_submission_once"
            )
        ]

    def __str__(self) -> str:
        return f"what was handed to turn {self.turn_id} at once"


class ExcerptText(models.Model):
    """The words of an excerpt, copied once; apart from the reference, so that they can be erased.

    `content` is what the turn is shown, None once the source was erased.
    """

    reference_id = models.UUIDField(primary_key=True)
    workspace_id = models.CharField(_("workspace"), max_length=KEY_LENGTH)
    content = models.JSONField(_("content"), null=True)

    class Meta:
        verbose_name = _("excerpt")
        verbose_name_plural = _("excerpts")

    def __str__(self) -> str:
        return f"the words of reference {self.reference_id}"
