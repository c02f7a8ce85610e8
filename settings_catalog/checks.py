"""System checks: what a project must have for settings to hold."""

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.utils.module_loading import import_string

from settings_catalog import guards
from settings_catalog.authority import SettingsAuthority
from settings_catalog.conf import (
    AGENT_MODEL,
    AUTHORITY,
    COMPILED_QUERIES,
    KNOWN,
    PREFIX,
    WORKSPACE_MODEL,
    conf,
)

_AUTHORITY_HINT = (
    f"Set {AUTHORITY} to the path of a subclass of settings_catalog.authority.SettingsAuthority "
    "that takes no arguments."
)


@register(Tags.compatibility)
def check_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """E005: a setting that begins like ours, and is none of ours. E006: one that must be True or False, and
    is neither.
    """
    errors: list[CheckMessage] = [
        Error(f"{name} is no setting.", hint=known_names(name, KNOWN), id="settings_catalog.E005")
        for name in dir(settings)
        if name.startswith(PREFIX) and name not in KNOWN
    ]
    found = getattr(settings, COMPILED_QUERIES, True)
    if not isinstance(found, bool):
        hint = "Leave it out, or set it to False where every query is to be built anew."
        message = f"{COMPILED_QUERIES} is {found!r}, which is neither True nor False."
        errors.append(Error(message, hint=hint, id="settings_catalog.E006"))
    return errors


def known_names(name: object, known: Iterable[str]) -> str:
    """A hint on a name that is unknown: the known one that looks like it first, then all of them."""
    alike = get_close_matches(str(name), sorted(known), n=1)
    meant = f"Did you mean {alike[0]}? " if alike else ""
    return f"{meant}Known are {', '.join(sorted(known))}."


@register(Tags.models)
def check_models(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """E001: a model setting is missing or names no model. E002: the agent model has no `workspace_id`."""
    errors = [
        *_check_model(WORKSPACE_MODEL, lambda: conf.workspace_model),
        *_check_model(AGENT_MODEL, lambda: conf.agent_model),
    ]
    return errors or _check_agent_workspace()


def _check_model(name: str, load: Callable[[], object]) -> list[CheckMessage]:
    try:
        load()
    except LookupError as error:
        hint = f'Set {name} = "app_label.Model" to a model of an installed app.'
        return [Error(f"{error}.", hint=hint, id="settings_catalog.E001")]
    return []


def _check_agent_workspace() -> list[CheckMessage]:
    model = conf.agent_model
    names = {field.attname for field in model._meta.concrete_fields}
    if "workspace_id" in names:
        return []
    hint = (
        "Give it a foreign key `workspace`, or a field `workspace_id` over the column that you have. Where "
        f"another field has that column, name in {AGENT_MODEL} a second model over the same table, with "
        "managed = False."
    )
    return [
        Error(f"{model._meta.label} has no workspace_id.", obj=model, hint=hint, id="settings_catalog.E002")
    ]


@register(Tags.security)
def check_authority(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """E003: the authority cannot be loaded, does not answer the port, or names those who are active by a
    column that people do not have. W001: none is named, so that nobody may change the settings of workspaces
    and agents.
    """
    path = getattr(settings, AUTHORITY, None)
    if path is None:
        message = f"{AUTHORITY} is not set: nobody may change the settings of workspaces and agents."
        return [CheckWarning(message, hint=_AUTHORITY_HINT, id="settings_catalog.W001")]
    try:
        found = import_string(path)()
    except Exception as error:  # whatever the platform's own module raises is the finding
        return [_authority_error(f"{AUTHORITY} is {path!r}, which cannot be loaded: {error}")]
    if isinstance(found, SettingsAuthority):
        return active_errors(AUTHORITY, found, "settings_catalog.E003")
    return [_authority_error(f"{AUTHORITY} is {path!r}, which is no SettingsAuthority.")]


def active_errors(setting: str, authority: SettingsAuthority, error_id: str) -> list[CheckMessage]:
    """An error where what an authority says of active people cannot be asked of the user model."""
    people = get_user_model()
    try:
        people._base_manager.filter(authority.active)
    except Exception as error:  # a FieldError, or whatever the answer ran into
        message = f"{setting}: its `active` cannot be asked of {people._meta.label}: {error}"
        hint = "Say in `active` which rows of your user model may act, as a Q of its columns."
        return [Error(message, hint=hint, id=error_id)]
    return []


def _authority_error(message: str) -> CheckMessage:
    return Error(message, hint=_AUTHORITY_HINT, id="settings_catalog.E003")


@register(Tags.database)
def check_guards(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """E004: the change log can be altered, because a guard is missing, switched off or altered."""
    config = apps.get_app_config("settings_catalog")
    assert isinstance(config, guards.GuardedConfig)  # noqa: S101
    return guards.missing_errors(databases, config.guards(), "settings_catalog.E004")
