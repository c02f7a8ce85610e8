"""record-sealed: a pruned record verifies, since a sealed event says what was pruned; nothing else may go."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.utils import timezone

from history_access import lifting, seals
from history_access.models import (
    ErasedValue,
    MaintenanceEvent,
    Seal,
    SealedKind,
    SealedRow,
    TurnConversationRead,
)
from history_access.pruning import Pruned, PruneError, prune
from history_access.seals import export, seal
from history_access.testing import lift_guards, put_back_guards
from tests.sealed_records import SealedRecord, clock, execute, findings, kill, write_reads
from tests.test_record_append_only import missing_guards


def batches(*sizes: int) -> None:
    """A seal of each size, one day after the other, the last one now."""
    now = timezone.now()
    for days, size in enumerate(reversed(sizes)):
        write_reads(size, now - timedelta(days=len(sizes) - 1 - days), seed=days)
    for days, size in enumerate(sizes):
        with clock(now - timedelta(days=len(sizes) - 1 - days)):
            one = list(itertools.islice(seals.seal_batches(size=size), 1))
            assert [made.rows for made in one] == [size]


def pruned(**given: Any) -> list[tuple[int, int, int]]:
    removed = prune(by="operator", why="a year is over", **given)
    return [(one.first, one.last, one.rows) for one in removed]


def left() -> dict[int, int]:
    """How many leaves each seal of reads still has."""
    numbers = SealedRow.objects.filter(kind=SealedKind.READ).values_list("seal_number", flat=True)
    return {number: list(numbers).count(number) for number in sorted(set(numbers))}


def test_seals_verify_after_pruning(db: None) -> None:
    batches(2, 2, 2)
    before = list(Seal.objects.order_by("number").values())
    exported = export()
    assert pruned(through=2) == [(1, 2, 4)]
    assert left() == {3: 2}
    assert TurnConversationRead.objects.count() == 2
    assert list(Seal.objects.filter(number__lte=3).order_by("number").values()) == before
    assert findings() == findings(exported) == []
    event = MaintenanceEvent.objects.get()
    assert (event.kind, event.by, event.why) == ("prune", "operator", "a year is over")
    assert event.details == {"first_seal": 1, "last_seal": 2, "rows": 4}
    assert SealedRow.objects.get(pk=event.pk).seal_number == 4


def test_seals_do_not_verify_after_the_same_deletion_by_hand(db: None) -> None:
    batches(2, 2, 2)
    lift_guards()
    stored = SealedRow.objects.filter(seal_number__lte=2)
    TurnConversationRead.objects.filter(pk__in=stored.values("row_id")).delete()
    stored.delete()
    assert [(one.seal, "no sealed event" in one.what) for one in findings()] == [(1, True), (2, True)]


def test_seals_are_pruned_together_up_to_a_batch(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    batches(2, 2, 3, 6, 1)
    monkeypatch.setitem(seals.BATCH, connection.vendor, 5)
    assert pruned(through=5, dry_run=True) == [(1, 2, 4), (3, 3, 3), (4, 4, 6), (5, 5, 1)]
    assert pruned(through=4) == [(1, 2, 4), (3, 3, 3), (4, 4, 6)]
    assert left() == {5: 1}
    assert findings() == []


def test_seals_of_events_are_never_pruned(db: None) -> None:
    batches(2, 2)
    pruned(through=1)
    write_reads(1, seed=9)
    seal()
    assert list(Seal.objects.order_by("number").values_list("kind", flat=True)) == [
        "read",
        "read",
        "event",
        "read",
    ]
    assert pruned(through=4) == [(2, 2, 2), (4, 4, 1)]
    assert MaintenanceEvent.objects.count() == SealedRow.objects.count() == 3
    assert pruned(through=4) == []
    assert findings() == []


def test_seals_are_pruned_by_age(db: None) -> None:
    batches(1, 1, 1, 1)
    with clock(timezone.now() - timedelta(minutes=1)):
        assert pruned(keep_days=3) == []
    with clock(timezone.now() + timedelta(minutes=1)):
        assert pruned(keep_days=2) == [(1, 2, 2)]
    assert left() == {3: 1, 4: 1}


def test_seals_are_pruned_without_rows_that_wait(db: None) -> None:
    batches(1)
    write_reads(2, seed=5)
    assert pruned(through=1) == [(1, 1, 1)]
    assert TurnConversationRead.objects.count() == 2


def test_seals_are_pruned_after_an_erasure(db: None) -> None:
    SealedRecord(5)
    assert pruned(through=Seal.objects.latest("number").number)
    assert ErasedValue.objects.count() == 1
    assert left() == {}
    assert findings() == []


def test_seals_are_pruned_in_a_dry_run_of_nothing(db: None) -> None:
    batches(2)
    assert prune(by="", why="", through=1, dry_run=True) == [Pruned(first=1, last=1, rows=2)]
    assert (left(), MaintenanceEvent.objects.count()) == ({1: 2}, 0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"by": ""}, "by: "),
        ({"by": " "}, "by: "),
        ({"by": "x" * 256}, "by: "),
        ({"by": "\0"}, "by: "),
        ({"why": ""}, "why: "),
        ({"why": "\udcff"}, "why: "),
        ({"why": "a\0b"}, "why: "),
        ({"through": None}, "give one of the two"),
        ({"keep_days": 7}, "give one of the two"),
        ({"through": 0}, "through: there is no seal 0"),
        ({"through": 3}, "through: there is no seal 3"),
        ({"through": -1}, "through: "),
        ({"through": 2**70}, "through: "),
        ({"through": None, "keep_days": 0}, "keep_days: "),
        ({"through": None, "keep_days": -1}, "keep_days: "),
        ({"through": None, "keep_days": 10**9}, "keep_days: "),
    ],
)
def test_seals_are_not_pruned_for_nobody_or_no_reason(db: None, given: dict[str, Any], says: str) -> None:
    batches(1, 1)
    with pytest.raises(ValueError, match=says):
        prune(**{"by": "operator", "why": "a year is over", "through": 1} | given)
    assert left() == {1: 1, 2: 1}


def test_seals_that_do_not_verify_are_not_pruned(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """They prove that somebody tampered; what was pruned before them stays pruned."""
    batches(1, 1, 1)
    monkeypatch.setitem(seals.BATCH, connection.vendor, 1)
    lift_guards()
    key = SealedRow.objects.get(seal_number=2).pk
    TurnConversationRead.objects.filter(pk=key).update(characters=7)
    put_back_guards()
    done: list[Pruned] = []
    with pytest.raises(PruneError, match=f"seal 2, row {key}"):
        prune(by="operator", why="a year is over", through=3, progress=done.append)
    assert done == [Pruned(first=1, last=1, rows=1)]
    assert left() == {2: 1, 3: 1}


def test_seals_are_pruned_once(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at the same time: what the other one removed is not recorded twice."""
    batches(1, 1)
    monkeypatch.setitem(seals.BATCH, connection.vendor, 1)
    with pytest.raises(PruneError, match="somebody else"):
        prune(by="a", why="first", through=2, progress=lambda _: pruned(through=2))
    assert MaintenanceEvent.objects.count() == 2
    assert findings() == []


def test_seals_are_pruned_with_every_guard_back(db: None) -> None:
    batches(1, 1)
    pruned(through=1)
    assert missing_guards() == []
    for table in ("history_access_turnconversationread", "history_access_sealedrow"):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            execute(f"DELETE FROM {table}")


def test_seals_are_pruned_with_only_their_tables_open(db: None) -> None:
    """While reads are deleted, nothing can be changed, and no seal or event deleted."""
    batches(1, 1)
    standing: set[str] = set()

    def look(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("DELETE") and not standing:
            standing.update(missing_names())
        return execute(sql, *rest)

    with connection.execute_wrapper(look):
        pruned(through=1)
    assert standing == {"history_access_turnconversationread_no_delete", "history_access_sealedrow_no_delete"}


def missing_names() -> set[str]:
    from history_access.testing.guards import all_guards
    from settings_catalog.guards import missing

    return {guard.name for guard in missing(connection, all_guards())}


def test_seals_are_whole_after_a_kill_at_any_statement_of_pruning(committed_db: None) -> None:
    for at in itertools.count():
        write_reads(2, seed=at)
        seal()
        newest = Seal.objects.latest("number").number
        ran = itertools.count()

        def kill_there(execute: Any, *rest: Any) -> Any:
            result = execute(*rest)
            if next(ran) == at:  # noqa: B023
                kill()
            return result

        try:
            with connection.execute_wrapper(kill_there):
                pruned(through=newest)
        except OperationalError:
            connection.close()
            assert (left(), findings(), missing_guards()) == ({newest: 2}, [], [])
            pruned(through=newest)
            assert (left(), findings()) == ({}, [])
        else:
            break
    assert at > 15


@pytest.mark.skipif(connection.vendor != "postgresql", reason="on SQLite nobody else is inside")
def test_seals_are_not_pruned_while_somebody_would_be_kept_waiting(
    committed_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader's long transaction holds the table: pruning gives up, and does not queue before the others."""
    batches(1, 1)
    monkeypatch.setattr(lifting, "PATIENCE", "50ms")
    monkeypatch.setattr(lifting, "PAUSES", (0.01,))
    inserted, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                write_reads(1, seed=7)
                inserted.set()
                go_on.wait(20)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        holding = threads.submit(hold)
        inserted.wait(20)
        with pytest.raises(OperationalError, match="lock timeout"):
            pruned(through=1)
        go_on.set()
        holding.result(20)
    assert left() == {1: 1, 2: 1}
    assert pruned(through=1) == [(1, 1, 1)]
