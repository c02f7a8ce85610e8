"""Filters that the settings and their change log share."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from settings_catalog.admin.lists import KnownValues
from settings_catalog.catalog import catalog
from settings_catalog.places import Level


class SettingFilter(KnownValues):
    """Rows of one setting."""

    title = _("setting")
    parameter_name = "entry"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Every registered setting."""
        return [(entry.key, entry.title) for entry in catalog]


class LevelFilter(KnownValues):
    """Rows of one level."""

    title = _("level")
    parameter_name = "level"
    known = Level.choices
