"""What an auditor sees of the record: keys, counts and recorded names, never a title and never a word.

A name stands beside its key as it was when it was recorded (`record-outlives`), and is None once it is
erased. REST and exports show the same rows, from here; the rows are plain values, ready for JSON.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from django.db import router
from django.db.models import BooleanField, Case, Max, Q, QuerySet, Value, When

from history_access.leaves import ERASED
from history_access.models import Named, RecordedName, Refusal, Seal, TurnConversationRead, TurnReference
from history_access.record import conversations_drawn_on, turns_drawing_on

Row = dict[str, Any]
_Key = tuple[str, str, str]

_NAMED = {
    "workspace_id": Named.WORKSPACE,
    "agent_id": Named.AGENT,
    "turn_account_id": Named.ACCOUNT,
    "reader_id": Named.PERSON,
    "person_id": Named.PERSON,
    "trigger_id": Named.TRIGGER,
    "conversation_account_id": Named.ACCOUNT,
    "conversation_person_id": Named.PERSON,
}
"""Whose key stands in a column: what its recorded name is a name of."""


def reads() -> "QuerySet[TurnConversationRead]":
    """Every read, each with `is_crossed`: whether the conversation's account is not the turn's own.

    It is None where both were erased: nobody can tell any more.
    """
    both_erased = When(session_account_id=ERASED, turn_account_id=ERASED, then=Value(None))
    crossed = When(TurnConversationRead.crossed_account(), then=Value(True))
    is_crossed = Case(both_erased, crossed, default=Value(False), output_field=BooleanField())
    return TurnConversationRead.objects.annotate(is_crossed=is_crossed)


def conversations_of(turn: str) -> "QuerySet[Any, Any]":
    """Which conversations a reply drew on, each with its workspace: what `shown_conversations` takes."""
    found = conversations_drawn_on(turn).annotate(in_workspace=Max("workspace_id"))
    return cast("QuerySet[Any, Any]", found)


def turns_of(session: str) -> "QuerySet[Any, Any]":
    """Which replies drew on a conversation, each with its workspace: what `shown_turns` takes."""
    found = turns_drawing_on(session).annotate(in_workspace=Max("workspace_id"))
    return cast("QuerySet[Any, Any]", found)


def shown_reads(rows: Iterable[Any]) -> list[Row]:
    """Reads from `reads`, as an auditor sees them; one statement for all names."""
    return _with_names(
        {
            "id": str(row.id),
            "read_at": moment(row.read_at),
            "workspace_id": row.workspace_id,
            "agent_id": row.agent_id,
            "turn_id": row.turn_id,
            "turn_account_id": row.turn_account_id,
            "reader_id": row.reader_id,
            "trigger_id": row.trigger_id,
            "conversation_id": row.session_id,
            "conversation_account_id": row.session_account_id,
            "conversation_person_id": row.session_person_id,
            "crossed_account": row.is_crossed,
            "setting": row.setting,
            "how": row.how,
            "what": row.what,
            "first_number": row.first_number,
            "last_number": row.last_number,
            "characters": row.characters,
        }
        for row in rows
    )


def shown_conversations(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Conversations that one reply drew on; one statement for all names."""
    return _with_names(
        {
            "workspace_id": row["in_workspace"],
            "conversation_id": row["session_id"],
            "conversation_account_id": row["session_account_id"],
            **_totals(row),
        }
        for row in rows
    )


def shown_turns(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Replies that drew on one conversation; one statement for all names."""
    return _with_names(
        {
            "workspace_id": row["in_workspace"],
            "agent_id": row["agent_id"],
            "turn_id": row["turn_id"],
            "turn_account_id": row["turn_account_id"],
            "reader_id": row["reader_id"],
            "trigger_id": row["trigger_id"],
            **_totals(row),
        }
        for row in rows
    )


def _totals(row: Mapping[str, Any]) -> Row:
    return {
        "reads": row["reads"],
        "characters": row["characters"],
        "first_read_at": moment(row["first_read_at"]),
        "last_read_at": moment(row["last_read_at"]),
    }


def shown_refusals(rows: Iterable[Refusal]) -> list[Row]:
    """Refused calls; one statement for all names."""
    return _with_names(
        {
            "id": str(row.id),
            "refused_at": moment(row.refused_at),
            "workspace_id": row.workspace_id,
            "agent_id": row.agent_id,
            "turn_id": row.turn_id,
            "reader_id": row.reader_id,
            "trigger_id": row.trigger_id,
            "tool": row.tool,
            "code": row.code,
            "argument": row.argument,
        }
        for row in rows
    )


def shown_references(rows: Iterable[TurnReference]) -> list[Row]:
    """What was handed to turns; one statement for all names."""
    return _with_names(
        {
            "id": str(row.id),
            "bound_at": moment(row.bound_at),
            "ended_at": row.ended_at and moment(row.ended_at),
            "workspace_id": row.workspace_id,
            "agent_id": row.agent_id,
            "turn_id": row.turn_id,
            "person_id": row.person_id,
            "kind": row.kind,
            "conversation_id": row.session_id,
            "conversation_account_id": row.session_account_id,
            "conversation_person_id": row.session_person_id,
        }
        for row in rows
    )


def shown_seals(rows: Iterable[Seal]) -> list[Row]:
    """Seals, whose digests an auditor compares with those that were kept elsewhere."""
    return [
        {
            "number": row.number,
            "kind": row.kind,
            "sealed_at": moment(row.sealed_at),
            "complete_before": row.complete_before and moment(row.complete_before),
            "rows": row.rows,
            "root": row.root,
            "previous": row.previous,
            "digest": row.digest,
        }
        for row in rows
    ]


def moment(at: datetime) -> str:
    """A time in ISO 8601, in UTC, to the microsecond."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _with_names(rows: Iterable[Row]) -> list[Row]:
    """The rows, with a column `…_name` behind each `…_id` that may have one."""
    rows = list(rows)
    names = _names_of(rows)
    return [dict(_named(row, names)) for row in rows]


def _named(row: Row, names: Mapping[_Key, str]) -> Iterator[tuple[str, Any]]:
    for column, value in row.items():
        yield column, value
        if column in _NAMED:
            name = names.get((row["workspace_id"], _NAMED[column].value, value))
            yield column.removesuffix("_id") + "_name", name


def _names_of(rows: Iterable[Row]) -> dict[_Key, str]:
    """The newest name of each key in the rows, by workspace, kind and key; one statement."""
    keys: dict[Named, set[str]] = {}
    for row in rows:
        for column, kind in _NAMED.items():
            if row.get(column) is not None:
                keys.setdefault(kind, set()).add(row[column])
    condition = Q(pk__in=[])
    for kind, some in keys.items():
        condition |= Q(kind=kind, key__in=some)
    found = RecordedName.objects.using(router.db_for_write(RecordedName)).filter(
        condition, workspace_id__in=keys.get(Named.WORKSPACE, ())
    )
    # The newest name of a key comes last, and stays.
    return {(row.workspace_id, row.kind, row.key): row.name for row in found.order_by("id")}
