"""Rules that the database itself keeps, as triggers: PostgreSQL and SQLite.

An app lists its guards; they are put in place after every `migrate`, because SQLite drops a table's
triggers in silence when a later migration rebuilds the table.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.signals import post_migrate

_REFUSE = "settings_catalog_refuse"
_REFUSE_SQL = f"""
CREATE OR REPLACE FUNCTION {_REFUSE}() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$
"""


@dataclass(frozen=True, kw_only=True)
class Guard:
    """One refusal: on `table`, before `event`, where `when` holds.

    `event` is UPDATE, DELETE, INSERT or TRUNCATE (PostgreSQL alone). `when` is an SQL condition on OLD and
    NEW, empty for always; in it `{differs}` stands for the database's null-safe "is another value than".
    `message` reaches whoever tried, as an IntegrityError.
    """

    name: str
    table: str
    event: str
    when: str = ""
    message: str

    def statement(self, vendor: str) -> str | None:
        """The SQL that puts it in place; None where this database has no such event."""
        message = self.message.replace("'", "''")
        if vendor == "postgresql":
            each = "STATEMENT" if self.event == "TRUNCATE" else "ROW"
            when = f"WHEN ({self.when.format(differs='IS DISTINCT FROM')})" if self.when else ""
            return (
                f'CREATE TRIGGER "{self.name}" BEFORE {self.event} ON "{self.table}" '
                f"FOR EACH {each} {when} EXECUTE FUNCTION {_REFUSE}('{message}')"
            )
        if self.event == "TRUNCATE":
            return None
        when = f"WHEN {self.when.format(differs='IS NOT')}" if self.when else ""
        return (
            f'CREATE TRIGGER "{self.name}" BEFORE {self.event} ON "{self.table}" '
            f"{when} BEGIN SELECT RAISE(ABORT, '{message}'); END"
        )


def append_only(table: str, key: str = "id", *, unique: tuple[str, ...] = ()) -> tuple[Guard, ...]:
    """Rows of `table` are never changed or removed, nor replaced under the same `key`.

    `unique` names the columns of a further unique constraint, under which SQLite would replace a row too.
    """
    message = f"{table} is append-only"
    refused = tuple(
        Guard(name=f"{table}_no_{event.lower()}", table=table, event=event, message=message)
        for event in ("UPDATE", "DELETE", "TRUNCATE")
    )
    same = f"{key} = NEW.{key}"
    if unique:
        same += " OR (" + " AND ".join(f'"{column}" = NEW."{column}"' for column in unique) + ")"
    return (*refused, _no_replacement(table, same, message))


def fixed_columns(table: str, columns: Iterable[str], message: str, key: str = "id") -> tuple[Guard, ...]:
    """The named columns of `table` keep the value that they were inserted with."""
    columns = tuple(columns)
    changed = " OR ".join(f"NEW.{column} {{differs}} OLD.{column}" for column in columns)
    replaced = " OR ".join(f"NEW.{column} {{differs}} {column}" for column in columns)
    return (
        Guard(name=f"{table}_fixed", table=table, event="UPDATE", when=changed, message=message),
        _no_replacement(table, f"{key} = NEW.{key} AND ({replaced})", message),
    )


@dataclass(frozen=True, kw_only=True)
class _SQLiteGuard(Guard):
    """A refusal that only SQLite needs: PostgreSQL has no INSERT OR REPLACE, which goes round the others."""

    def statement(self, vendor: str) -> str | None:
        return None if vendor == "postgresql" else super().statement(vendor)


def _no_replacement(table: str, same: str, message: str) -> Guard:
    when = f'EXISTS (SELECT 1 FROM "{table}" WHERE {same})'
    return _SQLiteGuard(name=f"{table}_no_replace", table=table, event="INSERT", when=when, message=message)


class GuardedConfig(AppConfig):
    """An app whose tables are guarded: its `guards()` stand after every `migrate`, and are checked."""

    def guards(self) -> tuple[Guard, ...]:
        """The guards of this app's tables."""
        return ()

    def ready(self) -> None:
        """Put the guards in place whenever migrations have run."""
        post_migrate.connect(_after_migrate, sender=self)


def _after_migrate(sender: GuardedConfig, using: str, **kwargs: Any) -> None:
    install(connections[using], sender.guards())


def install(connection: BaseDatabaseWrapper, guards: Iterable[Guard]) -> None:
    """Put in place those guards that are missing, where their tables exist. Safe to repeat."""
    wanted = missing(connection, guards)
    if not wanted:
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(_REFUSE_SQL)
        for guard in wanted:
            cursor.execute(guard.statement(connection.vendor) or "", None)


def remove(connection: BaseDatabaseWrapper, guards: Iterable[Guard]) -> None:
    """Take guards away, for a test suite that empties its tables; `install` puts them back."""
    standing = _standing(connection)
    with connection.cursor() as cursor:
        for guard in guards:
            if (guard.table, guard.name) not in standing:
                continue
            on = f' ON "{guard.table}"' if connection.vendor == "postgresql" else ""
            cursor.execute(f'DROP TRIGGER "{guard.name}"{on}', None)


@contextmanager
def lifted(connection: BaseDatabaseWrapper, guards: Iterable[Guard]) -> Iterator[None]:
    """Lift guards for the rest of a block inside a transaction, for maintenance of the record alone.

    Until the transaction ends nobody else can write to the tables; if it fails, the guards stand as before.
    A RuntimeError outside a transaction.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("guards are lifted inside a transaction, so that a failure puts them back")
    guards = tuple(guards)
    if connection.vendor == "postgresql":
        _switch(connection, guards, "DISABLE")
    else:
        remove(connection, guards)
    yield
    if connection.vendor == "postgresql":
        _switch(connection, guards, "ENABLE")
    else:
        install(connection, guards)


def _switch(connection: BaseDatabaseWrapper, guards: Iterable[Guard], how: str) -> None:
    with connection.cursor() as cursor:
        for guard in guards:
            if guard.statement(connection.vendor) is not None:
                cursor.execute(f'ALTER TABLE "{guard.table}" {how} TRIGGER "{guard.name}"', None)


def missing(connection: BaseDatabaseWrapper, guards: Iterable[Guard]) -> list[Guard]:
    """The guards that ought to stand in this database and do not, or are switched off."""
    tables = set(connection.introspection.table_names())
    standing = _standing(connection)
    return [
        guard
        for guard in guards
        if guard.table in tables
        and guard.statement(connection.vendor) is not None
        and (guard.table, guard.name) not in standing
    ]


def missing_errors(
    databases: Iterable[str] | None, guards: Iterable[Guard], check_id: str
) -> list[CheckMessage]:
    """One system check error for each guard that is missing in these databases."""
    guards = tuple(guards)
    return [
        Error(
            f"The guard {guard.name} on the table {guard.table} is missing in the database {alias!r}.",
            hint="Run `manage.py migrate`: it puts every guard back.",
            id=check_id,
        )
        for alias in databases or ()
        for guard in missing(connections[alias], guards)
    ]


def _standing(connection: BaseDatabaseWrapper) -> set[tuple[str, str]]:
    if connection.vendor == "postgresql":
        query = (
            "SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
            "WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND pg_table_is_visible(c.oid)"
        )
    else:
        query = "SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger'"
    with connection.cursor() as cursor:
        cursor.execute(query)
        return {(table, name) for table, name in cursor.fetchall()}
