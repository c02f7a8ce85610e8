"""The project settings that this app reads, as typed lazy properties."""

from typing import TYPE_CHECKING

from django.apps import apps
from django.conf import settings
from django.db.models import Model
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from settings_catalog.authority import SettingsAuthority


class Conf:
    """What the project says in its settings; read at every use, so that tests can override it."""

    @property
    def workspace_model(self) -> type[Model]:
        """`SETTINGS_CATALOG_WORKSPACE_MODEL`, "app_label.Model"; a LookupError where it names no model."""
        return apps.get_model(settings.SETTINGS_CATALOG_WORKSPACE_MODEL)

    @property
    def agent_model(self) -> type[Model]:
        """`SETTINGS_CATALOG_AGENT_MODEL`, "app_label.Model"; its rows have a `workspace_id`."""
        return apps.get_model(settings.SETTINGS_CATALOG_AGENT_MODEL)

    @property
    def authority(self) -> "SettingsAuthority":
        """`SETTINGS_CATALOG_AUTHORITY`, a dotted path; without it nobody may set workspaces and agents."""
        from settings_catalog.authority import Nobody

        path = getattr(settings, "SETTINGS_CATALOG_AUTHORITY", None)
        authority: SettingsAuthority = import_string(path)() if path else Nobody()
        return authority


conf = Conf()
