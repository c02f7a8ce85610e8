"""Rows put into tables in one statement, whose text is kept, without a model instance for each."""

import uuid
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, UUIDField
from pydantic_core import to_json

from settings_catalog.compiled import Statement, cursor_of
from settings_catalog.conf import conf

Values = Mapping[str, Any]

_AS_THEY_ARE = frozenset({str, int, type(None)})


class Rows(NamedTuple):
    """Rows for a model's table: each field is in `same`, with one value for all, or in every row.

    With `ignore_conflicts` a row that a unique constraint refuses is passed over.
    """

    model: type[Model]
    same: Values
    rows: Sequence[Values]
    ignore_conflicts: bool = False


class Putting:
    """Rows put into their tables, which are different ones: on PostgreSQL in one statement for all of them.

    Before a kept query (see `compiled`) in that query's own. As with `bulk_create` no signal is sent, and a
    database error is Django's.
    """

    def __init__(self, using: str, *several: Rows) -> None:
        self.using = using
        self._several = tuple(one for one in several if one.rows)

    def in_front(self) -> Statement | None:
        """The rows as they stand in front of a query; None where that cannot be."""
        connection = connections[self.using]
        if connection.vendor != "postgresql" or not conf.compiled_queries:
            return None
        bound = [_insertion(connection, one).bound(one.same, one.rows) for one in self._several]
        parts = ", ".join(f"put_{nth} AS ({statement})" for nth, (statement, _) in enumerate(bound))
        return f"WITH {parts}", [value for _, given in bound for value in given]

    def alone(self) -> None:
        """Put the rows now."""
        connection, before = connections[self.using], self.in_front()
        if before is not None:
            _execute(connection, f"{before[0]} SELECT", before[1])
        elif connection.vendor == "sqlite" and conf.compiled_queries:
            for one in self._several:
                _execute(connection, *_insertion(connection, one).bound(one.same, one.rows))
        else:
            for model, same, rows, ignore_conflicts in self._several:
                objects = [model(**same, **row) for row in rows]
                model._base_manager.using(self.using).bulk_create(objects, ignore_conflicts=ignore_conflicts)


def _execute(connection: BaseDatabaseWrapper, statement: str, given: Sequence[Any]) -> None:
    with cursor_of(connection) as cursor:
        cursor.execute(statement, given)


class _Insertion:
    """The statement for one shape of rows.

    On PostgreSQL the rows come as one value of JSON: as arrays they would take psycopg longer than all the
    rest. On SQLite as values in the statement.
    """

    def __init__(self, connection: BaseDatabaseWrapper, asked: Rows) -> None:
        model, same, names = asked.model, tuple(asked.same), tuple(asked.rows[0])
        self.connection = connection
        self.fields: dict[str, Any] = {name: model._meta.get_field(name) for name in (*same, *names)}
        if set(self.fields) != {field.name for field in model._meta.concrete_fields}:
            raise ValueError(f"every field of {model._meta.label} needs a value")
        self.keys = frozenset(name for name, field in self.fields.items() if type(field) is UUIDField)
        quote = connection.ops.quote_name
        columns = [quote(field.column) for field in self.fields.values()]
        into = f"INTO {quote(model._meta.db_table)} ({', '.join(columns)})"
        ignored = asked.ignore_conflicts
        self.plain = _AS_THEY_ARE | {uuid.UUID} if connection.vendor == "postgresql" else _AS_THEY_ARE
        if connection.vendor == "postgresql":
            conflicts = " ON CONFLICT DO NOTHING" if ignored else ""
            self.statement = f"INSERT {into} {self._selected(same, names)}{conflicts}"
        else:
            self.statement = f"INSERT{' OR IGNORE' if ignored else ''} {into} VALUES "

    def _selected(self, same: Sequence[str], names: Sequence[str]) -> str:
        # The types have no length: a cast would cut what is too long, where the column itself refuses it.
        kinds = {
            name: field.db_type(self.connection).partition("(")[0] for name, field in self.fields.items()
        }
        given = [f"%s::{kinds[name]}" for name in same] + [f'given."{name}"' for name in names]
        typed = ", ".join(f'"{name}" {kinds[name]}' for name in names)
        return f"SELECT {', '.join(given)} FROM JSON_TO_RECORDSET(%s::json) AS given({typed})"

    def bound(self, same: Values, rows: Sequence[Values]) -> tuple[str, list[Any]]:
        """The statement and its parameters for these rows."""
        for_all = [self._written(name, value) for name, value in same.items()]
        written = rows
        if not {type(value) for row in rows for value in row.values()} <= self.plain:
            written = [{name: self._written(name, value) for name, value in row.items()} for row in rows]
        if self.connection.vendor == "postgresql":
            return self.statement, [*for_all, to_json(written).decode()]
        row = f"({', '.join(['%s'] * len(self.fields))})"
        statement = self.statement + ", ".join([row] * len(rows))
        return statement, [value for one in written for value in (*for_all, *one.values())]

    def _written(self, name: str, value: Any) -> Any:
        """A value as its field writes it; most are what they will be."""
        kind = type(value)
        if kind in _AS_THEY_ARE:
            return value
        if kind is uuid.UUID and name in self.keys:
            return value.hex if self.connection.vendor == "sqlite" else value
        return self.fields[name].get_db_prep_save(value, self.connection)


def _insertion(connection: BaseDatabaseWrapper, asked: Rows) -> _Insertion:
    shape = (asked.model, connection.alias, tuple(asked.same), tuple(asked.rows[0]), asked.ignore_conflicts)
    found = _kept.get(shape)
    if found is None:
        found = _kept[shape] = _Insertion(connection, asked)
    return found


_kept: dict[Hashable, _Insertion] = {}
