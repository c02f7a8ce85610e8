"""Checks of the platform's three models, as they are declared."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections
from django.db.models import ForeignKey, Model, Q, QuerySet
from django.db.models.expressions import Col

from history_access.checks.types import AnyField, alike, family, family_of_field
from history_access.models import AbstractMessage, AbstractSession, AbstractTurn
from history_access.models.platform import message_model, primary, session_model, turn_model
from settings_catalog.checks import check_models as check_places

_MODELS: dict[str, tuple[Callable[[], type[Model]], type[Model]]] = {
    "SESSION_MODEL": (session_model, AbstractSession),
    "MESSAGE_MODEL": (message_model, AbstractMessage),
    "TURN_MODEL": (turn_model, AbstractTurn),
}
_COLUMNS = {
    "SESSION_MODEL": ("workspace_id", "agent_id", "account_id", "person_id"),
    "MESSAGE_MODEL": ("workspace_id", "session_id"),
    "TURN_MODEL": ("workspace_id", "session_id", "sender_id", "trigger_id"),
}
_READ_AS_THEY_ARE = {
    "SESSION_MODEL": (
        "title",
        "started_at",
        "last_moved_at",
        "message_count",
        "trimmed_before",
        "summary",
        "summary_through",
    ),
    "MESSAGE_MODEL": ("number", "created_at"),
    "TURN_MODEL": ("ended_at",),
}
"""Columns that mean what our abstract models say; of the others the model's class methods make something."""


@register(Tags.models)
def check_models(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """What the platform's three models must have.

    E003: a model is not named, or is no subclass of ours. E004: a column is missing. E005: messages or turns
    have no foreign key to the session. E006: a path to a name, a time zone or an owner leads nowhere. E016:
    what a model says of its rows cannot be asked of its columns. E018: a column has another type than its
    field, or than what is read of it.
    """
    errors = [error for name in _MODELS for error in _check_kind(name)]
    if errors:
        return errors
    return [
        *(error for name in _MODELS for error in _check_columns(name)),
        *_check_session_relation("MESSAGE_MODEL", message_model()),
        *_check_session_relation("TURN_MODEL", turn_model()),
        *_check_paths(),
        *_check_answers(),
        *(error for name in _MODELS for error in _check_types(name)),
    ]


def _check_kind(name: str) -> Iterable[CheckMessage]:
    load, abstract = _MODELS[name]
    try:
        model = load()
    except LookupError as error:
        hint = f'Set HISTORY_ACCESS["{name}"] = "app_label.Model" to a model of an installed app.'
        yield Error(f"{error}.", hint=hint, id="history_access.E003")
        return
    if not issubclass(model, abstract):
        hint = f"Subclass history_access.models.{abstract.__name__} over your table or view."
        message = f"HISTORY_ACCESS[{name!r}] is {model._meta.label!r}, which is no {abstract.__name__}."
        yield Error(message, obj=model, hint=hint, id="history_access.E003")


def _check_columns(name: str) -> Iterable[CheckMessage]:
    load, abstract = _MODELS[name]
    model: Any = load()
    there = {field.attname for field in model._meta.concrete_fields}
    for column in (field.name for field in abstract._meta.fields):
        if column not in there | model.OPTIONAL:
            hint = f"Declare `{column}` over your column, or compute it in a view: it is always read."
            yield Error(
                f"{model._meta.label} has no {column}.", obj=model, hint=hint, id="history_access.E004"
            )
    for column in _COLUMNS[name]:
        if column not in there:
            hint = (
                f"Add a foreign key `{column.removesuffix('_id')}`, or a field `{column}` over your column."
            )
            yield Error(
                f"{model._meta.label} has no {column}.", obj=model, hint=hint, id="history_access.E004"
            )


def _check_session_relation(name: str, model: type[Model]) -> Iterable[CheckMessage]:
    """Messages and turns are joined to their session, so theirs must be a real relation."""
    fields = {field.attname: field for field in model._meta.concrete_fields}
    field = fields.get("session_id")
    if field is None or (isinstance(field, ForeignKey) and field.related_model is session_model()):
        return
    hint = "Declare it as models.ForeignKey(YourSession, ...); db_constraint=False will do over a view."
    message = f"{model._meta.label}.session is no foreign key to {session_model()._meta.label}."
    yield Error(message, obj=model, hint=hint, id="history_access.E005")


def _check_paths() -> Iterable[CheckMessage]:
    for model, name, path in paths():
        if not _leads_somewhere(model, path):
            hint = f"Set `{name}` on the model to a path like {_example(name)!r}, or to None."
            message = f"{model._meta.label}.{name} is {path!r}, which leads to no field."
            yield Error(message, obj=model, hint=hint, id="history_access.E006")


def paths() -> list[tuple[type[Model], str, str]]:
    """Which model says where what is found, and the path to it; where it says None, there is none."""
    names = {
        session_model(): ("workspace_name", "time_zone", "agent_name", "account_name", "person_name"),
        turn_model(): ("trigger_owner", "trigger_name"),
    }
    said = [(model, name, getattr(model, name)) for model, all_of in names.items() for name in all_of]
    return [(model, name, path) for model, name, path in said if path is not None]


def _answers() -> list[tuple[Any, str]]:
    """What a platform says in SQL, or leaves as we say it."""
    names: dict[Any, tuple[str, ...]] = {
        session_model(): ("not_deleted",),
        message_model(): ("readable", "by_agent", "words", "tool_names"),
        turn_model(): ("live", "started_by_webhook"),
    }
    return [(model, name) for model, all_of in names.items() for name in all_of]


def _check_answers() -> Iterable[CheckMessage]:
    """What is said has to run, also where it is left as we say it and a column for it is lacking."""
    for model, name in _answers():
        try:
            _asked(model, name)
        except Exception as error:  # whatever the platform's own code raises is the finding
            hint = f"Say it in `{name}()` of the model, with the columns that it has."
            message = f"{model._meta.label}.{name}() cannot be asked of its table: {error}"
            yield Error(message, obj=model, hint=hint, id="history_access.E016")


def _asked(model: Any, name: str) -> "QuerySet[Any]":
    """The query that asks for an answer: a condition, an expression, or None for nothing to ask."""
    rows: QuerySet[Any] = model._base_manager.order_by()
    answer = getattr(model, name)()
    if isinstance(answer, Q):
        return rows.filter(answer)
    return rows if answer is None else rows.annotate(answered_by_the_platform=answer)


def answered_from(model: Any, *names: str) -> set[AnyField]:
    """The model's own columns that its answers look at; all of its answers, where none is named."""
    wanted = names or [name for owner, name in _answers() if owner is model]
    queries = [_asked(model, name).query for name in wanted]
    parts = [part for query in queries for part in (query.where, *query.annotations.values())]
    return {column for part in parts for column in _columns(part)} & set(model._meta.concrete_fields)


def _columns(node: Any) -> Iterator[AnyField]:
    if isinstance(node, Col):
        yield node.target
    for part in node.get_source_expressions() if hasattr(node, "get_source_expressions") else ():
        yield from _columns(part)


def _check_types(name: str) -> Iterable[CheckMessage]:
    """A time that is declared as text is not in the order of time, and a count is no number."""
    load, abstract = _MODELS[name]
    connection = connections[primary()]
    declared = {field.name: field for field in load()._meta.concrete_fields}
    for column in _READ_AS_THEY_ARE[name]:
        field, ours = declared.get(column), abstract._meta.get_field(column)
        if field is None or hasattr(field, "from_db_value"):  # which makes of it what it likes
            continue
        wanted = type(ours).__name__
        if not alike(connection, family(connection, field.db_type(connection)), family_of_field(ours)):
            hint = f"Declare it as {wanted}; where the column holds something else, convert that in a view."
            message = f"{field} is a {type(field).__name__}, which is no {wanted}."
            yield Error(message, obj=load(), hint=hint, id="history_access.E018")


def primary_of_sound_models() -> str | None:
    """The database of conversations; None where the models cannot be used, as another check says."""
    return None if check_models(None) or check_places(None) else primary()


def read_fields() -> set[AnyField]:
    """The fields of the three models that are read."""
    found: set[AnyField] = set()
    for name, (load, _) in _MODELS.items():
        fields = load()._meta.concrete_fields
        wanted = {*_COLUMNS[name], *_READ_AS_THEY_ARE[name]}
        found |= {field for field in fields if field.attname in wanted or field.primary_key}
        found |= answered_from(load())
    return found


def _leads_somewhere(model: type[Model], path: str) -> bool:
    try:
        str(model._base_manager.values_list(path).query)
    except Exception:  # a FieldError, or whatever the path ran into
        return False
    return True


def _example(name: str) -> str:
    return {"trigger_owner": "trigger__owner_id", "time_zone": "workspace__time_zone"}.get(
        name, "agent__name"
    )
