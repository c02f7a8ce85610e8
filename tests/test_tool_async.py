"""tool-errors, tool-quoted: the same tools from async code, many at once, and given up in the middle."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import OperationalError, connection, connections
from django.db.backends.signals import connection_created

from history_access.agent_platform import services
from history_access.agent_platform.models import Session
from history_access.models import TurnConversationRead
from history_access.tools import Toolset
from tests.worlds import World

LIST, READ = "list_conversations", "read_conversation"


@pytest.fixture
def tools(open_world: World) -> Toolset:
    """The tools of a turn that may read everything of the agent's."""
    open_world.allow("all_accounts")
    open_world.grant(open_world.mara)
    return open_world.tools(open_world.mara)


def ran(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def asked(session: Session) -> dict[str, Any]:
    return {"conversation_id": str(session.pk)}


def said(result: dict[str, Any]) -> list[str]:
    return [message["quoted"]["text"] for message in result["messages"]]


@contextmanager
def connections_made() -> Iterator[list[Any]]:
    """The database connections that are opened during a block, by whichever thread."""
    made: list[Any] = []

    def keep(connection: Any, **kwargs: Any) -> None:
        made.append(connection)

    connection_created.connect(keep)
    try:
        yield made
    finally:
        connection_created.disconnect(keep)


def test_async_calls_give_what_calls_give(open_world: World, tools: Toolset):
    """tool-errors, tool-quoted: results, errors and texts alike."""
    this = asked(open_world.session("<b>hello</b>", "hi"))
    for name, given in (
        (LIST, {}),
        (READ, this),
        (READ, {**this, "view": "summary"}),
        (READ, {"conversation_id": "1"}),
        (LIST, {"limit": True}),
        (LIST, None),
        ("drop_table", {}),
    ):
        assert ran(tools.acall(name, given)) == tools.call(name, given)
        assert ran(tools.acall_text(name, given)) == tools.call_text(name, given)


def test_async_calls_are_recorded(open_world: World, tools: Toolset):
    """tool-errors, record-every-read"""
    session = open_world.session("hello")
    ran(tools.acall(READ, asked(session)))
    assert list(TurnConversationRead.objects.values_list("session_id", "turn_id")) == [
        (str(session.pk), str(tools.turn_id))
    ]


def test_twenty_at_once_get_each_its_own(open_world: World, tools: Toolset):
    """tool-errors: all succeed, each with its record, and none keeps a connection."""
    sessions = [open_world.session(f"words of {number}") for number in range(20)]

    async def together() -> list[dict[str, Any]]:
        return await asyncio.gather(*(tools.acall(READ, asked(session)) for session in sessions))

    with connections_made() as made:
        found = ran(together())
    assert [said(result) for result in found] == [[f"words of {number}"] for number in range(20)]
    assert TurnConversationRead.objects.count() == 20
    assert made
    assert [one for one in made if one.connection is not None] == []


def test_twenty_threads_at_once_get_each_their_own(open_world: World, tools: Toolset):
    """tool-errors: for frameworks that call from threads of their own."""
    sessions = [open_world.session(f"words of {number}") for number in range(20)]
    found: dict[int, Any] = {}

    def call(number: int) -> None:
        try:
            found[number] = tools.call(READ, asked(sessions[number]))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=call, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: said(result) for number, result in found.items()} == {
        number: [f"words of {number}"] for number in range(20)
    }
    assert TurnConversationRead.objects.count() == 20


def slowed(started: threading.Event, seconds: float) -> Callable[..., Any]:
    """Make the first statement that reads messages slow, and say when it has begun."""

    def wrapper(execute: Callable[..., Any], sql: str, *given: Any) -> Any:
        if "agent_platform_message" in sql and not started.is_set():
            started.set()
            time.sleep(seconds)
        return execute(sql, *given)

    return wrapper


def in_their_thread(install: Callable[[Any], None]) -> Any:
    """Do something to the connection that async calls use."""
    return sync_to_async(lambda: install(connection))


def test_a_cancelled_call_leaves_nothing_to_others(open_world: World, tools: Toolset):
    """tool-errors: no reply, no transaction and no connection of the one that was given up."""
    given_up, other = open_world.session("given up"), open_world.session("other")
    started = threading.Event()
    wrapper = slowed(started, 0.3)

    async def cancelled_in_the_middle() -> tuple[bool, dict[str, Any]]:
        await in_their_thread(lambda theirs: theirs.execute_wrappers.append(wrapper))()
        call = asyncio.create_task(tools.acall(READ, asked(given_up)))
        while not started.is_set():
            await asyncio.sleep(0.005)
        call.cancel()
        result = await tools.acall(READ, asked(other))
        await asyncio.wait([call])
        await in_their_thread(lambda theirs: theirs.execute_wrappers.remove(wrapper))()
        return call.cancelled(), result

    with connections_made() as made:
        was_cancelled, result = ran(cancelled_in_the_middle())
    assert was_cancelled
    assert said(result) == ["other"]
    assert made
    assert [one for one in made if one.connection is not None] == []
    assert said(tools.call(READ, asked(given_up))) == ["given up"]


def test_many_cancelled_calls_leave_nothing_to_others(open_world: World, tools: Toolset):
    """tool-errors: whichever of them had begun."""
    sessions = [open_world.session(f"words of {number}") for number in range(10)]

    async def every_other_cancelled() -> list[Any]:
        calls = [asyncio.create_task(tools.acall(READ, asked(session))) for session in sessions]
        await asyncio.sleep(0.01)
        for call in calls[::2]:
            call.cancel()
        return await asyncio.gather(*calls, return_exceptions=True)

    with connections_made() as made:
        found = ran(every_other_cancelled())
    for number, result in enumerate(found):
        if number % 2:
            assert said(result) == [f"words of {number}"]
        else:
            assert isinstance(result, asyncio.CancelledError) or said(result) == [f"words of {number}"]
    assert [one for one in made if one.connection is not None] == []


def test_a_call_that_fails_leaves_no_connection(open_world: World, tools: Toolset):
    """tool-errors: and the next one works."""
    session = open_world.session("hello")

    def broken(execute: Callable[..., Any], *given: Any) -> Any:
        raise OperationalError("secret")

    async def failing_then_not() -> tuple[dict[str, Any], dict[str, Any]]:
        await in_their_thread(lambda theirs: theirs.execute_wrappers.append(broken))()
        first = await tools.acall(READ, asked(session))
        await in_their_thread(lambda theirs: theirs.execute_wrappers.remove(broken))()
        return first, await tools.acall(READ, asked(session))

    with connections_made() as made:
        first, second = ran(failing_then_not())
    assert first["error"]["code"] == "history_unavailable"
    assert said(second) == ["hello"]
    assert [one for one in made if one.connection is not None] == []


def test_a_plain_call_in_async_code_raises_nothing(tools: Toolset):
    """tool-errors: it is refused, since it would stop everybody else."""

    async def misplaced() -> dict[str, Any]:
        return tools.call(LIST, {})

    assert ran(misplaced())["error"]["code"] == "history_unavailable"


def test_a_right_that_is_lost_between_two_async_calls(open_world: World, tools: Toolset):
    """tool-errors, reach-now: the next call sees it, in whichever thread it runs."""
    session = open_world.session("hello", person=open_world.mara)

    def delete() -> None:
        services.delete_session(session)
        connection.close()

    async def before_and_after() -> list[dict[str, Any]]:
        first = await tools.acall(READ, asked(session))
        await sync_to_async(delete)()
        return [first, await tools.acall(READ, asked(session))]

    first, second = ran(before_and_after())
    assert said(first) == ["hello"]
    assert second["error"]["code"] == "conversation_unavailable"


def test_async_code_inside_of_sync_code_keeps_the_callers_connection(open_world: World, tools: Toolset):
    """tool-errors: with what stands on it: a lock, a temporary table, rows that are still to be fetched."""
    session = open_world.session("hello")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE kept (number integer)")
    assert said(async_to_sync(tools.acall)(READ, asked(session))) == ["hello"]
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE kept")
