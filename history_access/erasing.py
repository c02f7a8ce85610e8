"""Erasing: what names a person goes, the fact that something was read stays (`record-erasure`).

Names stand apart and are removed. Where a platform's keys themselves name somebody, `NAMING_KEYS` says so:
then the keys are blanked too. Seals still verify, only because the sealed event of the erasure says so.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connections
from django.db.models import Q, QuerySet

from history_access.conf import conf, unknown_naming_keys
from history_access.leaves import ERASED, commitment, erased_digest
from history_access.models import (
    AuditQuery,
    ErasedValue,
    EventKind,
    Named,
    RecordedName,
    Refusal,
    SealedRow,
    TurnConversationRead,
    WrittenPlace,
)
from history_access.models.platform import primary
from history_access.seals import record_event, seal, sealing
from settings_catalog.guards import Guard, GuardedConfig, lifted
from settings_catalog.keys import key_text, uuid7
from settings_catalog.models import SettingChange

_COLUMNS = {
    Named.PERSON: ("reader_id", "session_person_id"),
    Named.ACCOUNT: ("session_account_id", "turn_account_id"),
}
_CHUNK = 500

Triple = tuple[uuid.UUID, str, str]


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """A turn that had drawn on what was erased, and the durable places that it wrote to."""

    workspace_id: str
    agent_id: str
    turn_id: str
    conversations: tuple[str, ...]
    places: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """What an erasure removed, or in a dry run would remove, and whom somebody has to follow up."""

    names: int
    values: int
    follow_ups: tuple[FollowUp, ...]


def erase_person(
    person: Any, *, accounts: Sequence[Any] = (), by: str, why: str, dry_run: bool = False
) -> Erasure:
    """Remove what names a person from the record, and from the names of `accounts` that are theirs alone.

    Takes keys, or rows. `by` is the key of whoever does it. Everything waiting is sealed first; then one
    transaction changes the rows and seals the event. A ValueError that names the argument.
    """
    _check(by, why)
    keys = {Named.PERSON: [_key(person)], Named.ACCOUNT: [_key(account) for account in accounts]}
    drawn_on = Q(session_person_id__in=keys[Named.PERSON]) | Q(session_account_id__in=keys[Named.ACCOUNT])
    return _erase(keys, drawn_on, by=by, why=why, dry_run=dry_run)


def erase_conversations(sessions: Sequence[Any], *, by: str, why: str, dry_run: bool = False) -> Erasure:
    """Note that conversations were erased, and say which turns had drawn on them.

    The record holds none of their words; deleting the conversations is the platform's. Takes keys or rows.
    A ValueError where none is named.
    """
    _check(by, why)
    if not sessions:
        raise ValueError("sessions: name at least one conversation")
    drawn_on = Q(session_id__in=[_key(session) for session in sessions])
    return _erase({}, drawn_on, by=by, why=why, dry_run=dry_run)


def _erase(keys: dict[Named, list[str]], drawn_on: Q, *, by: str, why: str, dry_run: bool) -> Erasure:
    using = primary()
    follow_ups = tuple(_follow_ups(using, drawn_on))
    names = _named(using, keys).count()
    if dry_run:
        values = sum(1 for _ in _values(using, keys))
        return Erasure(names=names, values=values, follow_ups=follow_ups)
    erased = 0
    while True:
        seal()
        erased += _erase_sealed(using, keys, follow_ups, by=by, why=why)
        if next(_values(using, keys), None) is None:
            return Erasure(names=names, values=erased, follow_ups=follow_ups)


def _erase_sealed(
    using: str, keys: dict[Named, list[str]], follow_ups: tuple[FollowUp, ...], *, by: str, why: str
) -> int:
    """One transaction of an erasure; how many values of the record it blanked.

    What readers wrote since the last seal is left for the next one: only a sealed row has its commitment.
    """
    with sealing(using), lifted(connections[using], _guards()):
        event_id = uuid7()
        sealed = [value for value in _values(using, keys) if _is_sealed(using, value[0])]
        erased = [_blank(using, value, event_id) for value in sealed]
        forgotten = _forget_names(using, keys, follow_ups)
        _blank_logs(using, keys)
        details = {
            "erased_digest": erased_digest(erased),
            "names": forgotten,
            "values": len(erased),
            "turns": len(follow_ups),
        }
        record_event(EventKind.ERASE, by=by, why=why, details=details, using=using, pk=event_id)
    return len(erased)


def _is_sealed(using: str, row_id: uuid.UUID) -> bool:
    return SealedRow.objects.using(using).filter(row_id=row_id).exists()


def _check(by: str, why: str) -> None:
    for name, text in (("by", by), ("why", why)):
        if not text.strip():
            raise ValueError(f"{name}: say {'who erases' if name == 'by' else 'why'}")


def _key(subject: Any) -> str:
    key = getattr(subject, "pk", subject)
    if key is None:
        raise ValueError("name whom or what to erase; nothing is not everything")
    return key_text(key)


def _follow_ups(using: str, drawn_on: Q) -> Iterator[FollowUp]:
    reads = TurnConversationRead.objects.using(using).filter(drawn_on).order_by()
    columns = ("workspace_id", "agent_id", "turn_id", "session_id")
    turns: dict[tuple[str, str, str], list[str]] = {}
    for *turn, session_id in reads.values_list(*columns).distinct().iterator():
        turns.setdefault((turn[0], turn[1], turn[2]), []).append(session_id)
    for (workspace_id, agent_id, turn_id), conversations in sorted(turns.items()):
        written = WrittenPlace.objects.using(using).filter(workspace_id=workspace_id, turn_id=turn_id)
        yield FollowUp(
            workspace_id=workspace_id,
            agent_id=agent_id,
            turn_id=turn_id,
            conversations=tuple(sorted(conversations)),
            places=tuple(written.order_by("place").values_list("place", flat=True).distinct()),
        )


def _naming(keys: dict[Named, list[str]]) -> dict[Named, list[str]]:
    """The keys that themselves name somebody, as the platform says; a ValueError where it says nonsense."""
    if unknown_naming_keys():
        raise ValueError(f"NAMING_KEYS: {unknown_naming_keys()} are no kinds of keys")
    return {kind: found for kind, found in keys.items() if kind.value in conf.naming_keys}


def _named(using: str, keys: dict[Named, list[str]]) -> "QuerySet[RecordedName]":
    which = Q(pk__in=[])
    for kind, found in keys.items():
        which |= Q(kind=kind, key__in=found)
    return RecordedName.objects.using(using).filter(which)


def _values(using: str, keys: dict[Named, list[str]]) -> Iterator[Triple]:
    """The values of the record that have to go: row, column and value."""
    for kind, found in _naming(keys).items():
        for column in _COLUMNS[kind]:
            rows = TurnConversationRead.objects.using(using).filter(**{f"{column}__in": found})
            for row_id, value in rows.order_by("id").values_list("id", column).iterator(_CHUNK):
                yield row_id, column, value


def _blank(using: str, found: Triple, event_id: uuid.UUID) -> Triple:
    """Blank one value, keep its commitment, and forget the salt by which it could be guessed."""
    row_id, column, value = found
    leaves = SealedRow.objects.using(using).filter(row_id=row_id)
    salts = leaves.values_list("salts", flat=True).get()
    kept = commitment(salts[column], column, value)
    TurnConversationRead.objects.using(using).filter(pk=row_id).update(**{column: ERASED})
    leaves.update(salts={name: salt for name, salt in salts.items() if name != column})
    ErasedValue.objects.using(using).create(row_id=row_id, column=column, commitment=kept, event_id=event_id)
    return row_id, column, kept


def _forget_names(using: str, keys: dict[Named, list[str]], follow_ups: tuple[FollowUp, ...]) -> int:
    """Remove the recorded names, and the places of the turns to follow up that carry a name or a key."""
    words = {name for name in _named(using, keys).values_list("name", flat=True) if name}
    words |= {key for found in _naming(keys).values() for key in found if key}
    for one in follow_ups:
        written = WrittenPlace.objects.using(using).filter(workspace_id=one.workspace_id, turn_id=one.turn_id)
        for word in words:
            written.filter(place__icontains=word).update(place=ERASED)
    return _named(using, keys).delete()[0]


def _blank_logs(using: str, keys: dict[Named, list[str]]) -> None:
    """The same keys in what is logged beside the record."""
    people = _naming(keys).get(Named.PERSON, [])
    Refusal.objects.using(using).filter(reader_id__in=people).update(reader_id=ERASED)
    AuditQuery.objects.using(using).filter(by_id__in=people).update(by_id=ERASED)
    SettingChange.objects.using(using).filter(by_id__in=people).update(by_id=ERASED)


def _guards() -> list[Guard]:
    """Only those that keep these tables from an UPDATE."""
    tables = {
        model._meta.db_table
        for model in (TurnConversationRead, SealedRow, Refusal, AuditQuery, SettingChange)
    }
    configs = (config for config in apps.get_app_configs() if isinstance(config, GuardedConfig))
    guards = (guard for config in configs for guard in config.guards())
    return [guard for guard in guards if guard.table in tables and guard.event == "UPDATE"]
