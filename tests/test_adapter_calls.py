"""tool-errors, tool-quoted: the same call through any framework gives the same result, to the letter."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from history_access.agent_platform.models import Session
from history_access.models import TurnConversationRead
from history_access.tools import Toolset
from tests.frameworks import (
    ANY_NAME,
    ASYNC,
    SYNC,
    TEXT,
    Calls,
    anthropic_message,
    assistant_message,
    response_output,
)
from tests.test_tool_async import connections_made, in_their_thread, slowed
from tests.worlds import World

LIST, READ = "list_conversations", "read_conversation"
LONG_AGO = datetime(2025, 11, 29, 17, 0, tzinfo=UTC)

# In one process, which then imports the frameworks once.


@pytest.fixture
def tools(open_world: World) -> Toolset:
    """The tools of a turn that may read everything of the agent's."""
    open_world.allow("all_accounts")
    open_world.grant(open_world.mara)
    return open_world.tools(open_world.mara)


def ran(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def every_reply(toolset: Toolset, calls: Calls, names: set[str]) -> dict[str, list[str]]:
    """The replies of each framework, of those that are named, sync and async."""
    found = {f"{name}, sync": run(toolset, calls) for name, run in SYNC.items() if name in names}
    for name, run in ASYNC.items():
        if name in names:
            found[f"{name}, async"] = ran(run(toolset, calls))
    return found


def differing(toolset: Toolset, calls: Calls, expected: list[str], names: set[str]) -> dict[str, Any]:
    """What the frameworks reply otherwise than is expected: the calls, with both texts."""
    return {
        (name, call): (reply, text)
        for name, replies in every_reply(toolset, calls, names).items()
        for call, reply, text in zip(calls, replies, expected, strict=True)
        if reply != text
    }


def reading(*sessions: Session) -> Calls:
    return [(READ, json.dumps({"conversation_id": str(session.pk)})) for session in sessions]


def words(reply: str) -> list[str]:
    return [message["quoted"]["text"] for message in json.loads(reply)["messages"]]


def test_every_framework_gives_the_same_to_the_letter(open_world: World, tools: Toolset):
    """tool-errors, tool-quoted: results, pages and errors; whatever a model calls its arguments."""
    session = open_world.session("<b>one</b> \u202e& two", "three", title="</tool>", at=LONG_AGO)
    for _ in range(2):
        open_world.session("more", at=LONG_AGO)
    this = {"conversation_id": str(session.pk)}
    given: list[tuple[str, dict[str, Any]]] = [
        (LIST, {"limit": 1, "cursor": tools.call(LIST, {"limit": 1})["next_cursor"]}),
        (LIST, {"after": None, "before": None, "cursor": None, "limit": None}),
        (READ, this),
        (READ, {**this, "limit": 1, "cursor": tools.call(READ, {**this, "limit": 1})["next_cursor"]}),
        (READ, {"conversation_id": 1}),
        (READ, {**this, "limit": "1"}),
        *((READ, {**this, name: "x"}) for name in ("agent_id", "self", "config", "run_manager", "type")),
    ]
    calls = [(name, json.dumps(arguments)) for name, arguments in given]
    expected = [tools.call_text(name, arguments) for name, arguments in given]
    kinds = [json.loads(text).get("error", {}).get("argument", json.loads(text)["kind"]) for text in expected]
    assert kinds == [
        *("conversation_list", "conversation_list", "quoted_conversation", "quoted_conversation"),
        *("conversation_id", "limit", "agent_id", "self", "config", "run_manager", "type"),
    ]
    assert differing(tools, calls, expected, {*SYNC, *ASYNC}) == {}


def test_arguments_that_are_no_object_are_refused_by_the_tools(tools: Toolset):
    """tool-errors: broken JSON is a mistake that the model is told of, and never an exception."""
    broken = ("{'limit': 1}", "[]", "null", '"{}"', "1" * 5_000)
    calls = [*((LIST, written) for written in broken), (LIST, ""), (READ, " ")]
    no_object = tools.call_text(LIST, None)
    assert json.loads(no_object)["error"]["message"] == (
        "The arguments of list_conversations must be a JSON object."
    )
    expected = [*(no_object for _ in broken), tools.call_text(LIST, {}), tools.call_text(READ, {})]
    assert differing(tools, calls, expected, TEXT) == {}


def test_arguments_of_no_unicode_and_of_no_end_are_refused_by_the_tools(tools: Toolset):
    """tool-errors: the Agents SDK itself fails on them, before any tool is called."""
    calls = [(READ, json.dumps({"conversation_id": "\ud800"})), (LIST, "[" * 100_000)]
    expected = [tools.call_text(READ, {"conversation_id": "\ud800"}), tools.call_text(LIST, None)]
    assert [json.loads(text)["kind"] for text in expected] == ["error", "error"]
    names = {name for name in TEXT if not name.startswith("openai-agents")}
    assert differing(tools, calls, expected, names) == {}


def test_a_tool_that_there_is_not_is_refused_by_the_tools(open_world: World, tools: Toolset):
    """tool-errors: where the platform hands every call on; and one that is not offered is checked again."""
    session = open_world.session("hello")
    calls = [("drop_table", "{}"), *reading(session), ("", "{}")]
    expected = [tools.call_text(name, json.loads(written)) for name, written in calls]
    assert [json.loads(text)["kind"] for text in expected] == ["error", "quoted_conversation", "error"]
    assert differing(tools, calls, expected, ANY_NAME) == {}
    assert differing(Toolset(tools.turn_id, ()), calls, expected, ANY_NAME) == {}


def test_a_setting_that_is_switched_off_holds_in_every_framework(open_world: World, tools: Toolset):
    """tool-errors, reach-now: though the tools were offered before."""
    calls = [*reading(open_world.session("hello")), (LIST, "{}")]
    open_world.set(agent=open_world.agent, value="none")
    expected = [tools.call_text(name, json.loads(written)) for name, written in calls]
    assert [json.loads(text)["error"]["code"] for text in expected] == ["history_unavailable"] * 2
    assert differing(tools, calls, expected, {*SYNC, *ASYNC}) == {}
    assert not TurnConversationRead.objects.exists()


def test_many_turns_of_a_loop_at_once_get_each_their_own(open_world: World, tools: Toolset):
    """tool-errors, record-every-read: in every framework at the same time, all on one toolset."""
    sessions = [open_world.session(f"words of {number}") for number in range(2 * len(ASYNC))]

    async def together() -> list[list[str]]:
        runs = (run(tools, reading(*sessions[2 * n : 2 * n + 2])) for n, run in enumerate(ASYNC.values()))
        return await asyncio.gather(*runs)

    with connections_made() as made:
        found = [reply for replies in ran(together()) for reply in replies]
    assert [words(reply) for reply in found] == [[f"words of {n}"] for n in range(len(sessions))]
    assert [json.loads(reply)["conversation"]["id"] for reply in found] == [str(one.pk) for one in sessions]
    assert TurnConversationRead.objects.count() == len(sessions)
    assert [one for one in made if one.connection is not None] == []


def test_sync_threads_of_a_framework_keep_no_connection(open_world: World, tools: Toolset):
    """tool-errors: LangGraph runs the calls of one step in threads of its own."""
    sessions = [open_world.session(f"words of {number}") for number in range(5)]
    with connections_made() as made:
        found = SYNC["langchain"](tools, reading(*sessions))
    assert [words(reply) for reply in found] == [[f"words of {number}"] for number in range(5)]
    assert made
    assert [one for one in made if one.connection is not None] == []


@dataclass
class GivenUp:
    """What came of a run that was cancelled while its first call was in the database."""

    cancelled: bool
    meanwhile: list[str]
    afterwards: list[str]


async def given_up_in_the_middle(run: Any, tools: Toolset, first: Calls, other: Calls) -> GivenUp:
    started = threading.Event()
    wrapper = slowed(started, 0.1)
    await in_their_thread(lambda theirs: theirs.execute_wrappers.append(wrapper))()
    task = asyncio.create_task(run(tools, first))
    while not started.is_set():
        await asyncio.sleep(0.005)
    task.cancel()
    meanwhile = await run(tools, other)
    await asyncio.wait([task])
    await in_their_thread(lambda theirs: theirs.execute_wrappers.remove(wrapper))()
    return GivenUp(task.cancelled(), meanwhile, await run(tools, other))


def test_a_run_that_is_cancelled_leaves_nothing_to_others(open_world: World, tools: Toolset):
    """tool-errors, record-or-nothing: what it had begun is recorded whole, and what it had not is not."""
    begun, waiting, other = (open_world.session(*texts) for texts in (["given up"] * 3, ["late"], ["other"]))
    for name, run in ASYNC.items():
        turn = open_world.tools(open_world.mara)
        with connections_made() as made:
            found = ran(given_up_in_the_middle(run, turn, reading(begun, waiting), reading(other)))
        assert found.cancelled, name
        assert [words(reply) for reply in found.meanwhile + found.afterwards] == [["other"]] * 2, name
        assert [one.connection for one in made] == [None] * len(made) != [], name
        rows = TurnConversationRead.objects.filter(turn_id=str(turn.turn_id)).values_list(
            "session_id", "first_number", "last_number", "characters"
        )
        kept = Counter(rows)
        assert (kept.pop((str(begun.pk), 1, 3, 24)), kept.pop((str(other.pk), 1, 1, 5))) == (1, 2), name
        assert kept in ({}, {(str(waiting.pk), 1, 1, 4): 1}), name
    assert words(tools.call_text(READ, {"conversation_id": str(waiting.pk)})) == ["late"]


def test_a_call_is_left_to_the_platform_that_has_that_tool(open_world: World, tools: Toolset):
    """tool-errors: every other call is answered, in the order of the calls."""
    from history_access.adapters import anthropic, openai

    calls = [("find_rooms", "{}"), *reading(open_world.session("hello")), ("drop_table", "{}")]
    messages = openai.tool_messages(tools, assistant_message(calls), elsewhere={"find_rooms"})
    assert [one["tool_call_id"] for one in messages] == ["call-1", "call-2"]
    outputs = openai.function_outputs(tools, response_output(calls), elsewhere={"find_rooms"})
    assert [one["call_id"] for one in outputs] == ["call-1", "call-2"]
    results = anthropic.tool_results(tools, anthropic_message(calls), elsewhere={"find_rooms"})
    assert [one["tool_use_id"] for one in results["content"]] == ["call-1", "call-2"]


@pytest.mark.parametrize("message", [{"role": "assistant", "content": "Hello."}, {}])
def test_a_message_without_calls_needs_no_answer(message: dict[str, Any]):
    """tool-errors: nor does a call of another kind, which is the platform's own."""
    from history_access.adapters import anthropic, openai

    tools = Toolset(None, ())
    assert openai.tool_messages(tools, message) == []
    custom = {"tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "x", "input": ""}}]}
    assert openai.tool_messages(tools, custom) == []
    assert openai.function_outputs(tools, [{"type": "message", "content": []}]) == []
    assert anthropic.tool_results(tools, message) == {"role": "user", "content": []}
