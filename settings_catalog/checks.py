"""System checks: what a project must have for settings to hold."""

from collections.abc import Callable, Sequence
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.utils.module_loading import import_string

from settings_catalog import guards
from settings_catalog.authority import SettingsAuthority
from settings_catalog.conf import conf


@register(Tags.models)
def check_models(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """E001: a model setting is missing or names no model. E002: the agent model has no `workspace_id`."""
    models = {
        "SETTINGS_CATALOG_WORKSPACE_MODEL": lambda: conf.workspace_model,
        "SETTINGS_CATALOG_AGENT_MODEL": lambda: conf.agent_model,
    }
    errors = [error for name, load in models.items() for error in _check_model(name, load)]
    return errors or _check_agent_workspace()


def _check_model(name: str, load: Callable[[], object]) -> list[CheckMessage]:
    try:
        load()
    except (AttributeError, LookupError, ValueError, TypeError):
        hint = f'Set {name} = "app_label.Model" to a model of an installed app.'
        return [Error(f"{name} names no model.", hint=hint, id="settings_catalog.E001")]
    return []


def _check_agent_workspace() -> list[CheckMessage]:
    model = conf.agent_model
    names = {field.attname for field in model._meta.concrete_fields}
    if "workspace_id" in names:
        return []
    hint = "Give it a foreign key `workspace`, or a field `workspace_id` over the column that you have."
    return [
        Error(f"{model._meta.label} has no workspace_id.", obj=model, hint=hint, id="settings_catalog.E002")
    ]


@register(Tags.security)
def check_authority(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """E003: the authority cannot be loaded, or does not answer the port."""
    path = getattr(settings, "SETTINGS_CATALOG_AUTHORITY", None)
    if path is None:
        return []
    try:
        found = import_string(path)()
    except Exception as error:  # whatever the platform's own module raises is the finding
        return [_authority_error(f"SETTINGS_CATALOG_AUTHORITY {path!r} cannot be loaded: {error}")]
    if isinstance(found, SettingsAuthority):
        return []
    return [_authority_error(f"SETTINGS_CATALOG_AUTHORITY {path!r} is no SettingsAuthority.")]


def _authority_error(message: str) -> CheckMessage:
    hint = "Name a subclass of settings_catalog.authority.SettingsAuthority that takes no arguments."
    return Error(message, hint=hint, id="settings_catalog.E003")


@register(Tags.database)
def check_guards(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """E004: the change log can be altered, because a guard is missing."""
    config = apps.get_app_config("settings_catalog")
    assert isinstance(config, guards.GuardedConfig)  # noqa: S101
    return guards.missing_errors(databases, config.guards(), "settings_catalog.E004")
