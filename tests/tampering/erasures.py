"""Tampering with blanks, and with what explains them."""

import uuid

from history_access import leaves
from history_access.models import (
    ErasedValue,
    EventKind,
    SealedRow,
    TurnConversationRead,
)
from tests.sealed_records import SealedRecord, blank, event
from tests.tampering.kinds import (
    TAMPERING,
    Place,
    tampering,
)


@tampering(TAMPERING)
def a_value_is_blanked(record: SealedRecord) -> Place:
    stored = record.a_row()
    TurnConversationRead.objects.filter(pk=stored.row_id).update(reader_id=leaves.ERASED)
    return stored.seal_number, stored.row_id


@tampering(TAMPERING)
def a_value_is_blanked_without_an_event(record: SealedRecord) -> Place:
    stored = record.a_row()
    blank(stored.row_id, "reader_id", uuid.UUID(int=7))
    return stored.seal_number, stored.row_id


@tampering(TAMPERING)
def a_value_is_blanked_by_an_unsealed_event(record: SealedRecord) -> Place:
    stored = record.a_row()
    value = blank(stored.row_id, "turn_account_id", uuid.UUID(int=7))
    digest = leaves.erased_digest([(value.row_id, value.column, value.commitment)])
    by_hand = event(EventKind.ERASE, record.now, erased_digest=digest)
    ErasedValue.objects.filter(pk=value.pk).update(event_id=by_hand.pk)
    return stored.seal_number, stored.row_id


@tampering(TAMPERING)
def a_value_is_blanked_under_another_erasure(record: SealedRecord) -> Place:
    stored = record.a_row()
    blank(stored.row_id, "reader_id", record.erased)
    return stored.seal_number, stored.row_id


@tampering(TAMPERING)
def a_value_is_blanked_with_a_made_up_commitment(record: SealedRecord) -> Place:
    ErasedValue.objects.update(commitment=leaves.NO_ROWS)
    return None, ErasedValue.objects.get().row_id


@tampering(TAMPERING)
def an_erased_value_is_written_in_again(record: SealedRecord) -> Place:
    row = TurnConversationRead.objects.get(pk=ErasedValue.objects.get().row_id)
    TurnConversationRead.objects.filter(pk=row.pk).update(reader_id="mara")
    return None, row.pk


@tampering(TAMPERING)
def an_erasure_is_forgotten(record: SealedRecord) -> Place:
    value = ErasedValue.objects.get()
    ErasedValue.objects.filter(pk=value.pk).delete()
    return None, value.row_id


@tampering(TAMPERING)
def the_salt_of_an_erased_value_is_kept(record: SealedRecord) -> Place:
    key = ErasedValue.objects.get().row_id
    stored = SealedRow.objects.get(pk=key)
    SealedRow.objects.filter(pk=key).update(salts={**stored.salts, "reader_id": "00"})
    return stored.seal_number, key


@tampering(TAMPERING)
def a_commitment_is_passed_off_as_the_value(record: SealedRecord) -> Place:
    stored = record.a_row()
    row = TurnConversationRead.objects.get(pk=stored.row_id)
    kept = leaves.commitment(stored.salts["reader_id"], "reader_id", row.reader_id)
    TurnConversationRead.objects.filter(pk=row.pk).update(reader_id=kept)
    salts = {name: salt for name, salt in stored.salts.items() if name != "reader_id"}
    SealedRow.objects.filter(pk=row.pk).update(salts=salts)
    return stored.seal_number, row.pk
