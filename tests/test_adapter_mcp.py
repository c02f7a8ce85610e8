"""tool-errors, tool-quoted, reach-live-turn: the tools over MCP, for the turn that a token names alone."""

import asyncio
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.core.signing import Signer
from django.db import OperationalError, connection, connections
from django.db.backends.signals import connection_created
from mcp import Client, StdioServerParameters
from mcp.client._memory import InMemoryTransport
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.types import CallToolResult
from mcp_types.jsonrpc import jsonrpc_message_adapter

from history_access.adapters import turn_tokens
from history_access.adapters.mcp import MOST_BYTES, _security, http_app, serve_stdio, server_for
from history_access.adapters.turn_tokens import MOST_SECONDS, TokenError, turn_of, turn_token
from history_access.agent_platform import services
from history_access.agent_platform.models import Session, Turn
from history_access.management.commands.history_mcp import TOKEN_VARIABLE
from history_access.models import Refusal, TurnConversationRead
from history_access.references import bind_references
from history_access.tools import toolset_for
from history_access.tools.running import FAILED
from history_access.turns import NoTurnError
from tests.test_tool_async import connections_made
from tests.worlds import World

LIST, READ = "list_conversations", "read_conversation"
ERAS = ("legacy", "auto")
"""The SDK's names: with a handshake, as until 2025, and without one, each request for itself."""
URL = "http://127.0.0.1/mcp"
ACCEPTS = ("Accept", "application/json, text/event-stream")
ROOT = Path(__file__).parent.parent


@pytest.fixture
def turn(open_world: World) -> Turn:
    """A turn that may read everything of the agent's."""
    open_world.allow("all_accounts")
    open_world.grant(open_world.mara)
    return open_world.turn(open_world.mara)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No thread outlives a test, and no connection to the database that a worker thread made."""
    before = set(threading.enumerate())
    with connections_made() as made:
        yield
    assert [one for one in made if one.connection is not None and one is not connections["default"]] == []
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert set(threading.enumerate()) <= before


def ran(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def asked(session: Session, **more: Any) -> dict[str, Any]:
    return {"conversation_id": str(session.pk), **more}


def text_of(result: CallToolResult) -> str:
    """The one block of a result, and nothing beside it."""
    (block,) = result.content
    assert (block.type, result.structured_content) == ("text", None)
    return block.text


def words_of(result: CallToolResult) -> list[str]:
    return [message["quoted"]["text"] for message in json.loads(text_of(result))["messages"]]


async def listed_by(client: Client) -> list[dict[str, Any]]:
    return [tool.model_dump(by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools]


def message(method: str, number: int | None = 1, **params: Any) -> dict[str, Any]:
    """A message of the protocol; without a number it is a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})


TOOLS = message("tools/list")
OPENING = message(
    "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "a test", "version": "1"}
)


async def posted(
    app: Any, token: str | None, body: Any, *more: tuple[str, str], method: str = "POST", url: str = URL
) -> httpx2.Response:
    """The response to a request in this process, with these headers more."""
    bearer = [] if token is None else [("Authorization", f"Bearer {token}")]
    headers = httpx2.Headers([ACCEPTS, *bearer, *more], encoding="latin-1")
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client:
        return await client.request(method, url, json=body, headers=headers)


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """The address of an app that is served over HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", log_level="trace"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        server.should_exit = True
        await serving


@asynccontextmanager
async def connected(url: str, token: str, era: str) -> AsyncIterator[Client]:
    """The SDK's client over HTTP."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http), mode=era) as client,
    ):
        yield client


@contextmanager
def in_each_connection(wrapper: Callable[..., Any]) -> Iterator[None]:
    """Put something around each statement of the connections that worker threads make."""

    def install(connection: Any, **kwargs: Any) -> None:
        connection.execute_wrappers.append(wrapper)

    connection_created.connect(install)
    try:
        yield
    finally:
        connection_created.disconnect(install)


@contextmanager
def slow_reading() -> Iterator[threading.Event]:
    """The first statement that reads messages takes a while; the event says that it has begun."""
    started = threading.Event()

    def slow(execute: Callable[..., Any], sql: str, *given: Any) -> Any:
        if "agent_platform_message" in sql and not started.is_set():
            started.set()
            time.sleep(0.2)
        return execute(sql, *given)

    with in_each_connection(slow):
        yield started


async def begun(started: threading.Event) -> None:
    while not started.is_set():
        await asyncio.sleep(0.005)


def reads_of(session: Session) -> int:
    return TurnConversationRead.objects.filter(session_id=str(session.pk)).count()


# What is offered, and what a call gives


def test_the_list_is_that_of_the_turn(open_world: World):
    """refs-within-reach, tool-errors: nothing at none, reading alone by reference, else both."""
    session, turn = open_world.session("hello", person=open_world.mara), open_world.turn(open_world.mara)

    async def list_and_read(era: str) -> tuple[Any, Any]:
        async with Client(server_for(turn_token(turn)), mode=era) as client:
            return await listed_by(client), await client.call_tool(READ, asked(session))

    def offered(*names: str) -> None:
        tools = toolset_for(turn)
        assert tools.names == names
        for era in ERAS:
            found, read = ran(list_and_read(era))
            assert found == tools.definitions("mcp")
            assert all(one["annotations"]["readOnlyHint"] for one in found)
            assert read.is_error == (not names)
            assert text_of(read) == tools.call_text(READ, asked(session))

    offered()
    open_world.allow_references()
    bind_references(turn, [str(session.pk)])
    offered(READ)
    open_world.allow("same_account")
    offered(LIST, READ)


def test_a_call_gives_the_text_of_the_toolset(open_world: World, turn: Turn):
    """tool-quoted, tool-errors: byte for byte, once, and what was refused is marked as an error."""
    session, tools = open_world.session("<b>\u202ehello\\u0000</b>", "hi"), toolset_for(turn)
    calls: list[tuple[str, dict[str, Any] | None, bool]] = [
        (LIST, {}, False),
        (LIST, None, False),
        (READ, asked(session), False),
        (READ, asked(session, view="summary"), False),
        (READ, asked(session, agent_id="1"), True),
        (READ, None, True),
        (READ, {"conversation_id": "1"}, True),
        (LIST, {"limit": True}, True),
        ("drop_table", {}, True),
    ]

    async def called(era: str) -> list[CallToolResult]:
        async with Client(server_for(turn_token(turn)), mode=era) as client:
            return [await client.call_tool(name, given) for name, given, _ in calls]

    told = [(tools.call_text(name, given or {}), refused) for name, given, refused in calls]
    for era in ERAS:
        assert [(text_of(one), one.is_error) for one in ran(called(era))] == told


def test_a_failure_says_nothing_of_the_database(turn: Turn):
    """tool-errors: not of the tools, nor of the protocol, whose own errors would quote it."""
    token, broken_table = turn_token(turn), ["settings_catalog"]

    def broken(execute: Callable[..., Any], sql: str, *given: Any) -> Any:
        if broken_table[0] in sql:
            raise OperationalError("secret")
        return execute(sql, *given)

    async def failing() -> tuple[str, CallToolResult, httpx2.Response]:
        async with Client(server_for(token), mode="legacy") as client:
            with pytest.raises(MCPError) as failed:
                await client.list_tools()
            result = await client.call_tool(LIST)
        broken_table[0] = "agent_platform_turn"
        return failed.value.error.message, result, await posted(http_app(), token, TOOLS)

    with in_each_connection(broken):
        listing, result, response = ran(failing())
    assert listing == FAILED
    assert json.loads(text_of(result))["error"]["message"] == FAILED
    assert (response.status_code, response.json()) == (503, {"error": "history_unavailable"})


# Many at once, and given up in the middle


def test_many_at_once_over_one_session_get_each_its_own(open_world: World, turn: Turn):
    """tool-errors, record-every-read: in one process, and over HTTP."""
    sessions = [open_world.session(f"words of {number}") for number in range(8)]

    async def all_by(client: Client) -> list[CallToolResult]:
        return await asyncio.gather(*(client.call_tool(READ, asked(session)) for session in sessions))

    async def together() -> list[list[CallToolResult]]:
        async with Client(InMemoryTransport(server_for(turn_token(turn))), mode="auto") as client:
            alone = await all_by(client)
        async with served(http_app()) as url, connected(url, turn_token(turn), "legacy") as client:
            return [alone, await all_by(client)]

    for results in ran(together()):
        assert [words_of(one) for one in results] == [[f"words of {number}"] for number in range(8)]
    recorded = TurnConversationRead.objects.values_list("session_id", "turn_id")
    assert sorted(recorded) == sorted((str(session.pk), str(turn.pk)) for session in sessions * 2)


def test_a_call_that_is_given_up_leaves_nothing_to_others(open_world: World, turn: Turn):
    """tool-errors, record-or-nothing: no reply of another, and its read is whole, with its record."""
    given_up, other = open_world.session("given up"), open_world.session("other")

    async def in_the_middle(client: Client, started: threading.Event) -> list[CallToolResult]:
        call = asyncio.create_task(client.call_tool(READ, asked(given_up)))
        await begun(started)
        call.cancel()
        results = [await client.call_tool(READ, asked(session)) for session in (other, given_up)]
        await asyncio.wait([call])
        assert call.cancelled()
        return results

    async def given_up_by(way: str, started: threading.Event) -> list[CallToolResult]:
        if way == "http":
            async with served(http_app()) as url, connected(url, turn_token(turn), "auto") as client:
                return await in_the_middle(client, started)
        async with Client(InMemoryTransport(server_for(turn_token(turn))), mode=way) as client:
            return await in_the_middle(client, started)

    for number, way in enumerate((*ERAS, "http"), start=1):
        with slow_reading() as started:
            results = ran(given_up_by(way, started))
        assert [words_of(one) for one in results] == [["other"], ["given up"]]
        assert (reads_of(other), reads_of(given_up)) == (number, 2 * number)


def test_what_was_cancelled_is_not_answered(open_world: World, turn: Turn):
    """tool-errors, record-or-nothing: on the wire, nor is what was in the middle when the client left."""
    cancelled, other, left = (open_world.session(word) for word in ("cancelled", "other", "left"))

    def reading(number: int, session: Session) -> dict[str, Any]:
        return message("tools/call", number, name=READ, arguments=asked(session))

    async def on_the_wire() -> list[Any]:
        answers: list[Any] = []
        server = server_for(turn_token(turn))
        async with create_client_server_memory_streams() as ((hearing, saying), theirs):
            serving = asyncio.create_task(server.run(*theirs, server.create_initialization_options()))

            async def say(said: dict[str, Any]) -> None:
                await saying.send(SessionMessage(jsonrpc_message_adapter.validate_python(said)))

            async def hear() -> None:
                async for heard in hearing:
                    answers.append(heard.message.id)

            listening = asyncio.create_task(hear())
            await say({**OPENING, "id": 1})
            await say(message("notifications/initialized", None))
            with slow_reading() as started:
                await say(reading(2, cancelled))
                await begun(started)
                await say(message("notifications/cancelled", None, requestId=2))
                await say(reading(3, other))
                while 3 not in answers:
                    await asyncio.sleep(0.005)
            with slow_reading() as started:
                await say(reading(4, left))
                await begun(started)
                await saying.aclose()
                await serving
            await listening
        return answers

    answers = ran(on_the_wire())
    assert [number for number in answers if number != 4] == [1, 3]
    assert (reads_of(cancelled), reads_of(other), reads_of(left)) == (1, 1, 1)


# Which turn a request is for


def ended(turn: Turn) -> str:
    services.end_turn(turn)
    return turn_token(turn)


def gone(turn: Turn) -> str:
    token = turn_token(turn)
    turn.delete()
    return token


def in_a_deleted_session(turn: Turn) -> str:
    services.delete_session(turn.session)
    return turn_token(turn)


def signed(turn: Turn, *, seconds: float = 60, **given: Any) -> str:
    signer = Signer(**{"salt": turn_tokens._SALT, "sep": ".", **given})
    return signer.sign_object([str(turn.pk), time.time() + seconds])


def changed(token: str, at: int) -> str:
    letters = list(token)
    letters[at] = "B" if letters[at] == "A" else "A"
    return "".join(letters)


TOKENS: dict[str, Callable[[Turn], str]] = {
    "empty": lambda turn: "",
    "the key itself": lambda turn: str(turn.pk),
    "tampered with": lambda turn: changed(turn_token(turn), 9),
    "signed by somebody": lambda turn: changed(turn_token(turn), -1),
    "without a signature": lambda turn: turn_token(turn).partition(".")[0],
    "with something after it": lambda turn: turn_token(turn) + "A",
    "of another salt": lambda turn: signed(turn, salt="another"),
    "of another key": lambda turn: signed(turn, key="another"),
    "long": lambda turn: turn_token("1" * 1_000),
    "no ASCII": lambda turn: turn_token(turn) + "\u00e9",
    "expired": lambda turn: signed(turn, seconds=0),
    "of no turn that ever was": lambda turn: turn_token("7"),
    "of a turn that has ended": ended,
    "of a turn that is gone": gone,
    "of a turn in a deleted session": in_a_deleted_session,
}


def test_a_token_that_holds_is_served(turn: Turn, settings: Any, statements: Any):
    """reach-live-turn: the opposite of the matrix below; also one that was signed by the key before."""
    token, before = turn_token(turn.pk), settings.SECRET_KEY
    with statements(1):
        assert turn_of(token) == turn.pk
    assert turn_of(signed(turn)) == turn_of(turn_token(turn)) == turn.pk
    settings.SECRET_KEY = "another"
    with pytest.raises(TokenError):
        turn_of(token)
    settings.SECRET_KEY_FALLBACKS = [before]
    response = ran(posted(http_app(), token, TOOLS))
    assert response.json()["result"]["tools"] == toolset_for(turn).definitions("mcp")
    assert "mcp-session-id" not in response.headers


def test_without_a_token_that_holds_nothing_is_told(open_world: World, turn: Turn, caplog: Any):
    """reach-live-turn: every refusal is the same to the letter, over HTTP and in the protocol."""
    caplog.set_level(0)
    tokens = {name: make(open_world.turn(open_world.mara)) for name, make in TOKENS.items()}
    valid, app = turn_token(turn), http_app()
    twice = ("Authorization", f"Bearer {valid}")
    asking: dict[str, tuple[str | None, Any]] = {name: (token, ()) for name, token in tokens.items()}
    asking |= {"absent": (None, ()), "twice": (valid, (twice,))}
    asking |= {"of another scheme": (None, (("Authorization", f"Basic {valid}"),))}

    async def refused() -> dict[str, httpx2.Response]:
        told = {name: await posted(app, token, TOOLS, *more) for name, (token, more) in asking.items()}
        address = f"{URL}?token={valid}&access_token={valid}"
        return {**told, "in the address": await posted(app, None, TOOLS, url=address)}

    async def refused_in_the_protocol(token: str) -> str:
        async with Client(server_for(token), mode="legacy") as client:
            with pytest.raises(MCPError) as failed:
                await client.list_tools()
        return failed.value.error.message

    assert {ran(refused_in_the_protocol(token)) for token in tokens.values()} == {str(TokenError())}
    answers = {
        name: (answer.status_code, sorted(answer.headers.items()), answer.content)
        for name, answer in ran(refused()).items()
    }
    assert {name: answer for name, answer in answers.items() if answer != answers["absent"]} == {}
    status, headers, body = answers["absent"]
    assert (status, body) == (401, b'{"error":"invalid_token"}')
    assert dict(headers)["www-authenticate"] == 'Bearer realm="history access", error="invalid_token"'
    assert [token for token in tokens.values() if len(token) > 40 and token in caplog.text] == []


def test_a_token_that_outlived_its_turn_is_seen_by_auditors(open_world: World, turn: Turn):
    """record-refusals, reach-live-turn: in the middle of a session too; what nobody signed is not kept."""

    async def ending(token: str) -> list[str]:
        async with Client(server_for(token), mode="auto") as client:
            assert await listed_by(client)
            await asyncio.to_thread(end)
            with pytest.raises(MCPError) as listing:
                await client.list_tools()
            with pytest.raises(MCPError) as call:
                await client.call_tool(LIST)
        return [listing.value.error.message, call.value.error.message]

    def end() -> None:
        services.end_turn(turn)
        connections.close_all()

    assert ran(ending(turn_token(turn))) == [str(TokenError())] * 2
    for token in (signed(turn, key="another"), signed(turn, seconds=0), None):
        with pytest.raises(TokenError):
            turn_of(token)
    assert (
        list(Refusal.objects.values_list("turn_id", "code", "tool"))
        == [(str(turn.pk), "history_unavailable", "")] * 2
    )


def test_one_turn_is_never_served_anothers_tools(open_world: World, caplog: Any):
    """reach-live-turn, reach-account-exact: whoever opened the session, and however the requests mix."""
    caplog.set_level(0)
    open_world.allow("same_account")
    accounts = (open_world.acme, open_world.brightside)
    mine, yours = (open_world.session(one.name, person=open_world.mara, account=one) for one in accounts)
    me, you = (turn_token(open_world.turn(open_world.mara, account=one)) for one in accounts)
    calls = [message("tools/call", 7, name=READ, arguments=asked(session)) for session in (mine, yours)]

    async def mixed() -> tuple[list[Any], list[int], list[int]]:
        async with served(http_app()) as url, connected(url, you, "legacy"), httpx2.AsyncClient() as http:

            def post(token: str, body: Any, method: str = "POST") -> Any:
                headers = [ACCEPTS, ("Authorization", f"bearer {token}"), ("Mcp-Session-Id", stolen)]
                return http.request(method, url, json=body, headers=headers)

            stolen = "none"
            stolen = (await post(you, OPENING)).headers.get("mcp-session-id", "none")
            answers = await asyncio.gather(*(post(token, call) for token in (me, you) * 3 for call in calls))
            others = [(await post(me, None, method)).status_code for method in ("GET", "DELETE", "PUT")]
            return answers, others, [(await post("no", None, "GET")).status_code]

    answers, others, without = ran(mixed())
    results = [json.loads(one.json()["result"]["content"][0]["text"]) for one in answers]
    words = [one["messages"][0]["quoted"]["text"] if "messages" in one else None for one in results]
    assert words == ["Acme", None, None, "Brightside"] * 3
    assert (others, without) == ([405] * 3, [401])
    assert [token for token in (me, you) if token in caplog.text] == []


@pytest.mark.parametrize("seconds", [0, -1, MOST_SECONDS + 1, float("nan")])
def test_a_token_lasts_no_longer_than_a_day(seconds: Any):
    """reach-live-turn"""
    with pytest.raises(ValueError, match=f"seconds: a token lasts from 1 to {MOST_SECONDS} seconds"):
        turn_token(7, seconds=seconds)


def test_a_token_expires(turn: Turn, monkeypatch: Any):
    """reach-live-turn: to the second that was asked for, a quarter of an hour if none was."""
    asked_for, usual, now = turn_token(turn, seconds=60), turn_token(turn), time.time()
    for token, seconds in ((asked_for, 60), (usual, 900)):
        monkeypatch.setattr(time, "time", lambda seconds=seconds: now + seconds - 1)
        assert turn_of(token) == turn.pk
        monkeypatch.setattr(time, "time", lambda seconds=seconds: now + seconds + 1)
        with pytest.raises(TokenError):
            turn_of(token)


def test_there_is_no_token_without_a_turn():
    """reach-live-turn"""
    for nobody in (None, Turn(pk=None)):
        with pytest.raises(NoTurnError):
            turn_token(nobody)


# Over HTTP


def test_only_the_platforms_hosts_and_their_pages_are_answered(turn: Turn, settings: Any):
    """tool-errors: against rebound names, foreign pages and endless bodies."""
    settings.ALLOWED_HOSTS = ["chat.example"]
    token, long = turn_token(turn), message("tools/list", padding="x" * MOST_BYTES)
    asking: list[tuple[int, str, Any, Any]] = [
        (200, "https://chat.example/mcp", TOOLS, ()),
        (200, "https://chat.example:8000/mcp", TOOLS, (("Origin", "https://chat.example"),)),
        (421, "https://elsewhere.example/mcp", TOOLS, ()),
        (421, "https://chat.example.elsewhere.example/mcp", TOOLS, ()),
        (403, "https://chat.example/mcp", TOOLS, (("Origin", "https://elsewhere.example"),)),
        (403, "https://chat.example/mcp", TOOLS, (("Origin", "null"),)),
        (413, "https://chat.example/mcp", long, ()),
        (400, "https://chat.example/mcp", {"not": "a message"}, ()),
    ]

    async def statuses() -> list[int]:
        app = http_app()
        return [(await posted(app, token, body, *more, url=url)).status_code for _, url, body, more in asking]

    assert ran(statuses()) == [status for status, *_ in asking]
    named = ran(posted(http_app(hosts=["agents.example"]), token, TOOLS, url="http://agents.example/mcp"))
    assert named.status_code == 200


@pytest.mark.parametrize("host", ["*", ".chat.example"])
def test_hosts_are_whole_names(settings: Any, host: str):
    """tool-errors"""
    settings.ALLOWED_HOSTS = [host]
    with pytest.raises(ImproperlyConfigured, match=f"ALLOWED_HOSTS: '{re.escape(host)}' is no whole name"):
        http_app()
    with pytest.raises(ImproperlyConfigured, match=f"hosts: '{re.escape(host)}' is no whole name"):
        http_app(hosts=[host])
    assert http_app(hosts=["chat.example"])


def test_without_hosts_there_are_djangos_own(settings: Any):
    """tool-errors: those of a machine by itself while it is tried out, and none otherwise."""
    settings.ALLOWED_HOSTS = []
    settings.DEBUG = True
    assert {"localhost", "127.0.0.1:*", "[::1]"} <= set(_security(None).allowed_hosts)
    settings.DEBUG = False
    assert _security(None).allowed_hosts == []


def test_nothing_but_http_is_answered():
    """tool-errors"""
    with pytest.raises(ValueError, match="over HTTP, not over websocket"):
        ran(http_app()({"type": "websocket"}, None, None))  # type: ignore[arg-type]


# Over stdio

SERVING = """
import json, sys
from django.conf import settings
settings.DATABASES = {"default": json.loads(sys.argv.pop())}
import django
django.setup()
from history_access.signals import conversations_read
def noise(**given):
    print("noise on standard output", flush=True)
conversations_read.connect(noise)
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "history_mcp"])
import os
without = "HISTORY_ACCESS_TURN_TOKEN" not in os.environ
print("ended by itself" + ", without a token" * without, file=sys.stderr)
"""
"""What `manage.py history_mcp` does in a project where something prints during a call."""


def process(token: str) -> StdioServerParameters:
    """A process that serves on the tests' database, with the token in its environment."""
    needed = ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")
    database = json.dumps({name: connection.settings_dict[name] for name in needed}, default=str)
    environment = {"DJANGO_SETTINGS_MODULE": "tests.settings", "TEST_DATABASE": "sqlite"}
    return StdioServerParameters(
        command=sys.executable,
        args=["-W", "error", "-c", SERVING, database],
        env={**environment, TOKEN_VARIABLE: token},
        cwd=ROOT,
    )


def test_a_process_serves_its_turn_over_stdio_until_its_input_ends(open_world: World, turn: Turn):
    """tool-errors, tool-quoted, reach-live-turn: with nothing but the protocol on standard output."""
    sessions, tools = [open_world.session(f"words of {number}") for number in range(3)], toolset_for(turn)

    async def by_the_client(errors: Any) -> list[CallToolResult]:
        async with Client(stdio_client(process(turn_token(turn)), errlog=errors), mode="auto") as client:
            assert await listed_by(client) == tools.definitions("mcp")
            results = await asyncio.gather(*(client.call_tool(READ, asked(one)) for one in sessions))
            await asyncio.to_thread(end)
            with pytest.raises(MCPError, match="the turn has ended"):
                await client.list_tools()
            return results

    def end() -> None:
        services.end_turn(turn)
        connections.close_all()

    told = [tools.call_text(READ, asked(one)) for one in sessions]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        assert list(map(text_of, ran(by_the_client(errors)))) == told
        errors.seek(0)
        assert errors.read() == "noise on standard output\n" * 3 + "ended by itself, without a token\n"


def test_an_interrupt_ends_the_process_at_once(turn: Turn, monkeypatch: Any):
    """tool-errors: although it waits for a line."""
    monkeypatch.setenv(TOKEN_VARIABLE, turn_token(turn))
    (asking, from_client), (to_client, answering) = os.pipe(), os.pipe()
    connections.close_all()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(asking, 0)
            os.dup2(answering, 1)
            sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
            call_command("history_mcp")
        finally:
            os._exit(1)
    os.close(answering)
    with os.fdopen(to_client) as answers, os.fdopen(from_client, "w") as requests:
        os.close(asking)
        print(json.dumps(OPENING), file=requests, flush=True)
        assert "history-access" in answers.readline()
        os.kill(child, signal.SIGINT)
        if not select.select([answers], [], [], 5)[0]:
            os.kill(child, signal.SIGKILL)
        rest = answers.read()
    _, status = os.waitpid(child, 0)
    assert (rest, os.WIFSIGNALED(status) and os.WTERMSIG(status)) == ("", signal.SIGINT)


def test_a_client_that_has_gone_is_no_failure(monkeypatch: Any):
    """tool-errors: there is nobody left to tell."""
    (asking, from_client), (to_client, answering) = os.pipe(), os.pipe()
    os.close(to_client)
    os.write(from_client, json.dumps(OPENING).encode() + b"\n")
    os.close(from_client)
    done = False
    with os.fdopen(asking) as stdin, suppress(BrokenPipeError), os.fdopen(answering, "w") as stdout:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", stdout)
        serve_stdio("a token")
        monkeypatch.undo()
        done = True
    assert done


def test_the_command_says_what_it_lacks(turn: Turn, monkeypatch: Any):
    """tool-errors: a token that holds; why one does not, it never says."""
    for token in (None, "", "no token", "no.\udcff", signed(turn, seconds=0)):
        if token is not None:
            monkeypatch.setenv(TOKEN_VARIABLE, token)
        with pytest.raises(CommandError) as failed:
            call_command("history_mcp")
        assert str(failed.value) == f"{TOKEN_VARIABLE}: {TokenError()}"


WITHOUT_THE_EXTRA = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "mcp":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import django
django.setup()
from django.core.management import CommandError, call_command
from history_access.adapters.turn_tokens import turn_token
assert turn_token(7)
try:
    import history_access.adapters.mcp
except ImportError as error:
    print(error)
try:
    call_command("history_mcp")
except CommandError as error:
    print(error)
"""


def test_without_the_extra_it_is_said_which_to_install():
    """tool-errors: by the import, and by the command; tokens are made all the same."""
    environment = {"DJANGO_SETTINGS_MODULE": "tests.settings", "TEST_DATABASE": "sqlite"}
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_THE_EXTRA],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    wanted = "This adapter needs an extra: pip install 'history-access[mcp]'\n"
    assert (told.stdout.count(wanted), told.stderr) == (2, ""), told
