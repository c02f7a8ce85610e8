"""For the client of OpenAI, or any that speaks its wire form: what to append after a model's calls.

It needs no package: messages and items may be the client's objects, or dicts. The model is told of the tools
with `toolset.definitions("openai")`, or `response_tools` for the Responses API.
"""

from collections.abc import Container, Iterable
from typing import Any

from history_access.adapters.calls import Call, decoded, part
from history_access.tools import Toolset


def tool_messages(toolset: Toolset, message: Any, *, elsewhere: Container[str] = ()) -> list[dict[str, Any]]:
    """Chat Completions: a `tool` message for each call in an assistant's message, in the order of the calls.

    `elsewhere` are the names of tools that the platform answers itself. Every other call is answered, so that
    the conversation can go on; what goes wrong is a result like any other (`tool-errors`).
    """
    calls = _calls_of_message(message, elsewhere)
    return [_message(call, toolset.call_text(call.name, call.arguments)) for call in calls]


async def atool_messages(
    toolset: Toolset, message: Any, *, elsewhere: Container[str] = ()
) -> list[dict[str, Any]]:
    """Like `tool_messages`, from async code."""
    calls = _calls_of_message(message, elsewhere)
    return [_message(call, await toolset.acall_text(call.name, call.arguments)) for call in calls]


def response_tools(toolset: Toolset, *, strict: bool = False) -> list[dict[str, Any]]:
    """Responses: the definitions of the offered tools, which that API takes in a form of its own."""
    functions = (one["function"] for one in toolset.definitions("openai", strict=strict))
    return [{"type": "function", "strict": False, **function} for function in functions]


def function_outputs(
    toolset: Toolset, output: Iterable[Any], *, elsewhere: Container[str] = ()
) -> list[dict[str, Any]]:
    """Responses: a `function_call_output` for each `function_call` in a response's output, in their order.

    `elsewhere` as in `tool_messages`.
    """
    calls = _calls_of_output(output, elsewhere)
    return [_output(call, toolset.call_text(call.name, call.arguments)) for call in calls]


async def afunction_outputs(
    toolset: Toolset, output: Iterable[Any], *, elsewhere: Container[str] = ()
) -> list[dict[str, Any]]:
    """Like `function_outputs`, from async code."""
    calls = _calls_of_output(output, elsewhere)
    return [_output(call, await toolset.acall_text(call.name, call.arguments)) for call in calls]


def _calls_of_message(message: Any, elsewhere: Container[str]) -> list[Call]:
    functions = ((one, part(one, "function")) for one in part(message, "tool_calls") or ())
    calls = (_call(part(one, "id"), function) for one, function in functions if function is not None)
    return [call for call in calls if call.name not in elsewhere]


def _calls_of_output(output: Iterable[Any], elsewhere: Container[str]) -> list[Call]:
    calls = (_call(part(one, "call_id"), one) for one in output if part(one, "type") == "function_call")
    return [call for call in calls if call.name not in elsewhere]


def _call(call_id: Any, function: Any) -> Call:
    return Call(call_id, part(function, "name"), decoded(part(function, "arguments")))


def _message(call: Call, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def _output(call: Call, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call.id, "output": text}
