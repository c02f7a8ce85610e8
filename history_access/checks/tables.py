"""Checks of the tables and views under the platform's models, against what the models declare.

Only once every migration has run: before that the tables are not what they are going to be.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import FieldDoesNotExist
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from history_access.checks.migrated import unless_migrations_wait
from history_access.checks.models import paths, primary_of_sound_models, read_fields
from history_access.checks.relations import Relation, column_name, relations
from history_access.checks.types import NAIVE, AnyField, alike, family
from history_access.conf import conf
from history_access.danger_checks import check_danger_settings
from history_access.models.platform import message_model, primary, session_model, turn_model
from settings_catalog.conf import conf as catalog_conf
from settings_catalog.conf import named_model

_NAMES = ("workspace_name", "agent_name", "account_name", "person_name", "trigger_name")
"""What a platform calls things may be of any type."""


@register(Tags.database)
def check_tables(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """E017: a table or a view is not there, or lacks a column that its model declares. E018: a column has
    another type than its field, or than what is read of it. E019: keys that are compared with each other have
    different types.
    """
    if not databases or primary_of_sound_models() not in databases:
        return []
    tables = _Tables(connections[primary()], fields := _declared_fields())
    found = (  # each supposes that there was nothing before it
        list(_missing(tables, fields))
        or list(_wrong_types(tables, _typed_fields()))
        or list(_unlike_keys(tables))
    )
    return unless_migrations_wait(tables.connection, found)


def _declared_fields() -> list[AnyField]:
    """The columns that have to be there: all of the three models, and what is read beside them."""
    models: tuple[Any, ...] = (session_model(), message_model(), turn_model())
    own = [field for model in models for field in model._meta.concrete_fields]
    beside = [field for _, fields in _paths() for field in fields]
    keys = [field for group in _compared_keys().values() for field in group]
    wanted = dict.fromkeys([*own, *beside, *keys, *_place_of_agents()])
    return [field for field in wanted if field.column is not None]


def _typed_fields() -> list[AnyField]:
    """Those whose types matter: what a platform calls things is shown as text, whatever it is."""
    beside = [field for name, fields in _paths() for field in (fields[:-1] if name in _NAMES else fields)]
    keys = [field for group in _compared_keys().values() for field in group]
    wanted = dict.fromkeys([*read_fields(), *beside, *keys, *_place_of_agents()])
    return sorted((field for field in wanted if field.column is not None), key=str)


def _paths() -> list[tuple[str, list[AnyField]]]:
    """The fields on the way that each path takes: foreign keys, the keys they lead to, and its end."""
    return [(name, list(_along(model, path))) for model, name, path in paths()]


def _along(model: type[Model], path: str) -> Iterator[AnyField]:
    for step in path.split("__"):
        try:
            field: Any = model._meta.pk if step == "pk" else model._meta.get_field(step)
        except FieldDoesNotExist:  # what is put together in SQL stands for itself
            return
        if not getattr(field, "concrete", False):
            return
        yield field
        if field.remote_field is None or field.attname == step:
            return
        yield field.target_field
        model = field.related_model


def _compared_keys() -> dict[str, list[AnyField]]:
    """Keys that are compared with each other in SQL, those that the others point to before them."""
    sessions, messages, turns = session_model(), message_model(), turn_model()
    groups = {
        "sessions": [sessions._meta.pk, _field(messages, "session_id"), _field(turns, "session_id")],
        "workspaces": [_field(model, "workspace_id") for model in (sessions, messages, turns)],
        "people": [get_user_model()._meta.pk, _field(sessions, "person_id"), _field(turns, "sender_id")],
        "triggers": [*_trigger_key(), _field(turns, "trigger_id")],
    }
    return {kind: [field for field in group if field and field.column] for kind, group in groups.items()}


def _trigger_key() -> Iterator[AnyField]:
    wrong = {message.id for message in check_danger_settings(None)}
    if conf.trigger_model is not None and "history_access.E010" not in wrong:
        yield named_model("TRIGGER_MODEL", conf.trigger_model)._meta.pk


def _place_of_agents() -> Iterator[AnyField]:
    agents = catalog_conf.agent_model
    yield from filter(None, (agents._meta.pk, _field(agents, "workspace_id")))


def _field(model: Any, attname: str) -> "AnyField | None":
    return next((field for field in model._meta.concrete_fields if field.attname == attname), None)


def _table(field: AnyField) -> str:
    return field.model._meta.db_table


class _Tables:
    """What is there, asked by the fields of models."""

    def __init__(self, connection: BaseDatabaseWrapper, fields: Iterable[AnyField]) -> None:
        self.connection = connection
        self.there = relations(connection, {_table(field) for field in fields})

    def relation(self, field: AnyField) -> Relation | None:
        """The table or the view that the field's model stands over."""
        return self.there.get(_table(field))

    def type_of(self, field: AnyField) -> str:
        """The declared type of its column; "" where SQLite knows none, as of what a view computes."""
        return self.there[_table(field)].columns[self.name_of(field)]

    def family_of(self, field: AnyField) -> str | None:
        """The family of that type."""
        return family(self.connection, self.type_of(field))

    def name_of(self, field: AnyField) -> str:
        """Its column, as the database spells it."""
        return column_name(self.connection, str(field.column))


def _missing(tables: _Tables, fields: Iterable[AnyField]) -> Iterator[CheckMessage]:
    gone: set[str] = set()
    for field in fields:
        relation, table = tables.relation(field), _table(field)
        if relation is None:
            if table not in gone:
                hint = (
                    f"Create it, or name the one that you have in {field.model._meta.label}'s Meta.db_table."
                )
                message = (
                    f"{field.model._meta.label} stands over {table}, and there is no such table or view."
                )
                yield Error(message, obj=field.model, hint=hint, id="history_access.E017")
            gone.add(table)
        elif tables.name_of(field) not in relation.columns:
            unclaimed = _unclaimed(tables, field, relation)
            hint = f"Name your column in the field, as db_column=..., or compute it in a view. {unclaimed}"
            message = f"{table} has no column {field.column}, which {field} reads."
            yield Error(message, obj=field.model, hint=hint, id="history_access.E017")


def _unclaimed(tables: _Tables, field: AnyField, relation: Relation) -> str:
    claimed = {tables.name_of(other) for other in field.model._meta.concrete_fields}
    others = sorted(set(relation.columns) - claimed)
    return f"Columns there that no field names: {', '.join(others)}." if others else ""


def _wrong_types(tables: _Tables, fields: Iterable[AnyField]) -> Iterator[CheckMessage]:
    for field in fields:
        declared = field.db_type(tables.connection)
        if not alike(tables.connection, family(tables.connection, declared), tables.family_of(field)):
            message = (
                f"The column {field.column} of {_table(field)} is {tables.type_of(field)}, "
                f"and {field} takes it for {declared}."
            )
            hint = _change(tables, field, declared or "")
            yield Error(message, obj=field.model, hint=hint, id="history_access.E018")


def _change(tables: _Tables, field: AnyField, wanted: str) -> str:
    """How a column gets its type."""
    quote = tables.connection.ops.quote_name
    column, table = quote(str(field.column)), quote(_table(field))
    relation = tables.relation(field)
    otherwise = f"Or declare {field.name} as what the column holds, where that is what it should be."
    if relation is not None and not relation.is_table:
        return f"In the view, say CAST(... AS {wanted}) AS {column}. {otherwise}"
    if tables.connection.vendor != "postgresql":
        return f"Make the table anew, with {column} {wanted}. {otherwise}"
    naive = tables.family_of(field) == NAIVE
    using = f"{column} AT TIME ZONE 'UTC'" if naive else f"{column}::{wanted}"
    zone = " (with the time zone in which it was written)" if naive else ""
    return f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {wanted} USING {using};{zone} {otherwise}"


def _unlike_keys(tables: _Tables) -> Iterator[CheckMessage]:
    for kind, (first, *others) in _compared_keys().items():
        for field in others:
            if not alike(tables.connection, tables.family_of(first), tables.family_of(field)):
                message = (
                    f"Keys of {kind} are {tables.type_of(first)} in {_table(first)}.{first.column} and "
                    f"{tables.type_of(field)} in {_table(field)}.{field.column}, which are compared."
                )
                hint = (
                    f"Let both be {tables.type_of(first)}, or cast one of them in a view, and declare it so."
                )
                yield Error(message, obj=field.model, hint=hint, id="history_access.E019")
