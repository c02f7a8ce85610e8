"""Checks of the indexes that listing and reading go by, in the platform's own tables.

Views are not looked at: they have no indexes, and which ones of the tables below serve them is not seen here.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.checks import CheckMessage, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from history_access.checks.migrated import unless_migrations_wait
from history_access.checks.models import answered_from, primary_of_sound_models
from history_access.checks.relations import Index, column_name, indexes, relations
from history_access.conf import conf
from history_access.models.platform import message_model, primary, session_model, turn_model


@dataclass(frozen=True, kw_only=True)
class _Need:
    """What a statement looks rows up by, all exact, and the column in whose order it takes them.

    An index serves where it begins with `by`, in any order and with any of `also` among them, and then has
    `order`. One with a condition serves where that speaks of columns that the statement names too.
    """

    what: str
    model: type[Any]
    name: str
    by: str
    also: tuple[str, ...] = ()
    order: str | None = None
    conditions: tuple[str, ...] = ()
    suggested: tuple[str, ...] = ()


@register(Tags.database)
def check_indexes(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """W003: a table (not a view) lacks an index by which conversations are listed or read, so that both get
    slow as it grows.
    """
    if not databases or primary_of_sound_models() not in databases:
        return []
    connection, needs = connections[primary()], _needs()
    names = {need.model._meta.db_table for need in needs}
    tables = {name: found for name, found in relations(connection, names).items() if found.is_table}
    there = indexes(connection, tables)
    slow = [
        _warning(connection, need)
        for need in needs
        if (name := need.model._meta.db_table) in tables
        and not need.model._meta.parents
        and not any(_serves(connection, need, index, tables[name].columns) for index in there.get(name, ()))
    ]
    return unless_migrations_wait(connection, slow)


def _needs() -> list[_Need]:
    """The statements of `door` and `turns` that take more than one row, as they are where reach is widest."""
    sessions, messages, turns = session_model(), message_model(), turn_model()
    key = sessions._meta.pk.attname
    needs = [
        _Need(
            what="list an agent's conversations, the newest first",
            model=sessions,
            by="agent_id",
            also=("workspace_id",),
            order="last_moved_at",
            conditions=tuple(field.attname for field in answered_from(sessions, "not_deleted")),
            name="newest",
            suggested=("agent_id", "-last_moved_at", f"-{key}"),
        ),
        _Need(
            what="read a page of a conversation",
            model=messages,
            by="session_id",
            also=("workspace_id",),
            order="number",
            conditions=tuple(field.attname for field in answered_from(messages, "readable")),
            name="number",
            suggested=("session_id", "number"),
        ),
    ]
    if turns.started_by_webhook() is not None or conf.trigger_model is not None:
        what = "tell whether a webhook started a turn of a conversation"
        needs.append(
            _Need(what=what, model=turns, name="session", by="session_id", suggested=("session_id",))
        )
    return needs


def _serves(connection: BaseDatabaseWrapper, need: _Need, index: Index, columns: dict[str, str]) -> bool:
    fields = need.model._meta.concrete_fields
    named = {field.attname: column_name(connection, field.column) for field in fields}
    exact = {named[need.by], *(named[name] for name in need.also)}
    led = [*_leading(index, exact)]
    if named[need.by] not in led:
        return False
    if need.order is not None and index.columns[len(led) : len(led) + 1] != (named[need.order],):
        return False
    condition = re.sub(r"'[^']*'|::\w+", "", column_name(connection, index.condition))
    spoken = set(re.findall(r"\w+", condition)) & set(columns)
    return spoken <= exact | {named[name] for name in need.conditions}


def _leading(index: Index, exact: set[str]) -> Iterator[str]:
    for column in index.columns:
        if column not in exact:
            return
        yield column


def _warning(connection: BaseDatabaseWrapper, need: _Need) -> CheckMessage:
    quote = connection.ops.quote_name
    table = need.model._meta.db_table
    columns = {field.attname: field.column for field in need.model._meta.concrete_fields}
    parts = [
        quote(columns[name.removeprefix("-")]) + (" DESC" if name.startswith("-") else "")
        for name in need.suggested
    ]
    concurrently = "CONCURRENTLY " if connection.vendor == "postgresql" else ""
    name = quote(f"{table.strip(chr(34))}_{need.name}"[-60:])
    return CheckWarning(
        f"No index of {table} serves to {need.what}.",
        obj=need.model,
        hint=f"CREATE INDEX {concurrently}{name} ON {quote(table)} ({', '.join(parts)});",
        id="history_access.W003",
    )
