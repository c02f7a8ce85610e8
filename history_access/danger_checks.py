"""System checks of what is dangerous, and of the settings that say what is (`danger-warned`)."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import FieldError
from django.db import DatabaseError, router, transaction

from history_access import danger
from history_access.conf import REFUSE, WARN, conf
from history_access.entries import HISTORY_ACCESS
from history_access.models.platform import webhooks_of
from settings_catalog.catalog import catalog
from settings_catalog.models import SettingValue

MOST_NAMED = 20


@register(Tags.models)
def check_danger_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """E010: TRIGGER_MODEL is no model of triggers. E011: SHARED_FILES_SETTING names no value of another
    setting. E012: DANGER is unknown.
    """
    errors: list[CheckMessage] = []
    if conf.trigger_model is not None and not _has_webhooks(conf.trigger_model):
        hint = 'Name a model as "app_label.Model", with an agent_id, and a kind or a classmethod webhooks().'
        message = f"HISTORY_ACCESS['TRIGGER_MODEL'] is {conf.trigger_model!r}, which is no model of triggers."
        errors.append(Error(message, hint=hint, id="history_access.E010"))
    if not _is_value_of_another_setting(conf.given.get("SHARED_FILES_SETTING")):
        hint = 'Write it like ("workspace_files", "write"): a registered setting, and one of its values.'
        given = conf.given["SHARED_FILES_SETTING"]
        message = (
            f"HISTORY_ACCESS['SHARED_FILES_SETTING'] is {given!r}, which names no value of another setting."
        )
        errors.append(Error(message, hint=hint, id="history_access.E011"))
    if conf.danger not in (WARN, REFUSE):
        message = f"HISTORY_ACCESS['DANGER'] is {conf.danger!r}; until it is known, every danger is refused."
        errors.append(Error(message, hint=f"Write {WARN!r} or {REFUSE!r}.", id="history_access.E012"))
    return errors


def _has_webhooks(label: str) -> bool:
    try:
        model = apps.get_model(label)
        str(webhooks_of(model).values("agent_id").query)
    except Exception:  # a LookupError, a FieldError, or whatever the platform's own method raises
        return False
    return True


def _is_value_of_another_setting(pair: Any) -> bool:
    if pair is None:
        return True
    if not isinstance(pair, tuple | list) or [type(one) for one in pair] != [str, str]:
        return False
    key, value = pair
    return key != HISTORY_ACCESS.key and key in catalog and catalog.get(key).knows(value)


@register(Tags.database)
def check_danger(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """W002: an agent is dangerous; the first twenty are named."""
    using = router.db_for_write(SettingValue)
    if using not in (databases or ()) or conf.danger != WARN or check_danger_settings(None):
        return []
    try:
        with transaction.atomic(using=using):
            found = list(islice(danger.dangerous_agents(), MOST_NAMED + 1))
    except (DatabaseError, LookupError, FieldError):
        return []  # not migrated yet, or no model of agents is named, which another check says
    messages = [
        f"Agent {place.agent_id} of workspace {place.workspace_id}: {one.warning}"
        for place, dangers in found[:MOST_NAMED]
        for one in dangers
    ]
    if len(found) > MOST_NAMED:
        messages.append(f"There are more dangerous agents than the {MOST_NAMED} that are named.")
    return [_warning(message) for message in messages]


def _warning(message: str) -> CheckMessage:
    hint = 'Set history_access lower for it, or HISTORY_ACCESS["DANGER"] = "refuse" for the whole platform.'
    return CheckWarning(message, hint=hint, id="history_access.W002")
