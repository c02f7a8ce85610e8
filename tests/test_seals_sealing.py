"""record-sealed: every row is sealed once, in order, in batches, whatever interrupts it."""

import itertools
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, IntegrityError, OperationalError, connection, transaction

from history_access import leaves, seals
from history_access.models import EventKind, Seal, SealedKind, SealedRow
from history_access.seals import (
    OpenTransactionError,
    export,
    record_event,
    seal,
    seal_batches,
    sealing,
    waiting,
)
from history_access.tools import toolset_for
from tests.sealed_records import clock, event, execute, findings, key_at, whole, write_reads
from tests.worlds import World, pages

NOW = datetime.fromisoformat("2026-11-29T17:00:00+00:00")
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def kill() -> None:
    """The sealer ends here, as when its process is killed: nobody but the database clears up."""
    if connection.vendor == "sqlite":
        connection.connection.rollback()  # as whoever opens the file next does
    else:
        connection.connection.close()
    raise OperationalError("killed")


def counts() -> list[int]:
    return list(Seal.objects.order_by("number").values_list("rows", flat=True))


def test_seals_take_rows_in_order_in_batches(db: None) -> None:
    with clock(NOW):
        write_reads(4, NOW - HOUR, seed=1)
        write_reads(3, NOW - 2 * HOUR, seed=2)
        assert seal(size=3) == 7
    assert counts() == [3, 3, 1]
    stored = list(SealedRow.objects.order_by("seal_number", "position"))
    assert [one.row_id for one in stored] == sorted(one.row_id for one in stored)
    assert [one.position for one in stored] == [0, 1, 2, 0, 1, 2, 0]
    assert whole()


def test_seals_are_chained(db: None) -> None:
    for seed in range(3):
        write_reads(2, seed=seed)
        seal()
    first, second, third = Seal.objects.order_by("number")
    assert [first.number, second.number, third.number] == [1, 2, 3]
    assert [first.previous, second.previous] == [leaves.NO_ROWS, first.digest]
    assert third.previous == second.digest
    assert len({first.digest, second.digest, third.digest}) == 3


def test_seals_say_up_to_when_the_record_is_complete(db: None) -> None:
    """Only a batch that was not full has seen everything."""
    write_reads(3, NOW - HOUR)
    with clock(NOW):
        assert [one.complete_before for one in seal_batches(size=2)] == [None, NOW - MINUTE]
    write_reads(3, NOW + 2 * MINUTE, seed=1)
    with clock(NOW + HOUR):
        completes = [one.complete_before for one in seal_batches(size=2)]
    assert completes == [NOW - MINUTE, NOW + HOUR - MINUTE]


def test_seals_know_that_a_batch_was_the_last_one_though_it_is_full(db: None) -> None:
    write_reads(4, NOW - HOUR)
    with clock(NOW):
        assert [one.complete_before for one in seal_batches(size=2)] == [None, NOW - MINUTE]


def test_seals_say_so_of_a_quiet_time_too_at_most_once_an_hour(db: None) -> None:
    assert [seal(), *counts()] == [0]
    write_reads(1, NOW)
    for minutes in (1, 2, 60, 62, 63, 122, 124):
        with clock(NOW + minutes * MINUTE):
            seal()
    assert counts() == [1, 0, 0]
    assert Seal.objects.latest("number").complete_before == NOW + 123 * MINUTE
    assert findings() == []


def test_seals_of_events_are_their_own(db: None) -> None:
    write_reads(2)
    event(EventKind.ERASE, datetime.now().astimezone())
    assert seal() == 3
    assert list(Seal.objects.order_by("number").values_list("kind", "rows")) == [("event", 1), ("read", 2)]
    assert whole()


def test_seals_take_an_event_in_the_transaction_of_what_it_tells(db: None) -> None:
    write_reads(2)
    with sealing(DEFAULT_DB_ALIAS):
        made = record_event(EventKind.ERASE, by="7", why="asked", details={}, using=DEFAULT_DB_ALIAS)
    assert SealedRow.objects.get(pk=made.pk).kind == SealedKind.EVENT
    assert seal() == 2
    assert whole()


def test_seals_hold_for_real_reads_and_hide_what_they_hash(world: World) -> None:
    world.allow("all_accounts")
    session = world.session("hello", "there", person=world.mara, account=world.acme)
    turn = world.turn(world.mara)
    pages(toolset_for(turn), session.pk)
    pages(toolset_for(turn), session.pk)
    assert seal() == 2
    assert whole()
    one, two = SealedRow.objects.all()
    assert set(one.salts) == {"row", *leaves.ERASABLE[SealedKind.READ]}
    assert not set(one.salts.values()) & set(two.salts.values())


def test_seals_are_made_outside_of_a_transaction(db: None) -> None:
    with pytest.raises(OpenTransactionError, match="call them outside transaction"), transaction.atomic():
        seal()


def test_seals_cannot_be_changed(db: None) -> None:
    write_reads(1)
    seal()
    for table in ("history_access_seal", "history_access_sealedrow"):
        for attempt in (f"DELETE FROM {table}", f"UPDATE {table} SET digest = ''"):
            with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
                execute(attempt)


def test_seals_find_rows_that_are_late_by_a_whole_pass(db: None) -> None:
    """A quick pass finds those of the last minutes, as a sealer that runs all the time has them."""
    write_reads(2, NOW - MINUTE)
    with clock(NOW):
        seal()
    write_reads(1, NOW - 1.5 * MINUTE, seed=1)
    write_reads(1, NOW - 20 * MINUTE, seed=2)
    with clock(NOW + MINUTE):
        assert [seal(quick=True), seal(quick=True), seal(), seal()] == [1, 0, 1, 0]
    assert whole()


def test_seals_tell_what_waits(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (waiting().rows, waiting().oldest) == (0, None)
    write_reads(2, NOW - 10 * MINUTE)
    with clock(NOW):
        assert (waiting().rows, waiting().oldest) == (2, 10 * MINUTE)
        seal()
        assert (waiting().rows, waiting().oldest) == (0, None)
    write_reads(3, NOW + MINUTE, seed=1)
    with clock(NOW + 3 * MINUTE):
        assert (waiting().rows, waiting().oldest) == (3, 2 * MINUTE)
    monkeypatch.setattr(seals, "MOST_COUNTED", 2)
    assert waiting().rows == 2


def test_seals_tell_what_waits_in_few_statements(db: None, statements: Any) -> None:
    write_reads(2)
    with statements(5):
        waiting()


def test_seals_are_exported(db: None) -> None:
    with pytest.raises(LookupError, match="nothing has been sealed"):
        export()
    write_reads(5)
    seal(size=3)
    newest = Seal.objects.latest("number")
    assert export() == {
        "number": 2,
        "digest": newest.digest,
        "sealed_at": newest.sealed_at.isoformat(),
        "complete_before": newest.complete_before.isoformat(),
        "root": newest.root,
        "rows": 2,
        "rows_so_far": 5,
    }


def test_seals_are_whole_after_a_kill_at_any_statement(committed_db: None) -> None:
    """Sealing again misses nothing and repeats nothing."""
    for at in itertools.count():
        write_reads(5, seed=at)
        event(EventKind.ERASE, datetime.now().astimezone(), number=at)
        ran = itertools.count()

        def kill_there(execute: Any, *rest: Any) -> Any:
            result = execute(*rest)
            if next(ran) == at:  # noqa: B023
                kill()
            return result

        try:
            with connection.execute_wrapper(kill_there):
                seal(size=2)
        except OperationalError:
            connection.close()
            assert findings() == []
            seal(size=2)
            assert whole()
        else:
            break
    assert at >= 16
    assert sum(counts()) == 6 * (at + 1)


def test_seals_are_whole_after_a_kill_at_the_commit(
    committed_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reads(3)
    with monkeypatch.context() as patched:
        patched.setattr(connection, "_commit", kill)
        with pytest.raises(OperationalError, match="killed"):
            seal()
    connection.close()
    assert (counts(), findings()) == ([], [])
    assert seal() == 3
    assert whole()


def test_seals_can_be_ended_between_batches(db: None) -> None:
    write_reads(5)
    batches = seal_batches(size=2)
    next(batches)
    batches.close()
    assert counts() == [2]
    assert seal(size=2) == 3
    assert whole()


@pytest.mark.parametrize("milliseconds", [0, 2**48 - 1])
def test_seals_read_the_time_of_any_key(milliseconds: int) -> None:
    """A key that no clock has made is dated at the end of time, so that it differs from any read."""
    key = seals._key(milliseconds)
    assert seals.moment_of(key).year in (1970, 9999)


def test_seals_read_the_time_of_a_key() -> None:
    import random

    assert seals.moment_of(key_at(NOW, random.Random(1))) == NOW
