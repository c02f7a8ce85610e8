"""Random sealed records by seed: weeks of reads in batches, with an erasure and a pruned batch among them."""

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

from django.db import DEFAULT_DB_ALIAS, OperationalError, connection

from history_access import leaves
from history_access.models import (
    ErasedValue,
    EventKind,
    MaintenanceEvent,
    Seal,
    SealedKind,
    SealedRow,
    TurnConversationRead,
)
from history_access.pruning import prune
from history_access.seals import record_event, seal, sealing
from history_access.testing import lift_guards, put_back_guards
from history_access.verifying import Finding, verify

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KEYS = ("7", "0c3f", "mara@hollowbrook.example", "Łąkowa 12", "", "none")


def key_at(moment: datetime, source: random.Random) -> uuid.UUID:
    """A version 7 key as it is made at a moment."""
    made = (moment - EPOCH) // timedelta(milliseconds=1) << 80 | 7 << 76 | source.getrandbits(12) << 64
    return uuid.UUID(int=made | 2 << 62 | source.getrandbits(62))


def a_read(moment: datetime, source: random.Random, **given: Any) -> TurnConversationRead:
    """A random read at a moment, not saved."""
    first = source.choice([None, source.randrange(1, 50)])
    values: dict[str, Any] = {
        "id": key_at(moment, source),
        "workspace_id": source.choice(KEYS),
        "agent_id": source.choice(KEYS),
        "turn_id": str(source.randrange(20)),
        "turn_account_id": source.choice([None, *KEYS]),
        "reader_id": source.choice(KEYS),
        "trigger_id": source.choice([None, *KEYS]),
        "session_id": str(source.randrange(20)),
        "session_account_id": source.choice([None, *KEYS]),
        "session_person_id": source.choice([None, *KEYS]),
        "setting": source.choice(["same_account", "all_accounts"]),
        "how": source.choice(["history", "reference"]),
        "what": source.choice(["title", "messages", "summary", "excerpt"]),
        "first_number": first,
        "last_number": first and first + source.randrange(50),
        "characters": source.randrange(20_000),
        "read_at": moment,
    }
    return TurnConversationRead(**{**values, **given})


def write_reads(
    count: int, moment: datetime | None = None, seed: int = 0, **given: Any
) -> list[TurnConversationRead]:
    """Random reads of one moment (None: now), committed or in the test's transaction."""
    source, moment = random.Random(seed), moment or datetime.now(UTC)
    return TurnConversationRead.objects.bulk_create(a_read(moment, source, **given) for _ in range(count))


@contextmanager
def clock(moment: datetime) -> Iterator[None]:
    """A block in which it is that moment, here and at the database."""
    with (
        mock.patch("django.utils.timezone.now", lambda: moment),
        mock.patch("history_access.seals._database_clock", lambda using: [moment]),
    ):
        yield


@contextmanager
def undone() -> Iterator[None]:
    """A block inside the test's own transaction of which nothing stays; unlike atomic(), seals allow it."""
    with connection.cursor() as cursor:
        cursor.execute("SAVEPOINT undone")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK TO SAVEPOINT undone")
            cursor.execute("RELEASE SAVEPOINT undone")


def kill() -> None:
    """The work ends here, as when its process is killed: nobody but the database clears up."""
    if connection.vendor == "sqlite":
        connection.connection.rollback()  # as whoever opens the file next does
    else:
        connection.connection.close()
    raise OperationalError("killed")


@contextmanager
def without_guards() -> Iterator[None]:
    """A block as a superuser of the database has it."""
    lift_guards()
    try:
        yield
    finally:
        put_back_guards()


class SealedRecord:
    """Weeks of reads in five to eight batches; one is pruned, a row is erased, and a few rows wait.

    Batches are some hours apart, a batch's reads lie within the half hour before it was sealed.
    """

    def __init__(self, seed: int) -> None:
        self.source = random.Random(seed)
        self.now = datetime.now(UTC)
        moment = self.now - timedelta(days=20)
        for _ in range(self.source.randrange(5, 9)):
            moment += timedelta(hours=self.source.randrange(3, 20), microseconds=self.source.randrange(10**6))
            self._write(self.source.randrange(2, 7), moment)
            with clock(moment):
                seal(size=self.source.choice([3, 100]))
        with clock(moment + timedelta(hours=1)):
            prune(by="operator", why="a test", through=1)
            self.erased = erase(self.a_row().row_id)
        with clock(self.now - timedelta(hours=2)):
            seal()
        self._write(self.source.randrange(3), self.now)

    def _write(self, count: int, moment: datetime) -> None:
        within = [moment - timedelta(seconds=self.source.randrange(1800)) for _ in range(count)]
        TurnConversationRead.objects.bulk_create(a_read(one, self.source) for one in within)

    def a_row(self, kind: SealedKind = SealedKind.READ, **given: Any) -> SealedRow:
        """A random leaf of a read or an event that is still there, of an unerased row."""
        rows = SealedRow.objects.filter(kind=kind, **given).exclude(
            row_id__in=ErasedValue.objects.values("row_id")
        )
        return self.source.choice(list(rows.order_by("row_id")))

    def two_rows(self, **given: Any) -> list[SealedRow]:
        rows = SealedRow.objects.filter(kind=SealedKind.READ, **given)
        return self.source.sample(list(rows.order_by("row_id")), 2)

    def a_seal(self, *, newest: bool = True) -> Seal:
        """A random seal with an unerased read; not the newest seal of all where that is unwanted."""
        erased = ErasedValue.objects.values("row_id")
        with_rows = SealedRow.objects.filter(kind=SealedKind.READ).exclude(row_id__in=erased)
        seals = Seal.objects.filter(number__in=with_rows.values("seal_number"))
        if not newest:
            seals = seals.exclude(number=Seal.objects.latest("number").number)
        return self.source.choice(list(seals.order_by("number")))


def erase(row_id: uuid.UUID, column: str = "reader_id") -> uuid.UUID:
    """Erase one value of a sealed read as the product does, and return the event's key."""
    with without_guards(), sealing(DEFAULT_DB_ALIAS):
        value = blank(row_id, column, uuid.UUID(int=0))
        digest = leaves.erased_digest([(row_id, column, value.commitment)])
        event = record_event(
            EventKind.ERASE, by="operator", why="asked", details={"erased_digest": digest}, using="default"
        )
        ErasedValue.objects.filter(pk=value.pk).update(event_id=event.pk)
    return event.pk


def blank(row_id: uuid.UUID, column: str, event_id: uuid.UUID) -> ErasedValue:
    """Blank a value and keep its true commitment, but say nothing of it in any event."""
    row, stored = TurnConversationRead.objects.get(pk=row_id), SealedRow.objects.get(pk=row_id)
    kept = leaves.commitment(stored.salts[column], column, getattr(row, column))
    salts = {name: salt for name, salt in stored.salts.items() if name != column}
    TurnConversationRead.objects.filter(pk=row_id).update(**{column: leaves.ERASED})
    SealedRow.objects.filter(pk=row_id).update(salts=salts)
    return ErasedValue.objects.create(row_id=row_id, column=column, commitment=kept, event_id=event_id)


def event(kind: EventKind, moment: datetime, **details: Any) -> MaintenanceEvent:
    """An event as somebody writes it by hand; nothing has sealed it yet."""
    return MaintenanceEvent.objects.create(
        id=key_at(moment, random.Random(1)), kind=kind, happened_at=moment, by="", why="", details=details
    )


def findings(against: dict[str, Any] | None = None) -> list[Finding]:
    return list(verify(against))


def whole() -> bool:
    """Whether every read and event has one leaf, every leaf a row, and the record verifies."""
    rows = {(model.pk) for kind in SealedKind for model in leaves.SEALED_MODELS[kind].objects.all()}
    return findings() == [] and rows == set(SealedRow.objects.values_list("row_id", flat=True))


def execute(sql: str, *parameters: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
