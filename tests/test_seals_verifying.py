"""record-sealed: what `verify` says of a clean record, of garbage, and in how much memory."""

import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from history_access import leaves, maintenance
from history_access.erasing import erase_person
from history_access.models import (
    ErasedValue,
    MaintenanceEvent,
    Seal,
    SealedKind,
    SealedRow,
    TurnConversationRead,
)
from history_access.pruning import prune
from history_access.seals import export, seal
from history_access.testing import lift_guards
from history_access.verifying import Finding, verify
from tests.sealed_records import SealedRecord, clock, execute, findings, write_reads

READS, LEAVES = "history_access_turnconversationread", "history_access_sealedrow"


@pytest.mark.parametrize("seed", range(100, 110))
def test_seals_verify_a_clean_record(db: None, seed: int) -> None:
    """With an erasure, a pruned batch and rows that wait; again after the next seal, against every export."""
    SealedRecord(seed)
    exports = []
    for later in range(3):
        exports.append(export())
        assert [findings(one) for one in (None, *exports)] == [[]] * (len(exports) + 1)
        write_reads(2, seed=later)
        seal()


def test_seals_verify_nothing_at_all(db: None) -> None:
    assert findings() == []


def test_seals_verify_with_progress(db: None) -> None:
    write_reads(5)
    seal(size=2)
    seen: list[int] = []
    assert list(verify(progress=seen.append)) == []
    assert seen == [2, 2, 1]


def test_seals_do_not_take_a_row_that_waits_for_a_fault(db: None) -> None:
    write_reads(1)
    seal()
    write_reads(3, timezone.now() - timedelta(minutes=50), seed=1)
    assert findings() == []


def test_seals_find_a_row_put_in_late_even_after_a_quiet_time(db: None) -> None:
    now = timezone.now()
    write_reads(1, now - timedelta(hours=9))
    for hours in (8, 1):
        with clock(now - timedelta(hours=hours)):
            seal()
    [late] = write_reads(1, now - timedelta(hours=5), seed=1)
    seal()
    assert [one.row for one in findings()] == [late.pk]


def test_seals_find_a_cut_off_record_without_any_seal_left(db: None) -> None:
    write_reads(2)
    seal()
    exported = export()
    lift_guards()
    for model in (TurnConversationRead, SealedRow, Seal):
        model.objects.all().delete()
    assert findings() == []
    assert [(one.seal, "cut off" in one.what) for one in findings(exported)] == [(1, True)]


GARBAGE = {
    "salts that are no mapping": (f"UPDATE {LEAVES} SET salts = '[]'", "changed"),
    "salts without one": (f"UPDATE {LEAVES} SET salts = '{{}}'", "changed"),
    "a digest that is none": (f"UPDATE {LEAVES} SET digest = 'zz'", "changed"),
}
ON_SQLITE = {
    "a date that is none": (f"UPDATE {READS} SET read_at = 'soon'", "no date"),
    "a date in no calendar": (f"UPDATE {READS} SET read_at = '2026-99-99 00:00:00'", "cannot even be read"),
    "a key that is none": (f"UPDATE {LEAVES} SET row_id = 'x'", "cannot even be read"),
    "a word for a number": (f"UPDATE {READS} SET characters = 'many'", "changed"),
}


@contextmanager
def without_checks() -> Iterator[None]:
    """On SQLite, a block in which a column takes anything; the connection would keep that for other tests."""
    if connection.vendor != "sqlite":
        yield
        return
    execute("PRAGMA ignore_check_constraints = ON")
    try:
        yield
    finally:
        execute("PRAGMA ignore_check_constraints = OFF")


@pytest.mark.parametrize("what", GARBAGE if connection.vendor == "postgresql" else GARBAGE | ON_SQLITE)
def test_seals_find_garbage(db: None, what: str) -> None:
    statement, says = (GARBAGE | ON_SQLITE)[what]
    write_reads(1)
    seal()
    lift_guards()
    with without_checks():
        execute(statement)
    assert any(says in one.what for one in findings())


def test_seals_say_where(db: None) -> None:
    key = uuid.uuid4()
    assert str(Finding(seal=7, row=key, what="gone")) == f"seal 7, row {key}: gone"
    assert str(Finding(seal=7, what="gone")) == "seal 7: gone"
    assert str(Finding(row=key, what="gone")) == f"row {key}: gone"
    assert str(Finding(what="gone")) == "the record: gone"


def test_seals_verify_in_the_same_memory_however_long_the_record_is(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a connection pooler too, where a cursor would send every row at once.

    Counted at every statement in the rows that PostgreSQL sent for it, which its driver holds, and in
    Python's blocks: a row that is held takes about thirty.
    """
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    held: list[int] = []
    sent: list[int] = []

    def count(execute: Any, sql: str, parameters: Any, many: bool, context: dict[str, Any]) -> Any:
        result = execute(sql, parameters, many, context)
        held.append(sys.getallocatedblocks())
        sent.append(context["cursor"].rowcount)
        return result

    write_reads(5_000)
    for sealed in (0, 5_000):
        assert not sealed or seal() == sealed
        held.clear()
        with connection.execute_wrapper(count):
            assert findings() == []
        assert len(held) > 10
        assert max(held) - held[0] < 100_000
    assert max(sent) <= 500


@pytest.mark.parametrize("page", [1, 2, 500])
def test_seals_verify_maintenance_in_pages(
    db: None, settings: Any, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """Several erasures and prunings, each of several values; and what no erasure explains is still found."""
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "NAMING_KEYS": ["person"]}
    monkeypatch.setattr(maintenance, "_PAGE", page)
    people = ("mara@hollowbrook.example", "jonas@hollowbrook.example")
    for seed, key in enumerate((*people, *people)):
        write_reads(3, seed=seed, reader_id=key, session_person_id=key)
        seal()
    for number in (1, 2):
        prune(by="operator", why="a test", through=number)
    for key in people:
        assert erase_person(key, by="operator", why="asked").values == 6
    assert findings() == []
    lift_guards()
    events = set(ErasedValue.objects.values_list("event_id", flat=True))
    MaintenanceEvent.objects.filter(pk__in=events).delete()
    assert {one.row for one in findings()} >= events


def test_seals_hash_to_the_same_for_ever() -> None:
    """A leaf, a root and a chain with known inputs: a change of the format would break every older seal."""
    row: dict[str, Any] = dict.fromkeys(leaves.columns_of(SealedKind.READ))
    row |= {"id": uuid.UUID(int=7), "reader_id": "mara", "characters": 5, "trigger_id": "łąka"}
    salts = {"row": "00", "reader_id": "11"}
    digest = leaves.leaf(SealedKind.READ, row, salts, {})
    kept = leaves.commitment("11", "reader_id", "mara")
    assert digest == leaves.leaf(
        SealedKind.READ, row | {"reader_id": leaves.ERASED}, {"row": "00"}, {"reader_id": kept}
    )
    assert digest == "4bd14bb3a20ac9044fb0943adb5bd2b4c5fd62d6c24788d6ccd3591387dc975d"
    assert (
        leaves.root([digest, digest, digest])
        == "3e148ea8511a6df860b2ef6f5a98be257a6f06952043f9adeb8188548218e60b"
    )
    assert (
        leaves.chain(1, ("read", None, 3), digest)
        == "7e23b367fe33167d1b039fd4c34b6de4c30d719bd55cfd3259d132cd0c957a3c"
    )


def test_seals_name_erased_values_in_any_order() -> None:
    one, two = (uuid.UUID(int=7), "reader_id", "00"), (uuid.UUID(int=1), "reader_id", "11")
    digest = leaves.erased_digest([one, two])
    assert digest == leaves.erased_digest([two, one]) == leaves.erased_digest_in_order([two, one])
    assert digest == "4fa008e353272ea7ec60ba5808217eb3fdc62a5e4125f55c94d2c54794cff178"
    assert len({digest, leaves.erased_digest([one]), leaves.erased_digest([])}) == 3


def test_seals_hold_when_a_later_release_adds_a_column(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An absent value is not hashed, and a value that can be erased later was not so when it was sealed."""
    write_reads(3)
    seal()
    columns, rows = leaves.columns_of, TurnConversationRead.objects.values()
    before = {row["id"]: SealedRow.objects.get(pk=row["id"]) for row in rows}
    monkeypatch.setattr(leaves, "columns_of", lambda kind: (*columns(kind), "added"))
    for row in rows:
        stored = before[row["id"]]
        assert leaves.leaf(SealedKind.READ, row | {"added": None}, stored.salts, {}) == stored.digest
        assert leaves.leaf(SealedKind.READ, row | {"added": ""}, stored.salts, {}) != stored.digest
