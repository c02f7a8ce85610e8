"""What a database says of its tables and views: columns with their types, and indexes.

On PostgreSQL one statement for all columns and one for all indexes; on SQLite one for each table.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A table or a view as it stands: the declared type of each column, in small letters."""

    is_table: bool
    columns: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Index:
    """A usable index in the order of its columns; None is an expression, or an order that serves no list.

    `condition` is the SQL that a row must meet to be in it, "" for every row.
    """

    columns: tuple[str | None, ...]
    condition: str


_COLUMNS = """
SELECT wanted.name, c.relkind IN ('r', 'p', 'm'), a.attname,
       format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, NULL)
FROM unnest(%s::text[], %s::text[]) AS wanted(name, quoted)
JOIN pg_class c ON c.oid = to_regclass(wanted.quoted)
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
"""
_INDEXES = """
SELECT wanted.name, coalesce(pg_get_expr(i.indpred, i.indrelid), ''), (
    SELECT array_agg(CASE WHEN o.option IN (0, 3) THEN a.attname::text END ORDER BY o.nth)
    FROM unnest(i.indkey::int2[], i.indoption::int2[]) WITH ORDINALITY AS o(attnum, option, nth)
    LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = o.attnum
)
FROM unnest(%s::text[], %s::text[]) AS wanted(name, quoted)
JOIN pg_index i ON i.indrelid = to_regclass(wanted.quoted) AND i.indisvalid
JOIN pg_class x ON x.oid = i.indexrelid
JOIN pg_am m ON m.oid = x.relam AND m.amname IN ('btree', 'hash')
"""
"""An option of 0 is ascending and of 3 descending; the others put NULLs where `ORDER BY` does not. What an
index only includes has none."""

_SQLITE_COLUMNS = """
SELECT m.type, c.name, c.type FROM sqlite_master AS m JOIN pragma_table_xinfo(m.name) AS c
WHERE m.type IN ('table', 'view') AND m.name = %s COLLATE NOCASE
"""
_SQLITE_INDEXES = """
SELECT i.name, c.name, coalesce(m.sql, '') FROM pragma_index_list(%s) AS i
JOIN pragma_index_info(i.name) AS c LEFT JOIN sqlite_master AS m ON m.type = 'index' AND m.name = i.name
ORDER BY i.name, c.seqno
"""


def relations(connection: BaseDatabaseWrapper, tables: Iterable[str]) -> dict[str, Relation]:
    """The tables and views that are there, by the name they were asked for under (`Meta.db_table`)."""
    found: dict[str, Relation] = {}
    for table, is_table, column, declared in _columns(connection, sorted(tables)):
        relation = found.setdefault(table, Relation(is_table=is_table, columns={}))
        relation.columns[column] = declared.lower()
    return found


def indexes(connection: BaseDatabaseWrapper, tables: Iterable[str]) -> dict[str, list[Index]]:
    """The indexes of tables, by the name they were asked for under; those of views are none."""
    found: dict[str, list[Index]] = {}
    for table, condition, columns in _indexes(connection, sorted(tables)):
        found.setdefault(table, []).append(Index(columns=tuple(columns), condition=condition))
    return found


def column_name(connection: BaseDatabaseWrapper, column: str) -> str:
    """A column's name as `relations` spells it: SQLite does not tell capitals from small letters."""
    return column.lower() if connection.vendor == "sqlite" else column


def _columns(connection: BaseDatabaseWrapper, tables: list[str]) -> Iterator[tuple[str, bool, str, str]]:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_COLUMNS, [tables, [connection.ops.quote_name(table) for table in tables]])
            yield from cursor.fetchall()
        return
    for table in tables:
        for kind, column, declared in _rows(connection, _SQLITE_COLUMNS, table):
            yield table, kind == "table", column.lower(), declared


def _indexes(
    connection: BaseDatabaseWrapper, tables: list[str]
) -> Iterator[tuple[str, str, list[str | None]]]:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_INDEXES, [tables, [connection.ops.quote_name(table) for table in tables]])
            yield from ((table, condition, columns) for table, condition, columns in cursor.fetchall())
        return
    for table in tables:
        columns: dict[tuple[str, str], list[str | None]] = {}
        for name, column, sql in _rows(connection, _SQLITE_INDEXES, table):
            columns.setdefault((name, sql), []).append(column and column.lower())
        for (_, sql), named in columns.items():
            yield table, _condition(sql), named


def _condition(sql: str) -> str:
    found = re.search(r"\)\s*WHERE\s(.*)", sql, re.DOTALL | re.IGNORECASE)
    return found[1] if found else ""


def _rows(connection: BaseDatabaseWrapper, query: str, table: str) -> list[tuple[str, str, str]]:
    """No rows, too, of a view over what is gone: nothing can be read of it."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(query, [table.strip('"')])
            found: list[tuple[str, str, str]] = cursor.fetchall()
            return found
    except DatabaseError:
        return []
