"""The sealed record as it stands now: each seal with its leaves and their rows, streamed in one snapshot."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.db.models import QuerySet

from history_access import leaves
from history_access.models import ErasedValue, Seal, SealedKind, SealedRow
from history_access.models.keyset import in_pages

_CHUNK = 500
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """One leaf with what stands in its table now: the row by column (None: gone), and its erased values."""

    stored: SealedRow
    row: Mapping[str, Any] | None
    erased: Mapping[str, ErasedValue]


Batch = tuple[int, Seal | None, Iterator[Leaf]]
"""A number, its seal (None where leaves name one that is not there), and its leaves, to be used at once."""


def batches(using: str, first: int = 0, last: int | None = None) -> Iterator[Batch]:
    """Every seal with its leaves, or those with these numbers, in order and a few rows at a time."""
    seals = Seal.objects.using(using).filter(number__gte=first)
    stored = SealedRow.objects.using(using).filter(seal_number__gte=first)
    if last is not None:
        seals, stored = seals.filter(number__lte=last), stored.filter(seal_number__lte=last)
    yield from _side_by_side(in_pages(seals, "number", size=_CHUNK), _leaves(using, stored))


def _side_by_side(seals: Iterator[Seal], found: Iterator[Leaf]) -> Iterator[Batch]:
    groups = groupby(found, key=lambda leaf: leaf.stored.seal_number)
    number, own = next(groups, (None, iter(())))
    for seal in seals:
        while number is not None and number < seal.number:
            yield number, None, own
            number, own = next(groups, (None, iter(())))
        if number != seal.number:
            yield seal.number, seal, iter(())
            continue
        yield seal.number, seal, own
        number, own = next(groups, (None, iter(())))
    while number is not None:
        yield number, None, own
        number, own = next(groups, (None, iter(())))


def _leaves(using: str, stored: "QuerySet[SealedRow]") -> Iterator[Leaf]:
    ordered = in_pages(stored, "seal_number", "position", "row_id", size=_CHUNK)
    while chunk := list(islice(ordered, _CHUNK)):
        rows = {kind: _rows(using, kind, chunk) for kind in SealedKind}
        erased = _erased(using, chunk)
        for one in chunk:
            row = rows.get(SealedKind(one.kind), {}).get(one.row_id)
            yield Leaf(stored=one, row=row, erased=erased.get(one.row_id, {}))


def _rows(using: str, kind: SealedKind, chunk: list[SealedRow]) -> dict[UUID, dict[str, Any]]:
    keys = [one.row_id for one in chunk if one.kind == kind]
    rows = leaves.SEALED_MODELS[kind]._default_manager.using(using).filter(pk__in=keys)
    return {row["id"]: row for row in rows.order_by().values(*leaves.columns_of(kind))}


def _erased(using: str, chunk: list[SealedRow]) -> dict[UUID, dict[str, ErasedValue]]:
    found: dict[UUID, dict[str, ErasedValue]] = {}
    for value in ErasedValue.objects.using(using).filter(row_id__in=[one.row_id for one in chunk]):
        found.setdefault(value.row_id, {})[value.column] = value
    return found


@contextmanager
def snapshot(using: str) -> Iterator[None]:
    """See the database as it is now, until the block ends, and keep nobody from writing to it.

    Inside a transaction of the caller's, what that transaction sees.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        yield
        return
    with ExitStack() as stack:
        with _without_a_write_lock(connection):
            stack.enter_context(transaction.atomic(using=using))
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(_SNAPSHOT)
        yield


@contextmanager
def _without_a_write_lock(connection: Any) -> Iterator[None]:
    """On SQLite, a transaction that begins in this block is none that writes, whatever the settings say."""
    if connection.vendor != "sqlite":
        yield
        return
    mode, connection.transaction_mode = connection.transaction_mode, "DEFERRED"
    try:
        yield
    finally:
        connection.transaction_mode = mode
