"""The tools that one turn may use, for a platform's agent loop."""

import logging
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections

from history_access.entries import NONE
from history_access.models import AbstractTurn
from history_access.quoting import wire_text
from history_access.reach import outline_of
from history_access.refusals import note_refusal
from history_access.tools.arguments import Arguments, ListConversationsArguments, ReadConversationArguments
from history_access.tools.definitions import Dialect, definition
from history_access.tools.errors import Code, ToolError, history_unavailable, invalid
from history_access.tools.listing import listed
from history_access.tools.reading import read
from history_access.tools.running import FAILED
from history_access.turns import TurnKey

logger = logging.getLogger("history_access")

_ARGUMENTS: dict[str, type[Arguments]] = {
    model.tool: model for model in (ListConversationsArguments, ReadConversationArguments)
}
_TOOLS: dict[str, Callable[[Any, Any], dict[str, Any]]] = {
    "list_conversations": listed,
    "read_conversation": read,
}


class Toolset:
    """The tools of one turn. False where it is offered none, so that its model is not told of any.

    `names` is what was offered when it was made. Every call is checked again when it runs. With the
    workspace's key, a cluster need not look for the turn.
    """

    def __init__(self, turn_id: Any, names: tuple[str, ...], *, workspace_id: Any = None) -> None:
        self.turn_id = turn_id
        self.names = names
        self._turn = turn_id if workspace_id is None else TurnKey(turn_id, workspace_id)

    def __bool__(self) -> bool:
        return bool(self.names)

    def definitions(self, dialect: Dialect, *, strict: bool = False) -> list[dict[str, Any]]:
        """The offered tools for a model's API; `strict` is OpenAI's strict form.

        A ValueError for a dialect other than "openai", "anthropic", "mcp" and "json_schema".
        """
        return [definition(_ARGUMENTS[name], dialect, strict=strict) for name in self.names]

    def call(self, name: str, arguments: Any) -> dict[str, Any]:
        """Run one call of the model and return its result, ready for JSON (see the wire form).

        It never raises into the agent's loop: what goes wrong is a result of kind "error" (`tool-errors`).
        """
        try:
            return self._run(name, arguments)
        except ToolError as error:
            return error.as_result()
        except Exception:  # the loop must go on, and the model must not see why
            logger.exception("A history tool failed; nothing was given.")
            note_refusal(self._turn, tool=name, code=Code.HISTORY_UNAVAILABLE.value, argument=None)
            return history_unavailable(FAILED).as_result()

    def call_text(self, name: str, arguments: Any) -> str:
        """Like `call`, as the JSON text to hand to a model (`tool-quoted`)."""
        return wire_text(self.call(name, arguments))

    async def acall(self, name: str, arguments: Any) -> dict[str, Any]:
        """Like `call`, from async code; it runs in Django's thread for database work."""
        return await sync_to_async(self._call_in_thread)(name, arguments)

    async def acall_text(self, name: str, arguments: Any) -> str:
        """Like `call_text`, from async code."""
        return wire_text(await self.acall(name, arguments))

    def _call_in_thread(self, name: str, arguments: Any) -> dict[str, Any]:
        """Leave the thread's connections as they were: in one that serves no request nobody closes them."""
        found_open = {one.alias for one in connections.all(initialized_only=True) if one.connection}
        try:
            return self.call(name, arguments)
        finally:
            for connection in connections.all(initialized_only=True):
                if connection.errors_occurred or connection.alias not in found_open:
                    connection.close_if_unusable_or_obsolete()

    def _run(self, name: str, arguments: Any) -> dict[str, Any]:
        tool = _TOOLS.get(name) if isinstance(name, str) else None
        if tool is None:
            note_refusal(self._turn, tool="", code=Code.INVALID_ARGUMENTS.value, argument=None)
            raise invalid(None, f"There is no such tool; there are {', '.join(_TOOLS)}.")
        return tool(self._turn, arguments)


def toolset_for(turn: AbstractTurn | Any) -> Toolset:
    """The tools that this turn may use now; false where there are none.

    Both while history access is above none for the turn's agent; `read_conversation` alone where only
    conversations that a person handed to this turn may be read (`refs-within-reach`); none where there is
    nobody to read as. Two statements, and one more where people may hand over conversations. Takes a turn or
    its key; a NoTurnError where there is none.
    """
    reach = outline_of(turn)
    if reach.closed_because is not None:
        return Toolset(reach.turn.id, ())
    names = (ReadConversationArguments.tool,) if reach.setting.value == NONE else tuple(_TOOLS)
    return Toolset(reach.turn.id, names, workspace_id=reach.turn.workspace_id)
