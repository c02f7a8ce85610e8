"""Checks of the platform's three models, as they are declared."""

from collections.abc import Callable, Iterable
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db.models import ForeignKey, Model, Q

from history_access.models import AbstractMessage, AbstractSession, AbstractTurn
from history_access.models.platform import message_model, session_model, turn_model

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


@register(Tags.models)
def check_models(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """What the platform's three models must have.

    E003: a model is not named, or is no subclass of ours. E004: a column is missing. E005: messages or turns
    have no foreign key to the session. E006: a path to a name, a time zone or an owner leads nowhere. E016:
    what a model says of its rows cannot be asked of its columns.
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
    sessions, turns = session_model(), turn_model()
    paths = [
        *(
            (sessions, name)
            for name in ("workspace_name", "time_zone", "agent_name", "account_name", "person_name")
        ),
        *((turns, name) for name in ("trigger_owner", "trigger_name")),
    ]
    for model, name in paths:
        path = getattr(model, name)
        if path is not None and not _leads_somewhere(model, path):
            hint = f"Set `{name}` on the model to a path like {_example(name)!r}, or to None."
            message = f"{model._meta.label}.{name} is {path!r}, which leads to no field."
            yield Error(message, obj=model, hint=hint, id="history_access.E006")


def _check_answers() -> Iterable[CheckMessage]:
    """What a platform says in SQL, or leaves as we say it though it lacks the column, has to run."""
    models: dict[Any, tuple[str, ...]] = {
        session_model(): ("not_deleted",),
        message_model(): ("readable", "by_agent", "words", "tool_names"),
        turn_model(): ("live", "started_by_webhook"),
    }
    for model, names in models.items():
        for name in names:
            try:
                _asked(model, getattr(model, name)())
            except Exception as error:  # whatever the platform's own code raises is the finding
                hint = f"Say it in `{name}()` of the model, with the columns that it has."
                message = f"{model._meta.label}.{name}() cannot be asked of its table: {error}"
                yield Error(message, obj=model, hint=hint, id="history_access.E016")


def _asked(model: Any, answer: Any) -> None:
    """Build the query that asks for an answer: a condition, an expression, or None for nothing to ask."""
    rows = model._base_manager.order_by()
    if isinstance(answer, Q):
        rows.filter(answer)
    elif answer is not None:
        rows.annotate(answered_by_the_platform=answer)


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
