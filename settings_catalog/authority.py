"""Who may change settings: the port that a platform answers."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from django.contrib.auth import get_backends, get_user_model
from django.core.exceptions import ValidationError
from django.db import router
from django.db.models import Q

from settings_catalog.places import Level, Place

PLATFORM_PERMISSION = "settings_catalog.change_platform_settings"
WORKSPACE_PERMISSION = "settings:write"


class SettingsAuthority(ABC):
    """What a platform answers about its own people (named by `SETTINGS_CATALOG_AUTHORITY`)."""

    active: ClassVar[Q] = Q(is_active=True)
    """Which rows of the user model may act at all."""

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
    key: Any = getattr(person, "pk", None)
    fresh = people.filter(authority.active, pk=key).first()
    if fresh is None:
        return permission
    if place.level is Level.PLATFORM:
        return None if has_django_permission(fresh, PLATFORM_PERMISSION) else permission
    assert place.workspace_id is not None  # noqa: S101
    try:
        may_write = authority.may_write_settings(fresh, place.workspace_id)
    except (ValueError, ValidationError):  # a stored key that is none of this platform's
        may_write = False
    return None if may_write else permission


def has_django_permission(person: Any, permission: str) -> bool:
    """Whether a person, just read from the primary database, holds one of Django's permissions now.

    Every authentication backend is asked, as by `person.has_perm`. Django's own would read where the host's
    router sends reads, to a replica perhaps, which may not know yet that a right was lost.
    """
    if not hasattr(person, "has_perm"):  # a user model without Django's permissions
        return False
    _remember_permissions(person)
    return bool(person.has_perm(permission))


def _remember_permissions(person: Any) -> None:
    """Let Django's backend find on the object what it would ask for, read from the primary database."""
    from django.contrib.auth.backends import ModelBackend
    from django.contrib.auth.models import PermissionsMixin

    if not isinstance(person, PermissionsMixin) or person.is_superuser:
        return
    backend: Any = next((one for one in get_backends() if isinstance(one, ModelBackend)), None)
    if backend is None:
        return
    using = router.db_for_write(type(person))
    for kind in ("user", "group"):
        held = getattr(backend, f"_get_{kind}_permissions")(person).using(using).order_by()
        names = held.values_list("content_type__app_label", "codename")
        setattr(person, f"_{kind}_perm_cache", {f"{label}.{name}" for label, name in names})
