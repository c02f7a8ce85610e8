"""The agent platform's writes are right under concurrency, and its tables refuse what must not be.

reach-fixed-session, reach-not-deleted, tool-count, tool-summary, tool-text-is-hostile.
"""

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import RestrictedError
from django.utils import timezone

from history_access.agent_platform import services
from history_access.agent_platform.models import Account, Agent, Message, Session, Turn, Workspace
from history_access.agent_platform.services import (
    ErasedSourceError,
    SessionClosedError,
    TurnRefusedError,
)
from tests.worlds import NOON, World


def at_once(*jobs: Callable[[], Any]) -> list[BaseException]:
    """Run jobs in threads that start together, each on its own connection, and return what they raised."""
    barrier, raised = threading.Barrier(len(jobs)), []

    def run(job: Callable[[], Any]) -> None:
        try:
            barrier.wait()
            job()
        except BaseException as error:
            raised.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_two_writers_append_to_one_session(open_world: World) -> None:
    """Numbers without gaps or doubles, counts exact, and last_moved_at never goes back."""
    session = open_world.session(person=open_world.mara)

    def write(offset: int, role: str) -> Callable[[], None]:
        def job() -> None:
            for index in range(12):
                moved = NOON + timedelta(minutes=offset * 12 + 12 - index)
                services.add_message(session, role, f"{role} {index}", at=moved)

        return job

    assert at_once(write(0, "person"), write(1, "agent"), write(2, "tool"), write(0, "system")) == []
    session.refresh_from_db()
    numbers = list(session.messages.order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, 49))
    assert session.message_count == 24
    assert session.last_moved_at == NOON + timedelta(minutes=36)


def test_a_trim_and_a_writer_at_once_keep_the_count(open_world: World) -> None:
    session = open_world.session(*["words"] * 10, person=open_world.mara)
    appending = [
        lambda: [services.add_message(session, "person", "more") for _ in range(8)] for _ in range(2)
    ]
    trimming = [lambda: [services.trim_session(session, before=n) for n in (3, 6, 9)]]
    assert at_once(*appending, *trimming) == []
    session.refresh_from_db()
    assert session.message_count == session.messages.filter(Message.readable()).count() == 18
    assert session.trimmed_before == 9


def test_a_deletion_and_a_writer_at_once_leave_nothing_after_the_deletion(open_world: World) -> None:
    session = open_world.session("words", person=open_world.mara)

    def write() -> None:
        for _ in range(20):
            services.add_message(session, "person", "more")

    raised = at_once(write, lambda: services.delete_session(session))
    assert all(isinstance(error, SessionClosedError) for error in raised)
    session.refresh_from_db()
    assert session.message_count == session.messages.count()


@pytest.mark.parametrize("closed", ["add", "turn", "trim", "summary"])
def test_a_deleted_session_takes_no_more(world: World, closed: str) -> None:
    session = world.session("words", person=world.mara)
    services.delete_session(session)
    jobs: dict[str, Callable[[], Any]] = {
        "add": lambda: services.add_message(session, "person", "more"),
        "turn": lambda: services.start_turn(session, sender=world.mara),
        "trim": lambda: services.trim_session(session, before=2),
        "summary": lambda: services.summarize_session(session, "They talked.", through=1),
    }
    with pytest.raises(SessionClosedError):
        jobs[closed]()


def test_a_deleted_session_stays_deleted_and_its_summary_is_gone(world: World) -> None:
    session = world.session("words", person=world.mara)
    services.summarize_session(session, "They talked.", through=1)
    services.delete_session(session)
    session.refresh_from_db()
    assert (session.summary, session.summary_through) == (None, None)
    with pytest.raises(IntegrityError, match="stays deleted"), transaction.atomic():
        Session.objects.filter(pk=session.pk).update(deleted_at=None)


FIXED = {
    "session agent": ("session", lambda world, other: {"agent": other["agent"]}),
    "session workspace": ("session", lambda world, other: {"workspace": other["workspace"]}),
    "session account": ("session", lambda world, other: {"account": world.brightside}),
    "session account to none": ("session", lambda world, other: {"account": None}),
    "message session": ("message", lambda world, other: {"session": other["session"]}),
    "message number": ("message", lambda world, other: {"number": 99}),
    "turn session": ("turn", lambda world, other: {"session": other["session"]}),
    "turn sender": ("turn", lambda world, other: {"sender": world.operator}),
    "agent workspace": ("agent", lambda world, other: {"workspace": other["workspace"]}),
    "account workspace": ("account", lambda world, other: {"workspace": other["workspace"]}),
}


def subjects(world: World) -> dict[str, Any]:
    session = world.session("words", person=world.mara, account=world.acme)
    return {
        "session": session,
        "message": session.messages.get(),
        "turn": services.start_turn(session, sender=world.mara),
        "agent": world.agent,
        "account": world.acme,
    }


def others(world: World) -> dict[str, Any]:
    workspace = Workspace.objects.create(name="Other")
    agent = Agent.objects.create(workspace=workspace, name="Other")
    return {"workspace": workspace, "agent": agent, "session": world.session(person=world.mara)}


@pytest.mark.parametrize("case", FIXED)
def test_reach_fixed_session(world: World, case: str) -> None:
    """The tables refuse that any part of a conversation passes to another agent or customer."""
    name, change = FIXED[case]
    row, changes = subjects(world)[name], change(world, others(world))
    before = type(row).objects.filter(pk=row.pk).values().get()
    with pytest.raises(IntegrityError, match=r"keeps|stays"), transaction.atomic():
        type(row).objects.filter(pk=row.pk).update(**changes)
    assert type(row).objects.filter(pk=row.pk).values().get() == before


def test_reach_fixed_session_takes_what_may_change(world: World) -> None:
    found = subjects(world)
    Session.objects.filter(pk=found["session"].pk).update(title="Another", person=None, account=world.acme)
    Turn.objects.filter(pk=found["turn"].pk).update(sender=None)
    Agent.objects.filter(pk=world.agent.pk).update(name="Another")
    world.mara.delete()


def test_reach_fixed_session_holds_against_replacement_on_sqlite(world: World) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has no INSERT OR REPLACE")
    session = subjects(world)["session"]
    columns = [field.column for field in Session._meta.concrete_fields]
    taken = ", ".join(f"'{world.brightside.pk.hex}'" if name == "account_id" else name for name in columns)
    table = "agent_platform_session"
    sql = f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) SELECT {taken} FROM {table}"
    with pytest.raises(IntegrityError, match="keeps"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)
    session.refresh_from_db()
    assert session.account == world.acme


def test_reach_account_exact_an_account_cannot_go_and_leave_its_sessions_without_one(world: World) -> None:
    """Else one customer's conversations would join those that have no account."""
    world.session("words", account=world.acme)
    with pytest.raises(RestrictedError):
        world.acme.delete()
    assert Account.objects.filter(pk=world.acme.pk).exists()


def test_reach_account_exact_a_session_takes_no_account_of_another_workspace(world: World) -> None:
    foreign = Account.objects.create(workspace=Workspace.objects.create(name="Other"), name="Acme")
    with pytest.raises(TurnRefusedError, match="another workspace"):
        services.open_session(world.agent, account=foreign)


def test_tool_count_numbers_go_on_after_everything_was_trimmed(world: World) -> None:
    session = world.session("a", "b", "c", person=world.mara)
    services.trim_session(session, before=4)
    session.refresh_from_db()
    assert (session.message_count, session.trimmed_before) == (0, 4)
    assert services.add_message(session, "person", "d").number == 4
    services.trim_session(session, before=2)
    session.refresh_from_db()
    assert session.trimmed_before == 4, "trimming less afterwards brings nothing back"


@pytest.mark.parametrize(("erasure", "kept"), [(False, "They talked."), (True, None)])
def test_tool_summary_goes_with_what_is_erased_and_stays_with_what_is_trimmed(
    world: World, erasure: bool, kept: str | None
) -> None:
    session = world.session("a", "b", "c", person=world.mara)
    services.summarize_session(session, "They talked.", through=2)
    services.trim_session(session, before=2, erasure=erasure)
    session.refresh_from_db()
    assert session.summary == kept


def test_tool_summary_that_draws_on_what_was_erased_is_not_written_again(world: World) -> None:
    """By a compaction that read the messages before; one that begins after them is taken."""
    session = world.session("a", "b", "c", person=world.mara)
    services.trim_session(session, before=3, erasure=True)
    services.trim_session(session, before=2, erasure=True)
    for first in ({}, {"first": 1}, {"first": 2}):
        with pytest.raises(ErasedSourceError, match="first: an erasure took messages"):
            services.summarize_session(session, "They talked.", through=3, **first)
    session.refresh_from_db()
    assert (session.summary, session.summary_through, session.erased_before) == (None, None, 3)
    services.summarize_session(session, "They went on.", first=3, through=3)
    session.refresh_from_db()
    assert (session.summary, session.summary_through) == ("They went on.", 3)


def test_tool_summary_may_draw_on_what_was_trimmed_to_save_room(world: World) -> None:
    session = world.session("a", "b", "c", person=world.mara)
    services.trim_session(session, before=3)
    services.summarize_session(session, "They talked.", through=3)
    session.refresh_from_db()
    assert session.summary == "They talked."


def test_tool_summary_and_an_erasure_at_once_leave_none(open_world: World) -> None:
    """A compaction that writes again and again never brings back what goes meanwhile."""
    session = open_world.session(*"abcdef", person=open_world.mara)

    def summarize() -> None:
        for _ in range(30):
            services.summarize_session(session, "They talked.", through=6)

    raised = at_once(summarize, summarize, lambda: services.trim_session(session, before=4, erasure=True))
    assert all(isinstance(error, ErasedSourceError) for error in raised)
    session.refresh_from_db()
    assert (session.summary, session.erased_before) == (None, 4)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\0b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("plain ✓", "plain ✓"),
        ("", ""),
    ],
)
def test_tool_text_is_hostile_and_is_stored_cleaned(world: World, text: str, kept: str) -> None:
    session = services.open_session(world.agent, title=text)
    services.add_message(session, "person", text)
    services.summarize_session(session, text, through=1)
    session.refresh_from_db()
    assert (session.title, session.messages.get().text, session.summary) == (kept, kept, kept)


def test_add_message_refuses_an_unknown_role(world: World) -> None:
    with pytest.raises(ValueError, match="role: 'robot' is not one of person, agent, tool, system"):
        services.add_message(world.session(), "robot", "beep")


def test_reach_fixed_session_keeps_its_key(world: World) -> None:
    """Else two sessions could swap keys within one transaction, and with them their messages."""
    one = world.session("words", account=world.acme)
    for row in (one, world.agent, world.acme, world.turn(world.mara)):
        with pytest.raises(IntegrityError, match=r"keeps|stays"), transaction.atomic():
            type(row).objects.filter(pk=row.pk).update(id=uuid.uuid4())


def test_reach_fixed_session_is_not_removed_and_put_back_as_anothers(world: World) -> None:
    """Foreign keys are checked at the end of a transaction; the table refuses at once."""
    session = world.session("words", account=world.acme)
    with pytest.raises(IntegrityError, match="while its messages or turns are there"), transaction.atomic():
        Session.objects.filter(pk=session.pk)._raw_delete(Session.objects.db)
    session.delete()
    assert not Message.objects.filter(session_id=session.pk).exists()


@pytest.mark.parametrize("table", ["session", "turn", "trigger", "agent", "message"])
def test_reach_live_turn_no_row_is_replaced_on_sqlite(world: World, table: str) -> None:
    """Else an ended turn would run again, and a deleted session come back (reach-not-deleted)."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has no INSERT OR REPLACE")
    services.create_trigger(world.agent, kind="schedule", name="Digest", by=world.mara)
    services.start_turn(world.session("words", person=world.mara), sender=world.mara)
    name = f"agent_platform_{table}"
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"INSERT OR REPLACE INTO {name} SELECT * FROM {name}")


def test_reach_trigger_edited_a_stale_trigger_starts_no_turn(world: World) -> None:
    """What the object remembers is not what the trigger runs now."""
    other = Agent.objects.create(workspace=world.hollowbrook, name="Other")
    stale = services.create_trigger(world.agent, kind="schedule", name="Digest", by=world.mara)
    services.edit_trigger(stale, by=world.operator, agent=other)
    with pytest.raises(TurnRefusedError, match="another agent"):
        services.start_turn(world.session("words"), trigger=stale)


def test_a_turn_starts_and_ends_at_the_times_that_are_given(world: World) -> None:
    session, later = world.session(person=world.mara), NOON + timedelta(minutes=2)
    turn = services.start_turn(session, sender=world.mara, at=NOON)
    services.end_turn(turn, at=later)
    services.end_turn(turn, at=later + timedelta(days=1))
    turn.refresh_from_db()
    assert (turn.started_at, turn.ended_at) == (NOON, later)


def test_a_turn_starts_and_ends_now_where_no_time_is_given(world: World) -> None:
    session, before = world.session(person=world.mara), timezone.now()
    turn = services.start_turn(session, sender=world.mara)
    services.end_turn(turn)
    turn.refresh_from_db()
    assert turn.ended_at is not None
    assert before <= turn.started_at <= turn.ended_at <= timezone.now()


def test_reach_live_turn_an_end_before_the_start_still_ends_it(world: World) -> None:
    """Two machines' clocks may differ: the turn must not go on reading for that."""
    turn = services.start_turn(world.session(person=world.mara), sender=world.mara, at=NOON)
    services.end_turn(turn, at=NOON - timedelta(seconds=1))
    turn.refresh_from_db()
    assert (turn.started_at, turn.ended_at) == (NOON, NOON)
