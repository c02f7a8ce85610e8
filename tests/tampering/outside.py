"""What is found only against a seal that was kept elsewhere, and what no seal can show."""

from datetime import timedelta

from django.db.models import F

from history_access.models import (
    ErasedValue,
    MaintenanceEvent,
    Seal,
    SealedKind,
    SealedRow,
    TurnConversationRead,
)
from history_access.seals import export, seal
from tests.sealed_records import SealedRecord, a_read
from tests.tampering.kinds import NEVER, OUTSIDE, Place, keys_of, rechain, reseal, tampering


def cut_off(first: int, *, rows: bool) -> None:
    """Remove every seal from this one on, with its leaves, and their rows too or not."""
    for number in Seal.objects.filter(number__gte=first).values_list("number", flat=True):
        if rows:
            TurnConversationRead.objects.filter(pk__in=keys_of(number)).delete()
            MaintenanceEvent.objects.filter(pk__in=keys_of(number)).delete()
        SealedRow.objects.filter(seal_number=number).delete()
    Seal.objects.filter(number__gte=first).delete()


@tampering(OUTSIDE)
def the_end_is_cut_off(record: SealedRecord) -> Place:
    exported = export()["number"]
    cut_off(record.a_seal().number, rows=True)
    return exported, None


@tampering(OUTSIDE)
def the_end_is_cut_off_and_sealed_anew(record: SealedRecord) -> Place:
    """The rows wait again, some of them changed, and are sealed as if for the first time."""
    exported = export()["number"]
    erased = SealedRow.objects.get(pk=ErasedValue.objects.get().row_id).seal_number
    first = record.source.randrange(erased + 1, exported + 1)
    keys = SealedRow.objects.filter(seal_number__gte=first, kind=SealedKind.READ).values("row_id")
    TurnConversationRead.objects.filter(pk__in=keys).update(reader_id="mara")
    cut_off(first, rows=False)
    seal(size=record.source.choice([1, 2, 3]))
    return exported, None


@tampering(OUTSIDE)
def the_newest_seal_is_made_anew(record: SealedRecord) -> Place:
    newest = Seal.objects.latest("number")
    newest.sealed_at += timedelta(seconds=1)
    rechain(newest)
    return newest.number, None


@tampering(OUTSIDE)
def the_chain_is_made_anew_from_a_changed_row_on(record: SealedRecord) -> Place:
    exported = export()["number"]
    reseal(record.a_seal(), record)
    for one in Seal.objects.order_by("number"):
        rechain(one)
    return exported, None


@tampering(OUTSIDE)
def everything_is_rewritten_and_sealed_anew(record: SealedRecord) -> Place:
    exported = export()["number"]
    cut_off(1, rows=False)
    MaintenanceEvent.objects.all().delete()
    ErasedValue.objects.all().delete()
    TurnConversationRead.objects.update(reader_id="mara", characters=F("characters") + 1)
    seal(size=record.source.choice([1, 2, 3]))
    return exported, None


@tampering(NEVER)
def a_row_is_changed_before_it_is_sealed(record: SealedRecord) -> Place:
    new = a_read(record.now, record.source)
    new.save(force_insert=True)
    TurnConversationRead.objects.filter(pk=new.pk).update(characters=0)
    seal()
    return None, new.pk


@tampering(NEVER)
def a_row_is_removed_before_it_is_sealed(record: SealedRecord) -> Place:
    new = a_read(record.now, record.source)
    new.save(force_insert=True)
    TurnConversationRead.objects.filter(pk=new.pk).delete()
    return None, new.pk


@tampering(NEVER)
def a_made_up_read_is_dated_now(record: SealedRecord) -> Place:
    new = a_read(record.now, record.source)
    new.save(force_insert=True)
    return None, new.pk
