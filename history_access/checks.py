"""System checks: what a platform must have for history access to be right."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import connections, router
from django.db.models import ForeignKey, Model, Q
from django.utils.module_loading import import_string

from history_access.authority import Authority
from history_access.conf import KNOWN, NAMING, conf, unknown_naming_keys
from history_access.danger_checks import check_danger, check_danger_settings  # noqa: F401
from history_access.models import AbstractMessage, AbstractSession, AbstractTurn, TurnConversationRead
from history_access.models.platform import message_model, primary, session_model, turn_model
from history_access.references.addresses import Address
from settings_catalog import guards
from settings_catalog.checks import active_errors, known_names

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


@register(Tags.compatibility)
def check_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """What the project says in its settings.

    E001: HISTORY_ACCESS is no dictionary, or has an unknown key. E002: CONVERSATION_URL is no address with
    {id}. E013: times without time zones. E014: NAMING_KEYS names no kind of key. E015: REFERENCE_URLS is no
    list of addresses that can be compared.
    """
    return [
        *_check_keys(),
        *_check_conversation_url(),
        *_check_reference_urls(),
        *_check_time_zones(),
        *_check_naming_keys(),
    ]


def _check_keys() -> Iterable[CheckMessage]:
    whole = getattr(settings, "HISTORY_ACCESS", {})
    if not isinstance(whole, dict):
        hint = f"Write a dictionary with the keys {', '.join(sorted(KNOWN))}."
        message = f"HISTORY_ACCESS is {whole!r}, which is no dictionary."
        yield Error(message, hint=hint, id="history_access.E001")
    for key in conf.given:
        if key not in KNOWN:
            message = f"HISTORY_ACCESS has the unknown key {key!r}."
            yield Error(message, hint=known_names(key, KNOWN), id="history_access.E001")


def _check_conversation_url() -> Iterable[CheckMessage]:
    url: object = conf.conversation_url
    if url is None or (isinstance(url, str) and "{id}" in url):
        return
    hint = 'Write it like "https://chat.example/conversations/{id}", or leave it out.'
    message = f"HISTORY_ACCESS['CONVERSATION_URL'] is {url!r}, which is no address with {{id}} in it."
    yield Error(message, hint=hint, id="history_access.E002")


def _check_reference_urls() -> Iterable[CheckMessage]:
    given: object = conf.given.get("REFERENCE_URLS")
    if given is None:
        return
    hint = 'Write a list like ["https://chat.example/agents/{agent}/conversations/{id}"], or leave it out.'
    if not isinstance(given, list | tuple) or not given:
        message = f"HISTORY_ACCESS['REFERENCE_URLS'] is {given!r}, which is no list of addresses."
        yield Error(message, hint=hint, id="history_access.E015")
        return
    for pattern in given:
        try:
            Address.declared(pattern)
        except (TypeError, ValueError, AttributeError) as error:
            message = f"HISTORY_ACCESS['REFERENCE_URLS'] has {pattern!r}, which cannot be compared: {error}."
            yield Error(message, hint=hint, id="history_access.E015")


def _check_time_zones() -> Iterable[CheckMessage]:
    if not settings.USE_TZ:
        message = "USE_TZ is off: times of the record and of conversations would not be moments."
        yield Error(message, hint="Set USE_TZ = True.", id="history_access.E013")


def _check_naming_keys() -> Iterable[CheckMessage]:
    if unknown_naming_keys():
        unknown = unknown_naming_keys()
        message = f"HISTORY_ACCESS['NAMING_KEYS'] has {unknown}, which an erasure would pass over."
        hint = f"Write a tuple of {' and '.join(map(repr, NAMING))}."
        yield Error(message, hint=hint, id="history_access.E014")


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


@register(Tags.security)
def check_authority(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """E007: the authority is not named, cannot be loaded, does not answer the port, or names those who are
    active by a column that people do not have.
    """
    path = conf.given.get("AUTHORITY")
    if path is None:
        return [_authority_error("is not set")]
    try:
        found = import_string(path)()
    except Exception as error:  # whatever the platform's own module raises is the finding
        return [_authority_error(f"is {path!r}, which cannot be loaded: {error}")]
    if not isinstance(found, Authority):
        return [_authority_error(f"is {path!r}, which is no Authority")]
    return active_errors("HISTORY_ACCESS['AUTHORITY']", found, "history_access.E007")


def _authority_error(fault: str) -> CheckMessage:
    hint = "Name a subclass of history_access.authority.Authority that takes no arguments."
    return Error(f"HISTORY_ACCESS['AUTHORITY'] {fault}.", hint=hint, id="history_access.E007")


@register(Tags.database)
def check_guards(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """E008: a table can be altered that must not be, because a guard is missing (`record-append-only`)."""
    configs = [config for config in apps.get_app_configs() if isinstance(config, guards.GuardedConfig)]
    ours = [config for config in configs if config.name.startswith("history_access")]
    wanted = [guard for config in ours for guard in config.guards()]
    return guards.missing_errors(databases, wanted, "history_access.E008")


@register(Tags.database)
def check_one_database(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """E009: sessions and the record live in two databases, so that no transaction covers both."""
    try:
        sessions, record = primary(), router.db_for_write(TurnConversationRead)
    except LookupError:
        return []  # no model is named, which another check says
    if sessions == record:
        return []
    hint = "Route both to one database: a read and its record are one transaction."
    message = f"Sessions are in the database {sessions!r} and the record is in {record!r}."
    return [Error(message, hint=hint, id="history_access.E009")]


@register(Tags.database)
def check_sqlite(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """W001: SQLite begins transactions late, so that reads at the same time fail instead of waiting."""
    return [
        CheckWarning(
            f"The SQLite database {alias!r} does not begin its transactions with IMMEDIATE.",
            hint=f'Put "OPTIONS": {{"transaction_mode": "IMMEDIATE"}} into DATABASES[{alias!r}].',
            id="history_access.W001",
        )
        for alias in databases or ()
        if connections[alias].vendor == "sqlite"
        and connections[alias].settings_dict["OPTIONS"].get("transaction_mode") != "IMMEDIATE"
    ]
