"""Who may change settings: the port that a platform answers."""

from abc import ABC, abstractmethod
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import router

from settings_catalog.places import Level, Place

PLATFORM_PERMISSION = "settings_catalog.change_platform_settings"
WORKSPACE_PERMISSION = "settings:write"


class SettingsAuthority(ABC):
    """What a platform answers about its own people (named by `SETTINGS_CATALOG_AUTHORITY`)."""

    @abstractmethod
    def may_write_settings(self, person: Any, workspace_id: str) -> bool:
        """Whether `person` holds `settings:write` for this workspace now, read afresh (`catalog-who`)."""


class Nobody(SettingsAuthority):
    """The answer of a project that names no authority."""

    def may_write_settings(self, person: Any, workspace_id: str) -> bool:
        """Nobody may."""
        return False


def missing_permission(person: Any, place: Place, authority: SettingsAuthority) -> str | None:
    """The permission that `person` lacks to change a setting at `place`; None where nothing is lacking.

    The person is read again: what an object remembers of its rights may be out of date (`catalog-who`).
    """
    permission = PLATFORM_PERMISSION if place.level is Level.PLATFORM else WORKSPACE_PERMISSION
    people = get_user_model()._base_manager.using(router.db_for_write(get_user_model()))
    fresh = people.filter(pk=person.pk).first()
    if fresh is None or not fresh.is_active:
        return permission
    if place.level is Level.PLATFORM:
        return None if fresh.has_perm(PLATFORM_PERMISSION) else permission
    assert place.workspace_id is not None  # noqa: S101
    try:
        may_write = authority.may_write_settings(fresh, place.workspace_id)
    except (ValueError, ValidationError):  # a stored key that is none of this platform's
        may_write = False
    return None if may_write else permission
