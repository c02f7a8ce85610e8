"""The three ways in which a call is refused, in a model's words (`tool-errors`)."""

from enum import StrEnum
from typing import Any


class Code(StrEnum):
    """What went wrong, for a model to act on."""

    INVALID_ARGUMENTS = "invalid_arguments"
    CONVERSATION_UNAVAILABLE = "conversation_unavailable"
    HISTORY_UNAVAILABLE = "history_unavailable"


class ToolError(Exception):
    """A refused call: its code, a sentence, and the argument at fault where there is one."""

    def __init__(self, code: Code, message: str, argument: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.argument = argument

    def as_result(self) -> dict[str, Any]:
        """The result that a model gets."""
        error = {"code": self.code.value, "message": self.message, "argument": self.argument}
        return {"kind": "error", "error": error}


def invalid(argument: str | None, rule: str) -> ToolError:
    """An argument breaks a rule; the message names both."""
    message = f"{argument}: {rule}" if argument else rule
    return ToolError(Code.INVALID_ARGUMENTS, message, argument)


def conversation_unavailable() -> ToolError:
    """The one answer for every id that is not in reach, whatever the reason (`reach-same-answer`)."""
    return ToolError(Code.CONVERSATION_UNAVAILABLE, "There is no such conversation that this turn may read.")


def history_unavailable(why: str) -> ToolError:
    """Nothing can be read now."""
    return ToolError(Code.HISTORY_UNAVAILABLE, why)
