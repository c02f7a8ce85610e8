"""record-erasure goes step by step: readers do not wait, nobody deadlocks, and a cut-off one goes on."""

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from history_access import blanking, erasing, lifting
from history_access.erasing import erase_conversations, erase_person
from history_access.leaves import ERASED
from history_access.models import (
    EventKind,
    MaintenanceEvent,
    RecordedName,
    Refusal,
    Seal,
    TurnConversationRead,
)
from history_access.pruning import prune
from history_access.seals import OpenTransactionError, seal
from history_access.tools import list_conversations
from settings_catalog.models import SettingChange
from tests.sealed_records import execute, findings, kill, write_reads
from tests.test_record_append_only import missing_guards
from tests.test_record_erasing import WHO, naming
from tests.worlds import World

JONAS = "jonas@guests.example"

only_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="on SQLite one transaction writes, and nobody is inside"
)


@pytest.fixture(autouse=True)
def keys_that_name(settings: Any) -> None:
    naming(settings, "person")


def of_jonas(rows: int) -> None:
    """Reads of his conversations, some of them by himself, his name, and a refusal."""
    write_reads(rows, session_person_id=JONAS)
    write_reads(1, seed=1, session_person_id=JONAS, reader_id=JONAS)
    RecordedName.objects.create(workspace_id="w", kind="person", key=JONAS, name="Jonas")
    refusal()
    seal()


def refusal() -> None:
    given = {"workspace_id": "w", "agent_id": "a", "turn_id": "t", "reader_id": JONAS}
    Refusal.objects.create(**given, tool="", code="x", refused_at=timezone.now())


def change() -> None:
    SettingChange.objects.create(entry="x", level="platform", by_id=JONAS, changed_at=timezone.now(), why="x")


def left() -> int:
    """How many rows still hold his key."""
    reads = TurnConversationRead.objects
    held = (reads.filter(session_person_id=JONAS), reads.filter(reader_id=JONAS))
    logged = (Refusal.objects.filter(reader_id=JONAS), SettingChange.objects.filter(by_id=JONAS))
    return sum(rows.count() for rows in (*held, *logged, RecordedName.objects.filter(key=JONAS)))


def test_record_erasure_seals_an_event_for_each_step(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blanking, "CHUNK", 2)
    of_jonas(4)
    done: list[int] = []
    erased = erase_person(JONAS, progress=done.append, **WHO)
    assert (erased.names, erased.values, erased.left, sum(done)) == (1, 7, False, 7)
    events = MaintenanceEvent.objects.filter(kind=EventKind.ERASE, **WHO).order_by("id")
    told = [
        (one.details.get("table", "names").removeprefix("history_access_"), one.details) for one in events
    ]
    assert sorted((table, details["values"]) for table, details in told) == [
        ("names", 0),
        ("refusal", 1),
        ("turnconversationread", 2),
        ("turnconversationread", 2),
        ("turnconversationread", 2),
    ]
    assert (told[-1][0], told[-1][1]["names"]) == ("names", 1)
    assert left() == 0 and findings() == []


def test_record_erasure_goes_on_after_a_kill_at_any_statement(committed_db: None) -> None:
    """At every seventh, to be quick."""
    cut_off = 0
    for at in itertools.count(0, 7):
        of_jonas(2)
        ran = itertools.count()

        def kill_there(execute: Any, *rest: Any) -> Any:
            result = execute(*rest)
            if next(ran) == at:  # noqa: B023
                kill()
            return result

        try:
            with connection.execute_wrapper(kill_there):
                erase_person(JONAS, **WHO)
        except OperationalError:
            connection.close()
            cut_off += 1
            assert (findings(), missing_guards()) == ([], [])
            if left():
                erase_person(JONAS, **WHO)
            assert (left(), findings()) == (0, [])
        else:
            break
    assert cut_off > 7


def test_record_erasure_takes_as_many_statements_for_many_rows(committed_db: None) -> None:
    taken = []
    for rows in (2, 200):
        of_jonas(rows)
        with CaptureQueriesContext(connection) as statements:
            erase_person(JONAS, **WHO)
        taken.append(len(statements))
    assert taken[0] == taken[1]


def test_record_erasure_ends_where_more_is_written_than_goes(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seal_and_write() -> None:
        seal()
        write_reads(1, session_person_id=JONAS)

    monkeypatch.setattr(erasing, "seal", seal_and_write)
    write_reads(1, session_person_id=JONAS)
    assert erase_person(JONAS, **WHO).left is True
    assert findings() == []


def erase() -> None:
    erase_person(JONAS, **WHO)


def prune_all() -> None:
    prune(through=Seal.objects.latest("number").number, **WHO)


def note() -> None:
    erase_conversations(["7"], **WHO)


@contextmanager
def autocommit_off() -> Iterator[None]:
    connection.set_autocommit(False)
    try:
        yield
    finally:
        connection.rollback()
        connection.set_autocommit(True)


@pytest.mark.parametrize("inside", [transaction.atomic, autocommit_off])
@pytest.mark.parametrize("job", [erase, prune_all, note, seal])
def test_record_erasure_says_where_it_could_not_commit(
    committed_db: None, inside: Any, job: Callable[[], Any]
) -> None:
    """Else it would report what somebody can still roll back; pruning and sealing too."""
    of_jonas(1)
    before = left()
    with pytest.raises(OpenTransactionError, match="AUTOCOMMIT on"), inside():
        job()
    assert (left(), MaintenanceEvent.objects.count()) == (before, 0)
    job()


class Holder:
    """Somebody's own transaction on a thread of its own, step by step."""

    def __init__(
        self, threads: ThreadPoolExecutor, first: Callable[[], Any], then: Callable[[], Any]
    ) -> None:
        self._began, self._go_on = threading.Event(), threading.Event()
        self._job: Future[None] = threads.submit(self._run, first, then)
        assert self._began.wait(20)

    def _run(self, first: Callable[[], Any], then: Callable[[], Any]) -> None:
        try:
            with transaction.atomic():
                first()
                self._began.set()
                assert self._go_on.wait(30)
                then()
        finally:
            connection.close()

    def go_on(self) -> None:
        self._go_on.set()
        self._job.result(30)


def closing(job: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        try:
            return job()
        finally:
            connection.close()

    return run


def wait_until_somebody_waits_for(table: str) -> None:
    sql = (
        "SELECT count(*) FROM pg_locks JOIN pg_class ON relation = pg_class.oid "
        "WHERE NOT granted AND relname = %s"
    )
    for _ in range(3000):
        with connection.cursor() as cursor:
            cursor.execute(sql, [table])
            if cursor.fetchone() != (0,):
                return
        threading.Event().wait(0.01)
    raise AssertionError(f"nobody waits for {table}")


@only_postgresql
@pytest.mark.parametrize(("first", "then"), [(refusal, change), (change, refusal)])
def test_record_erasure_and_a_callers_transaction_do_not_deadlock(
    committed_db: None, first: Callable[[], Any], then: Callable[[], Any]
) -> None:
    """A refusal and a change of a setting in one transaction, in either order; both logs are blanked."""
    of_jonas(1)
    change()
    table = "history_access_refusal" if first is refusal else "settings_catalog_settingchange"
    with ThreadPoolExecutor(2) as threads:
        holder = Holder(threads, first, then)
        erasing = threads.submit(closing(erase))
        wait_until_somebody_waits_for(table)
        holder.go_on()
        erasing.result(60)
    if left():
        erase()
    assert left() == 0 and findings() == []


@only_postgresql
@pytest.mark.parametrize("job", [erase, prune_all])
def test_record_erasure_lets_readers_pass_while_it_waits(open_world: World, job: Callable[[], Any]) -> None:
    """Somebody holds the table; an erasure or a pruning waits for it; a reader does not queue behind that."""
    open_world.allow("all_accounts")
    open_world.session("hello", person=open_world.mara)
    turn = open_world.turn(open_world.mara)
    of_jonas(1)
    with ThreadPoolExecutor(3) as threads:
        holder = Holder(threads, lambda: write_reads(1, seed=7), lambda: None)
        waiting = threads.submit(closing(job))
        wait_until_somebody_waits_for("history_access_turnconversationread")
        reading = threads.submit(closing(lambda: list_conversations(turn)))
        assert len(reading.result(10).conversations) == 1
        assert not waiting.done()
        holder.go_on()
        waiting.result(60)
    assert findings() == []


@only_postgresql
def test_record_erasure_gives_up_where_somebody_keeps_the_tables(
    committed_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The logs were done by then, and stay so; the next run goes on."""
    monkeypatch.setattr(lifting, "PATIENCE", "50ms")
    monkeypatch.setattr(lifting, "PAUSES", (0.01,))
    of_jonas(1)
    with ThreadPoolExecutor(1) as threads:
        holder = Holder(
            threads, lambda: execute(f"LOCK {TurnConversationRead._meta.db_table} IN SHARE MODE"), int
        )
        with pytest.raises(OperationalError, match="lock timeout"):
            erase()
        holder.go_on()
    assert Refusal.objects.get().reader_id == ERASED
    assert left() == 4 and findings() == []
    erase()
    assert left() == 0 and findings() == []
