"""Sealing: rows of the record are hashed in batches, off the read path, each seal chained to the one before.

    take the sealers' lock · read rows that no leaf names · write a seal and their leaves · commit

A batch is one transaction, so a sealer that is killed leaves nothing half done. It only reads the record and
writes to tables of its own: nobody who reads a conversation ever waits for it (`record-sealed`).
"""

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connections, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.utils import timezone

from history_access import leaves
from history_access.models import EventKind, MaintenanceEvent, Seal, SealedKind, SealedRow
from history_access.models.platform import primary

MARGIN = timedelta(minutes=1)
"""How long a reading transaction may take to commit and still be found by a sealer's quick pass."""

TOLERANCE = timedelta(hours=1)
"""By how much clocks and long transactions may put a row's time wrong before `verify` speaks of it."""

SET_BACK = timedelta(minutes=5)
"""How far behind the newest seal's promise a clock is when it was set back, not merely another machine's."""

BATCH = {"postgresql": 5_000, "sqlite": 500}
"""Rows in a seal at most; on SQLite fewer, since there a batch keeps all writers waiting."""

MOST_COUNTED = 10_000
_NOBODY_ELSE_SEALS = "SELECT pg_advisory_xact_lock(hashtextextended('history_access.seals', 0))"
_CLOCK_POSTGRESQL = "SELECT clock_timestamp()"
_BEGIN_POSTGRESQL = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit TO on"
_ORDER = (SealedKind.EVENT, SealedKind.READ)
_INSERTED_AT_ONCE = 1_000


class OpenTransactionError(RuntimeError):
    """Asked to seal, erase or prune where it could not commit by itself; nothing was done."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """How many rows wait for a seal (at most `MOST_COUNTED` are counted), and for how long the oldest has."""

    rows: int
    oldest: timedelta | None


def seal(*, size: int | None = None, quick: bool = False) -> int:
    """Seal every row that waits, and return how many there were. See `seal_batches`."""
    return sum(one.rows for one in seal_batches(size=size, quick=quick))


def seal_batches(*, size: int | None = None, quick: bool = False) -> Iterator[Seal]:
    """Seal every row that waits, `size` rows at a time, and yield each seal once it is committed.

    Rows that were committed late are found, since what counts is that no leaf names them. A `quick` pass
    looks only at rows from shortly before the newest seal on, for a sealer that runs all the time and makes
    a whole pass now and then. An OpenTransactionError where it could not commit by itself.

    Where the clock was set back, an empty seal comes first, which says so (`Seal.complete_before`).
    """
    using = primary()
    size = size or BATCH[connections[using].vendor]
    began = time_at(using)
    since = _first_key(_newest(using), began) if quick else None
    for kind in _ORDER:
        yield from _seal_kind(using, kind, size, since, began)


def _seal_kind(
    using: str, kind: SealedKind, size: int, since: uuid.UUID | None, began: datetime
) -> Iterator[Seal]:
    """The batches of one kind: each starts after the rows of the one before, so a pass walks once."""
    more = True
    while more:
        with sealing(using):
            started = time.monotonic()
            rows = list(unsealed(using, kind, since).values(*leaves.columns_of(kind))[: size + 1])
            more, rows = len(rows) > size, rows[:size]
            moment = time_at(using)
            newest = _newest_that_holds(using, moment)
            complete = _complete_before(newest, began if kind == SealedKind.READ and not more else None)
            due = bool(rows) or _is_due(newest, complete)
            made = _write(using, kind, rows, newest, complete, moment) if due else None
        if made is not None:
            yield made
        if more:
            leave_to_others(using, started)
        since = rows[-1]["id"] if rows else since


@contextmanager
def sealing(using: str) -> Iterator[None]:
    """A durable transaction in which nobody else seals; for sealing and for maintenance of the record.

    It comes before the guards are lifted, always in this order, so that no two wait for each other. On
    SQLite it is the one transaction that writes. An OpenTransactionError inside another transaction, and
    with AUTOCOMMIT off: there it would report what somebody else may still roll back.
    """
    connection = connections[using]
    with ExitStack() as stack:
        if not connection.in_atomic_block and not connection.get_autocommit():
            raise OpenTransactionError(_OUTSIDE)
        try:
            stack.enter_context(transaction.atomic(using=using, durable=True))
        except RuntimeError:
            raise OpenTransactionError(_OUTSIDE) from None
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                if len(connection.atomic_blocks) == 1:
                    cursor.execute(_BEGIN_POSTGRESQL)
                cursor.execute(_NOBODY_ELSE_SEALS)
        yield


_OUTSIDE = (
    "Sealing, erasing and pruning commit each step by themselves: call them outside transaction.atomic(), "
    "and with AUTOCOMMIT on."
)


def leave_to_others(using: str, started: float) -> None:
    """On SQLite, whose lock is not fair, leave it to others for as long as it was held since `started`."""
    if connections[using].vendor == "sqlite":
        time.sleep(time.monotonic() - started)


def record_event(
    kind: EventKind,
    *,
    by: str,
    why: str,
    details: Mapping[str, Any],
    using: str,
    pk: uuid.UUID | None = None,
) -> MaintenanceEvent:
    """Write one maintenance event and seal it, in the transaction of `sealing` that the caller is in.

    So what was done and the sealed event that says so are committed together (`record-append-only`). `pk`
    is a key that the caller already refers to, made with `uuid7()`.
    """
    event = MaintenanceEvent(kind=kind, happened_at=timezone.now(), by=by, why=why, details=dict(details))
    event.pk = pk or event.pk
    event.save(using=using, force_insert=True)
    rows = (
        MaintenanceEvent.objects.using(using).filter(pk=event.pk).values(*leaves.columns_of(SealedKind.EVENT))
    )
    moment = time_at(using)
    newest = _newest_that_holds(using, moment)
    _write(using, SealedKind.EVENT, rows, newest, _complete_before(newest, None), moment)
    return event


def digest_of(one: Seal) -> str:
    """What the digest of a seal has to be, from everything else that it says."""
    facts = (one.kind, one.sealed_at, one.complete_before, one.rows, one.root)
    return leaves.chain(one.number, facts, one.previous)


def export() -> dict[str, Any]:
    """The newest seal as JSON, to be kept elsewhere for `verify(against=…)`; a LookupError without any.

    `rows_so_far` counts the rows of all seals, `rows` those of this one.
    """
    using = primary()
    newest = _newest(using)
    if newest is None:
        raise LookupError("nothing has been sealed yet")
    return {
        "number": newest.number,
        "digest": newest.digest,
        "sealed_at": newest.sealed_at.isoformat(),
        "complete_before": newest.complete_before and newest.complete_before.isoformat(),
        "root": newest.root,
        "rows": newest.rows,
        "rows_so_far": Seal.objects.using(using).aggregate(total=Sum("rows"))["total"],
    }


def waiting() -> Waiting:
    """How many rows wait for a seal, and since when: from shortly before the newest seal on, to be cheap."""
    using, now = primary(), timezone.now()
    since = _first_key(_newest(using), now)
    found = [unsealed(using, kind, since).values_list("pk", flat=True) for kind in _ORDER]
    firsts = [key for keys in found if (key := keys.first()) is not None]
    return Waiting(
        rows=min(sum(keys[:MOST_COUNTED].count() for keys in found), MOST_COUNTED),
        oldest=max(now - moment_of(min(firsts)), timedelta()) if firsts else None,
    )


def unsealed(using: str, kind: SealedKind, since: uuid.UUID | None = None) -> "QuerySet[Any]":
    """The rows of one kind that no leaf names, oldest first; those after the key `since`, if there is one.

    That bound stands on both sides: PostgreSQL would not carry it over to the leaves by itself.
    """
    rows = leaves.SEALED_MODELS[kind]._default_manager.using(using).order_by("pk")
    named = SealedRow.objects.filter(row_id=OuterRef("pk"))
    if since is not None:
        rows, named = rows.filter(pk__gt=since), named.filter(row_id__gt=since)
    return rows.filter(~Exists(named))


def taken_back(using: str) -> "QuerySet[Seal]":
    """The seals before which the clock had been set back: each promises less than the one before it."""
    before = Seal.objects.filter(number=OuterRef("number") - 1)
    seals = Seal.objects.using(using).annotate(before=Subquery(before.values("complete_before")))
    less = Q(complete_before=None, before__isnull=False) | Q(complete_before__lt=F("before"))
    return seals.filter(less).order_by("number")


def was_set_back(promised: datetime | None, moment: datetime) -> bool:
    """Whether the clock was set back, if it shows this moment, since a seal promised `complete_before`."""
    return promised is not None and promised - moment > SET_BACK


def time_at(using: str) -> datetime:
    """The time by this machine's clock or the database's, whichever is behind.

    So a machine whose clock is ahead does not promise for hours that are still to come.
    """
    return min([timezone.now(), *_database_clock(using)])


def moment_of(key: uuid.UUID) -> datetime:
    """When a version 7 key was made; the end of time for a key that says what no calendar has."""
    try:
        return datetime.fromtimestamp((key.int >> 80) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=UTC)


def _database_clock(using: str) -> list[datetime]:
    """The time at the database, where that may be another machine; SQLite has this machine's clock."""
    if connections[using].vendor != "postgresql":
        return []
    with connections[using].cursor() as cursor:
        cursor.execute(_CLOCK_POSTGRESQL)
        return [moment for (moment,) in cursor.fetchall()]


def _newest(using: str) -> Seal | None:
    return Seal.objects.using(using).order_by("-number").first()


def _newest_that_holds(using: str, moment: datetime) -> Seal | None:
    """The newest seal. Where the clock was set back since, that is a new one that takes its promise back."""
    newest = _newest(using)
    if newest is None or not was_set_back(newest.complete_before, moment):
        return newest
    return _write(using, SealedKind.READ, (), newest, None, moment)


def _complete_before(newest: Seal | None, began: datetime | None) -> datetime | None:
    """Up to when everything has been sealed; `began` is when a pass began that has sealed all it saw."""
    before = newest.complete_before if newest else None
    if began is None:
        return before
    return max(before, began - MARGIN) if before else began - MARGIN


def _is_due(newest: Seal | None, complete: datetime | None) -> bool:
    """Whether a quiet time has to be sealed too, by an empty seal, or rows could be put into it later."""
    if newest is None or complete is None:
        return False
    return newest.complete_before is None or complete - newest.complete_before > TOLERANCE


def _write(
    using: str,
    kind: SealedKind,
    rows: Iterable[Mapping[str, Any]],
    newest: Seal | None,
    complete_before: datetime | None,
    moment: datetime,
) -> Seal:
    number = newest.number + 1 if newest else 1
    sealed = [_leaf(kind, row, number, position) for position, row in enumerate(rows)]
    made = Seal(
        number=number,
        kind=kind,
        sealed_at=moment,
        complete_before=complete_before,
        rows=len(sealed),
        root=leaves.root([one.digest for one in sealed]),
        previous=newest.digest if newest else leaves.NO_ROWS,
    )
    made.digest = digest_of(made)
    made.save(using=using, force_insert=True)
    SealedRow.objects.using(using).bulk_create(sealed, batch_size=_INSERTED_AT_ONCE)
    return made


def _leaf(kind: SealedKind, row: Mapping[str, Any], number: int, position: int) -> SealedRow:
    salts = leaves.new_salts(kind)
    digest = leaves.leaf(kind, row, salts, {})
    return SealedRow(
        row_id=row["id"], kind=kind, seal_number=number, position=position, salts=salts, digest=digest
    )


def _first_key(newest: Seal | None, now: datetime) -> uuid.UUID | None:
    """The key before every row that a quick pass looks at; None where it has to look at all of them."""
    if newest is None or newest.complete_before is None:
        return None
    since = min(newest.complete_before, now) - MARGIN
    return uuid.UUID(int=int(since.timestamp() * 1000) << 80)
