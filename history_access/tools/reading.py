"""`read_conversation`: the words of one conversation, a page at a time."""

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from history_access import door, times
from history_access.models import AbstractTurn, How, What
from history_access.models.conversations import MOST_TOOL_NAMES, TOOL_NAME_CHARACTERS
from history_access.paging import CursorError, read_cursor, write_cursor
from history_access.quoting import NOTICE, cut, short, tool_names
from history_access.reach import Reach
from history_access.record import Given
from history_access.tools.arguments import MOST_READ, ReadConversationArguments, validated
from history_access.tools.errors import conversation_unavailable, invalid
from history_access.tools.results import (
    QuotedConversation,
    QuotedSummary,
    Summary,
    Truncated,
    Unavailable,
)
from history_access.tools.running import noting_refusals, run
from history_access.wire import written
from settings_catalog.keys import key_text

MESSAGE_CHARACTERS = 4_000
PAGE_CHARACTERS = 20_000

Scope = tuple[str, ...]


def read_conversation(turn: AbstractTurn | Any, /, **arguments: Any) -> QuotedConversation:
    """A page of one conversation in the turn's reach, or its summary (`tool-read`, `tool-summary`).

    Arguments as a model gives them: `conversation_id`, `start`, `limit`, `cursor`, `view`. What is given is
    recorded. A ToolError for bad arguments, for a conversation out of reach and where nothing can be read;
    a NoTurnError without a turn.
    """
    return QuotedConversation.model_validate(read(turn, arguments))


def read(turn: AbstractTurn | Any, arguments: Any) -> dict[str, Any]:
    """Like `read_conversation`, with the arguments just as a model sent them, as it goes over the wire."""
    with noting_refusals(turn, ReadConversationArguments):
        asked = validated(ReadConversationArguments, arguments)
        fetch = _summary_page if asked.view == "summary" else _messages_page
        return run(turn, lambda reach: fetch(reach, asked))


def _messages_page(reach: Reach, asked: ReadConversationArguments) -> tuple[dict[str, Any], list[Given]]:
    scope = _scope(reach, asked)
    start, offset = (asked.start or 1, 0) if asked.cursor is None else _resume(asked.cursor, scope, first=1)
    key = door.key_of(asked.conversation_id)
    most = 1 if offset else min(asked.limit, MOST_READ)
    caps = door.Caps(messages=most, message_characters=MESSAGE_CHARACTERS, page_characters=PAGE_CHARACTERS)
    rows = door.page(reach, key, start=start, offset=offset, caps=caps)
    head = _head(reach, door.head(reach, key))
    shown = [row for row in rows if row.text is not None]
    zone = times.zone_of(reach.turn.time_zone)
    messages = _messages(shown, head, zone, scope)
    beyond = rows[len(shown)] if len(rows) > len(shown) else None
    following = write_cursor([beyond.number, 0], scope) if beyond and not offset else None
    page = _page(head, zone, start, messages=messages, next_cursor=following)
    return page, [_given_messages(head, messages)]


def _summary_page(reach: Reach, asked: ReadConversationArguments) -> tuple[dict[str, Any], list[Given]]:
    scope = _scope(reach, asked)
    offset = 0 if asked.cursor is None else _resume(asked.cursor, scope, first=0)[1]
    found = door.head(
        reach,
        door.key_of(asked.conversation_id),
        summary_from=offset,
        most=PAGE_CHARACTERS + 1,
    )
    head = _head(reach, found)
    summary = _summary(head, offset, scope)
    page = _page(head, times.zone_of(reach.turn.time_zone), 1, view="summary", summary=summary)
    return page, [_given_summary(head, summary)]


def _page(
    head: door.SessionHead,
    zone: ZoneInfo,
    start: int,
    *,
    view: str = "messages",
    messages: Sequence[dict[str, Any]] = (),
    summary: Summary | None = None,
    next_cursor: str | None = None,
) -> dict[str, Any]:
    """A `QuotedConversation` as it is written, without making one: its models take Python a while."""
    unavailable = _trimmed(head, start)
    [conversation] = written([head], zone)
    return {
        "kind": "quoted_conversation",
        "notice": NOTICE,
        "by": _how(head).value,
        "view": view,
        "conversation": conversation,
        "messages": list(messages),
        "summary": summary and summary.model_dump(),
        "unavailable": unavailable and unavailable.model_dump(),
        "next_cursor": next_cursor,
    }


def _scope(reach: Reach, asked: ReadConversationArguments) -> Scope:
    turn = reach.turn
    return ("read", key_text(turn.agent_id), key_text(turn.reader_id), asked.conversation_id, asked.view)


def _resume(cursor: str, scope: Scope, *, first: int) -> tuple[int, int]:
    """Where a cursor points: a message's number (not below `first`) and an offset into its text."""
    try:
        number, offset = read_cursor(cursor, scope, (int, int))
    except CursorError as error:
        rule = f"{error}: it belongs to one conversation and view; leave it out to begin again"
        raise invalid("cursor", rule) from None
    return max(number, first), offset


def _head(reach: Reach, found: door.SessionHead | None) -> door.SessionHead:
    """The session, looked at after its messages: the one answer for whatever is not in reach now."""
    if found is None:
        raise conversation_unavailable()
    return found


def _how(head: door.SessionHead) -> How:
    return How.REFERENCE if head.handed_over else How.HISTORY


def _messages(
    rows: Sequence[door.MessageRow], head: door.SessionHead, zone: ZoneInfo, scope: Scope
) -> list[dict[str, Any]]:
    agent, person = (
        short(name, door.NAME_CHARACTERS) if name else None for name in (head.agent_name, head.person_name)
    )
    return [_message(row, agent if row.by_agent else person, zone, scope) for row in rows]


def _message(row: door.MessageRow, name: str | None, zone: ZoneInfo, scope: Scope) -> dict[str, Any]:
    text = cut(row.text or "", MESSAGE_CHARACTERS)
    cut_short = _truncated(len(text), row.characters, row.offset, [row.number], scope)
    return {
        "number": row.number,
        "speaker": "agent" if row.by_agent else "person",
        "at": times.local(row.created_at, zone),
        "quoted": {
            "name": name,
            "text": text or None,
            "tool_calls": tool_names(row.tool_names, MOST_TOOL_NAMES, TOOL_NAME_CHARACTERS),
        },
        "offset": row.offset,
        "truncated": cut_short and cut_short.model_dump(),
    }


def _truncated(shown: int, total: int, offset: int, number: list[int], scope: Scope) -> Truncated | None:
    end = offset + shown
    if end >= total:
        return None
    return Truncated(shown=shown, total=total, continue_=write_cursor([*number, end], scope))


def _trimmed(head: door.SessionHead, start: int) -> Unavailable | None:
    """What is gone of the messages that were asked for; a start far enough from the end asks for all."""
    if start < 0:
        start = 1 if -start > head.message_count else head.trimmed_before
    if start >= head.trimmed_before:
        return None
    return Unavailable(first=start, last=head.trimmed_before - 1)


def _summary(head: door.SessionHead, offset: int, scope: Scope) -> Summary | None:
    if not head.summary_characters:
        return None
    text = cut(head.summary or "", PAGE_CHARACTERS)
    return Summary(
        through=head.summary_through or 0,
        messages_after=head.messages_after,
        quoted=QuotedSummary(text=text),
        offset=offset,
        truncated=_truncated(len(text), head.summary_characters, offset, [0], scope),
    )


def _given_messages(head: door.SessionHead, messages: Sequence[dict[str, Any]]) -> Given:
    return Given.of(
        head,
        how=_how(head),
        what=What.MESSAGES if messages else What.TITLE,
        characters=sum(len(message["quoted"]["text"] or "") for message in messages),
        first_number=messages[0]["number"] if messages else None,
        last_number=messages[-1]["number"] if messages else None,
    )


def _given_summary(head: door.SessionHead, summary: Summary | None) -> Given:
    return Given.of(
        head,
        how=_how(head),
        what=What.SUMMARY if summary else What.TITLE,
        characters=len(summary.quoted.text) if summary else 0,
        last_number=summary.through if summary else None,
    )
