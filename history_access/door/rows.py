"""What comes through the door: rows of sessions and messages, cut to what is shown."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from django.db.models import Q, QuerySet

from history_access.models import AbstractSession

NAME_CHARACTERS = 200
"""What is fetched at most of a title or a name, and one more, to see that there is more."""

LARGEST_NUMBER = 2**31 - 1
"""No message has a higher number; a larger one asks for nothing that could be there."""


class Bounds(Protocol):
    """Within which sessions something is read: the reach of a turn, or of a person."""

    @property
    def workspace_id(self) -> Any:
        """The workspace of all of them."""

    @property
    def session_id(self) -> Any | None:
        """The session that is never among them; None where nobody reads from within one."""

    def handed_over(self) -> Q:
        """Which sessions a person handed over."""

    def sessions(self) -> "QuerySet[AbstractSession]":
        """They themselves, every restrictor evaluated when it runs."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A range of time: sessions that moved at any time from `start` up to, not including, `end`."""

    start: datetime | None = None
    end: datetime | None = None

    @property
    def condition(self) -> Q:
        """Started before its end, and last moved at or after its start (`tool-list`)."""
        condition = Q()
        if self.start is not None:
            condition &= Q(last_moved_at__gte=self.start)
        if self.end is not None:
            condition &= Q(started_at__lt=self.end)
        return condition


@dataclass(frozen=True, kw_only=True)
class Position:
    """A row of the list newest first: where a page ended, or where the first page began."""

    moved: datetime
    key: Any


@dataclass(kw_only=True)  # Python takes three times as long for a frozen one, and a page has fifty
class SessionRow:
    """What a list shows of a session; `title` and names may be one character over the cap, uncut."""

    id: Any
    account_id: Any | None
    person_id: Any | None
    title: str
    account_name: str | None
    person_name: str | None
    started_at: datetime
    last_moved_at: datetime
    message_count: int

    @property
    def position(self) -> Position:
        """Its place in the list."""
        return Position(moved=self.last_moved_at, key=self.id)


@dataclass(kw_only=True)
class SessionHead(SessionRow):
    """A session with what a read of it says besides its messages, and whether a person handed it over.

    `summary` is the piece that was asked for, None where no summary was; `summary_characters` is the whole
    summary's length, None where there is no summary.
    """

    handed_over: bool
    agent_name: str | None
    trimmed_before: int
    summary: str | None
    summary_characters: int | None
    summary_through: int | None
    messages_after: int


@dataclass(kw_only=True)
class MessageRow:
    """One entry of a page. `text` starts at `offset`; it is None where the page was full before it."""

    number: int
    by_agent: bool
    created_at: datetime
    text: str | None
    characters: int
    offset: int
    tool_names: list[str]


@dataclass(frozen=True, kw_only=True)
class Caps:
    """How much one page takes at most (`tool-caps`)."""

    messages: int
    message_characters: int
    page_characters: int


@dataclass(kw_only=True)
class OfferedRow(SessionRow):
    """A session that a person could pick, and whether the account line lets their turn have it."""

    account_holds: bool


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Part of one message: characters from `start` up to, not including, `end` (None: to its end)."""

    number: int
    start: int = 0
    end: int | None = None
