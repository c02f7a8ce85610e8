"""What a model may say to the tools: never who it is, only which conversations it would like."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from history_access.paging import MAX_CURSOR
from history_access.tools.errors import ToolError, invalid

MOST_LISTED = 50
MOST_READ = 50

_Cursor = Annotated[
    str | None,
    Field(
        max_length=MAX_CURSOR,
        description="Continue an earlier call: its next_cursor, or a message's continue. "
        "Repeat that call's other arguments.",
    ),
]


class Arguments(BaseModel):
    """The arguments of one tool. Unknown ones are refused; null means that an argument is left out."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    tool: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _drop_null(cls, given: Any) -> Any:
        """The strict form of OpenAI's schemas sends null for what is left out."""
        if not isinstance(given, Mapping):
            return given
        return {name: value for name, value in given.items() if value is not None}


def _without_surrogates(given: Any) -> Any:
    """An id that is no Unicode is an unknown id like any other; NUL is in nobody's id."""
    return re.sub("[\ud800-\udfff]", "\0", given) if isinstance(given, str) else given


class ListConversationsArguments(Arguments):
    """List this agent's past conversations that this turn may see, newest first."""

    tool: ClassVar[str] = "list_conversations"

    after: Annotated[
        str | None,
        Field(
            max_length=40,
            description="Only conversations that moved at or after this: a date (that day's midnight) or a "
            "time, in ISO 8601, in the workspace's time zone unless it has an offset.",
        ),
    ] = None
    before: Annotated[
        str | None,
        Field(
            max_length=40,
            description="Only conversations that moved before this: a time in ISO 8601, or a date, which "
            "includes that day to its end.",
        ),
    ] = None
    cursor: _Cursor = None
    limit: Annotated[
        int, Field(ge=1, description=f"How many at most: 20 if left out, {MOST_LISTED} at the highest.")
    ] = 20


class ReadConversationArguments(Arguments):
    """Read one past conversation: the person's and the agent's words, without tool results."""

    tool: ClassVar[str] = "read_conversation"

    conversation_id: Annotated[
        str,
        BeforeValidator(_without_surrogates),
        Field(description="The id of the conversation, as it was listed or handed over."),
    ]
    start: Annotated[
        int | None,
        Field(
            description="The number of the first message to read; negative counts from the end (-20: the "
            "last twenty). Left out: from the first. Not together with cursor."
        ),
    ] = None
    limit: Annotated[
        int,
        Field(ge=1, description=f"How many messages at most: {MOST_READ} if left out, and at the highest."),
    ] = MOST_READ
    cursor: _Cursor = None
    view: Annotated[
        Literal["messages", "summary"],
        Field(
            description="'messages' gives the words themselves; 'summary' the account that a model wrote of "
            "them, where there is one."
        ),
    ] = "messages"

    @model_validator(mode="after")
    def _start_or_cursor(self) -> Self:
        if self.start == 0:
            raise ValueError("start: message numbers begin at 1; leave it out for the first")
        if self.start is not None and self.cursor is not None:
            raise ValueError("start: give start or cursor, not both; a cursor knows where it was")
        if self.start is not None and self.view == "summary":
            raise ValueError("start: a summary has no message numbers; leave it out, or use view 'messages'")
        return self


Given = TypeVar("Given", bound=Arguments)

_RULES = {
    "missing": "is required",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "string_type": "must be text",
    "string_unicode": "must be text that is valid Unicode",
    "string_too_long": "must have at most {max_length} characters",
    "greater_than_equal": "must be {ge} or more",
    "literal_error": "must be {expected}",
}


def validated(model: type[Given], arguments: Any) -> Given:
    """The arguments of a call; a ToolError that names the first one at fault and its rule (`tool-errors`)."""
    if not isinstance(arguments, Mapping):
        raise invalid(None, f"The arguments of {model.tool} must be a JSON object.")
    for name in arguments:
        if name not in model.model_fields:
            raise _unknown(model, name)
    try:
        return model.model_validate(dict(arguments))
    except ValidationError as error:
        raise _first_fault(error) from None


def _unknown(model: type[Arguments], name: Any) -> ToolError:
    known = ", ".join(model.model_fields)
    if isinstance(name, str) and name.isascii() and name.isidentifier() and len(name) <= 64:  # noqa: PLR2004
        return invalid(name, f"is not an argument of {model.tool}, which takes {known}")
    return invalid(None, f"There is an argument that {model.tool} does not have; it takes {known}.")


def _first_fault(error: ValidationError) -> ToolError:
    fault = error.errors(include_url=False, include_input=False)[0]
    if not fault["loc"]:
        argument, _, rule = str(fault.get("ctx", {}).get("error", fault["msg"])).partition(": ")
        return invalid(argument, rule)
    rule = _RULES.get(fault["type"], fault["msg"])
    return invalid(str(fault["loc"][0]), rule.format(**fault.get("ctx", {})))
