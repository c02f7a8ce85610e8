"""The one door to sessions and messages: whatever reads them does it here, within a reach (`reach-one-door`).

Each function runs one statement in which the rights and the text stand together (`reach-now`), and takes
from the database only what is returned.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import (
    Case,
    Count,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
    Window,
)
from django.db.models.aggregates import Sum
from django.db.models.functions import Coalesce, Greatest, Least, RowNumber

from history_access.models import AbstractMessage
from history_access.models.keyset import beyond, up_to
from history_access.models.platform import message_model, one_row, primary, rows, session_model
from history_access.models.reads import KEY_LENGTH
from history_access.models.text import characters, piece
from history_access.reach import Reach
from settings_catalog.keys import key_text

NAME_CHARACTERS = 200
"""What is fetched at most of a title or a name, and one more, to see that there is more."""

LARGEST_NUMBER = 2**31 - 1
"""No message has a higher number; a larger one asks for nothing that could be there."""


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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class SessionHead(SessionRow):
    """A session with what a read of it says besides its messages.

    `summary` is the piece that was asked for, None where no summary was; `summary_characters` is the whole
    summary's length, None where there is no summary.
    """

    trimmed_before: int
    summary: str | None
    summary_characters: int | None
    summary_through: int | None
    messages_after: int


@dataclass(frozen=True, kw_only=True)
class MessageRow:
    """One entry of a page. `text` starts at `offset`; it is None where the page was full before it."""

    number: int
    role: str
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


def key_of(text: str) -> Any | None:
    """The session key that `text` is, in its one exact spelling; None for everything else.

    "{…}" or upper case for a UUID, "007" for 7 and text that no database takes are nobody's keys.
    """
    if len(text) > KEY_LENGTH:
        return None
    try:
        key = session_model()._meta.pk.to_python(text)
        known = key is not None and key_text(key) == text and text.isprintable()
    except (ValidationError, ValueError, OverflowError):
        return None
    return key if known and _fits(key) else None


def newest(reach: Reach, span: Span, *, after: Position | None, most: int) -> list[SessionRow]:
    """The sessions in reach and span, newest first, at most `most`, after a position."""
    sessions = reach.sessions().filter(span.condition)
    if after is not None:
        sessions = sessions.filter(beyond(session_model(), after.moved, after.key))
    ordered = sessions.order_by("-last_moved_at", "-pk")[:most]
    return [SessionRow(**row) for row in rows(ordered, _row_columns())]


def moved_since(reach: Reach, span: Span, since: datetime, *, last: Position, most: int) -> list[Position]:
    """Where the sessions in reach and span stand, down to `last`, that moved at or after `since`.

    Newest first, at most `most`.
    """
    down_to = up_to(session_model(), last.moved, last.key)
    sessions = reach.sessions().filter(span.condition, down_to, last_moved_at__gte=since)
    rows = sessions.order_by("-last_moved_at", "-pk").values_list("last_moved_at", "pk")[:most]
    return [Position(moved=moved, key=key) for moved, key in rows]


def head(
    reach: Reach, key: Any | None, *, summary_from: int | None = None, most: int = 0
) -> SessionHead | None:
    """A session in reach, None for every other one (`reach-same-answer`).

    With `summary_from`, also at most `most` characters of its summary from that offset on.
    """
    sessions = reach.sessions().filter(pk=_looked_up(reach, key))
    row = one_row(sessions, _row_columns() | _head_columns(summary_from, most))
    return None if row is None else SessionHead(**row)


def page(reach: Reach, key: Any | None, *, start: int, offset: int, caps: Caps) -> list[MessageRow]:
    """The readable messages of a session in reach from number `start` on, one more than the page takes.

    A negative `start` counts from the end. `offset` is where the first message's text starts. A message
    beyond the caps comes without text: it begins the next page. [] for a session out of reach.
    """
    messages = _messages_in_reach(reach, _looked_up(reach, key))
    words, by_number = message_model().words(), F("number").asc()
    begins = Case(When(number=start, then=Value(offset)), default=Value(0), output_field=IntegerField())
    left = Greatest(F("page_size") - F("page_offset"), Value(0))
    taken = Least(left, Value(caps.message_characters))
    fits = Q(page_running__lte=caps.page_characters, page_nth__lte=caps.messages)
    text = piece(words, F("page_offset"), caps.message_characters + 1)
    ordered = (
        messages.filter(number__gte=_first_number(messages, start))
        .annotate(page_size=characters(words), page_offset=begins)
        .annotate(page_running=Window(Sum(taken), order_by=by_number))
        .annotate(page_nth=Window(RowNumber(), order_by=by_number))
        .order_by("number")
    )
    columns = {
        "number": F("number"),
        "role": F("role"),
        "created_at": F("created_at"),
        "text": Case(When(fits, then=text), default=None, output_field=TextField()),
        "characters": F("page_size"),
        "offset": F("page_offset"),
        "tool_names": message_model().tool_names(),
    }
    return [MessageRow(**row) for row in rows(ordered[: caps.messages + 1], columns)]


def _messages_in_reach(reach: Reach, key: Any) -> "QuerySet[AbstractMessage]":
    """The readable messages of one session, where it is in reach: a condition looked at once a statement."""
    within = Subquery(reach.sessions().filter(pk=key).values("pk")[:1])
    model: Any = message_model()
    rows: QuerySet[AbstractMessage] = model._base_manager.using(primary()).filter(
        model.readable(), workspace_id=reach.turn.workspace_id, session_id=within
    )
    return rows


def _first_number(messages: "QuerySet[AbstractMessage]", start: int) -> Any:
    if start >= 0:
        return min(start, LARGEST_NUMBER)
    back = min(-start, LARGEST_NUMBER)
    numbers = messages.order_by("-number").values("number")
    return Coalesce(Subquery(numbers[back - 1 : back]), Value(0), output_field=IntegerField())


def _row_columns() -> dict[str, Any]:
    sessions = session_model()
    return {
        "id": F("pk"),
        "account_id": F("account_id"),
        "person_id": F("person_id"),
        "title": piece(F("title"), 0, NAME_CHARACTERS + 1),
        "account_name": _name(sessions.account_name),
        "person_name": _name(sessions.person_name),
        "started_at": F("started_at"),
        "last_moved_at": F("last_moved_at"),
        "message_count": F("message_count"),
    }


def _head_columns(summary_from: int | None, most: int) -> dict[str, Any]:
    wanted = summary_from is not None
    nothing = Value(None, output_field=TextField())
    summary = piece(F("summary"), summary_from or 0, most) if wanted else nothing
    size = Case(
        When(summary__isnull=False, then=characters(F("summary"))), default=None, output_field=IntegerField()
    )
    return {
        "trimmed_before": F("trimmed_before"),
        "summary": summary,
        "summary_characters": size,
        "summary_through": F("summary_through"),
        "messages_after": _messages_after() if wanted else Value(0, output_field=IntegerField()),
    }


def _messages_after() -> Any:
    """How many readable messages came after the summary; counted by the index of readable messages."""
    model: Any = message_model()
    after = model._base_manager.using(primary()).filter(
        model.readable(),
        workspace_id=OuterRef("workspace_id"),
        session_id=OuterRef("pk"),
        number__gt=OuterRef("summary_through"),
    )
    counted = after.order_by().values("session_id").annotate(after=Count("pk")).values("after")
    return Coalesce(Subquery(counted), Value(0), output_field=IntegerField())


def _name(path: str | None) -> Any:
    return piece(F(path), 0, NAME_CHARACTERS + 1) if path else Value(None, output_field=TextField())


def _looked_up(reach: Reach, key: Any | None) -> Any:
    """The key to look up. No key is looked up as the turn's own session, which is never in reach.

    So an id that cannot be one costs the statements that any other costs (`reach-same-answer`).
    """
    return reach.turn.session_id if key is None else key


def _fits(key: Any) -> bool:
    """Whether an integer key is one that the database's column can hold."""
    return not isinstance(key, int) or -(2**63) <= key < 2**63
