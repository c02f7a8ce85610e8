"""The one place that writes settings, and the log of every change."""

from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import IntegrityError, router, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from settings_catalog.authority import missing_permission
from settings_catalog.catalog import Entry, get
from settings_catalog.conf import conf
from settings_catalog.keys import is_storable, key_text
from settings_catalog.models import SettingChange, SettingValue
from settings_catalog.places import Level, Place
from settings_catalog.resolver import Resolution, resolve_at

MAX_WHY = 1000


class Unchanged:
    """Stands for "leave it as it is" where None means "clear it"."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
Asked = str | None | Unchanged


class SettingError(Exception):
    """A change that was refused; nothing was written.

    `field` is the argument at fault (`value`, `ceiling`, `why`, `by`, `place`), `message` says the rule.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class SettingForbiddenError(SettingError):
    """The person lacks `permission` for this place (`catalog-who`)."""

    def __init__(self, permission: str, place: Place) -> None:
        super().__init__("by", f"the permission {permission} is missing for {place.phrase}")
        self.permission = permission


@dataclass(frozen=True)
class _State:
    value: str | None = None
    ceiling: str | None = None


def set_value(
    key: str,
    *,
    agent: Any = None,
    workspace: Any = None,
    platform: bool = False,
    value: Asked = UNCHANGED,
    ceiling: Asked = UNCHANGED,
    by: Any,
    why: str,
) -> Resolution:
    """Change what one place asks for or allows, log it, and return what holds there now.

    None clears a value or a ceiling. Name one place. A SettingForbiddenError where `by` lacks the
    permission (`catalog-who`), a SettingError where an argument is wrong; then nothing is written.
    """
    return set_at(
        key,
        _place(agent=agent, workspace=workspace, platform=platform),
        value=value,
        ceiling=ceiling,
        by=by,
        why=why,
    )


def set_at(
    key: str, place: Place, *, value: Asked = UNCHANGED, ceiling: Asked = UNCHANGED, by: Any, why: str
) -> Resolution:
    """Like `set_value`, for a place given by its keys; the place itself must exist."""
    entry = get(key)
    _check_words(entry, place, value, ceiling, why)
    _check_place_and_permission(place, by, clears=value is None and ceiling is None)
    with transaction.atomic(using=router.db_for_write(SettingValue)):
        before = _locked(entry, place)
        after = _State(
            before.value if isinstance(value, Unchanged) else value,
            before.ceiling if isinstance(ceiling, Unchanged) else ceiling,
        )
        if after != before:
            _write(entry, place, before, after)
            _log(entry, place, before, after, by, why)
        return resolve_at(key, place)


def _place(*, agent: Any, workspace: Any, platform: bool) -> Place:
    try:
        return Place.of(agent=agent, workspace=workspace, platform=platform)
    except ValueError as error:
        raise SettingError("place", str(error)) from None


def _check_words(entry: Entry, place: Place, value: Asked, ceiling: Asked, why: str) -> None:
    for field, asked in (("value", value), ("ceiling", ceiling)):
        if asked is not None and not isinstance(asked, Unchanged) and not entry.knows(asked):
            raise SettingError(field, f"{asked!r} is not one of {', '.join(entry.values)}")
    if place.level is Level.AGENT and isinstance(ceiling, str):
        raise SettingError("ceiling", "an agent has no ceiling; set one on its workspace or the platform")
    if not isinstance(why, str) or not why.strip():
        raise SettingError("why", "say why, for those who read the change log later")
    if len(why) > MAX_WHY or not is_storable(why):
        raise SettingError("why", f"at most {MAX_WHY} characters of plain text")


def _check_place_and_permission(place: Place, by: Any, *, clears: bool) -> None:
    """Refuse whoever lacks the permission, and a place that is not there.

    What a workspace or an agent that is gone has left behind may be cleared by the platform's operator.
    """
    left_behind = clears and not _exists(place)
    asked = Place.platform() if left_behind else place
    permission = missing_permission(by, asked, conf.authority)
    if permission is not None:
        raise SettingForbiddenError(permission, asked)
    if not left_behind and not _exists(place):
        raise SettingError("place", f"there is no such {place.level.value}")


def _exists(place: Place) -> bool:
    """Whether a place is there, and an agent is that workspace's."""
    if place.level is Level.PLATFORM:
        return True
    if place.level is Level.WORKSPACE:
        model: Any = conf.workspace_model
        keys = {"pk": place.workspace_id}
    else:
        model = conf.agent_model
        keys = {"pk": place.agent_id, "workspace_id": place.workspace_id}
    try:
        rows = model._base_manager.using(router.db_for_write(model))
        return bool(rows.filter(**keys).exists())
    except (ValueError, ValidationError):  # a key that is none of this platform's
        return False


def _rows(entry: Entry, place: Place) -> "QuerySet[SettingValue]":
    using = router.db_for_write(SettingValue)
    return SettingValue.objects.using(using).filter(entry=entry.key, **place._asdict())


def _locked(entry: Entry, place: Place) -> _State:
    """What stands at a place, with its row locked until the transaction ends.

    A write that changes nothing takes the lock on both databases; SQLite knows no SELECT FOR UPDATE.
    """
    rows = _rows(entry, place)
    if rows.update(entry=F("entry")):
        row = rows.get()
        return _State(row.value, row.ceiling)
    return _State()


def _write(entry: Entry, place: Place, before: _State, after: _State) -> None:
    """Make `before` into `after`: a row that stood is locked; where none stood, none may have come since."""
    rows = _rows(entry, place)
    if after == _State():
        rows.delete()
    elif before != _State():
        rows.update(value=after.value, ceiling=after.ceiling)
    else:
        try:
            SettingValue.objects.using(rows.db).create(
                entry=entry.key, **place._asdict(), value=after.value, ceiling=after.ceiling
            )
        except IntegrityError:
            raise SettingError("place", "somebody else set this at the same moment; look again") from None


def _log(entry: Entry, place: Place, before: _State, after: _State, by: Any, why: str) -> None:
    SettingChange.objects.using(router.db_for_write(SettingChange)).create(
        entry=entry.key,
        **place._asdict(),
        changed_at=timezone.now(),
        by_id=key_text(by.pk),
        value_before=before.value,
        value_after=after.value,
        ceiling_before=before.ceiling,
        ceiling_after=after.ceiling,
        why=why,
    )
