"""record-sealed: a clock that is wrong, or is set, is no tampering; what is put in late still is."""

import os
import random
from datetime import datetime, timedelta
from unittest import mock

import pytest
from django.db import DEFAULT_DB_ALIAS, connection
from django.utils import timezone

from history_access.models import EventKind, Seal, TurnConversationRead
from history_access.seals import record_event, seal, sealing, taken_back, waiting
from history_access.tools import toolset_for
from history_access.verifying import ONE_READING
from settings_catalog.keys import uuid7_at
from tests.sealed_records import a_read, clock, findings, key_at, write_reads
from tests.worlds import World, pages

NOW = datetime.fromisoformat("2026-11-29T17:00:00+00:00")
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
RECORDS = int(os.environ.get("TAMPERED_RECORDS", "3"))

pytestmark = pytest.mark.django_db


def read_and_seal(moment: datetime, seed: int) -> None:
    with clock(moment):
        write_reads(1, moment, seed=seed)
        assert findings() == []
        seal()
        assert findings() == []


def numbers_taken_back() -> list[int]:
    return [one.number for one in taken_back(DEFAULT_DB_ALIAS)]


@pytest.mark.parametrize("back", [10 * MINUTE, 3 * HOUR, timedelta(days=400)])
def test_seals_promise_anew_once_the_clock_was_set_back(back: timedelta) -> None:
    """An empty seal takes the old promise back, where everybody can see it; the new one holds."""
    read_and_seal(NOW, 1)
    read_and_seal(NOW - back, 2)
    assert numbers_taken_back() == [2]
    promises = list(Seal.objects.order_by("number").values_list("complete_before", flat=True))
    assert promises == [NOW - MINUTE, None, NOW - back - MINUTE]
    read_and_seal(NOW - back + MINUTE, 3)
    [late] = write_reads(1, NOW - back - 2 * HOUR, seed=4)
    with clock(NOW - back + 2 * MINUTE):
        assert [one.row for one in findings()] == [late.pk]
        seal()
        assert [one.row for one in findings()] == [late.pk]
    assert numbers_taken_back() == [2]


def test_seals_do_not_take_another_clock_for_one_that_was_set_back() -> None:
    """Two sealers whose clocks are some minutes apart: neither takes back what the other promised."""
    for minutes in (0, 3, 1, 5, 2):
        read_and_seal(NOW + minutes * MINUTE, minutes)
    assert numbers_taken_back() == []


def test_seals_of_events_follow_a_clock_that_was_set_back() -> None:
    read_and_seal(NOW, 1)
    with clock(NOW - 3 * HOUR):
        with sealing(DEFAULT_DB_ALIAS):
            record_event(EventKind.ERASE, by="7", why="asked", details={}, using=DEFAULT_DB_ALIAS)
        assert findings() == []
    assert numbers_taken_back() == [2]


def test_seals_promise_again_though_nothing_was_read_since_the_clock_was_set_back() -> None:
    read_and_seal(NOW, 1)
    with clock(NOW - 3 * HOUR):
        seal()
    assert Seal.objects.latest("number").complete_before == NOW - 3 * HOUR - MINUTE


def test_seals_take_new_rows_quickly_after_the_clock_was_set_back() -> None:
    read_and_seal(NOW, 1)
    for back in (4 * MINUTE, 3 * HOUR):
        with clock(NOW - back):
            write_reads(1, NOW - back, seed=2 + back.seconds)
            assert waiting().rows == 1
            assert seal(quick=True) == 1


@pytest.mark.skipif(connection.vendor == "sqlite", reason="its clock is this machine's")
def test_seals_promise_nothing_for_hours_to_come() -> None:
    """By a sealer whose own clock is ahead: the database's is asked too."""
    before = timezone.now()
    write_reads(1, before)
    with mock.patch("django.utils.timezone.now", lambda: before + timedelta(days=1)):
        seal()
    assert before - MINUTE <= Seal.objects.get().complete_before <= timezone.now()
    read_and_seal(timezone.now(), 2)


@pytest.mark.parametrize("back", [0, 3, 400 * 24])
def test_seals_hold_for_real_reads_by_a_process_whose_clock_is_set_back(world: World, back: int) -> None:
    """Its version 7 keys, which only ever grow, would tell the time before."""
    world.allow("all_accounts")
    session = world.session("hello", "there", person=world.mara)
    tools = toolset_for(world.turn(world.mara))
    pages(tools, session.pk)
    seal()
    with clock(timezone.now() - back * HOUR):
        pages(tools, session.pk)
        assert findings() == []
        seal()
        assert findings() == []


@pytest.mark.parametrize("seed", range(RECORDS))
def test_seals_never_take_a_clock_that_steps_for_tampering(seed: int) -> None:
    """By minutes or days, to and fro, while a sealer runs; then an old read is put in under a new key."""
    source, moment = random.Random(seed), NOW
    for _ in range(20):
        days = source.choice([0, 0, 0.02, 0.2, 10])
        moment += timedelta(days=source.uniform(-days, days), minutes=source.uniform(0, 5))
        with clock(moment):
            TurnConversationRead.objects.bulk_create(
                a_read(moment, source) for _ in range(source.randrange(3))
            )
            if source.random() < 0.5:
                assert findings() == []
            seal(quick=source.random() < 0.5)
    with clock(moment):
        assert findings() == []
        old = source.choice(list(TurnConversationRead.objects.exclude(read_at=moment).order_by("pk")))
        old.pk = key_at(moment, source)
        old.save(force_insert=True)
        assert [one.row for one in findings()] == [old.pk]
        seal()
        assert [one.row for one in findings()] == [old.pk]


@pytest.mark.parametrize("apart", [-1, 1])
def test_seals_hold_a_read_to_the_time_of_its_key(apart: int) -> None:
    source = random.Random(1)
    for seconds, faults in ((0.9, 0), (1.1, 1)):
        new = a_read(NOW, source, id=key_at(NOW + apart * seconds * ONE_READING, source))
        new.save(force_insert=True)
        assert len(findings()) == faults


def test_keys_of_a_moment_sort_by_it_and_say_so() -> None:
    moments = [NOW + timedelta(microseconds=step) for step in range(0, 3000, 7)]
    keys = [uuid7_at(moment) for moment in moments]
    assert keys == sorted(keys)
    assert {key.version for key in keys} == {7}
    assert {key.variant for key in keys} == {"specified in RFC 4122"}
    assert [key.int >> 80 for key in keys] == [int(moment.timestamp() * 1000) for moment in moments]
    assert len({uuid7_at(NOW) for _ in range(1000)}) == 1000
