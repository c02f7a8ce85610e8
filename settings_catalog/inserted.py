"""Rows put into a table in one statement, whose text is kept, without a model instance for each."""

import json
import uuid
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, UUIDField

from settings_catalog.compiled import cursor_of
from settings_catalog.conf import conf

Values = Mapping[str, Any]

_AS_THEY_ARE = (str, int, type(None))


def insert(
    model: type[Model], using: str, same: Values, rows: Sequence[Values], *, ignore_conflicts: bool = False
) -> None:
    """Put rows into a model's table: each field is in `same`, with one value for all, or in every row.

    With `ignore_conflicts` a row that a unique constraint refuses is passed over. As with `bulk_create` no
    signal is sent, and a database error is Django's.
    """
    connection = connections[using]
    if not rows:
        return
    if connection.vendor not in ("postgresql", "sqlite") or not conf.compiled_queries:
        objects = [model(**same, **row) for row in rows]
        model._base_manager.using(using).bulk_create(objects, ignore_conflicts=ignore_conflicts)
        return
    shape = (model, using, tuple(same), tuple(rows[0]), ignore_conflicts)
    if shape not in _kept:
        _kept[shape] = _Insertion(model, connection, tuple(same), tuple(rows[0]), ignore_conflicts)
    with cursor_of(connection) as cursor:
        cursor.execute(*_kept[shape].bound(same, rows))


class _Insertion:
    """The statement for one shape of rows.

    On PostgreSQL the rows come as one value of JSON: as arrays they would take psycopg longer than all the
    rest. On SQLite as values in the statement.
    """

    def __init__(
        self,
        model: type[Model],
        connection: BaseDatabaseWrapper,
        same: Sequence[str],
        names: Sequence[str],
        ignore_conflicts: bool,
    ) -> None:
        self.connection = connection
        self.fields: dict[str, Any] = {name: model._meta.get_field(name) for name in (*same, *names)}
        if set(self.fields) != {field.name for field in model._meta.concrete_fields}:
            raise ValueError(f"every field of {model._meta.label} needs a value")
        quote = connection.ops.quote_name
        columns = [quote(field.column) for field in self.fields.values()]
        self.into = f"INTO {quote(model._meta.db_table)} ({', '.join(columns)})"
        self.ignore_conflicts = ignore_conflicts
        self.selected = self._selected(same, names) if connection.vendor == "postgresql" else ""

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
        written = [{name: self._written(name, value) for name, value in row.items()} for row in rows]
        if self.selected:
            conflicts = " ON CONFLICT DO NOTHING" if self.ignore_conflicts else ""
            statement = f"INSERT {self.into} {self.selected}{conflicts}"
            return statement, [*for_all, json.dumps(written, default=str)]
        row = f"({', '.join(['%s'] * len(self.fields))})"
        conflicts = " OR IGNORE" if self.ignore_conflicts else ""
        statement = f"INSERT{conflicts} {self.into} VALUES {', '.join([row] * len(rows))}"
        return statement, [value for one in written for value in (*for_all, *one.values())]

    def _written(self, name: str, value: Any) -> Any:
        """A value as its field writes it."""
        kind = type(value)
        if kind in _AS_THEY_ARE:
            return value
        if kind is uuid.UUID and type(self.fields[name]) is UUIDField:
            return str(value) if self.selected else value.hex
        return self.fields[name].get_db_prep_save(value, self.connection)


_kept: dict[Hashable, _Insertion] = {}
