"""The tools for LangChain and LangGraph (extra `langchain`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections
from pydantic import Field

from history_access.adapters import from_extra
from history_access.tools import Toolset, wire_text

with from_extra("langchain"):
    from langchain_core.tools import BaseTool, ToolException


def history_tools(toolset: Toolset) -> list[BaseTool]:
    """The offered tools, for `create_agent`, a `ToolNode` or `bind_tools`; none where there are none.

    They work sync and async. Every result is the text of `Toolset.call_text`; that of an error comes in a
    ToolMessage whose status is "error".
    """
    return [
        _HistoryTool(
            toolset=toolset,
            name=function["name"],
            description=function["description"],
            args_schema=function["parameters"],
        )
        for function in (one["function"] for one in toolset.definitions("openai"))
    ]


class _HistoryTool(BaseTool):
    toolset: Toolset = Field(exclude=True, repr=False)
    handle_tool_error: Any = True

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[Any, ...], Any]:
        """All in one: an argument that a model calls `config` or `self` is none of LangChain's."""
        return (tool_input,), {}

    def _run(self, arguments: Any) -> str:
        with _no_connection_left():
            return _told(self.toolset.call(self.name, arguments))

    async def _arun(self, arguments: Any) -> str:
        return _told(await self.toolset.acall(self.name, arguments))


def _told(result: dict[str, Any]) -> str:
    """The text of a result; a ToolException with that of an error, which LangChain takes as its message."""
    if result["kind"] == "error":
        raise ToolException(wire_text(result))
    return wire_text(result)


@contextmanager
def _no_connection_left() -> Iterator[None]:
    """Close what a call opens: LangGraph's threads end after a step, and nobody else closes it."""
    found_open = {one.alias for one in connections.all(initialized_only=True) if one.connection}
    try:
        yield
    finally:
        for one in connections.all(initialized_only=True):
            if one.connection and one.alias not in found_open:
                one.close()
