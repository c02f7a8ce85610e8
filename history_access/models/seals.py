"""What proves that the record is whole: seals over batches of rows, and what maintenance did to them."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from history_access.models.reads import KEY_LENGTH
from settings_catalog.keys import uuid7

DIGEST_LENGTH = 64


class SealedKind(models.TextChoices):
    """Which table a sealed row stands in."""

    READ = "read", _("read")
    EVENT = "event", _("event")


class Seal(models.Model):
    """A batch of rows of one kind, sealed: the Merkle root of their leaves, chained to the seal before.

    `digest` is the SHA-256 of everything else here, `previous` included; the newest one, kept elsewhere,
    proves the whole chain (`record-sealed`). A seal stays when its rows are pruned; events have seals of
    their own, which are never pruned. `complete_before`: every row that was read before this moment had been
    sealed by then; a row dated earlier that is sealed later was put in afterwards.
    """

    number = models.PositiveBigIntegerField(primary_key=True)
    kind = models.CharField(_("kind"), max_length=10, choices=SealedKind.choices)
    sealed_at = models.DateTimeField(_("sealed at"))
    complete_before = models.DateTimeField(_("complete before"), null=True)
    rows = models.PositiveIntegerField(_("rows"))
    root = models.CharField(_("root"), max_length=DIGEST_LENGTH)
    previous = models.CharField(_("previous"), max_length=DIGEST_LENGTH)
    digest = models.CharField(_("digest"), max_length=DIGEST_LENGTH)

    class Meta:
        verbose_name = _("seal")
        verbose_name_plural = _("seals")
        ordering = ["-number"]

    def __str__(self) -> str:
        return f"seal {self.number}"


class SealedRow(models.Model):
    """One leaf of a seal: which row, at which position, and what its content was hashed to.

    `salts` keep a hash from telling what was hashed: one for the row, and one for each value that may have
    to be erased later, so that forgetting that salt makes the value unguessable while the leaf still holds.
    """

    row_id = models.UUIDField(primary_key=True)
    kind = models.CharField(max_length=10, choices=SealedKind.choices)
    seal_number = models.PositiveBigIntegerField()
    position = models.PositiveIntegerField()
    salts = models.JSONField()
    digest = models.CharField(max_length=DIGEST_LENGTH)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["seal_number", "position"], name="history_access_sealed_once")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.row_id} in seal {self.seal_number}"


class EventKind(models.TextChoices):
    """What maintenance did."""

    PRUNE = "prune", _("pruned")
    ERASE = "erase", _("erased")


class MaintenanceEvent(models.Model):
    """One lifting of the guards: what was done, by whom, why, and to what (`record-append-only`).

    `details` hold counts, seal numbers and digests, never a name. It is sealed like a read.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(_("kind"), max_length=10, choices=EventKind.choices)
    happened_at = models.DateTimeField(_("happened at"))
    by = models.CharField(_("by"), max_length=KEY_LENGTH)
    why = models.TextField(_("why"))
    details = models.JSONField(_("details"))

    class Meta:
        verbose_name = _("maintenance of the record")
        verbose_name_plural = _("maintenance of the record")
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.kind} at {self.happened_at:%Y-%m-%d %H:%M}"


class ErasedValue(models.Model):
    """A value of a sealed row that was erased, as the commitment that its leaf was made from.

    It explains the blank only while a sealed event names its digest (`record-erasure`).
    """

    row_id = models.UUIDField()
    column = models.CharField(max_length=50)
    commitment = models.CharField(max_length=DIGEST_LENGTH)
    event_id = models.UUIDField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["row_id", "column"], name="history_access_erased_once")
        ]
        indexes = [models.Index(fields=["event_id"], name="history_access_erased_event")]

    def __str__(self) -> str:
        return f"{self.column} of {self.row_id}"
