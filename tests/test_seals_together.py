"""record-sealed off the read path: sealers, readers, verifiers and pruners at the same time."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from history_access import sealed
from history_access.erasing import erase_person
from history_access.models import ErasedValue, Seal, SealedRow, TurnConversationRead
from history_access.pruning import prune
from history_access.seals import seal, seal_batches
from history_access.tools import Toolset, toolset_for
from history_access.verifying import verify
from tests.sealed_records import whole, write_reads
from tests.worlds import World, pages

READS = 25
POSTGRESQL = connection.vendor == "postgresql"


def alongside(job: Callable[[], Any]) -> Callable[[], Any]:
    """The job for another thread, whose connection is closed when it is done."""

    def run() -> Any:
        try:
            return job()
        finally:
            connection.close()

    return run


def readers(world: World) -> tuple[Toolset, Any]:
    world.allow("all_accounts")
    session = world.session("hello", "there", person=world.mara)
    return toolset_for(world.turn(world.mara)), session.pk


@pytest.mark.skipif(not POSTGRESQL, reason="SQLite has one writer at a time: nothing commits late")
def test_seals_do_not_miss_what_is_committed_late(committed_db: None) -> None:
    """A transaction that inserts first and commits after the sealer ran, with an older key."""
    inserted, go_on = threading.Event(), threading.Event()

    def late() -> None:
        with transaction.atomic():
            write_reads(2, seed=1)
            inserted.set()
            go_on.wait(20)

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(alongside(late))
        inserted.wait(20)
        write_reads(2, seed=2)
        assert seal(quick=True) == 2
        go_on.set()
        running.result(20)
    oldest = TurnConversationRead.objects.order_by("pk").values_list("pk", flat=True)[0]
    assert not SealedRow.objects.filter(pk=oldest).exists(), "it was not late: the test proves nothing"
    assert seal(quick=True) == 2
    assert whole()


def test_seals_keep_up_with_readers_who_do_not_wait(open_world: World) -> None:
    """Reads by the tools on two threads, while a sealer runs all the time."""
    tools, key = readers(open_world)
    ended = threading.Event()

    def read() -> None:
        for _ in range(READS):
            pages(tools, key)
            time.sleep(0.005)

    def seal_on() -> int:
        rows = 0
        while not ended.is_set():
            rows += seal(size=20, quick=True)
            ended.wait(0.02)
        return rows

    with ThreadPoolExecutor(3) as threads:
        sealing = threads.submit(alongside(seal_on))
        reading = [threads.submit(alongside(read)) for _ in range(2)]
        for one in reading:
            one.result(60)
        ended.set()
    assert sealing.result() > READS
    seal()
    assert whole()
    assert SealedRow.objects.count() == 2 * READS


@pytest.mark.skipif(not POSTGRESQL, reason="on SQLite a batch is the one writer for its milliseconds")
def test_seals_keep_nobody_waiting_at_any_of_their_statements(open_world: World) -> None:
    tools, key = readers(open_world)
    pages(tools, key)
    read = 1

    def pause(execute: Any, *rest: Any) -> Any:
        nonlocal read
        result = execute(*rest)
        threads.submit(alongside(lambda: pages(tools, key))).result(20)
        read += 1
        return result

    with ThreadPoolExecutor(1) as threads, connection.execute_wrapper(pause):
        seal()
    assert read > 5
    seal()
    assert whole()
    assert SealedRow.objects.count() == read


def test_seals_by_two_sealers_at_once(committed_db: None) -> None:
    write_reads(120)
    start = threading.Barrier(2)

    def sealer() -> int:
        start.wait(20)
        return seal(size=5)

    with ThreadPoolExecutor(2) as threads:
        running = [threads.submit(alongside(sealer)) for _ in range(2)]
        assert sum(one.result(60) for one in running) == 120
    assert whole()
    assert Seal.objects.count() == 24


def test_seals_by_a_sealer_while_somebody_is_erased(committed_db: None, settings: Any) -> None:
    """Reads of that person are sealed meanwhile: a value is erased with its salt, or not at all."""
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "NAMING_KEYS": ["person"]}
    write_reads(30, reader_id="mara@hollowbrook.example", session_person_id="mara@hollowbrook.example")
    begun, ended = threading.Event(), threading.Event()

    def seal_on() -> int:
        batches = seal_batches(size=2)
        rows = next(batches).rows
        begun.set()
        rows += sum(one.rows for one in batches)
        while not ended.is_set():
            write_reads(2, seed=rows, reader_id="7", session_person_id=None)
            rows += seal(size=2)
        return rows

    with ThreadPoolExecutor(1) as threads:
        sealer = threads.submit(alongside(seal_on))
        begun.wait(20)
        erased = erase_person("mara@hollowbrook.example", by="operator", why="asked")
        ended.set()
        assert sealer.result(60) >= 2
    assert erased.values == ErasedValue.objects.count() == 60
    for column in ("reader_id", "session_person_id"):
        assert not TurnConversationRead.objects.filter(**{column: "mara@hollowbrook.example"}).exists()
    seal()
    assert whole()


def test_seals_verify_while_they_are_made_and_pruned(
    committed_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verifier sees the record as it was when it began, and keeps nobody from writing."""
    monkeypatch.setattr(sealed, "_CHUNK", 1)  # so that it still has to fetch rows when they are gone
    for seed in range(4):
        write_reads(5, seed=seed)
        seal()

    def change() -> None:
        write_reads(5, seed=9)
        seal()
        prune(by="7", why="a test", through=3)

    def pause(rows: int) -> None:
        if not changed:
            changed.append(threads.submit(alongside(change)).result(20))

    changed: list[None] = []
    with ThreadPoolExecutor(1) as threads:
        assert list(verify(progress=pause)) == []
    assert changed and TurnConversationRead.objects.count() == 10
    assert whole()
