"""Tampering with rows and with their leaves."""

import uuid
from datetime import timedelta
from functools import partial

from history_access import leaves
from history_access.models import (
    Seal,
    SealedKind,
    SealedRow,
    TurnConversationRead,
)
from history_access.seals import seal
from tests.sealed_records import SealedRecord, a_read, key_at
from tests.tampering.kinds import (
    TAMPERING,
    Place,
    a_seal_of_several,
    another,
    new_digest,
    new_leaf,
    tampering,
)


def change(kind: SealedKind, column: str, record: SealedRecord) -> Place:
    stored = record.a_row(kind)
    row = leaves.SEALED_MODELS[kind].objects.filter(pk=stored.row_id)
    row.update(**{column: another(column, row.values_list(column, flat=True).get())})
    return stored.seal_number, stored.row_id


def forget(column: str, record: SealedRecord) -> Place:
    """Make a value absent, or an absent one empty."""
    stored = record.a_row()
    row = TurnConversationRead.objects.filter(pk=stored.row_id)
    empty = 0 if column.endswith("number") else ""
    row.update(**{column: None if row.filter(**{f"{column}__isnull": False}).exists() else empty})
    return stored.seal_number, stored.row_id


def change_leaf(column: str, record: SealedRecord) -> Place:
    stored = record.a_row()
    value = {"kind": "event", "position": 1000, "seal_number": 1000}.get(column)
    SealedRow.objects.filter(pk=stored.pk).update(
        **{column: value or another(column, getattr(stored, column))}
    )
    return stored.seal_number, None


def remove(kind: SealedKind, record: SealedRecord, *, leaf: bool) -> Place:
    stored = record.a_row(kind)
    leaves.SEALED_MODELS[kind].objects.filter(pk=stored.row_id).delete()
    if leaf:
        stored.delete()
    return stored.seal_number, None if leaf else stored.row_id


@tampering(TAMPERING)
def a_leaf_is_removed_and_its_row_sealed_anew(record: SealedRecord) -> Place:
    stored = record.a_row(seal_number__lt=Seal.objects.latest("number").number)
    SealedRow.objects.filter(pk=stored.pk).delete()
    seal()
    return stored.seal_number, None


@tampering(TAMPERING)
def a_row_is_put_in_with_an_old_date(record: SealedRecord) -> Place:
    like = TurnConversationRead.objects.get(pk=record.a_row().row_id)
    new = a_read(like.read_at + timedelta(seconds=1), record.source)
    new.save(force_insert=True)
    return None, new.pk


@tampering(TAMPERING)
def a_row_is_put_in_with_an_old_date_and_sealed(record: SealedRecord) -> Place:
    _, key = a_row_is_put_in_with_an_old_date(record)
    seal()
    return Seal.objects.latest("number").number, key


@tampering(TAMPERING)
def a_row_is_put_in_with_an_old_key_and_a_new_date(record: SealedRecord) -> Place:
    old = TurnConversationRead.objects.get(pk=record.a_row().row_id).read_at
    new = a_read(record.now, record.source, id=key_at(old, record.source))
    new.save(force_insert=True)
    return None, new.pk


@tampering(TAMPERING)
def a_row_is_put_into_an_old_seal(record: SealedRecord) -> Place:
    one = record.a_seal()
    at = SealedRow.objects.filter(seal_number=one.number).latest("position")
    new = a_read(one.sealed_at, record.source)
    new.save(force_insert=True)
    new_leaf(new, one.number, at.position + 1)
    return one.number, None


@tampering(TAMPERING)
def an_old_read_is_replayed_under_a_new_key(record: SealedRecord) -> Place:
    row = TurnConversationRead.objects.get(pk=record.a_row().row_id)
    row.pk = key_at(record.now, record.source)
    row.save(force_insert=True)
    seal()
    return Seal.objects.latest("number").number, row.pk


@tampering(TAMPERING)
def a_read_of_just_now_is_replayed_under_a_new_key(record: SealedRecord) -> Place:
    row = a_read(record.now - timedelta(seconds=record.source.randrange(2, 60)), record.source)
    row.save(force_insert=True)
    row.pk = key_at(record.now, record.source)
    row.save(force_insert=True)
    return None, row.pk


@tampering(TAMPERING)
def a_row_is_put_in_under_the_very_first_key(record: SealedRecord) -> Place:
    new = a_read(record.now, record.source, id=uuid.UUID(int=0))
    new.save(force_insert=True)
    return None, new.pk


@tampering(TAMPERING)
def two_rows_swap_contents(record: SealedRecord) -> Place:
    one, two = record.two_rows()
    rows = TurnConversationRead.objects.in_bulk([one.row_id, two.row_id])
    for row, key in ((rows[one.row_id], two.row_id), (rows[two.row_id], one.row_id)):
        row.pk = key
        row.save(force_update=True)
    return one.seal_number, one.row_id


@tampering(TAMPERING)
def two_leaves_swap_places(record: SealedRecord) -> Place:
    one, two = SealedRow.objects.filter(seal_number=a_seal_of_several(record)).order_by("position")[:2]
    for stored, position in ((one, 1000), (two, one.position), (one, two.position)):
        SealedRow.objects.filter(pk=stored.pk).update(position=position)
    return one.seal_number, None


@tampering(TAMPERING)
def a_leaf_is_made_anew_for_a_changed_row(record: SealedRecord) -> Place:
    number, key = change(SealedKind.READ, "characters", record)
    assert key is not None
    new_digest(key)
    return number, None


for _kind in SealedKind:
    for _column in leaves.columns_of(_kind):
        TAMPERING[f"{_kind} column {_column} is changed"] = partial(change, _kind, _column)
    for _leaf in (False, True):
        _with = "with its leaf" if _leaf else "alone"
        TAMPERING[f"{_kind} is removed {_with}"] = partial(remove, _kind, leaf=_leaf)
for _column in (
    "turn_account_id",
    "session_account_id",
    "session_person_id",
    "trigger_id",
    "first_number",
    "last_number",
):
    TAMPERING[f"read column {_column} becomes absent or empty"] = partial(forget, _column)
for _column in ("row_id", "kind", "seal_number", "position", "salts", "digest"):
    TAMPERING[f"leaf column {_column} is changed"] = partial(change_leaf, _column)
