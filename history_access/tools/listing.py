"""`list_conversations`: which of this agent's conversations a turn may see."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone

from history_access import door, times
from history_access.entries import NONE
from history_access.models import AbstractTurn, What
from history_access.paging import CursorError, read_cursor, write_cursor
from history_access.quoting import NOTICE
from history_access.reach import SWITCHED_OFF, Reach
from history_access.record import Given, HistoryUnavailableError
from history_access.tools.arguments import MOST_LISTED, ListConversationsArguments, validated
from history_access.tools.errors import invalid
from history_access.tools.results import ConversationList
from history_access.tools.running import noting_refusals, run
from history_access.wire import written
from settings_catalog.keys import key_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LATE = timedelta(minutes=1)
"""How long after a session's moment its transaction may commit without being missed by `newer_activity`."""


def list_conversations(turn: AbstractTurn | Any, /, **arguments: Any) -> ConversationList:
    """The conversations in the turn's reach, newest first by when they last moved (`tool-list`).

    Arguments as a model gives them: `after`, `before`, `cursor`, `limit`. Every listed title is recorded.
    A ToolError for bad arguments and where nothing can be read; a NoTurnError without a turn.
    """
    return ConversationList.model_validate(listed(turn, arguments))


def listed(turn: AbstractTurn | Any, arguments: Any) -> dict[str, Any]:
    """Like `list_conversations`, with the arguments just as a model sent them, as it goes over the wire."""
    with noting_refusals(turn, ListConversationsArguments):
        asked = validated(ListConversationsArguments, arguments)
        return run(turn, lambda reach: _page(reach, asked))


def _page(reach: Reach, asked: ListConversationsArguments) -> tuple[dict[str, Any], list[Given]]:
    if reach.setting.value == NONE:  # what was handed over is read, never listed
        raise HistoryUnavailableError(SWITCHED_OFF)
    zone = times.zone_of(reach.turn.time_zone)
    span, limit = _span(asked, zone), min(asked.limit, MOST_LISTED)
    scope = ("list", key_text(reach.turn.agent_id), key_text(reach.turn.reader_id), asked.after, asked.before)
    resumed = None if asked.cursor is None else _resumed(asked.cursor, scope)
    rows = door.newest(reach, span, after=resumed.last if resumed else None, most=limit + 1)
    shown = rows[:limit]
    following = _following(rows, limit, resumed)
    conversations = list(written(shown, zone))
    page = {
        "kind": "conversation_list",
        "notice": NOTICE,
        "scope": reach.setting.value,
        "time_zone": zone.key,
        "conversations": conversations,
        "limit": limit,
        "next_cursor": write_cursor(following.place, scope) if following else None,
        "newer_activity": resumed is not None and _has_newer(reach, span, resumed),
    }
    return page, [_given(row, one["quoted"]) for row, one in zip(shown, conversations, strict=True)]


@dataclass(frozen=True, kw_only=True)
class _Paging:
    """What a cursor knows: the last row of its page, and what the list's beginning looked like.

    `top` is the first row of the first page; `recent` is how many rows were shown that had moved at or after
    `since`, a moment before that page was read.
    """

    last: door.Position
    top: door.Position
    since: datetime
    recent: int

    @property
    def place(self) -> list[str | int]:
        return [*_place_of(self.last), *_place_of(self.top), _microseconds(self.since), self.recent]


def _following(rows: list[door.SessionRow], limit: int, resumed: _Paging | None) -> _Paging | None:
    """What the next cursor knows; None after the last page."""
    if len(rows) <= limit:
        return None
    shown, top = rows[:limit], rows[0].position
    known = resumed or _Paging(last=top, top=top, since=min(top.moved, timezone.now() - _LATE), recent=0)
    recent = sum(row.last_moved_at >= known.since for row in shown)
    return replace(known, last=shown[-1].position, recent=known.recent + recent)


def _has_newer(reach: Reach, span: door.Span, resumed: _Paging) -> bool:
    """Whether a session has moved to what was shown already (`tool-pages`).

    One that moved a moment before the first page and was committed only after it may stand below the top:
    there is then one more recent session than were shown.
    """
    recent = door.moved_since(reach, span, resumed.since, last=resumed.last, most=resumed.recent + 1)
    if len(recent) > resumed.recent:
        return True
    top = (resumed.top.moved, resumed.top.key)
    return bool(recent) and (recent[0].moved, recent[0].key) > top


def _given(row: door.SessionRow, quoted: dict[str, Any]) -> Given:
    return Given.of(row, what=What.TITLE, characters=len(quoted["title"]))


def _span(asked: ListConversationsArguments, zone: ZoneInfo) -> door.Span:
    return door.Span(start=_moment("after", asked.after, zone), end=_moment("before", asked.before, zone))


def _moment(name: str, text: str | None, zone: ZoneInfo) -> datetime | None:
    if text is None:
        return None
    try:
        return times.moment(text, zone, end_of_day=name == "before")
    except times.MomentError as error:
        raise invalid(name, str(error)) from None


def _resumed(cursor: str, scope: tuple[str | None, ...]) -> _Paging:
    try:
        place = read_cursor(cursor, scope, (int, str, int, str, int, int))
    except CursorError as error:
        rule = f"{error}: repeat its after and before to the letter, or leave cursor out to begin again"
        raise invalid("cursor", rule) from None
    moved, key, top_moved, top_key, since, recent = place
    return _Paging(
        last=door.Position(moved=_moment_of(moved), key=door.key_of(key)),
        top=door.Position(moved=_moment_of(top_moved), key=door.key_of(top_key)),
        since=_moment_of(since),
        recent=recent,
    )


def _place_of(position: door.Position) -> tuple[int, str]:
    return _microseconds(position.moved), key_text(position.key)


def _moment_of(microseconds: int) -> datetime:
    return _EPOCH + microseconds * _MICROSECOND


def _microseconds(moved: datetime) -> int:
    return (moved - _EPOCH) // _MICROSECOND
