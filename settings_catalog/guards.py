"""Rules that the database itself keeps, as triggers: PostgreSQL and SQLite.

An app lists its guards; they are put in place after every `migrate`, because SQLite drops a table's
triggers in silence when a later migration rebuilds the table.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.signals import post_migrate, pre_migrate

from settings_catalog.removal import Plan, refuse_removal

_REFUSE = "settings_catalog_refuse"
_REFUSE_BODY = " BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END "
_REFUSE_SQL = f"CREATE OR REPLACE FUNCTION {_REFUSE}() RETURNS trigger LANGUAGE plpgsql AS $${_REFUSE_BODY}$$"


@dataclass(frozen=True, kw_only=True)
class Guard:
    """One refusal: on `table`, before `event`, where `when` holds.

    `event` is UPDATE, DELETE, INSERT or TRUNCATE (PostgreSQL alone). `when` is an SQL condition on OLD and
    NEW, empty for always; in it `{differs}` stands for the database's null-safe "is another value than".
    `message` reaches whoever tried, as an IntegrityError. `looks_at` are the other tables that `when` asks.
    """

    name: str
    table: str
    event: str
    when: str = ""
    message: str
    looks_at: frozenset[str] = frozenset()

    def statement(self, vendor: str) -> str | None:
        """The SQL that puts it in place; None where this database has no such event."""
        if vendor == "postgresql":
            return self._with_function() if self.when else self._with_refusal()
        if self.event == "TRUNCATE":
            return None
        when = f"WHEN {self.when.format(differs='IS NOT')}" if self.when else ""
        return (
            f'CREATE TRIGGER "{self.name}" BEFORE {self.event} ON "{self.table}" '
            f"{when} BEGIN SELECT RAISE(ABORT, '{self._quoted}'); END"
        )

    @property
    def body(self) -> str:
        """The body of the function that refuses, on PostgreSQL.

        A condition stands there and not in the trigger: PostgreSQL takes no subquery in one, and does not let
        a migration alter or drop a column that one names.
        """
        if not self.when:
            return _REFUSE_BODY
        return (
            f" BEGIN IF {self.when.format(differs='IS DISTINCT FROM')} THEN "
            f"RAISE EXCEPTION '%', '{self._quoted}' USING ERRCODE = 'integrity_constraint_violation'; "
            f"END IF; RETURN {'OLD' if self.event == 'DELETE' else 'NEW'}; END "
        )

    @property
    def _quoted(self) -> str:
        return self.message.replace("'", "''")

    def _with_refusal(self) -> str:
        each = "STATEMENT" if self.event == "TRUNCATE" else "ROW"
        return (
            f'CREATE TRIGGER "{self.name}" BEFORE {self.event} ON "{self.table}" '
            f"FOR EACH {each} EXECUTE FUNCTION {_REFUSE}('{self._quoted}')"
        )

    def _with_function(self) -> str:
        return (
            f'CREATE OR REPLACE FUNCTION "{self.name}"() RETURNS trigger LANGUAGE plpgsql '
            f"AS $${self.body}$$; "
            f'CREATE TRIGGER "{self.name}" BEFORE {self.event} ON "{self.table}" '
            f'FOR EACH ROW EXECUTE FUNCTION "{self.name}"()'
        )


def append_only(table: str, key: str = "id", *, unique: tuple[str, ...] = ()) -> tuple[Guard, ...]:
    """Rows of `table` are never changed or removed, nor replaced under the same `key`.

    `unique` names the columns of a further unique constraint, under which SQLite would replace a row too.
    """
    message = f"{table} is append-only"
    unchanged = Guard(name=f"{table}_no_update", table=table, event="UPDATE", message=message)
    replaced = never_replaced(table, message, key=key, unique=unique)
    return (unchanged, *never_removed(table, message), replaced)


def never_removed(table: str, message: str) -> tuple[Guard, ...]:
    """Rows of `table` are never deleted."""
    return tuple(
        Guard(name=f"{table}_no_{event.lower()}", table=table, event=event, message=message)
        for event in ("DELETE", "TRUNCATE")
    )


def fixed_columns(
    table: str, columns: Iterable[str], message: str, key: str = "id", *, also: str = ""
) -> tuple[Guard, ...]:
    """The named columns of `table` keep the value that they were inserted with; `also`: see a replacement."""
    changed = " OR ".join(f"NEW.{column} {{differs}} OLD.{column}" for column in (key, *columns))
    return (
        Guard(name=f"{table}_fixed", table=table, event="UPDATE", when=changed, message=message),
        never_replaced(table, message, key=key, also=also),
    )


def not_while(table: str, dependants: Mapping[str, str], message: str, key: str = "id") -> Guard:
    """A row of `table` is not removed while rows that point to it are there: a table and its column each.

    Else it could be put back as another's within one transaction, since foreign keys are checked at its end.
    """
    pointing = " OR ".join(
        f'EXISTS (SELECT 1 FROM "{other}" WHERE {column} = OLD.{key})' for other, column in dependants.items()
    )
    return Guard(
        name=f"{table}_in_use",
        table=table,
        event="DELETE",
        when=pointing,
        message=message,
        looks_at=frozenset(dependants),
    )


@dataclass(frozen=True, kw_only=True)
class _SQLiteGuard(Guard):
    """A refusal that only SQLite needs: PostgreSQL has no INSERT OR REPLACE, which goes round the others."""

    def statement(self, vendor: str) -> str | None:
        return None if vendor == "postgresql" else super().statement(vendor)


def never_replaced(
    table: str, message: str, *, key: str = "id", unique: tuple[str, ...] = (), also: str = ""
) -> Guard:
    """On SQLite no INSERT OR REPLACE takes a row away: by its key, its `unique` columns or its rowid.

    `also` is a condition on a row and NEW under which a constraint of another form has one make way.
    """
    same = [f"{key} = NEW.{key}", "rowid = NEW.rowid"]
    if unique:
        same.append("(" + " AND ".join(f'"{column}" = NEW."{column}"' for column in unique) + ")")
    if also:
        same.append(f"({also})")
    when = f'EXISTS (SELECT 1 FROM "{table}" WHERE {" OR ".join(same)})'
    return _SQLiteGuard(name=f"{table}_no_replace", table=table, event="INSERT", when=when, message=message)


class GuardedConfig(AppConfig):
    """An app whose tables are guarded: its `guards()` stand after every `migrate`, and are checked.

    Migrations are not undone while that would drop rows of tables whose rows are never removed.
    """

    before_removal: ClassVar[str] = "Export them first."
    """What to do before the tables are dropped, in a sentence."""

    def guards(self) -> tuple[Guard, ...]:
        """The guards of this app's tables."""
        return ()

    def kept(self) -> frozenset[str]:
        """The tables whose rows are never removed."""
        return frozenset(guard.table for guard in self.guards() if guard.event == "DELETE" and not guard.when)

    def ready(self) -> None:
        """Put the guards in place whenever migrations have run."""
        pre_migrate.connect(_before_migrate, sender=self)
        post_migrate.connect(_after_migrate, sender=self)


def _before_migrate(sender: GuardedConfig, using: str, plan: Plan, **kwargs: Any) -> None:
    connection = connections[using]
    refuse_removal(connection, sender, sender.kept(), plan, sender.before_removal)
    if plan and connection.vendor == "sqlite":  # it rebuilds no table that a trigger of another one asks
        remove(connection, [guard for guard in sender.guards() if guard.looks_at])


def _after_migrate(sender: GuardedConfig, using: str, **kwargs: Any) -> None:
    install(connections[using], sender.guards())
    _drop_unused_functions(connections[using], sender.guards())


def install(connection: BaseDatabaseWrapper, guards: Iterable[Guard]) -> None:
    """Put in place those guards that are missing or no longer what they should be. Safe to repeat."""
    wanted = missing(connection, guards)
    if not wanted:
        return
    remove(connection, wanted)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(_REFUSE_SQL)
        for guard in wanted:
            statements = marked(guard) if connection.vendor == "postgresql" else [guard.statement("sqlite")]
            for statement in statements:
                cursor.execute(statement or "", None)


def marked(guard: Guard, table: str | None = None) -> Iterator[str]:
    """The statements that put a guard in place on PostgreSQL and mark it, so that a check knows it again.

    On `table` where that is another one than the guard's own, such as a partition of it.
    """
    placed = guard if table is None else replace(guard, table=table)
    yield f"{placed.statement('postgresql')};"
    yield f'COMMENT ON TRIGGER "{guard.name}" ON "{placed.table}" IS \'{_digest(guard)}\';'


def _drop_unused_functions(connection: BaseDatabaseWrapper, guards: Iterable[Guard]) -> None:
    """A table that is dropped takes its triggers along, but on PostgreSQL leaves their functions."""
    if connection.vendor != "postgresql":
        return
    unused = (
        "SELECT proname FROM pg_proc p WHERE proname = ANY(%s) AND pg_function_is_visible(p.oid) "
        "AND NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgfoid = p.oid)"
    )
    with connection.cursor() as cursor:
        cursor.execute(unused, [[_REFUSE, *(guard.name for guard in guards)]])
        for (name,) in cursor.fetchall():
            cursor.execute(f'DROP FUNCTION IF EXISTS "{name}"()', None)


def remove(connection: BaseDatabaseWrapper, guards: Iterable[Guard]) -> None:
    """Take guards away, for a test suite that empties its tables; `install` puts them back."""
    tables = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        for guard in guards:
            if guard.table in tables:
                on = f' ON "{guard.table}"' if connection.vendor == "postgresql" else ""
                cursor.execute(f'DROP TRIGGER IF EXISTS "{guard.name}"{on}', None)


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
        and standing.get((guard.table, guard.name)) != _wanted(connection, guard)
    ]


def _wanted(connection: BaseDatabaseWrapper, guard: Guard) -> str:
    """What `_standing` says of a guard that is as it should be."""
    if connection.vendor == "postgresql":
        return _digest(guard) + guard.body
    return str(guard.statement(connection.vendor))


def _digest(guard: Guard) -> str:
    """Tells one form of a guard from another, so that a later release's replaces an earlier one's."""
    return hashlib.sha256(str(guard.statement("postgresql")).encode()).hexdigest()


def missing_errors(
    databases: Iterable[str] | None, guards: Iterable[Guard], check_id: str
) -> list[CheckMessage]:
    """One system check error for each guard that is missing in these databases.

    An error stops `migrate` too, which is what puts a guard back: the hint says how it runs nevertheless.
    """
    guards = tuple(guards)
    return [
        Error(
            f"The guard {guard.name} on the table {guard.table} of the database {alias!r} is missing, "
            "switched off or altered.",
            hint="Run `manage.py migrate --skip-checks`: it puts every guard back.",
            id=check_id,
        )
        for alias in databases or ()
        for guard in missing(connections[alias], guards)
    ]


def _standing(connection: BaseDatabaseWrapper) -> dict[tuple[str, str], str]:
    """The triggers that stand, by table and name, none that is switched off.

    Each with its SQL on SQLite; on PostgreSQL with the digest noted on it, and with what its function does.
    """
    if connection.vendor == "postgresql":
        query = (
            "SELECT c.relname, t.tgname, coalesce(obj_description(t.oid, 'pg_trigger'), '') || p.prosrc "
            "FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid "
            "WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND pg_table_is_visible(c.oid)"
        )
    else:
        query = "SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'trigger'"
    with connection.cursor() as cursor:
        cursor.execute(query)
        return {(table, name): said for table, name, said in cursor.fetchall()}
