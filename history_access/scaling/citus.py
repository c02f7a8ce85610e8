"""SQL that distributes the tables that grow by workspace on Citus, so that each query goes to one shard.

Citus asks that the workspace is in every primary key, unique constraint and foreign key between distributed
tables. Django's models keep their single keys: only the database's constraints change.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from settings_catalog.guards import GuardedConfig

ForeignKey = tuple[str, str, list[str], str, list[str]]
"""Table, name, columns, the other table, its columns."""


def distribution(connection: BaseDatabaseWrapper, models: Iterable[type[Model]]) -> Iterator[str]:
    """The statements that distribute the tables of these models that have a workspace in every row.

    What they point to (agents, accounts, people) and the settings are copied to every node; what seals the
    record stays where the coordinator keeps it.
    """
    columns = {one._meta.db_table: _workspace(one) for one in models}
    distributed = {table: column for table, column in columns.items() if column is not None}
    foreign = [one for table in sorted(distributed) for one in _foreign_keys(connection, table)]
    copied = _pointed_to(connection, distributed) | {get_user_model()._meta.db_table}
    copied |= {one._meta.db_table for one in apps.get_app_config("settings_catalog").get_models()}
    yield "CREATE EXTENSION IF NOT EXISTS citus;"
    yield "SET citus.enable_unsafe_triggers TO on;  -- and for the database: row triggers keep the record"
    yield "BEGIN;"
    for table, name, *_ in foreign:
        yield f"ALTER TABLE {_quoted(table)} DROP CONSTRAINT {_quoted(name)};"
    for table, column in sorted(distributed.items()):
        yield from _unique(connection, table, column)
        yield from _truncates(table)
    yield "COMMIT;"
    for table in sorted(copied):
        yield f"SELECT create_reference_table('{_quoted(table)}');"
    first: dict[str, str] = {}
    for table, column in sorted(distributed.items()):
        beside = first.setdefault(_kind(connection, table, column), table)
        together = f", colocate_with => '{_quoted(beside)}'" if beside != table else ""
        yield f"SELECT create_distributed_table('{_quoted(table)}', '{column}'{together});"
    for table, name, here, other, there in foreign:
        if other in distributed:
            yield _foreign_key(
                table, name, _with(distributed[table], here), other, _with(distributed[other], there)
            )
        else:
            yield _foreign_key(table, name, here, other, there)


def _foreign_key(table: str, name: str, columns: list[str], other: str, others: list[str]) -> str:
    return (
        f"ALTER TABLE {_quoted(table)} ADD CONSTRAINT {_quoted(name)} FOREIGN KEY ({_list(columns)}) "
        f"REFERENCES {_quoted(other)} ({_list(others)});"
    )


def _workspace(model: type[Model]) -> str | None:
    """The column of a model's workspace; None where a row may have none."""
    fields: Any = model._meta.concrete_fields
    return next((one.column for one in fields if one.attname == "workspace_id" and not one.null), None)


def _pointed_to(connection: BaseDatabaseWrapper, tables: Iterable[str]) -> set[str]:
    """Every table that these point to by foreign keys, and those that these point to in turn."""
    distributed, found, waiting = set(tables), set[str](), list(tables)
    while waiting:
        others = {other for _, _, _, other, _ in _foreign_keys(connection, waiting.pop())}
        waiting += others - found - distributed
        found |= others - distributed
    return found


def _unique(connection: BaseDatabaseWrapper, table: str, column: str) -> Iterator[str]:
    """The primary key and each unique index, with the workspace in it."""
    query = (
        "SELECT c.relname, i.indisprimary, con.oid IS NOT NULL, pg_get_indexdef(i.indexrelid), "
        "ARRAY(SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY k(n, at) "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n ORDER BY k.at) "
        "FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "LEFT JOIN pg_constraint con ON con.conindid = i.indexrelid AND con.contype IN ('p', 'u') "
        "WHERE i.indrelid = to_regclass(%s) AND i.indisunique ORDER BY c.relname"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, [_quoted(table)])
        found = cursor.fetchall()
    for name, primary, constraint, definition, columns in found:
        if column in columns:
            continue
        keys = _with(column, columns)
        if constraint:
            kind = "PRIMARY KEY" if primary else "UNIQUE"
            yield f"ALTER TABLE {_quoted(table)} DROP CONSTRAINT {_quoted(name)};"
            yield f"ALTER TABLE {_quoted(table)} ADD CONSTRAINT {_quoted(name)} {kind} ({_list(keys)});"
        else:
            before, _, rest = definition.partition(" (")
            yield f"DROP INDEX {_quoted(name)};"
            yield f"{before} ({_quoted(column)}, {rest};"


def _truncates(table: str) -> Iterator[str]:
    """Citus knows no trigger of TRUNCATE on a distributed table: there the right to it goes."""
    for config in apps.get_app_configs():
        for guard in config.guards() if isinstance(config, GuardedConfig) else ():
            if guard.table == table and guard.event == "TRUNCATE":
                yield f"DROP TRIGGER IF EXISTS {_quoted(guard.name)} ON {_quoted(table)};"
                yield f"REVOKE TRUNCATE ON {_quoted(table)} FROM PUBLIC, CURRENT_USER;"


def _foreign_keys(connection: BaseDatabaseWrapper, table: str) -> list[ForeignKey]:
    query = (
        "SELECT conname, "
        "ARRAY(SELECT a.attname::text FROM unnest(conkey) WITH ORDINALITY k(n, at) "
        "JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = k.n ORDER BY k.at), "
        "confrelid::regclass::text, "
        "ARRAY(SELECT a.attname::text FROM unnest(confkey) WITH ORDINALITY k(n, at) "
        "JOIN pg_attribute a ON a.attrelid = confrelid AND a.attnum = k.n ORDER BY k.at) "
        "FROM pg_constraint WHERE contype = 'f' AND conrelid = to_regclass(%s) ORDER BY conname"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, [_quoted(table)])
        return [
            (table, name, list(columns), other.strip('"'), list(others))
            for name, columns, other, others in cursor.fetchall()
        ]


def _kind(connection: BaseDatabaseWrapper, table: str, column: str) -> str:
    query = (
        "SELECT atttypid::regtype::text FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, [_quoted(table), column])
        return str(cursor.fetchone()[0])


def _with(column: str, columns: Iterable[str]) -> list[str]:
    return [column, *(one for one in columns if one != column)]


def _list(columns: Iterable[str]) -> str:
    return ", ".join(_quoted(column) for column in columns)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
