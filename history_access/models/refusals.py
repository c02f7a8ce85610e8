"""Calls that were refused, apart from reads (`record-refusals`), and where turns wrote to."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from history_access.models.reads import KEY_LENGTH
from settings_catalog.keys import uuid7

MOST_PLACE = 500


class _OfATurn(models.Model):
    """A row about one turn, by copied keys."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace_id = models.CharField(_("workspace"), max_length=KEY_LENGTH)
    agent_id = models.CharField(_("agent"), max_length=KEY_LENGTH)
    turn_id = models.CharField(_("turn"), max_length=KEY_LENGTH)

    class Meta:
        abstract = True


class Refusal(_OfATurn):
    """One refused call: which tool ("" for none of ours), code and argument, never what was asked for."""

    reader_id = models.CharField(_("read as"), max_length=KEY_LENGTH, null=True)
    trigger_id = models.CharField(_("trigger"), max_length=KEY_LENGTH, null=True)
    tool = models.CharField(_("tool"), max_length=50)
    code = models.CharField(_("code"), max_length=50)
    argument = models.CharField(_("argument"), max_length=64, null=True)
    refused_at = models.DateTimeField(_("refused at"))

    class Meta:
        verbose_name = _("refused call")
        verbose_name_plural = _("refused calls")
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["turn_id", "workspace_id"], name="history_access_refusal_turn"),
            models.Index(fields=["workspace_id", "id"], name="history_refusal_workspace"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} refused: {self.code}"


class WrittenPlace(_OfATurn):
    """A durable place (a file, a PDF, a note) that a turn wrote to, as the platform reported it.

    The place may carry a name, so it is kept apart from the record and can be erased.
    """

    place = models.CharField(_("place"), max_length=MOST_PLACE)
    written_at = models.DateTimeField(_("written at"))

    class Meta:
        verbose_name = _("written place")
        verbose_name_plural = _("written places")
        ordering = ["-id"]
        indexes = [models.Index(fields=["turn_id", "workspace_id"], name="history_access_place_turn")]

    def __str__(self) -> str:
        return f"a place that turn {self.turn_id} wrote to"


class AuditQuery(models.Model):
    """What an auditor asked of the record, and when; append-only like the record itself."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    by_id = models.CharField(_("by"), max_length=KEY_LENGTH)
    asked = models.CharField(_("asked for"), max_length=100)
    filters = models.JSONField(_("filters"))
    asked_at = models.DateTimeField(_("asked at"))

    class Meta:
        verbose_name = _("auditor's query")
        verbose_name_plural = _("auditors' queries")
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.asked} by {self.by_id}"
