"""Erasing: what names a person goes, the fact that something was read stays (`record-erasure`).

    find whom to follow up · blank their places · take the words of excerpts · blank the logs ·
    blank the record · remove the names

Names stand apart and are removed. Where a platform's keys themselves name somebody, `NAMING_KEYS` says so:
then the keys are blanked too. Seals still verify, only because sealed events say so. Each step is committed
by itself: no reader waits for one for long, and an erasure that was cut off goes on when it is run again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar
from unicodedata import normalize
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import Exists, Field, Model, OuterRef, Q, QuerySet

from history_access.blanking import CHUNK, READ_COLUMNS, TABLES, Names, Order
from history_access.conf import conf, unknown_naming_keys
from history_access.leaves import ERASED
from history_access.lifting import check_said, step
from history_access.models import (
    AuditQuery,
    ExcerptText,
    MaintenanceEvent,
    Named,
    RecordedName,
    Refusal,
    TurnConversationRead,
    TurnReference,
    WrittenPlace,
)
from history_access.models.platform import primary, session_model
from history_access.seals import seal
from settings_catalog.keys import key_text
from settings_catalog.models import SettingChange

_SPELLINGS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
MOST_PASSES = 5
"""How often an erasure looks for what readers wrote while it ran."""

Keys = dict[Named, list[str]]
Row = TypeVar("Row")


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
    """What an erasure removed, or in a dry run would remove, and whom somebody has to follow up.

    `names` were recorded apart. `values` are keys that name somebody, in the record and the logs beside it,
    and texts that mention them. `excerpts` are those whose words were copied from what is erased. `left`
    tells whether readers wrote more of them, faster than they went.
    """

    names: int
    values: int
    follow_ups: tuple[FollowUp, ...]
    excerpts: int = 0
    left: bool = False


def erase_person(
    person: Any,
    *,
    accounts: Sequence[Any] = (),
    names: Sequence[str] = (),
    by: str,
    why: str,
    dry_run: bool = False,
    progress: Callable[[int], Any] | None = None,
) -> Erasure:
    """Remove what names a person from the record, and from the names of `accounts` that are theirs alone.

    Takes keys, or rows. `names` are further names of theirs, beside those that were recorded and those in the
    platform's table of people, to be found in places and reasons. `by` is the key of whoever does it;
    `progress` is called with a number of values whenever a step has been committed.

    A ValueError that names the argument, also for a key that nobody knows. An OperationalError where
    somebody's transaction keeps the tables for too long, and an OpenTransactionError inside one of the
    caller's. What was committed before stays erased; run it again to go on.
    """
    check_said(by, why, "erases")
    _check_list("accounts", accounts)
    _check_list("names", names)
    _check_names(names)
    using, people = primary(), get_user_model()
    whose = _spelt(person, people._meta.pk, *_fields("person_id"))
    rows = list(_rows(using, people, whose))
    _check_known("person", whose, rows, _known_people(using, whose))
    keys = {Named.PERSON: whose, Named.ACCOUNT: list(_accounts(using, accounts))}
    known = {*names, *(name for row in rows for name in _names_of(row))}
    drawn_on = Q(session_person_id__in=whose) | Q(session_account_id__in=keys[Named.ACCOUNT])
    order = Order(using=using, names=_names(using, keys, known), by=by, why=why)
    for argument, text in (("by", by), ("why", why)):
        if order.names.without(text) != text:
            raise ValueError(f"{argument}: names whom it erases, and would stay in the record")
    return _erase(order, keys, drawn_on, dry_run=dry_run, progress=progress)


def erase_conversations(
    sessions: Sequence[Any],
    *,
    by: str,
    why: str,
    dry_run: bool = False,
    progress: Callable[[int], Any] | None = None,
) -> Erasure:
    """Note that conversations were erased, and say which turns had drawn on them.

    The record holds none of their words; deleting the conversations is the platform's. Takes keys or rows.
    A ValueError where none is named; otherwise as `erase_person`.
    """
    check_said(by, why, "erases")
    _check_list("sessions", sessions)
    if not sessions:
        raise ValueError("sessions: name at least one conversation")
    keys = [key for session in sessions for key in _spelt(session, session_model()._meta.pk)]
    order = Order(using=primary(), names=Names({}, ()), by=by, why=why)
    return _erase(order, {}, Q(session_id__in=keys), dry_run=dry_run, progress=progress)


def _erase(
    order: Order,
    keys: Keys,
    drawn_on: Q,
    *,
    dry_run: bool,
    progress: Callable[[int], Any] | None = None,
) -> Erasure:
    """The names go last: by them an erasure that was cut off finds the words to look for."""
    using = order.using
    follow_ups = tuple(_follow_ups(using, drawn_on))
    if dry_run:
        values = sum(table.count(order) for table in TABLES)
        excerpts = _excerpts(using, drawn_on).count()
        names = _recorded(using, keys).count()
        return Erasure(names=names, values=values, follow_ups=follow_ups, excerpts=excerpts)
    seal()
    _forget_places(order, follow_ups)
    excerpts, values, left = 0, 0, True
    for _ in range(MOST_PASSES):
        excerpts += _excerpts(using, drawn_on).update(content=None)
        done = list(_blanked(order, progress or (lambda values: None)))
        values, left = values + sum(done), bool(done)
        if not left:
            break
        seal()
    names = step(using, partial(_forget_names, order, keys, len(follow_ups)))
    return Erasure(names=names, values=values, follow_ups=follow_ups, excerpts=excerpts, left=left)


def _blanked(order: Order, progress: Callable[[int], Any]) -> Iterator[int]:
    for table in TABLES:
        for values in table.blank(order):
            progress(values)
            yield values


def _check_list(argument: str, given: Any) -> None:
    """One text is no list: each of its letters would be taken for a key or a name."""
    if isinstance(given, str | bytes):
        raise ValueError(f"{argument}: is a list, also of one")


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if not name.strip() or not name.isprintable():
            raise ValueError("names: each is a name in printable characters")


def _spelt(subject: Any, *fields: "Field[Any, Any]") -> list[str]:
    """The key of a row or a key itself, as it was given and, where it is a UUID, as the record spells it."""
    key = getattr(subject, "pk", subject)
    if key is None:
        raise ValueError("name whom or what to erase; nothing is not everything")
    spelt = {key_text(key): None}
    for field in fields:
        with suppress(ValidationError, ValueError):
            value = field.to_python(key)
            spelt |= {key_text(value): None} if isinstance(value, UUID) else {}
    return list(spelt)


def _fields(column: str) -> list["Field[Any, Any]"]:
    """The platform's own field for a key in its sessions."""
    return [field for field in session_model()._meta.concrete_fields if field.attname == column]


def _rows(using: str, model: type[Model], keys: Iterable[str]) -> Iterator[Any]:
    """The platform's rows of exactly these keys, as long as there are any: "07" is not 7."""
    for key in keys:
        with suppress(ValidationError, ValueError):
            found = model._base_manager.using(using).filter(pk=key)
            yield from (row for row in found if key_text(row.pk) == key)


def _accounts(using: str, accounts: Iterable[Any]) -> Iterator[str]:
    """The keys of accounts; each has to be known."""
    fields = _fields("account_id")
    models = [field.related_model for field in fields if field.related_model is not None]
    for account in accounts:
        keys = _spelt(account, *fields)
        rows = [row for model in models for row in _rows(using, model, keys)]
        _check_known("accounts", keys, rows, _known(using, Named.ACCOUNT, keys))
        yield from keys


def _check_known(
    argument: str, keys: list[str], rows: list[Any], recorded: Iterable["QuerySet[Any]"]
) -> None:
    """A mistyped key would erase nothing, and say so only to those who read closely."""
    if not rows and not any(found.exists() for found in recorded):
        raise ValueError(f"{argument}: nothing is known by the key {keys[0]!r}, here or on the platform")


def _known(using: str, kind: Named, keys: list[str]) -> Iterator["QuerySet[Any]"]:
    """What the record has of these keys."""
    yield _recorded(using, {kind: keys})
    for column, whose in READ_COLUMNS.items():
        if whose == kind:
            yield TurnConversationRead.objects.using(using).filter(**{f"{column}__in": keys})


def _known_people(using: str, keys: list[str]) -> Iterator["QuerySet[Any]"]:
    """What the record, and what is logged beside it, has of these keys."""
    yield from _known(using, Named.PERSON, keys)
    yield Refusal.objects.using(using).filter(reader_id__in=keys)
    yield AuditQuery.objects.using(using).filter(by_id__in=keys)
    yield SettingChange.objects.using(using).filter(by_id__in=keys)
    yield MaintenanceEvent.objects.using(using).filter(by__in=keys)
    yield TurnReference.objects.using(using).filter(person_id__in=keys)


def _names_of(person: Any) -> Iterator[str]:
    """What a row of the platform's calls its person; its own methods say so, where it has them."""
    yield person.get_username()
    yield getattr(person, "get_full_name", str)()
    yield (
        getattr(person, person.get_email_field_name(), "") if hasattr(person, "get_email_field_name") else ""
    )


def _names(using: str, keys: Keys, known: Iterable[str]) -> Names:
    """Everything that names somebody, as keyboards and as file systems spell it.

    A ValueError where `NAMING_KEYS` says nonsense.
    """
    if unknown_naming_keys():
        raise ValueError(f"NAMING_KEYS: {unknown_naming_keys()} are no kinds of keys")
    naming = {kind: found for kind, found in keys.items() if kind.value in conf.naming_keys}
    words = {*known, *_recorded(using, keys).values_list("name", flat=True)}
    words |= {key for found in naming.values() for key in found}
    stripped = {normalize(form, word.strip()) for word in words for form in _SPELLINGS}
    return Names(naming, sorted(word for word in stripped if word.casefold() not in ERASED))


def _recorded(using: str, keys: Keys) -> "QuerySet[RecordedName]":
    which = Q(pk__in=[])
    for kind, found in keys.items():
        which |= Q(kind=kind, key__in=found)
    return RecordedName.objects.using(using).filter(which)


def _follow_ups(using: str, drawn_on: Q) -> Iterator[FollowUp]:
    """The turns that had drawn on something, by key; one statement for the places of a chunk of them."""
    reads = TurnConversationRead.objects.using(using).filter(drawn_on).order_by()
    columns = ("workspace_id", "agent_id", "turn_id", "session_id")
    turns: dict[tuple[str, str, str], list[str]] = {}
    for *turn, session_id in reads.values_list(*columns).distinct().iterator():
        turns.setdefault((turn[0], turn[1], turn[2]), []).append(session_id)
    for some in _chunks(sorted(turns)):
        places: dict[tuple[str, str], set[str]] = {}
        for row in _written(using, [(workspace_id, turn_id) for workspace_id, _, turn_id in some]):
            places.setdefault((row.workspace_id, row.turn_id), set()).add(row.place)
        for workspace_id, agent_id, turn_id in some:
            yield FollowUp(
                workspace_id=workspace_id,
                agent_id=agent_id,
                turn_id=turn_id,
                conversations=tuple(sorted(turns[workspace_id, agent_id, turn_id])),
                places=tuple(sorted(places.get((workspace_id, turn_id), ()))),
            )


def _written(using: str, turns: Iterable[tuple[str, str]]) -> list[WrittenPlace]:
    """Where some turns wrote to."""
    turns = set(turns)
    rows = WrittenPlace.objects.using(using).filter(turn_id__in={turn_id for _, turn_id in turns})
    return [row for row in rows if (row.workspace_id, row.turn_id) in turns]


def _forget_places(order: Order, follow_ups: Sequence[FollowUp]) -> None:
    """Blank the places of the turns to follow up that have a name or a key anywhere in them.

    Nothing guards them, and other turns' places are needed by other erasures.
    """
    words = [word.casefold() for word in order.names.words]
    for some in _chunks(follow_ups):
        written = _written(order.using, [(one.workspace_id, one.turn_id) for one in some])
        naming = [row.pk for row in written if any(word in row.place.casefold() for word in words)]
        WrittenPlace.objects.using(order.using).filter(pk__in=naming).update(place=ERASED)


def _excerpts(using: str, drawn_on: Q) -> "QuerySet[ExcerptText]":
    """The words that were copied from what is erased (`refs-two-kinds`); no guard keeps them."""
    copied = TurnReference.objects.using(using).filter(drawn_on, pk=OuterRef("pk"))
    return ExcerptText.objects.using(using).filter(Exists(copied), content__isnull=False)


def _forget_names(order: Order, keys: Keys, turns: int) -> int:
    """Remove the recorded names within a step, and record that the erasure is done."""
    removed, _ = _recorded(order.using, keys).delete()
    order.record(0, names=removed, turns=turns)
    return removed


def _chunks(rows: "Sequence[Row]") -> "Iterator[Sequence[Row]]":
    return (rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK))
