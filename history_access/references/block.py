"""What a turn's model is told of what was handed to it: one block for the prompt, all of it quoted."""

from datetime import datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

from django.db.models import Exists, OuterRef, Q, QuerySet

from history_access import door, times
from history_access.entries import ALL_ACCOUNTS, EXCERPTS
from history_access.models import (
    AbstractTurn,
    ExcerptText,
    How,
    ReferenceKind,
    What,
)
from history_access.models.platform import primary
from history_access.quoting import NOTICE, wire_text
from history_access.reach import Reach, reach_of
from history_access.record import Given, recorded_within
from history_access.references.bound import of_turn
from history_access.wire import Conversation, QuotedNames, Result, conversations_of, link_of
from settings_catalog.keys import key_text, optional_key_text


class ExcerptWords(Result):
    """The words of one quoted message; of a part of it, `offset` says where it starts."""

    name: str | None
    text: str


class ExcerptMessage(Result):
    """One message of an excerpt. `total` is how long the whole message was; `truncated`: a cap cut it."""

    number: int
    speaker: Literal["person", "agent"]
    at: str
    quoted: ExcerptWords
    offset: int
    total: int
    truncated: bool


class Excerpt(Result):
    """A fixed copy of a part of a conversation; it gives no right to read more of it."""

    conversation_id: str
    account_id: str | None
    quoted: QuotedNames
    link: str | None
    messages: list[ExcerptMessage]


class ReferencesBlock(Result):
    """What a person handed to this turn. False where there is nothing; `str()` is the text for the prompt.

    `conversations` may be read with `read_conversation` by their ids, in this turn alone.
    """

    kind: Literal["conversation_references"] = "conversation_references"
    notice: str = NOTICE
    conversations: list[Conversation]
    excerpts: list[Excerpt]

    def __bool__(self) -> bool:
        return bool(self.conversations or self.excerpts)

    def __str__(self) -> str:
        return wire_text(self.model_dump(mode="json")) if self else ""


def references_block(turn: AbstractTurn | Any) -> ReferencesBlock:
    """What the turn may have now of what was handed to it, for its prompt.

    Rights are looked at as for a read: what was taken back, deleted or switched off is not in it. The titles
    of whole conversations are recorded; an excerpt was when it was attached. A HistoryUnavailableError inside
    a transaction of the caller's; a NoTurnError without a turn.
    """
    return recorded_within(lambda: reach_of(turn), _block)


def _block(reach: Reach) -> tuple[ReferencesBlock, list[Given]]:
    zone = times.zone_of(reach.turn.time_zone)
    keys = [one.session_id for one in reach.references]
    found = door.among(reach, keys, handed_over=True) if keys else {}
    rows = [found[key] for key in keys if key in found]
    excerpts = [_excerpt(content, zone) for content in _contents(reach)]
    conversations = conversations_of(rows, zone)
    block = ReferencesBlock(conversations=conversations, excerpts=excerpts)
    return block, [_given(row, one) for row, one in zip(rows, conversations, strict=True)]


def _contents(reach: Reach) -> "QuerySet[ExcerptText, Any]":
    """The words of the excerpts that this turn may be shown now, in the order in which they were attached."""
    standing = of_turn(reach.turn).filter(
        _account_line(reach),
        reference_holds(reach),
        pk=OuterRef("pk"),
        kind=ReferenceKind.EXCERPT,
        ended_at__isnull=True,
    )
    allowed = reach.references_setting.allows(EXCERPTS)
    words = ExcerptText.objects.using(primary()).filter(
        Exists(standing), workspace_id=key_text(reach.turn.workspace_id), content__isnull=False
    )
    shown = words if allowed else words.none()
    return shown.order_by("pk").values_list("content", flat=True)


def reference_holds(reach: Reach) -> Q:
    """That the turn still runs, and still as the person who handed the thing over."""
    return reach.of_the_turn() & Q(person_id=optional_key_text(reach.turn.sender_id) or "")


def _account_line(reach: Reach) -> Q:
    """`reach-account-exact`, of what was copied: its account is kept beside it as text."""
    if reach.setting.value == ALL_ACCOUNTS:
        return Q()
    if reach.turn.account_id is None:
        return Q(session_account_id__isnull=True)
    return Q(session_account_id=key_text(reach.turn.account_id))


def _excerpt(content: Any, zone: ZoneInfo) -> Excerpt:
    return Excerpt(
        conversation_id=content["conversation_id"],
        account_id=content["account_id"],
        quoted=QuotedNames(title=content["title"], account=content["account"]),
        link=link_of(content["conversation_id"]),
        messages=[_message(one, zone) for one in content["messages"]],
    )


def _message(kept: Any, zone: ZoneInfo) -> ExcerptMessage:
    return ExcerptMessage(
        number=kept["number"],
        speaker=kept["speaker"],
        at=times.local(datetime.fromisoformat(kept["at"]), zone),
        quoted=ExcerptWords(name=kept["name"], text=kept["text"]),
        offset=kept["offset"],
        total=kept["total"],
        truncated=kept["truncated"],
    )


def _given(row: door.SessionRow, shown: Conversation) -> Given:
    return Given.of(row, how=How.REFERENCE, what=What.TITLE, characters=len(shown.quoted.title))
