"""Blanking what names a person in the tables that refuse changes: a few hundred rows a step.

Each step lifts the guards of one kind of table, changes its rows with a few statements, however many they
are, and seals an event that says so. One that is cut off leaves nothing half done; its rows are found again.
"""

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from django.db.models import F, Func, JSONField, Model, Q, QuerySet, TextField, Value

from history_access.leaves import ERASED, SEALED_MODELS, commitment, erased_digest
from history_access.lifting import step, without_guards
from history_access.models import (
    AuditQuery,
    ErasedValue,
    EventKind,
    MaintenanceEvent,
    Named,
    Refusal,
    SealedKind,
    SealedRow,
    TurnConversationRead,
    TurnReference,
)
from history_access.seals import record_event
from settings_catalog.keys import uuid7
from settings_catalog.models import SettingChange

CHUNK = 500
"""Rows in a step at most."""

READ_COLUMNS = {
    "reader_id": Named.PERSON,
    "session_account_id": Named.ACCOUNT,
    "session_person_id": Named.PERSON,
    "turn_account_id": Named.ACCOUNT,
}

Columns = dict[str, Any]
Page = list[tuple[uuid.UUID, Columns]]
"""Some rows of a table: the key of each, and some of its columns."""


@dataclass(frozen=True)
class Names:
    """What names somebody: the keys that do so themselves, by kind, and words, those keys among them."""

    keys: Mapping[Named, Sequence[str]]
    words: Sequence[str]

    def without(self, value: Any) -> Any:
        """A text without the words, or a JSON value without them in any of its texts."""
        if isinstance(value, str):
            return self._pattern.sub(ERASED, value)
        if isinstance(value, list):
            return [self.without(one) for one in value]
        if isinstance(value, dict):
            return {name: self.without(one) for name, one in value.items()}
        return value

    @cached_property
    def _pattern(self) -> "re.Pattern[str]":
        """Any of the words where it stands by itself, since a short name is part of many words."""
        words = "|".join(re.escape(word) for word in sorted(self.words, key=len, reverse=True))
        return re.compile(rf"(?<![^\W_])(?:{words or '(?!)'})(?![^\W_])", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Order:
    """Whose names are to go, and what the event of each step says of it."""

    using: str
    names: Names
    by: str
    why: str

    def record(self, values: int, pk: uuid.UUID | None = None, **details: Any) -> None:
        """Record and seal, within a step, that it erased so many values."""
        told = {"erased_digest": erased_digest([]), "values": values, **details}
        record_event(EventKind.ERASE, by=self.by, why=self.why, details=told, using=self.using, pk=pk)


class Table(ABC):
    """A guarded table that may name somebody."""

    def blank(self, order: Order) -> Iterator[int]:
        """Blank what is found, and yield how many values each step did, once it is committed."""
        for page in self._pages_found(order):
            yield step(order.using, partial(self._blank, order, page))

    def count(self, order: Order) -> int:
        """How many values would be blanked."""
        return sum(len(columns) for page in self._pages_found(order) for _, columns in page)

    def _pages_found(self, order: Order) -> Iterator[Page]:
        return (page for page in self._found(order) if page) if order.names.words else iter(())

    @abstractmethod
    def _found(self, order: Order) -> Iterator[Page]:
        """The rows that name somebody, with the columns at fault, some rows at a time."""

    @abstractmethod
    def _blank(self, order: Order, page: Page) -> int:
        """Blank the columns of some rows within a step, and return how many values that were."""


class _Sealed(Table):
    """A sealed table: a blank keeps its commitment, and forgets the salt by which it could be guessed."""

    kind: SealedKind

    def _blank(self, order: Order, page: Page) -> int:
        leaves = SealedRow.objects.using(order.using).filter(row_id__in=[key for key, _ in page])
        salts = dict(leaves.values_list("row_id", "salts"))
        values = list(_erased(page, salts))
        if not values:
            return 0
        digest = erased_digest((one.row_id, one.column, one.commitment) for one in values)
        model, event_id = SEALED_MODELS[self.kind], values[0].event_id
        ErasedValue.objects.using(order.using).bulk_create(values)
        order.record(len(values), event_id, erased_digest=digest, table=model._meta.db_table)
        with without_guards(order.using, "UPDATE", (model, SealedRow)):
            for column in sorted({one.column for one in values}):
                keys = [one.row_id for one in values if one.column == column]
                model._default_manager.using(order.using).filter(pk__in=keys).update(**{column: ERASED})
                leaves.filter(row_id__in=keys).update(salts=_Without("salts", column))
        return len(values)


def _erased(page: Page, salts: Mapping[uuid.UUID, Mapping[str, str]]) -> Iterator[ErasedValue]:
    """The commitments of some values, under one event.

    What waits for a seal has no commitment yet, and what another erasure blanked meanwhile has no salt any
    more: both are passed over.
    """
    event_id = uuid7()
    for key, columns in page:
        for column, was in columns.items():
            if column in salts.get(key, {}):
                kept = commitment(salts[key][column], column, was)
                yield ErasedValue(row_id=key, column=column, commitment=kept, event_id=event_id)


class _Reads(_Sealed):
    """The reads: a key that names somebody stands in a column of its own."""

    kind = SealedKind.READ

    def _found(self, order: Order) -> Iterator[Page]:
        naming = {column: order.names.keys.get(kind, ()) for column, kind in READ_COLUMNS.items()}
        condition = Q(pk__in=[])
        for column, keys in naming.items():
            condition |= Q(**{f"{column}__in": keys})
        for page in _pages(TurnConversationRead.objects.using(order.using).filter(condition), naming):
            yield [
                (key, {name: value for name, value in row.items() if value in naming[name]})
                for key, row in page
            ]


class _Events(_Sealed):
    """What maintenance did: by a person, and for a reason in free words."""

    kind = SealedKind.EVENT

    def _found(self, order: Order) -> Iterator[Page]:
        for page in _pages(MaintenanceEvent.objects.using(order.using), ("by", "why")):
            rows = [(key, dict(_mentioning(order.names, row))) for key, row in page]
            yield [(key, columns) for key, columns in rows if columns]


def _mentioning(names: Names, row: Columns) -> Iterator[tuple[str, Any]]:
    return ((column, value) for column, value in row.items() if names.without(value) != value)


@dataclass(frozen=True)
class _Log(Table):
    """A table that nothing seals: of its `words` only the names go, of its `keys` everything."""

    model: type[Model]
    keys: Mapping[str, Named]
    words: tuple[str, ...] = ()

    def _found(self, order: Order) -> Iterator[Page]:
        rows = self.model._default_manager.using(order.using)
        if not self.words:
            naming = Q(pk__in=[])
            for column, kind in self.keys.items():
                naming |= Q(**{f"{column}__in": order.names.keys.get(kind, ())})
            rows = rows.filter(naming)
        for page in _pages(rows, (*self.keys, *self.words)):
            changed = [(key, self._changed(order.names, row)) for key, row in page]
            yield [(key, columns) for key, columns in changed if columns]

    def _changed(self, names: Names, row: Columns) -> Columns:
        """What is to stand in the columns of a row instead."""
        after = {column: names.without(value) for column, value in row.items() if column in self.words}
        for column, kind in self.keys.items():
            after[column] = ERASED if row[column] in names.keys.get(kind, ()) else row[column]
        return {column: value for column, value in after.items() if value != row[column]}

    def _blank(self, order: Order, page: Page) -> int:
        """The rows are looked at again, since another erasure may have been here meanwhile."""
        columns = (*self.keys, *self.words)
        rows = self.model._default_manager.using(order.using).filter(pk__in=[key for key, _ in page])
        values, changed = 0, list(rows)
        for row in changed:
            after = self._changed(order.names, {column: getattr(row, column) for column in columns})
            for column, value in after.items():
                setattr(row, column, value)
            values += len(after)
        if not values:
            return 0
        order.record(values, table=self.model._meta.db_table)
        with without_guards(order.using, "UPDATE", [self.model]):
            rows.bulk_update(changed, columns)
        return values


_HANDED_OVER = {
    "person_id": Named.PERSON,
    "session_person_id": Named.PERSON,
    "session_account_id": Named.ACCOUNT,
}

TABLES: tuple[Table, ...] = (
    _Log(Refusal, {"reader_id": Named.PERSON}),
    _Log(AuditQuery, {"by_id": Named.PERSON}, ("filters",)),
    _Log(SettingChange, {"by_id": Named.PERSON}, ("why",)),
    _Log(TurnReference, _HANDED_OVER),
    _Events(),
    _Reads(),
)
"""All of them, the reads last: by them an erasure that was cut off finds whom to follow up."""


class _Without(Func):
    """A column of JSON without one of its fields."""

    output_field = JSONField()

    def __init__(self, column: str, field: str) -> None:
        super().__init__(F(column), Value(field, output_field=TextField()))

    def as_postgresql(self, compiler: Any, connection: Any, **given: Any) -> Any:
        return self.as_sql(compiler, connection, template="(%(expressions)s)", arg_joiner=" - ", **given)

    def as_sqlite(self, compiler: Any, connection: Any, **given: Any) -> Any:
        template = "json_remove(%(expressions)s)"
        return self.as_sql(compiler, connection, template=template, arg_joiner=", '$.' || ", **given)


def _pages(rows: "QuerySet[Any]", columns: Iterable[str]) -> Iterator[Page]:
    """The rows of a query by key, a chunk at a time, each with these columns."""
    columns, last = tuple(columns), uuid.UUID(int=0)
    ordered = rows.order_by("pk").values_list("pk", *columns)
    while page := list(ordered.filter(pk__gt=last)[:CHUNK]):
        yield [(key, dict(zip(columns, values, strict=True))) for key, *values in page]
        last = page[-1][0]
