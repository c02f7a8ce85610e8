"""Each agent framework, run in this process with a model that makes given calls in one step, then stops.

A framework is imported where it is used: that takes seconds, and most tests need none.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from history_access.tools import Toolset

Calls = Sequence[tuple[str, str]]
"""The names of tools, and the arguments as a model writes them: a text."""

Replies = Callable[[], list[str]]
Sync = Callable[[Toolset, Calls], list[str]]
Async = Callable[[Toolset, Calls], Awaitable[list[str]]]


def call_id(number: int) -> str:
    return f"call-{number}"


def in_order(replies: Sequence[tuple[str, str]], calls: Calls) -> list[str]:
    """The reply to each call, by its id; an AssertionError unless there is one for each."""
    found = dict(replies)
    assert len(replies) == len(found) == len(calls), replies
    return [found[call_id(number)] for number in range(len(calls))]


@contextmanager
def loop_of_this_thread() -> Iterator[None]:
    """For what runs async code in a plain thread on the thread's own loop, and leaves that open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.close()


# pydantic-ai


def _pydantic_ai(toolset: Toolset, calls: Calls) -> tuple[Any, Replies]:
    """An agent, and what its model was told of the results of its calls."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    from history_access.adapters.pydantic_ai import history_tools

    told: list[tuple[str, str]] = []

    def step(messages: Any, info: Any) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        told.extend(
            (part.tool_call_id, part.model_response_str())
            for part in parts
            if isinstance(part, ToolReturnPart)
        )
        if told:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(
            parts=[ToolCallPart(name, written, call_id(n)) for n, (name, written) in enumerate(calls)]
        )

    agent = Agent(FunctionModel(step), toolsets=[history_tools(toolset)])
    return agent, lambda: in_order(told, calls)


def pydantic_ai(toolset: Toolset, calls: Calls) -> list[str]:
    agent, replies = _pydantic_ai(toolset, calls)
    with loop_of_this_thread():
        assert agent.run_sync("Go.").output == "done"
    return replies()


async def pydantic_ai_async(toolset: Toolset, calls: Calls) -> list[str]:
    agent, replies = _pydantic_ai(toolset, calls)
    assert (await agent.run("Go.")).output == "done"
    return replies()


# The OpenAI Agents SDK


def _openai_agents(
    toolset: Toolset, calls: Calls, *, strict: bool
) -> tuple[Any, Any, Callable[[], list[str]]]:
    """An agent, how to run it, and what its model was told of the results of its calls."""
    from agents import Agent, RunConfig
    from agents.testing import ScriptedModel, assistant_message, function_call

    from history_access.adapters.openai_agents import history_tools

    made = [function_call(name, written, call_id=call_id(n)) for n, (name, written) in enumerate(calls)]
    model = ScriptedModel([made, [assistant_message("done")]])
    agent = Agent("history", model=model, tools=history_tools(toolset, strict=strict))

    def replies() -> list[str]:
        told = [one for one in model.calls[-1].input if one.get("type") == "function_call_output"]
        return in_order([(one["call_id"], one["output"]) for one in told], calls)

    return agent, RunConfig(tracing_disabled=True), replies


def openai_agents(toolset: Toolset, calls: Calls, *, strict: bool = False) -> list[str]:
    from agents import Runner

    agent, config, replies = _openai_agents(toolset, calls, strict=strict)
    with loop_of_this_thread():
        assert Runner.run_sync(agent, "Go.", run_config=config).final_output == "done"
    return replies()


async def openai_agents_async(toolset: Toolset, calls: Calls, *, strict: bool = False) -> list[str]:
    from agents import Runner

    agent, config, replies = _openai_agents(toolset, calls, strict=strict)
    assert (await Runner.run(agent, "Go.", run_config=config)).final_output == "done"
    return replies()


async def openai_agents_strict(toolset: Toolset, calls: Calls) -> list[str]:
    return await openai_agents_async(toolset, calls, strict=True)


# LangChain and LangGraph


@cache
def chat_model() -> type[Any]:
    """A chat model of LangChain that gives its `script` message by message, and keeps what it is `told`."""
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Scripted(BaseChatModel):
        script: list[BaseMessage]
        told: list[BaseMessage] = []
        tools: list[Any] = []

        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Any, **given: Any) -> Any:
            self.tools[:] = tools
            return self

        def _generate(self, messages: Any, *given: Any, **more: Any) -> ChatResult:
            self.told[:] = messages
            return ChatResult(generations=[ChatGeneration(message=self.script.pop(0))])

    return Scripted


def _langchain(toolset: Toolset, calls: Calls) -> tuple[Any, Replies]:
    """An agent, and what its model was told of the results of its calls."""
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage

    from history_access.adapters.langchain import history_tools

    made = [
        {"name": name, "args": json.loads(written), "id": call_id(n)}
        for n, (name, written) in enumerate(calls)
    ]
    model = chat_model()(script=[AIMessage("", tool_calls=made), AIMessage("done")], told=[], tools=[])
    agent = create_agent(model, tools=history_tools(toolset))

    def replies() -> list[str]:
        told = [one for one in model.told if one.type == "tool"]
        for one in told:
            assert (one.status == "error") == (json.loads(one.content)["kind"] == "error")
        return in_order([(one.tool_call_id, one.content) for one in told], calls)

    return agent, replies


def langchain(toolset: Toolset, calls: Calls) -> list[str]:
    agent, replies = _langchain(toolset, calls)
    assert agent.invoke({"messages": [("user", "Go.")]})["messages"][-1].content == "done"
    return replies()


async def langchain_async(toolset: Toolset, calls: Calls) -> list[str]:
    agent, replies = _langchain(toolset, calls)
    result = await agent.ainvoke({"messages": [("user", "Go.")]})
    assert result["messages"][-1].content == "done"
    return replies()


# The clients themselves: sync with dicts, async with the objects of the client


def assistant_message(calls: Calls) -> dict[str, Any]:
    """A message of Chat Completions that makes the calls."""
    made = [
        {"id": call_id(n), "type": "function", "function": {"name": name, "arguments": written}}
        for n, (name, written) in enumerate(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def _openai_message(calls: Calls) -> Any:
    from openai.types.chat import ChatCompletionMessage

    return ChatCompletionMessage.model_validate(assistant_message(calls))


def _from_messages(messages: list[dict[str, Any]], calls: Calls) -> list[str]:
    assert all(set(one) == {"role", "tool_call_id", "content"} for one in messages)
    assert {one["role"] for one in messages} == {"tool"}
    return in_order([(one["tool_call_id"], one["content"]) for one in messages], calls)


def openai_chat(toolset: Toolset, calls: Calls) -> list[str]:
    from history_access.adapters.openai import tool_messages

    return _from_messages(tool_messages(toolset, assistant_message(calls)), calls)


async def openai_chat_async(toolset: Toolset, calls: Calls) -> list[str]:
    from history_access.adapters.openai import atool_messages

    return _from_messages(await atool_messages(toolset, _openai_message(calls)), calls)


def response_output(calls: Calls) -> list[Any]:
    """The output of Responses that makes the calls."""
    from openai.types.responses import ResponseFunctionToolCall, ResponseReasoningItem

    thought = ResponseReasoningItem(id="r", summary=[], type="reasoning")
    made = (
        ResponseFunctionToolCall(call_id=call_id(n), name=name, arguments=written, type="function_call")
        for n, (name, written) in enumerate(calls)
    )
    return [thought, *made]


def _from_outputs(outputs: list[dict[str, Any]], calls: Calls) -> list[str]:
    assert all(set(one) == {"type", "call_id", "output"} for one in outputs)
    assert {one["type"] for one in outputs} == {"function_call_output"}
    return in_order([(one["call_id"], one["output"]) for one in outputs], calls)


def openai_responses(toolset: Toolset, calls: Calls) -> list[str]:
    from history_access.adapters.openai import function_outputs

    return _from_outputs(function_outputs(toolset, [one.to_dict() for one in response_output(calls)]), calls)


async def openai_responses_async(toolset: Toolset, calls: Calls) -> list[str]:
    from history_access.adapters.openai import afunction_outputs

    return _from_outputs(await afunction_outputs(toolset, response_output(calls)), calls)


def anthropic_message(calls: Calls) -> Any:
    """A message of Anthropic's that makes the calls."""
    from anthropic.types import Message, TextBlock, ToolUseBlock, Usage

    made = (
        ToolUseBlock(id=call_id(n), name=name, input=json.loads(written), type="tool_use")
        for n, (name, written) in enumerate(calls)
    )
    return Message(
        id="m",
        content=[TextBlock(text="Let me look.", type="text"), *made],
        model="scripted",
        role="assistant",
        type="message",
        usage=Usage(input_tokens=0, output_tokens=0),
    )


def _from_results(message: dict[str, Any], calls: Calls) -> list[str]:
    results = message["content"]
    assert message == {"role": "user", "content": results}
    for one in results:
        assert set(one) == {"type", "tool_use_id", "content", "is_error"}
        assert one["type"] == "tool_result"
        assert one["is_error"] == (json.loads(one["content"])["kind"] == "error")
    return in_order([(one["tool_use_id"], one["content"]) for one in results], calls)


def anthropic(toolset: Toolset, calls: Calls) -> list[str]:
    from history_access.adapters.anthropic import tool_results

    return _from_results(tool_results(toolset, anthropic_message(calls).to_dict()), calls)


async def anthropic_async(toolset: Toolset, calls: Calls) -> list[str]:
    from history_access.adapters.anthropic import atool_results

    return _from_results(await atool_results(toolset, anthropic_message(calls)), calls)


SYNC: dict[str, Sync] = {
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "langchain": langchain,
    "openai, chat completions": openai_chat,
    "openai, responses": openai_responses,
    "anthropic": anthropic,
}
ASYNC: dict[str, Async] = {
    "pydantic-ai": pydantic_ai_async,
    "openai-agents": openai_agents_async,
    "openai-agents, strict": openai_agents_strict,
    "langchain": langchain_async,
    "openai, chat completions": openai_chat_async,
    "openai, responses": openai_responses_async,
    "anthropic": anthropic_async,
}

TEXT = {name for name in ASYNC if name not in ("langchain", "anthropic")}
"""Those that hand on what the model wrote as a text; the others hand on an object, or nothing."""

ANY_NAME = {"openai, chat completions", "openai, responses", "anthropic"}
"""Those that hand on a call of a tool that there is not."""
