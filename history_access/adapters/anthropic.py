"""For the client of Anthropic: what to append after a model's calls.

It needs no package: messages may be the client's objects, or dicts. The model is told of the tools with
`toolset.definitions("anthropic")`.
"""

from collections.abc import Container
from typing import Any

from history_access.adapters.calls import Call, part
from history_access.tools import Toolset, wire_text


def tool_results(toolset: Toolset, message: Any, *, elsewhere: Container[str] = ()) -> dict[str, Any]:
    """A `user` message with a `tool_result` for each `tool_use` in an assistant's message, in their order.

    `elsewhere` are the names of tools that the platform answers itself: it appends their results to this
    message's `content`, since the API wants them in one. Every other call is answered (`tool-errors`), with
    `is_error` where the result is one. Where nothing was called, `content` is empty.
    """
    calls = _calls(message, elsewhere)
    return _user([_result(call, toolset.call(call.name, call.arguments)) for call in calls])


async def atool_results(toolset: Toolset, message: Any, *, elsewhere: Container[str] = ()) -> dict[str, Any]:
    """Like `tool_results`, from async code."""
    calls = _calls(message, elsewhere)
    return _user([_result(call, await toolset.acall(call.name, call.arguments)) for call in calls])


def _calls(message: Any, elsewhere: Container[str]) -> list[Call]:
    content = part(message, "content")
    blocks = () if isinstance(content, str) else content or ()
    used = (one for one in blocks if part(one, "type") == "tool_use")
    calls = (Call(part(one, "id"), part(one, "name"), part(one, "input")) for one in used)
    return [call for call in calls if call.name not in elsewhere]


def _user(results: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "user", "content": results}


def _result(call: Call, result: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": wire_text(result),
        "is_error": result["kind"] == "error",
    }
