"""The project settings that this app reads, as typed lazy properties."""

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.conf import settings
from django.db.models import Model
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from settings_catalog.authority import SettingsAuthority

PREFIX = "SETTINGS_CATALOG_"
WORKSPACE_MODEL = f"{PREFIX}WORKSPACE_MODEL"
AGENT_MODEL = f"{PREFIX}AGENT_MODEL"
AUTHORITY = f"{PREFIX}AUTHORITY"
COMPILED_QUERIES = f"{PREFIX}COMPILED_QUERIES"
KNOWN = frozenset({WORKSPACE_MODEL, AGENT_MODEL, AUTHORITY, COMPILED_QUERIES})


class Conf:
    """What the project says in its settings; read at every use, so that tests can override it."""

    @property
    def workspace_model(self) -> type[Model]:
        """`SETTINGS_CATALOG_WORKSPACE_MODEL`, "app_label.Model"; a LookupError where it names no model."""
        return named_model(WORKSPACE_MODEL, getattr(settings, WORKSPACE_MODEL, None))

    @property
    def agent_model(self) -> type[Model]:
        """`SETTINGS_CATALOG_AGENT_MODEL`, "app_label.Model"; its rows have a `workspace_id`."""
        return named_model(AGENT_MODEL, getattr(settings, AGENT_MODEL, None))

    @property
    def authority(self) -> "SettingsAuthority":
        """`SETTINGS_CATALOG_AUTHORITY`, a dotted path; without it nobody may set workspaces and agents."""
        from settings_catalog.authority import Nobody

        path = getattr(settings, AUTHORITY, None)
        authority: SettingsAuthority = import_string(path)() if path else Nobody()
        return authority

    @property
    def compiled_queries(self) -> bool:
        """`SETTINGS_CATALOG_COMPILED_QUERIES`: whether SQL is kept between calls (True); False is slower."""
        return getattr(settings, COMPILED_QUERIES, True) is True


def named_model(setting: str, label: Any) -> type[Model]:
    """The model that a setting names; a LookupError that shows what it says instead of one."""
    if label is None:
        raise LookupError(f"{setting} is not set")
    try:
        return apps.get_model(label)
    except (AttributeError, LookupError, TypeError, ValueError):  # it may be anything
        raise LookupError(f"{setting} is {label!r}, which names no model") from None


conf = Conf()
