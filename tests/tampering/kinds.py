"""Kinds of tampering by name, and what several of them do."""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F

from history_access import leaves
from history_access.models import (
    ErasedValue,
    Seal,
    SealedKind,
    SealedRow,
    TurnConversationRead,
)
from history_access.seals import digest_of, export
from tests.sealed_records import SealedRecord

Place = tuple[int | None, uuid.UUID | None]
Tamper = Callable[[SealedRecord], Place]

TAMPERING: dict[str, Tamper] = {}
"""What `verify` finds by itself, on any record."""

OUTSIDE: dict[str, Tamper] = {}
"""What `verify` finds only against a seal that was exported before, and kept elsewhere."""

NEVER: dict[str, Tamper] = {}
"""What no seal can show: what was done to rows before they were sealed, or looks like new reads."""

OTHER = {"how": ("history", "reference"), "what": ("title", "excerpt"), "kind": ("prune", "erase")}


def tampering(kinds: dict[str, Tamper]) -> Callable[[Tamper], Tamper]:
    def take(tamper: Tamper) -> Tamper:
        kinds[tamper.__name__.replace("_", " ")] = tamper
        return tamper

    return take


def another(column: str, value: Any) -> Any:
    """A value that could stand there as well, and is not this one."""
    if value is None and column.endswith("number"):
        return 0
    if column == "salts":
        return {**value, "row": value["row"][::-1]}
    if column in OTHER:
        return next(other for other in OTHER[column] if other != value)
    if isinstance(value, datetime):
        return value + timedelta(microseconds=1)
    if isinstance(value, uuid.UUID):
        return uuid.UUID(int=value.int ^ 1)
    if isinstance(value, int):
        return value + 1
    if isinstance(value, dict):
        return {**value, "rows": 0}
    return value[::-1] if value and value != value[::-1] else "x"


def keys_of(number: int) -> list[uuid.UUID]:
    return list(SealedRow.objects.filter(seal_number=number).values_list("row_id", flat=True))


def reads_of(number: int) -> list[uuid.UUID]:
    return list(TurnConversationRead.objects.filter(pk__in=keys_of(number)).values_list("pk", flat=True))


def a_seal_of_several(record: SealedRecord) -> int:
    """The number of a random seal with at least two leaves; each record has one."""
    numbers = [number for number in range(1, export()["number"]) if len(reads_of(number)) > 1]
    return record.source.choice(numbers)


def remove_batch(number: int) -> int:
    TurnConversationRead.objects.filter(pk__in=keys_of(number)).delete()
    SealedRow.objects.filter(seal_number=number).delete()
    return number


def new_leaf(row: TurnConversationRead, number: int, position: int) -> None:
    SealedRow.objects.create(
        row_id=row.pk,
        kind=SealedKind.READ,
        seal_number=number,
        position=position,
        salts=leaves.new_salts(SealedKind.READ),
        digest=leaves.NO_ROWS,
    )
    new_digest(row.pk)


def new_digest(key: uuid.UUID) -> None:
    """Make the leaf fit the row as it stands now."""
    stored = SealedRow.objects.get(pk=key)
    row = TurnConversationRead.objects.values().get(pk=key)
    SealedRow.objects.filter(pk=key).update(digest=leaves.leaf(SealedKind.READ, row, stored.salts, {}))


def reseal(one: Seal, record: SealedRecord) -> None:
    """Change a row of a seal, and make its leaf and the seal anew."""
    erased = ErasedValue.objects.values("row_id")
    key = record.source.choice(
        list(SealedRow.objects.filter(seal_number=one.number).exclude(pk__in=erased).order_by("pk"))
    ).pk
    TurnConversationRead.objects.filter(pk=key).update(characters=F("characters") + 1)
    new_digest(key)
    rechain(one)


def rechain(one: Seal) -> None:
    """Make a seal fit its leaves and the seal before, as these stand now."""
    stored = SealedRow.objects.filter(seal_number=one.number).order_by("position")
    if stored:
        one.root = leaves.root([leaf.digest for leaf in stored])
    before = Seal.objects.filter(number=one.number - 1).first()
    one.previous = before.digest if before else leaves.NO_ROWS
    one.digest = digest_of(one)
    one.save(force_update=True)
