"""The tools for pydantic-ai (extra `pydantic-ai`)."""

from typing import Any

from history_access.adapters import from_extra
from history_access.adapters.calls import decoded
from history_access.tools import Toolset

with from_extra("pydantic-ai"):
    from pydantic_ai import RunContext
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool


def history_tools(toolset: Toolset) -> AbstractToolset[Any]:
    """The offered tools, for `Agent(toolsets=[...])` or `agent.run(..., toolsets=[...])`; maybe none.

    Every result is the text of `Toolset.acall_text`, errors included: pydantic-ai retries nothing.
    """
    return _HistoryToolset(toolset)


class _AsWritten:
    """Validates nothing: the toolset does, and tells the model in its own words (`tool-errors`)."""

    def validate_json(self, input: Any, *, allow_partial: Any = False, **more: Any) -> Any:  # noqa: A002
        return decoded(input)

    def validate_python(self, input: Any, *, allow_partial: Any = False, **more: Any) -> Any:  # noqa: A002
        return input


class _HistoryToolset(AbstractToolset[Any]):
    def __init__(self, toolset: Toolset) -> None:
        self._toolset = toolset

    @property
    def id(self) -> None:
        """None: it belongs to one turn, so no other process can make it again by its name."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        functions = [one["function"] for one in self._toolset.definitions("openai")]
        return {function["name"]: self._tool(**function) for function in functions}

    async def call_tool(self, name: str, tool_args: Any, ctx: RunContext[Any], tool: ToolsetTool[Any]) -> str:
        return await self._toolset.acall_text(name, tool_args)

    def _tool(self, name: str, description: str, parameters: dict[str, Any]) -> ToolsetTool[Any]:
        told = ToolDefinition(name=name, description=description, parameters_json_schema=parameters)
        return ToolsetTool(toolset=self, tool_def=told, max_retries=0, args_validator=_AsWritten())
