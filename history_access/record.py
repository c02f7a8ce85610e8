"""The record: writes what a turn was given, in the transaction that reads it, and answers both ways.

    begin · reach · fetch · record and look at the setting again · commit · only then hand over

If the commit fails, or anything before it, nothing is handed over (`record-or-nothing`).
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from django.db import connections, transaction
from django.db.models import Count, Max, Min, QuerySet, Sum
from django.utils import timezone

from history_access.door import SessionRow
from history_access.models import (
    AbstractTurn,
    How,
    Named,
    RecordedName,
    TurnConversationRead,
    What,
    WrittenPlace,
)
from history_access.models.platform import primary
from history_access.models.refusals import MOST_PLACE
from history_access.reach import Reach, TurnReach, reach_of
from history_access.signals import conversations_read
from history_access.turns import TurnFacts, heard_a_webhook, turn_facts
from history_access.wire import account_name
from settings_catalog.inserted import Putting, Rows
from settings_catalog.keys import key_text, optional_key_text, uuids7_at

Result = TypeVar("Result")
Bounds = TypeVar("Bounds", bound=TurnReach)

_NAME_CHARACTERS = 200
_BEGIN_POSTGRESQL = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; "
    "SET LOCAL synchronous_commit TO on; "
    "SET LOCAL enable_sort TO off; "
    "SET LOCAL plan_cache_mode TO force_generic_plan"
)
"""A statement that was prepared is planned once, for every value, and its pages come off an index in their
order: PostgreSQL would plan it anew, which takes longer than to run it, or sort all that an account has.
"""


class HistoryUnavailableError(Exception):
    """Nothing can be read now: switched off, nobody to read as, or no record could be made."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a turn is given of one conversation, and how it may; numbers where it is messages, or a
    summary's range.
    """

    session_id: Any
    account_id: Any | None
    person_id: Any | None
    account_name: str | None
    what: What
    characters: int
    person_name: str | None = None
    first_number: int | None = None
    last_number: int | None = None
    how: How = How.HISTORY

    @classmethod
    def of(cls, row: SessionRow, *, what: What, characters: int, **more: Any) -> Self:
        """What is given of a conversation that came through the door."""
        return cls(
            session_id=row.id,
            account_id=row.account_id,
            person_id=row.person_id,
            account_name=account_name(row),
            person_name=row.person_name,
            what=what,
            characters=characters,
            **more,
        )


Fetch = Callable[[Reach], tuple[Result, list[Given]]]


def recorded(turn: AbstractTurn | Any, fetch: "Fetch[Result]") -> Result:
    """Run `fetch` within the turn's reach, record what it gives, commit, and return its result.

    Everything happens in one durable transaction on the primary database (`record-or-nothing`). A
    HistoryUnavailableError inside a transaction of the caller's, where the turn may read nothing, and where
    the setting changed meanwhile; a NoTurnError without a turn. A database error is the caller's to handle:
    whatever the exception, nothing was given.
    """

    def open_reach() -> Reach:
        reach = reach_of(turn)
        if reach.closed_because is not None:
            raise HistoryUnavailableError(reach.closed_because)
        return reach

    return recorded_within(open_reach, fetch)


def recorded_within(
    reach_now: Callable[[], Bounds], fetch: Callable[[Bounds], tuple[Result, list[Given]]]
) -> Result:
    """Like `recorded`, within what `reach_now` answers inside the transaction."""
    using = primary()
    with _durable(using):
        reach = reach_now()
        result, given = fetch(reach)
        if not reach.still_holds(after=_record(using, reach, given) if given else None):
            raise HistoryUnavailableError("The setting changed during this call; call again.")
    if given:
        _tell(reach.turn, given)
    return result


def _tell(turn: TurnFacts, given: "list[Given]") -> None:
    conversations_read.send_robust(
        sender=TurnConversationRead,
        turn_id=turn.id,
        workspace_id=turn.workspace_id,
        agent_id=turn.agent_id,
        given=given,
    )


@contextmanager
def _durable(using: str) -> Iterator[None]:
    """A transaction that nobody outside can roll back, in which each statement sees what is committed."""
    connection = connections[using]
    if not connection.in_atomic_block and not connection.get_autocommit():
        raise HistoryUnavailableError(_OUTSIDE)
    with ExitStack() as stack:
        try:
            stack.enter_context(transaction.atomic(using=using, durable=True))
        except RuntimeError:
            raise HistoryUnavailableError(_OUTSIDE) from None
        if connection.vendor == "postgresql" and len(connection.atomic_blocks) == 1:
            with connection.cursor() as cursor:
                cursor.execute(_BEGIN_POSTGRESQL)
        yield


_OUTSIDE = (
    "What is read is recorded in a transaction of its own: call the tools outside transaction.atomic() "
    "(and outside views under ATOMIC_REQUESTS, or mark them non_atomic_requests)."
)


def _record(using: str, reach: TurnReach, given: Iterable[Given]) -> Putting:
    """One row for each conversation, and the names apart.

    A row's key and its date are of one reading of the clock, which `verify` holds them to: a clock that is
    set back changes both, a read that is put in again under a new key does not.
    """
    given, turn, now = list(given), reach.turn, timezone.now()
    keys = uuids7_at(now, len(given))
    workspace = key_text(turn.workspace_id)
    whose = {
        "workspace_id": workspace,
        "agent_id": key_text(turn.agent_id),
        "turn_id": key_text(turn.id),
        "turn_account_id": optional_key_text(turn.account_id),
        "reader_id": key_text(turn.reader_id),
        "trigger_id": optional_key_text(turn.trigger_id),
        "setting": reach.setting.value,
        "read_at": now,
    }
    alike = len({(one.how, one.what, one.first_number, one.last_number) for one in given}) == 1
    reads = [
        {
            "id": key,
            "session_id": key_text(one.session_id),
            "session_account_id": optional_key_text(one.account_id),
            "session_person_id": optional_key_text(one.person_id),
            "characters": one.characters,
            **({} if alike else _what(one)),
        }
        for key, one in zip(keys, given, strict=True)
    ]
    named = sorted(set(_names(reach, given, reads)))
    names = [
        {"id": key, "kind": kind, "key": whom, "name": name[:_NAME_CHARACTERS]}
        for key, (kind, whom, name) in zip(uuids7_at(now, len(named)), named, strict=True)
    ]
    return Putting(
        using,
        Rows(RecordedName, {"workspace_id": workspace}, names, ignore_conflicts=True),
        Rows(TurnConversationRead, whose | _what(given[0]) if alike else whose, reads),
    )


def _what(one: Given) -> dict[str, Any]:
    return {
        "how": one.how.value,
        "what": one.what.value,
        "first_number": one.first_number,
        "last_number": one.last_number,
    }


def _names(
    reach: TurnReach, given: Iterable[Given], reads: Iterable[dict[str, Any]]
) -> Iterator[tuple[str, str, str]]:
    """Kind, key and name of everybody in the record's new rows, which have their keys as text."""
    turn = reach.turn
    of_the_turn: list[tuple[Named, Any, str | None]] = [
        (Named.WORKSPACE, turn.workspace_id, turn.workspace_name),
        (Named.AGENT, turn.agent_id, turn.agent_name),
        (Named.ACCOUNT, turn.account_id, turn.account_name),
        (Named.PERSON, turn.reader_id, reach.reader_name),
        (Named.TRIGGER, turn.trigger_id, turn.trigger_name),
    ]
    for kind, key, name in of_the_turn:
        if key is not None and name:
            yield kind.value, key_text(key), str(name)
    account, person = Named.ACCOUNT.value, Named.PERSON.value
    for one, read in zip(given, reads, strict=True):
        if one.account_id is not None and one.account_name:
            yield account, read["session_account_id"], one.account_name
        if one.person_id is not None and one.person_name:
            yield person, read["session_person_id"], one.person_name


@dataclass(frozen=True, kw_only=True)
class Label:
    """What a turn has drawn on so far, for a platform's own guards on storage and outgoing hosts.

    Keys as text. `accounts` may hold None, for conversations without one. `other_account` and
    `other_person` tell whether any was not the turn's own; `webhook` whether a webhook started the turn, or
    one in a conversation that it drew on: then a stranger's words are in it.
    """

    accounts: frozenset[str | None]
    people: frozenset[str | None]
    other_account: bool
    other_person: bool
    webhook: bool


def drawn_on(turn: AbstractTurn | Any) -> Label:
    """The label of a turn at this moment (`record-label`); three statements at most.

    Takes a turn or its key; a NoTurnError where there is none.
    """
    facts = turn_facts(turn)
    reads = (
        TurnConversationRead.objects.using(primary())
        .order_by()
        .filter(workspace_id=key_text(facts.workspace_id), turn_id=key_text(facts.id))
    )
    columns = ("session_id", "session_account_id", "session_person_id")
    drawn = list(reads.values_list(*columns).distinct())
    accounts = frozenset(account for _, account, _ in drawn)
    people = frozenset(person for _, _, person in drawn)
    return Label(
        accounts=accounts,
        people=people,
        other_account=bool(accounts - {optional_key_text(facts.account_id)}),
        other_person=bool(people - {optional_key_text(facts.reader_id)}),
        webhook=heard_a_webhook(facts, [session for session, _, _ in drawn]),
    )


def wrote(turn: AbstractTurn | Any, place: str) -> None:
    """Note that a turn wrote to a durable place, such as "workspace/digest.md" (`record-erasure`).

    An erasure then tells whom to follow up. A ValueError where `place` is empty, longer than 500 characters
    or not storable; a NoTurnError where there is no such turn.
    """
    if not place or len(place) > MOST_PLACE or not place.isprintable():
        raise ValueError(f"place: name it in 1 to {MOST_PLACE} printable characters")
    facts = turn_facts(turn)
    WrittenPlace.objects.using(primary()).create(
        workspace_id=key_text(facts.workspace_id),
        agent_id=key_text(facts.agent_id),
        turn_id=key_text(facts.id),
        place=place,
        written_at=timezone.now(),
    )


def conversations_drawn_on(turn: AbstractTurn | Any, *, workspace: Any = None) -> "QuerySet[Any, Any]":
    """Which conversations a reply drew on: one row a conversation, by index (`record-both-ways`).

    Takes a turn, or its key, also long after the turn is gone; `workspace` (or its key) narrows the query
    to one shard. Rows have `session_id`, `session_account_id`, `reads`, `characters`, `first_read_at`,
    `last_read_at`.
    """
    rows = _about(turn, workspace, turn_id=_key(turn))
    return _totals(rows, ("session_id", "session_account_id")).order_by("first_read_at", "session_id")


def turns_drawing_on(session: Any, *, workspace: Any = None) -> "QuerySet[Any, Any]":
    """Which replies drew on a conversation: one row a turn, newest first (`record-both-ways`).

    Takes a session or its key, also long after the session is gone. Rows have `turn_id`, `agent_id`,
    `turn_account_id`, `reader_id`, `trigger_id`, `reads`, `characters`, `first_read_at`, `last_read_at`.
    """
    rows = _about(session, workspace, session_id=_key(session))
    whose = ("turn_id", "agent_id", "turn_account_id", "reader_id", "trigger_id")
    return _totals(rows, whose).order_by("-last_read_at", "turn_id")


def _totals(rows: "QuerySet[TurnConversationRead]", whose: tuple[str, ...]) -> "QuerySet[Any, Any]":
    totals: QuerySet[Any, Any] = rows.values(*whose).annotate(
        reads=Count("id"),
        characters=Sum("characters"),
        first_read_at=Min("read_at"),
        last_read_at=Max("read_at"),
    )
    return totals


def _about(subject: Any, workspace: Any, **keys: str) -> "QuerySet[TurnConversationRead]":
    rows = TurnConversationRead.objects.filter(**keys)
    workspace = (
        getattr(subject, "workspace_id", None) if workspace is None else getattr(workspace, "pk", workspace)
    )
    return rows if workspace is None else rows.filter(workspace_id=key_text(workspace))


def _key(subject: Any) -> str:
    """The key of a turn or session; a ValueError for None, which is never "every one"."""
    key = getattr(subject, "pk", subject)
    if key is None:
        raise ValueError("name a turn or a conversation")
    return key_text(key)
