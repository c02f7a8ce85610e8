"""The tools for the OpenAI Agents SDK (extra `openai-agents`)."""

from functools import partial
from typing import Any

from history_access.adapters import from_extra
from history_access.adapters.calls import decoded
from history_access.tools import Toolset

with from_extra("openai-agents"):
    from agents import FunctionTool, Tool
    from agents.tool_context import ToolContext


def history_tools(toolset: Toolset, *, strict: bool = False) -> list[Tool]:
    """The offered tools, for `Agent(tools=...)`; none where there are none.

    `strict` gives OpenAI's strict form of the arguments. Every result is the text of `Toolset.acall_text`,
    errors included.
    """
    return [
        FunctionTool(
            name=function["name"],
            description=function["description"],
            params_json_schema=function["parameters"],
            on_invoke_tool=partial(_call, toolset, function["name"]),
            strict_json_schema=strict,
        )
        for function in (one["function"] for one in toolset.definitions("openai", strict=strict))
    ]


async def _call(toolset: Toolset, name: str, context: ToolContext[Any], written: str) -> str:
    return await toolset.acall_text(name, decoded(written))
