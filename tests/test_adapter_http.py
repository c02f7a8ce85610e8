"""tool-errors, tool-quoted: whole loops over HTTP, with the clients and frameworks as they are."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from history_access.adapters.openai import atool_messages
from history_access.models import TurnConversationRead
from history_access.tools import toolset_for
from tests.frameworks import chat_model
from tests.model_server import KEY, Message, Server, serving
from tests.test_docs import block
from tests.worlds import World

LIST, READ = "list_conversations", "read_conversation"
LONG_AGO = datetime(2025, 11, 29, 17, 0, tzinfo=UTC)
ASKED = "What was said?"
TEXTS = ["<b>one</b>", "two & \u202etwo", "three", "four"]

# In one process, which then imports the frameworks once.


def digest(messages: list[Message]) -> Message:
    """A scripted model: it lists everything in pages of two, reads it in pages of one, and tells it."""
    made = [call["function"] for one in messages for call in one.get("tool_calls") or ()]
    results = [json.loads(one["content"]) for one in messages if one["role"] == "tool"]
    known = [(call["name"], json.loads(call["arguments"])) for call in made]
    calls = [call for call in _wanted(results) if call not in known]
    if calls:
        return _calling([(name, json.dumps(arguments)) for name, arguments in calls], begun=len(made))
    pages = (result for result in results if result["kind"] == "quoted_conversation")
    return _saying(sorted(message["quoted"]["text"] for page in pages for message in page["messages"]))


def _wanted(results: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield LIST, {"limit": 2}
    for page in results:
        if page["kind"] == "conversation_list":
            if page["next_cursor"]:
                yield LIST, {"limit": 2, "cursor": page["next_cursor"]}
            for one in page["conversations"]:
                yield READ, {"conversation_id": one["id"], "limit": 1}
        elif page["next_cursor"]:
            read = page["conversation"]["id"]
            yield READ, {"conversation_id": read, "limit": 1, "cursor": page["next_cursor"]}


def _calling(calls: list[tuple[str, str]], begun: int = 0) -> Message:
    made = [
        {"id": f"call-{number}", "type": "function", "function": {"name": name, "arguments": written}}
        for number, (name, written) in enumerate(calls, start=begun)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def _saying(texts: list[str]) -> Message:
    return {"role": "assistant", "content": json.dumps(texts)}


def mistaken(messages: list[Message]) -> Message:
    """A scripted model: three calls that cannot be, with one that can between them; it tells what came."""
    told = [one["content"] for one in messages if one["role"] == "tool"]
    if told:
        return _saying(told)
    return _calling([(LIST, '{"limit": 1'), (READ, '{"conversation_id":"1"}'), (LIST, "{}"), (LIST, "null")])


@pytest.fixture(autouse=True)
def no_connection_left() -> Iterator[None]:
    """`sync_to_async(toolset_for)` opens one in Django's thread, which a server closes after a request."""
    yield
    asyncio.run(sync_to_async(connections.close_all)())


@pytest.fixture
def turn(open_world: World) -> Any:
    """A turn that may read three conversations, with four messages."""
    open_world.allow("all_accounts")
    open_world.grant(open_world.mara)
    for texts in (TEXTS[:2], TEXTS[2:3], TEXTS[3:]):
        open_world.session(*texts, at=LONG_AGO)
    return open_world.turn(open_world.mara)


def openai_client(server: Server) -> Any:
    from openai import OpenAI

    return OpenAI(api_key=KEY, base_url=f"{server.url}/v1", max_retries=0)


def async_openai_client(server: Server) -> Any:
    from openai import AsyncOpenAI

    return AsyncOpenAI(api_key=KEY, base_url=f"{server.url}/v1", max_retries=0)


def shown(word: str) -> Callable[..., Any]:
    """The function `answer` of docs/frameworks.md, from the example that has a word."""
    names: dict[str, Any] = {}
    exec(block("docs/frameworks.md", word), names)
    return names["answer"]


# The loops: each runs a turn to its end against a server, and gives the reply


def chat(server: Server, turn: Any) -> str:
    with openai_client(server) as client:
        return shown("tool_messages")(turn, ASKED, client, "scripted")


def responses(server: Server, turn: Any) -> str:
    with openai_client(server) as client:
        return shown("function_outputs")(turn, ASKED, client, "scripted")


def anthropic(server: Server, turn: Any) -> str:
    from anthropic import Anthropic

    with Anthropic(api_key=KEY, base_url=server.url, max_retries=0) as client:
        return shown("tool_results")(turn, ASKED, client, "scripted")


def streamed(server: Server, turn: Any) -> str:
    return asyncio.run(_streamed(server, turn))


async def _streamed(server: Server, turn: Any) -> str:
    toolset = await sync_to_async(toolset_for)(turn)
    offered = {"tools": toolset.definitions("openai", strict=True)} if toolset else {}
    messages: list[Message] = [{"role": "user", "content": ASKED}]
    async with async_openai_client(server) as client:
        while True:
            stream = await client.chat.completions.create(
                model="scripted", messages=messages, stream=True, **offered
            )
            message = await _joined(stream)
            if not message["tool_calls"]:
                return message["content"]
            messages += [message, *await atool_messages(toolset, message)]


async def _joined(stream: Any) -> Message:
    """The message that a stream's deltas make."""
    text, calls, pieces = "", {}, 0
    async for chunk in stream:
        for delta in (choice.delta for choice in chunk.choices):
            text += delta.content or ""
            for piece in delta.tool_calls or ():
                if piece.id:
                    calls[piece.index] = piece.to_dict()
                    continue
                calls[piece.index]["function"]["arguments"] += piece.function.arguments
                pieces += 1
    assert pieces > len(calls) or not calls  # the arguments did come in fragments
    made = [{name: one for name, one in calls[index].items() if name != "index"} for index in sorted(calls)]
    return {"role": "assistant", "content": text or None, "tool_calls": made}


def openai_agents(server: Server, turn: Any) -> str:
    return asyncio.run(_openai_agents(server, turn))


async def _openai_agents(server: Server, turn: Any) -> str:
    from agents import OpenAIChatCompletionsModel, set_tracing_disabled

    set_tracing_disabled(disabled=True)  # its traces would leave this machine
    async with async_openai_client(server) as client:
        return await shown("from agents")(turn, ASKED, OpenAIChatCompletionsModel("scripted", client))


def openai_agents_streamed(server: Server, turn: Any) -> str:
    return asyncio.run(_openai_agents_streamed(server, turn))


async def _openai_agents_streamed(server: Server, turn: Any) -> str:
    from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner

    from history_access.adapters.openai_agents import history_tools

    toolset = await sync_to_async(toolset_for)(turn)
    async with async_openai_client(server) as client:
        model = OpenAIChatCompletionsModel("scripted", client)
        agent = Agent("front desk", model=model, tools=history_tools(toolset))
        result = Runner.run_streamed(agent, ASKED, run_config=RunConfig(tracing_disabled=True))
        async for _ in result.stream_events():
            pass
        return result.final_output


def pydantic_ai(server: Server, turn: Any) -> str:
    return asyncio.run(_pydantic_ai(server, turn))


async def _pydantic_ai(server: Server, turn: Any) -> str:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with async_openai_client(server) as client:
        model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
        return await shown("from pydantic_ai")(turn, ASKED, model)


TEXT_LOOPS = [chat, responses, streamed, openai_agents, openai_agents_streamed, pydantic_ai]
STRICT = [streamed, openai_agents]


def calls_in(messages: list[Message]) -> list[tuple[str, str]]:
    made = (call["function"] for one in messages for call in one.get("tool_calls") or ())
    return [(call["name"], json.dumps(json.loads(call["arguments"]))) for call in made]


def test_a_whole_loop_is_told_what_the_tools_say(turn: Any):
    """tool-errors, tool-quoted, tool-pages: definitions, parallel calls, pages, results to the letter."""
    toolset, said = toolset_for(turn), dict[tuple[str, str], str]()
    for loop in (*TEXT_LOOPS, anthropic):
        strict = loop in STRICT
        with serving(digest) as server:
            reply = loop(server, turn)
        assert json.loads(reply) == sorted(TEXTS), loop
        assert len(server.asked) == 4, loop  # two pages of a list, and of a conversation, with others beside
        defined = [one["function"] for one in toolset.definitions("openai", strict=strict)]
        assert server.functions == [{"strict": strict, **function} for function in defined], loop
        calls = calls_in(server.messages)
        said = said or {(name, given): toolset.call_text(name, json.loads(given)) for name, given in calls}
        told = [one["content"] for one in server.messages if one["role"] == "tool"]
        assert told == [said[call] for call in calls], loop
        assert len(told) == len(said) == 6, loop


def test_a_model_that_makes_mistakes_is_told_of_them(turn: Any):
    """tool-errors: over the wire, each answer under its call."""
    toolset = toolset_for(turn)
    calls = [(LIST, None), (READ, {"conversation_id": "1"}), (LIST, {}), (LIST, None)]
    expected = [toolset.call_text(name, arguments) for name, arguments in calls]
    for loop in (chat, streamed, openai_agents, pydantic_ai):
        with serving(mistaken) as server:
            told = json.loads(loop(server, turn))
        assert told == expected, loop


def test_every_read_of_a_loop_is_on_record(turn: Any):
    """record-every-read: whichever client asked for it."""
    with serving(digest) as server:
        streamed(server, turn)
    rows = TurnConversationRead.objects.filter(turn_id=str(turn.pk))
    assert rows.filter(what="messages").count() == 4
    assert rows.filter(what="title").count() == 3


def test_a_turn_that_is_offered_nothing_tells_its_model_of_no_tools(open_world: World):
    """tool-errors: not even of an empty list, which models refuse."""
    turn = open_world.turn(open_world.mara)
    for loop in (*TEXT_LOOPS, anthropic):
        with serving(lambda messages: _saying([])) as server:
            assert loop(server, turn) == "[]", loop
        assert [body.get("tools") for body in server.asked] == [None], loop


def test_langchain_is_told_of_the_same_tools(turn: Any):
    """tool-errors: in the form in which it tells any model."""
    from langchain_core.messages import AIMessage
    from langchain_core.utils.function_calling import convert_to_openai_tool

    toolset = toolset_for(turn)
    made = [{"name": LIST, "args": {}, "id": "call-0"}]
    model = chat_model()(script=[AIMessage("", tool_calls=made), AIMessage("done")], told=[], tools=[])
    assert shown("create_agent")(turn, ASKED, model) == "done"
    assert [convert_to_openai_tool(tool) for tool in model.tools] == toolset.definitions("openai")
    assert [one.content for one in model.told if one.type == "tool"] == [toolset.call_text(LIST, {})]


def test_what_a_framework_makes_of_a_tool_that_there_is_not(turn: Any):
    """tool-errors: it never reaches the tools; the page for developers says which framework does what."""
    from agents.exceptions import ModelBehaviorError

    def drop_table(messages: list[Message]) -> Message:
        return _saying(["done"]) if messages[-1]["role"] == "tool" else _calling([("drop_table", "{}")])

    with serving(drop_table) as server:
        assert pydantic_ai(server, turn) == '["done"]'
    with serving(drop_table) as server, pytest.raises(ModelBehaviorError):
        openai_agents(server, turn)
