"""The import format: JSON Lines, one conversation a line, each checked before anything is written."""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import Annotated, Any, BinaryIO, Literal, LiteralString, NoReturn

from django.contrib.auth import get_user_model
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from history_access.agent_platform.models import Account
from history_access.agent_platform.services import storable, storable_json

MOST_BYTES = 64 * 1024 * 1024
"""The longest line that is read."""

MOST_NESTED = 100
"""How deep a tool call's arguments may be nested; Python and both databases stop somewhere beyond."""

_UNICODE: LiteralString = "must be valid Unicode, without NUL"
_PIECE = 1024 * 1024
_MOST_NAME = 64


class RejectedError(ValueError):
    """A line that is not imported; says which field is at fault and what the rule is."""


@dataclass(frozen=True)
class Line:
    """One line of a file: its number from 1, its size in bytes, its content (None where it is too long)."""

    number: int
    size: int
    content: bytes | None

    @property
    def empty(self) -> bool:
        """Whether there is nothing on it."""
        return self.content is not None and not self.content.strip()


def lines_of(file: BinaryIO) -> Iterator[Line]:
    """The lines of a file, one at a time; of one longer than `MOST_BYTES` the rest is passed over."""
    number = 0
    while content := file.readline(MOST_BYTES + 1):
        number += 1
        if len(content) <= MOST_BYTES or content.endswith(b"\n"):
            yield Line(number, len(content), content)
        else:
            yield Line(number, len(content) + _pass_over(file), None)


def _pass_over(file: BinaryIO) -> int:
    """Read on to the end of the line, keeping nothing; how many bytes there were."""
    size = 0
    while piece := file.readline(_PIECE):
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return size


def _rejected(rule: LiteralString, **values: Any) -> PydanticCustomError:
    return PydanticCustomError("rule", rule, values)


def _moment(given: Any) -> datetime:
    """The instant in UTC; every time zone can show it."""
    try:
        at = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        at = None
    if at is None or at.tzinfo is None:
        raise _rejected("must be a time with an offset, like 2026-11-29T14:30:00+00:00")
    if not MINYEAR < at.year < MAXYEAR:
        raise _rejected("must lie between the years 2 and 9998")
    return at.astimezone(UTC)


def _cleaned(given: Any) -> Any:
    return storable(given) if isinstance(given, str) else given


def _exact(name: str) -> str:
    """A name that has to be kept to the letter; cleaned, it could become somebody else's."""
    if name != storable(name):
        raise _rejected(_UNICODE)
    return name


def _fitting(name: str, model: Any, field: str) -> str:
    most = model._meta.get_field(field).max_length
    if most is not None and len(name) > most:
        raise _rejected("must have at most {most} characters", most=most)
    return name


def _account(name: str) -> str:
    return _fitting(name, Account, "name")


def _username(name: str) -> str:
    """The name as the user model spells it: NFC and NFD spellings are one person, as for signing in."""
    people = get_user_model()
    return _fitting(people.normalize_username(name), people, people.USERNAME_FIELD)


def _shallow(arguments: Any) -> Any:
    """The arguments made storable, where they are not nested too deeply to be."""
    level = [arguments]
    for _ in range(MOST_NESTED + 1):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return storable_json(arguments)
    raise _rejected("must be nested at most {most} deep", most=MOST_NESTED)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


_Text = Annotated[str, BeforeValidator(_cleaned)]
_Moment = Annotated[datetime, BeforeValidator(_moment)]
_Name = Annotated[str, AfterValidator(_exact)]
_Key = Annotated[str, Field(min_length=1), AfterValidator(_exact)]


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class GivenToolCall(_Given):
    """A call of a tool, its arguments any JSON value."""

    name: _Text
    arguments: Annotated[Any, AfterValidator(_shallow)]


class GivenMessage(_Given):
    """One entry of a conversation; a text of None or "" is no text."""

    role: Literal["person", "agent", "tool", "system"]
    text: _Text | None
    at: _Moment
    hidden: bool = False
    tool_calls: list[GivenToolCall] = []
    name: _Text | None = None

    @field_validator("name")
    @classmethod
    def _forget(cls, name: str | None, info: ValidationInfo) -> None:
        """A tool's name is accepted, as files have it, and not kept: the call before it names the tool."""
        if name is not None and info.data.get("role") != "tool":
            raise _rejected("belongs to messages of tools alone")


class GivenConversation(_Given):
    """One line. `person` is a username, `account` the exact name of an account; None is none."""

    id: _Key
    title: _Text
    person: Annotated[_Key, AfterValidator(_username)] | None
    account: Annotated[_Name, AfterValidator(_account)] | None
    started_at: _Moment
    messages: list[GivenMessage]


def conversation_of(line: Line) -> GivenConversation:
    """The conversation on a line; a RejectedError that names the first field at fault and its rule."""
    if line.content is None:
        raise RejectedError(f"is longer than {MOST_BYTES:,} bytes")
    try:
        return GivenConversation.model_validate(_json(line.content))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        # A misspelt field is also a missing one: the misspelling says more.
        raise RejectedError(_words(min(faults, key=lambda one: one["type"] != "extra_forbidden"))) from None


def _json(content: bytes) -> Any:
    try:
        text = content.decode("utf-8-sig")
        return json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise RejectedError(f"is not UTF-8 at byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise RejectedError(f"is not JSON at character {error.pos + 1}: {error.msg}") from None
    except RecursionError:
        raise RejectedError("is nested too deeply") from None
    except ValueError:
        raise RejectedError("holds a number that is not finite, or has too many digits") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits)


_RULES = {
    "missing": "is required",
    "extra_forbidden": "is not a field of the format",
    "string_type": "must be text",
    "string_unicode": _UNICODE,
    "string_too_short": "must not be empty",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "model_type": "must be an object",
    "literal_error": "must be {expected}",
}


def _words(fault: ErrorDetails) -> str:
    """A fault as "messages[3].at: rule"; without a path where the whole line is at fault."""
    rule = _RULES.get(fault["type"], "{rule}").format(rule=fault["msg"], **fault.get("ctx", {}))
    path = "".join(f"[{one}]" if isinstance(one, int) else f".{_shown(one)}" for one in fault["loc"])
    return f"{path[1:]}: {rule}" if path else rule


def _shown(name: str) -> str:
    """A field's name; of a stranger's, nothing that a terminal would obey."""
    return (
        name
        if name.isascii() and name.isidentifier() and len(name) <= _MOST_NAME
        else ascii(name[:_MOST_NAME])
    )
