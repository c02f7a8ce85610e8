"""A person looks for what to hand over; looking grants nothing to any turn (`refs-discovery`)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError

from history_access import door
from history_access.authority import RUN_READS, person_holds, platform_authority
from history_access.entries import ALL_ACCOUNTS, CONVERSATIONS, EXCERPTS
from history_access.models.platform import primary
from history_access.paging import CursorError, read_cursor, write_cursor
from history_access.quoting import cut, short
from history_access.reach import PersonReach, agent_of, agent_within, look_up_person
from history_access.references import errors
from history_access.turns import settings_of
from history_access.wire import account_name, link_of
from settings_catalog.conf import conf
from settings_catalog.keys import exact_key, key_text, optional_key_text
from settings_catalog.places import Place
from settings_catalog.resolver import Resolution

MOST_OFFERED = 50
MOST_TITLE = 200
PREVIEWED = 3
PREVIEW_CHARACTERS = 500

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")


class NothingToOfferError(LookupError):
    """No such conversation, or none that this person can open: one answer (`reach-same-answer`)."""


@dataclass(frozen=True, kw_only=True)
class Desk:
    """Where a turn is about to be sent from: its agent, and its conversation where there is one already.

    `account_id` is the conversation's, or the new one's; None is no account.
    """

    workspace_id: Any
    agent_id: Any
    account_id: Any | None = None
    session_id: Any | None = None


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A conversation that a person can open, and what they could hand over of it.

    `conversation`: the turn could read it whole. `excerpt`: chosen messages could be attached.
    """

    id: str
    title: str
    account_id: str | None
    account: str | None
    started_at: datetime
    last_moved_at: datetime
    message_count: int
    link: str | None
    conversation: bool
    excerpt: bool


@dataclass(frozen=True, kw_only=True)
class OfferPage:
    """A page of offers, newest first; `next_cursor` is None after the last."""

    offers: tuple[Offer, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class PreviewedMessage:
    """A message as a preview shows it; `characters` is how long the whole is."""

    number: int
    speaker: str
    at: datetime
    text: str
    characters: int


@dataclass(frozen=True, kw_only=True)
class Preview:
    """An offer with its first and its last messages; `left_out` is how many stand between them."""

    offer: Offer
    messages: tuple[PreviewedMessage, ...]
    left_out: int


def desk_in(person: Any, conversation: str) -> Desk:
    """The desk in one conversation, by the text of its key; a NothingToOfferError if they cannot open it."""
    key = door.key_of(conversation)
    where = agent_of(key)  # asked of no key too: as many statements as of any other (`reach-same-answer`)
    workspace_id, agent_id = where or (None, None)
    desk = Desk(workspace_id=workspace_id, agent_id=agent_id)
    head = door.head(_reach_from(person, desk, granted=where is not None), key)
    if head is None:
        raise NothingToOfferError(_NONE)
    return replace(desk, account_id=head.account_id, session_id=key)


def desk_for(person: Any, agent: str, *, account: str | None = None) -> Desk:
    """The desk of a new conversation with an agent, by the text of its key, for an account or none.

    A ReferencesError (403) where there is no such agent, as where the person lacks `runs:read` for it.
    """
    model: Any = conf.agent_model
    try:
        rows = model._base_manager.using(primary()).filter(pk=agent)
        row = rows.values_list("workspace_id", "pk").first()
        account_id = None if account is None else door.account_key(account)
    except (ValueError, ValidationError, OverflowError):  # a key that is none of this platform's
        raise errors.not_permitted(_MAY_NOT_RUN) from None
    if row is None or key_text(row[1]) != agent:
        raise errors.not_permitted(_MAY_NOT_RUN)
    desk = Desk(workspace_id=row[0], agent_id=row[1], account_id=account_id)
    _may_run(person, desk)
    return desk


_MAY_NOT_RUN = "you lack the permission runs:read for this agent"
_NONE = "there is no such conversation that you can open"


def offerable_conversations(
    person: Any,
    desk: Desk,
    *,
    of_agent: Any = None,
    title: str = "",
    cursor: str | None = None,
    limit: int = 20,
) -> OfferPage:
    """The conversations that a person can open and may think of handing to a turn at a desk, newest first.

    Those with the desk's agent, or with `of_agent` (its key), another one of the workspace; `title` leaves
    those that have it in their titles, without regard to case and accents. At most 50 a page. A
    ReferencesError where the person may hand over nothing (403), and for a bad title or cursor (422).
    """
    _may_run(person, desk)
    if len(title) > MOST_TITLE or _NOT_STORABLE.search(title):
        raise errors.invalid("title", f"must have at most {MOST_TITLE} characters, none of them NUL")
    source = replace(desk, agent_id=desk.agent_id if of_agent is None else _agent_key(of_agent))
    scope = (
        "offer",
        key_text(person.pk),
        key_text(source.agent_id),
        key_text(desk.agent_id),
        optional_key_text(desk.account_id),
        optional_key_text(desk.session_id),
        title,
    )
    after = None if cursor is None else _position(cursor, scope)
    setting, references = settings_of(Place.agent(desk.workspace_id, desk.agent_id))
    limit = max(1, min(limit, MOST_OFFERED))
    reach = _own_reach(person, source)
    rows = door.offered(reach, _account_line(desk, setting), title=title, after=after, most=limit + 1)
    offers = tuple(_offer(row, desk, source, references) for row in rows[:limit])
    following = _cursor(rows[limit - 1].position, scope) if len(rows) > limit else None
    return OfferPage(offers=offers, next_cursor=following)


def preview_conversation(person: Any, desk: Desk, conversation: str) -> Preview:
    """The first three and the last three messages of one conversation, 500 characters of each, and its offer.

    A NothingToOfferError where the person cannot open it; a ReferencesError as from
    `offerable_conversations`.
    """
    _may_run(person, desk)
    key = door.key_of(conversation)
    asked = desk.session_id if key is None else key
    source = replace(desk, agent_id=agent_within(desk.workspace_id, asked, otherwise=desk.agent_id))
    setting, references = settings_of(Place.agent(desk.workspace_id, desk.agent_id))
    reach = _own_reach(person, source)
    messages = door.ends(reach, key, each=PREVIEWED, most=PREVIEW_CHARACTERS + 1)
    row = door.offer_of(reach, asked, _account_line(desk, setting))
    if row is None:
        raise NothingToOfferError(_NONE)
    return Preview(
        offer=_offer(row, desk, source, references),
        messages=tuple(_previewed(one) for one in messages),
        left_out=max(0, row.message_count - len(messages)),
    )


def _may_run(person: Any, desk: Desk) -> None:
    if not person_holds(platform_authority(), person.pk, RUN_READS, desk.workspace_id, desk.agent_id):
        raise errors.not_permitted(_MAY_NOT_RUN)


def _agent_key(agent: Any) -> Any:
    """Another agent's key, also given as text; a ReferencesError for what can be none."""
    key = exact_key(conf.agent_model._meta.pk, key_text(agent))
    if key is None:
        raise errors.invalid("of_agent", "must be the key of an agent")
    return key


def _own_reach(person: Any, desk: Desk) -> PersonReach:
    """What the person can open of the desk's agent, but for the conversation that they are in."""
    _, granted = look_up_person(person.pk, desk.workspace_id, desk.agent_id)
    return _reach_from(person, desk, granted=granted)


def _reach_from(person: Any, desk: Desk, *, granted: bool) -> PersonReach:
    return PersonReach(
        person_id=person.pk,
        workspace_id=desk.workspace_id,
        agent_id=desk.agent_id,
        session_id=desk.session_id,
        account_id=desk.account_id,
        every_account=True,
        granted=granted,
    )


def _account_line(desk: Desk, setting: Resolution) -> PersonReach:
    """The account line as a turn from this desk will meet it (`refs-within-reach`)."""
    return PersonReach(
        person_id=None,
        workspace_id=desk.workspace_id,
        agent_id=desk.agent_id,
        session_id=desk.session_id,
        account_id=desk.account_id,
        every_account=setting.value == ALL_ACCOUNTS,
        granted=False,
    )


def _offer(row: door.OfferedRow, desk: Desk, source: Desk, references: Resolution) -> Offer:
    return Offer(
        id=key_text(row.id),
        title=short(row.title, door.NAME_CHARACTERS),
        account_id=optional_key_text(row.account_id),
        account=account_name(row),
        started_at=row.started_at,
        last_moved_at=row.last_moved_at,
        message_count=row.message_count,
        link=link_of(row.id),
        conversation=row.account_holds
        and references.allows(CONVERSATIONS)
        and key_text(source.agent_id) == key_text(desk.agent_id),
        excerpt=row.account_holds and row.message_count > 0 and references.allows(EXCERPTS),
    )


def _previewed(row: door.MessageRow) -> PreviewedMessage:
    return PreviewedMessage(
        number=row.number,
        speaker="agent" if row.by_agent else "person",
        at=row.created_at,
        text=cut(row.text or "", PREVIEW_CHARACTERS),
        characters=row.characters,
    )


def _cursor(position: door.Position, scope: Sequence[str | None]) -> str:
    return write_cursor([(position.moved - _EPOCH) // _MICROSECOND, key_text(position.key)], scope)


def _position(cursor: str, scope: Sequence[str | None]) -> door.Position:
    try:
        moved, key = read_cursor(cursor, scope, (int, str))
    except CursorError as error:
        raise errors.invalid("cursor", f"{error}: leave it out to begin again") from None
    return door.Position(moved=_EPOCH + moved * _MICROSECOND, key=door.key_of(key))
