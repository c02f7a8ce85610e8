"""`list_conversations`: which of this agent's conversations a turn may see."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from history_access import door, times
from history_access.conf import conf
from history_access.models import AbstractTurn, How, What
from history_access.paging import CursorError, read_cursor, write_cursor
from history_access.quoting import short
from history_access.reach import Reach
from history_access.record import Given
from history_access.tools.arguments import MOST_LISTED, ListConversationsArguments, validated
from history_access.tools.errors import invalid
from history_access.tools.results import Conversation, ConversationList, QuotedNames
from history_access.tools.running import run
from settings_catalog.keys import key_text, optional_key_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def list_conversations(turn: AbstractTurn | Any, /, **arguments: Any) -> ConversationList:
    """The conversations in the turn's reach, newest first by when they last moved (`tool-list`).

    Arguments as a model gives them: `after`, `before`, `cursor`, `limit`. Every listed title is recorded.
    A ToolError for bad arguments and where nothing can be read; a NoTurnError without a turn.
    """
    return listed(turn, arguments)


def listed(turn: AbstractTurn | Any, arguments: Any) -> ConversationList:
    """Like `list_conversations`, with the arguments just as a model sent them."""
    asked = validated(ListConversationsArguments, arguments)
    return run(turn, How.HISTORY, lambda reach: _page(reach, asked))


def conversation_of(row: door.SessionRow, zone: ZoneInfo) -> Conversation:
    """A conversation in its wire form."""
    return Conversation(
        id=key_text(row.id),
        account_id=optional_key_text(row.account_id),
        quoted=QuotedNames(title=short(row.title, door.NAME_CHARACTERS), account=account_name(row)),
        started_at=times.local(row.started_at, zone),
        last_moved_at=times.local(row.last_moved_at, zone),
        message_count=row.message_count,
        link=_link(row.id),
    )


def account_name(row: door.SessionRow) -> str | None:
    """The account's name, None where there is no account."""
    if row.account_id is None or row.account_name is None:
        return None
    return short(row.account_name, door.NAME_CHARACTERS)


def _page(reach: Reach, asked: ListConversationsArguments) -> tuple[ConversationList, list[Given]]:
    zone = times.zone_of(reach.turn.time_zone)
    span, limit = _span(asked, zone), min(asked.limit, MOST_LISTED)
    scope = ("list", key_text(reach.turn.agent_id), key_text(reach.turn.reader_id), asked.after, asked.before)
    after, top = _positions(asked, scope)
    rows = door.newest(reach, span, after=after, most=limit + 1)
    shown, more = rows[:limit], len(rows) > limit
    top = top or (shown[0].position if shown else None)
    listed = ConversationList(
        scope=reach.setting.value,
        time_zone=zone.key,
        conversations=[conversation_of(row, zone) for row in shown],
        limit=limit,
        next_cursor=write_cursor(_place(shown[-1].position, top), scope) if more and top else None,
        newer_activity=after is not None and top is not None and door.has_newer(reach, span, top),
    )
    return listed, [_given(row, one) for row, one in zip(shown, listed.conversations, strict=True)]


def _given(row: door.SessionRow, shown: Conversation) -> Given:
    return Given(
        session_id=row.id,
        account_id=row.account_id,
        person_id=row.person_id,
        account_name=shown.quoted.account,
        what=What.TITLE,
        characters=len(shown.quoted.title),
    )


def _span(asked: ListConversationsArguments, zone: ZoneInfo) -> door.Span:
    return door.Span(start=_moment("after", asked.after, zone), end=_moment("before", asked.before, zone))


def _moment(name: str, text: str | None, zone: ZoneInfo) -> datetime | None:
    if text is None:
        return None
    try:
        return times.moment(text, zone, end_of_day=name == "before")
    except times.MomentError as error:
        raise invalid(name, str(error)) from None


def _place(last: door.Position, top: door.Position) -> list[str | int]:
    return [_microseconds(last.moved), key_text(last.key), _microseconds(top.moved), key_text(top.key)]


def _positions(
    asked: ListConversationsArguments, scope: tuple[str | None, ...]
) -> tuple[door.Position | None, door.Position | None]:
    """Where the last page ended and where the first began; None, None for a first page."""
    if asked.cursor is None:
        return None, None
    try:
        moved, key, top_moved, top_key = read_cursor(asked.cursor, scope, (int, str, int, str))
    except CursorError as error:
        rule = f"{error}: repeat its after and before to the letter, or leave cursor out to begin again"
        raise invalid("cursor", rule) from None
    return _position(moved, key), _position(top_moved, top_key)


def _position(moved: int, key: str) -> door.Position:
    return door.Position(moved=_EPOCH + moved * _MICROSECOND, key=door.key_of(key))


def _microseconds(moved: datetime) -> int:
    return (moved - _EPOCH) // _MICROSECOND


def _link(key: Any) -> str | None:
    pattern = conf.conversation_url
    return None if pattern is None else pattern.replace("{id}", quote(key_text(key), safe=""))
