"""Tampering with seals, and with whole batches as if they had been pruned."""

from functools import partial

from history_access.models import (
    EventKind,
    MaintenanceEvent,
    Seal,
    SealedKind,
    SealedRow,
    TurnConversationRead,
)
from history_access.pruning import prune
from history_access.seals import export, seal
from history_access.testing import lift_guards, put_back_guards
from tests.sealed_records import SealedRecord, a_read, event
from tests.tampering.kinds import (
    TAMPERING,
    Place,
    a_seal_of_several,
    another,
    keys_of,
    remove_batch,
    reseal,
    tampering,
)


def change_seal(column: str, record: SealedRecord) -> Place:
    one = record.a_seal()
    value = {"kind": "event", "number": 1000}.get(column) or another(column, getattr(one, column))
    Seal.objects.filter(pk=one.pk).update(**{column: value})
    return (None if column == "number" else one.number), None


@tampering(TAMPERING)
def a_seal_is_made_anew_for_a_changed_row(record: SealedRecord) -> Place:
    one = record.a_seal(newest=False)
    reseal(one, record)
    return one.number + 1, None


@tampering(TAMPERING)
def a_whole_seal_is_removed(record: SealedRecord) -> Place:
    one = record.a_seal(newest=False)
    stored = SealedRow.objects.filter(seal_number=one.number)
    TurnConversationRead.objects.filter(pk__in=stored.values("row_id")).delete()
    stored.delete()
    Seal.objects.filter(pk=one.pk).delete()
    return one.number + 1, None


@tampering(TAMPERING)
def a_seal_alone_is_removed(record: SealedRecord) -> Place:
    one = record.a_seal(newest=False)
    Seal.objects.filter(pk=one.pk).delete()
    return one.number, None


@tampering(TAMPERING)
def two_seals_swap_places(record: SealedRecord) -> Place:
    one = record.a_seal(newest=False)
    for old, new in ((one.number, 1000), (one.number + 1, one.number), (1000, one.number + 1)):
        Seal.objects.filter(number=old).update(number=new)
        SealedRow.objects.filter(seal_number=old).update(seal_number=new)
    return one.number, None


@tampering(TAMPERING)
def a_batch_is_removed_as_if_it_had_been_pruned(record: SealedRecord) -> Place:
    return remove_batch(record.a_seal().number), None


@tampering(TAMPERING)
def a_batch_is_removed_and_an_unsealed_event_says_so(record: SealedRecord) -> Place:
    number = remove_batch(record.a_seal().number)
    event(EventKind.PRUNE, record.now, first_seal=number, last_seal=number)
    return number, None


@tampering(TAMPERING)
def a_batch_is_removed_and_an_old_event_made_to_say_so(record: SealedRecord) -> Place:
    number = remove_batch(record.a_seal(newest=False).number)
    old = MaintenanceEvent.objects.filter(kind=EventKind.PRUNE)
    old.update(details={"first_seal": 1, "last_seal": number, "rows": 7})
    return None, old.get().pk


@tampering(TAMPERING)
def a_batch_is_removed_that_an_event_spoke_of_before_it_was_sealed(record: SealedRecord) -> Place:
    event(EventKind.PRUNE, record.now, first_seal=1, last_seal=1000)
    seal()
    a_read(record.now, record.source).save(force_insert=True)
    seal()
    return remove_batch(export()["number"]), None


@tampering(TAMPERING)
def a_batch_of_events_is_removed_as_if_it_had_been_pruned(record: SealedRecord) -> Place:
    stored = record.a_row(SealedKind.EVENT)
    MaintenanceEvent.objects.filter(pk=stored.row_id).delete()
    stored.delete()
    event(EventKind.PRUNE, record.now, first_seal=1, last_seal=stored.seal_number)
    seal()
    return stored.seal_number, None


@tampering(TAMPERING)
def a_part_of_a_batch_is_removed_as_if_it_had_been_pruned(record: SealedRecord) -> Place:
    number = a_seal_of_several(record)
    stored = SealedRow.objects.filter(seal_number=number).first()
    TurnConversationRead.objects.filter(pk=stored.row_id).delete()
    stored.delete()
    event(EventKind.PRUNE, record.now, first_seal=number, last_seal=number)
    seal()
    return number, None


@tampering(TAMPERING)
def a_pruned_row_is_put_back(record: SealedRecord) -> Place:
    one = record.a_seal(newest=False)
    rows = list(TurnConversationRead.objects.filter(pk__in=keys_of(one.number)))
    put_back_guards()
    prune(by="operator", why="a test", through=one.number)
    lift_guards()
    rows[0].save(force_insert=True)
    return None, rows[0].pk


@tampering(TAMPERING)
def the_event_of_a_pruned_batch_is_removed(record: SealedRecord) -> Place:
    pruned = MaintenanceEvent.objects.get(kind=EventKind.PRUNE)
    SealedRow.objects.filter(pk=pruned.pk).delete()
    pruned.delete()
    return 1, None


for _column in ("number", "kind", "sealed_at", "complete_before", "rows", "root", "previous", "digest"):
    TAMPERING[f"seal column {_column} is changed"] = partial(change_seal, _column)
