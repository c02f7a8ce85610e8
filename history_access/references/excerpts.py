"""A fixed excerpt: chosen messages, copied once for one turn, with no right to more (`refs-two-kinds`)."""

from collections.abc import Mapping, Sequence
from typing import Any

from history_access import door
from history_access.entries import EXCERPTS
from history_access.models import AbstractTurn, ExcerptText, How, ReferenceKind, What
from history_access.models.platform import primary
from history_access.quoting import cut, short
from history_access.reach import Handover, handover_of_any_agent
from history_access.record import Given, recorded_within
from history_access.references import errors
from history_access.references.addresses import Named
from history_access.references.binding import admit, check_room, new_reference, read_entry
from history_access.references.bound import Reference, locked, shown
from history_access.wire import account_name
from settings_catalog.keys import key_text

MOST_MESSAGES = 50
MESSAGE_CHARACTERS = 4_000
EXCERPT_CHARACTERS = 20_000

_FIELD = "conversation"
_RULE = "must be a message's number, or {number, start, end}: whole numbers, start from 0, end above start"

Chosen = int | door.Piece | Mapping[str, int | None]


def attach_excerpt(turn: AbstractTurn | Any, conversation: Any, *, messages: Sequence[Chosen]) -> Reference:
    """Copy chosen messages for a turn, as its sender, record that, and return the reference.

    `conversation` is a session, its key, its id as text, or its address; it may be with another agent of the
    workspace that the sender can open. `messages` are up to 50 numbers, or a `Piece` (or a mapping) with
    `number`, and of its text `start` and `end` in characters. A message is cut at 4,000 characters, and says
    so; more than 20,000 altogether are refused.

    Later edits, trims or deletion of the conversation change nothing in the copy. Like every read it is
    recorded in a transaction of its own: a HistoryUnavailableError inside one of the caller's. A
    ReferencesError as from `bind_references`; a NoTurnError without a turn.
    """
    pieces = _pieces(messages)
    named = _named(conversation)
    key = door.key_of(named.conversation)
    return recorded_within(
        lambda: handover_of_any_agent(turn, key, EXCERPTS),
        lambda handover: _attach(handover, named, key, pieces),
    )


def _attach(
    handover: Handover, named: Named, key: Any | None, pieces: Sequence[door.Piece]
) -> tuple[Reference, list[Given]]:
    admit(handover, "excerpts")
    lasting = [row for row in locked(handover.turn) if row.ended_at is None]
    check_room(len(lasting) + 1, _FIELD)
    rows = door.chosen(handover, key, pieces, most=MESSAGE_CHARACTERS + 1)
    head = door.head(handover, key)
    if head is None or named.agent not in (None, key_text(handover.person.agent_id)):
        raise errors.unavailable(_FIELD)
    content = _content(head, rows, pieces)
    reference = new_reference(handover, head, ReferenceKind.EXCERPT)
    reference.save(using=primary(), force_insert=True)
    ExcerptText.objects.using(primary()).create(
        reference_id=reference.pk, workspace_id=reference.workspace_id, content=content
    )
    return shown(reference), [_given(head, content["messages"])]


def _content(
    head: door.SessionHead, rows: Sequence[door.MessageRow], pieces: Sequence[door.Piece]
) -> dict[str, Any]:
    """What the turn is shown, as it is kept; a ReferencesError where a piece is not there or too much."""
    found = {row.number: row for row in rows}
    messages = [
        _message(head, found.get(one.number), one, f"messages[{place}]") for place, one in enumerate(pieces)
    ]
    characters = sum(len(one["text"]) for one in messages)
    if characters > EXCERPT_CHARACTERS:
        rule = f"must have at most {EXCERPT_CHARACTERS:,} characters altogether; these have {characters:,}"
        raise errors.invalid("messages", rule)
    return {
        "conversation_id": key_text(head.id),
        "account_id": None if head.account_id is None else key_text(head.account_id),
        "title": short(head.title, door.NAME_CHARACTERS),
        "account": account_name(head),
        "messages": sorted(messages, key=lambda one: int(one["number"])),
    }


def _message(
    head: door.SessionHead, row: door.MessageRow | None, chosen: door.Piece, field: str
) -> dict[str, Any]:
    if row is None or (chosen.start and chosen.start >= row.characters):
        raise errors.invalid(field, "there is no such message to quote in this conversation, or no such part")
    length = None if chosen.end is None else chosen.end - chosen.start
    wanted = (row.text or "")[:length]
    text = cut(wanted, MESSAGE_CHARACTERS)
    name = head.agent_name if row.by_agent else head.person_name
    return {
        "number": row.number,
        "speaker": "agent" if row.by_agent else "person",
        "name": short(name, door.NAME_CHARACTERS) if name else None,
        "at": row.created_at.isoformat(),
        "text": text,
        "offset": chosen.start,
        "total": row.characters,
        "truncated": len(text) < len(wanted),
    }


def _given(head: door.SessionHead, messages: Sequence[Mapping[str, Any]]) -> Given:
    return Given.of(
        head,
        how=How.REFERENCE,
        what=What.EXCERPT,
        characters=sum(len(one["text"]) for one in messages),
        first_number=messages[0]["number"],
        last_number=messages[-1]["number"],
    )


def _named(conversation: Any) -> Named:
    if isinstance(conversation, str):
        return read_entry(conversation, _FIELD)
    key = getattr(conversation, "pk", conversation)
    if key is None:
        raise errors.unavailable(_FIELD)
    return Named(key_text(key))


def _pieces(messages: Any) -> list[door.Piece]:
    if isinstance(messages, str | bytes) or not isinstance(messages, Sequence):
        raise errors.invalid("messages", "must be a list")
    if not 1 <= len(messages) <= MOST_MESSAGES:
        raise errors.invalid("messages", f"must choose 1 to {MOST_MESSAGES} messages")
    pieces = [_piece(one, f"messages[{place}]") for place, one in enumerate(messages)]
    if len({one.number for one in pieces}) < len(pieces):
        raise errors.invalid("messages", "must choose each message once")
    return pieces


def _piece(chosen: Any, field: str) -> door.Piece:
    """One chosen message, checked; a bool is no number."""
    given: Any = {"number": chosen} if type(chosen) is int else chosen
    if isinstance(given, door.Piece):
        given = {"number": given.number, "start": given.start, "end": given.end}
    if not isinstance(given, Mapping) or not given.keys() <= {"number", "start", "end"}:
        raise errors.invalid(field, _RULE)
    number: Any = given.get("number")
    end: Any = given.get("end")
    start: Any = given.get("start") if given.get("start") is not None else 0
    whole = all(type(one) is int and 0 <= one <= door.LARGEST_NUMBER for one in (number, start))
    if not whole or not (end is None or (type(end) is int and end > start)):
        raise errors.invalid(field, _RULE)
    return door.Piece(number=number, start=start, end=end)
