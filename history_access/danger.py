"""What makes an agent that may read all accounts' conversations dangerous, and what the operator chose.

Two combinations are (`danger-warned`): a webhook that starts it, whose words are a stranger's, and the right
to write files that others read. The platform is warned of them, or refuses them: then the entry's guard holds
the value at `same_account`, and the resolver says why.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db import router
from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _

from history_access.conf import WARN, conf
from history_access.entries import ALL_ACCOUNTS, HISTORY_ACCESS, SAME_ACCOUNT
from history_access.models.platform import webhooks
from settings_catalog.catalog import Lowered, Words, catalog
from settings_catalog.conf import conf as catalog_conf
from settings_catalog.keys import is_storable, key_text
from settings_catalog.models import SettingValue
from settings_catalog.places import Level, Place
from settings_catalog.resolver import Resolution, resolve_at, resolve_many

MOST_LOOKED_AT = 10_000
"""How many agents a search for dangerous ones looks at."""

_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True)
class Danger:
    """One dangerous combination: a code for programs, a warning for people, and why it may be refused.

    `choice` warns whoever may bring it about, at any place of the ladder.
    """

    code: str
    warning: Words
    choice: Words
    refusal: Words


WEBHOOK = Danger(
    code="webhook",
    warning=_(
        "A webhook starts this agent, and it may read all accounts' conversations: "
        "a stranger's words could ask for a copy of them."
    ),
    choice=_(
        "A webhook starts an agent here: with all accounts' conversations, "
        "a stranger's words could ask for a copy of them."
    ),
    refusal=_("the platform refuses all accounts to an agent that a webhook starts"),
)
SHARED_FILES = Danger(
    code="shared_files",
    warning=_(
        "This agent may read all accounts' conversations and write files that others read: "
        "one customer's words could reach another."
    ),
    choice=_(
        "An agent that reads all accounts' conversations and writes files that others read "
        "could bring one customer's words to another."
    ),
    refusal=_("the platform refuses all accounts to an agent that may write shared files"),
)

Dangers = tuple[Danger, ...]


def guard(values: Mapping[Place, str]) -> dict[Place, Lowered]:
    """Hold `all_accounts` at `same_account` where it is dangerous and the platform refuses that.

    No statement where nobody has it, or where the platform only warns; otherwise two at most.
    """
    open_ones = [place for place, value in values.items() if value == ALL_ACCOUNTS]
    if not open_ones or conf.danger == WARN:
        return {}
    return {
        place: Lowered(SAME_ACCOUNT, _and(danger.refusal for danger in found))
        for place, found in _risks(open_ones).items()
        if found
    }


def dangers_of(resolutions: Mapping[Place, Resolution]) -> dict[Place, Dangers]:
    """What is dangerous about each of these agents, as history access holds for them; two statements at most.

    Where the platform refuses a danger the value is held down, and there is none.
    """
    open_ones = [place for place, held in resolutions.items() if held.value == ALL_ACCOUNTS]
    return dict.fromkeys(resolutions, ()) | (_risks(open_ones) if open_ones else {})


def warnings_of(resolution: Resolution, value: str) -> tuple[Words, ...]:
    """What is dangerous about a value where it holds, or would be if it were chosen (`danger-warned`).

    On a workspace or the platform that is what is dangerous for any agent there, whatever it asks for
    itself. Five statements at most, none for a value that is never dangerous.
    """
    found = _dangers_of_choice(resolution.entry.key, resolution.place, value)
    if conf.danger != WARN:
        return tuple(danger.refusal for danger in found)
    if resolution.place.level is Level.AGENT and resolution.value == value:
        return tuple(danger.warning for danger in found)
    return tuple(danger.choice for danger in found)


def _dangers_of_choice(key: str, place: Place, value: str) -> Dangers:
    shared = conf.shared_files_setting
    if key == HISTORY_ACCESS.key and value == ALL_ACCOUNTS:
        writing = shared is not None and _may_hold(*shared, place)
        return (*((WEBHOOK,) if _is_webhook_at(place) else ()), *((SHARED_FILES,) if writing else ()))
    if shared is not None and key == shared[0] and value in _at_least(*shared):
        return (SHARED_FILES,) if _may_hold(HISTORY_ACCESS.key, ALL_ACCOUNTS, place) else ()
    return ()


def _may_hold(key: str, value: str, place: Place) -> bool:
    """Whether a setting is at `value` or above at a place, or an agent or a workspace below asks for it."""
    if resolve_at(key, place).allows(value):
        return True
    if place.level is Level.AGENT:
        return False
    stored = _rows(SettingValue).filter(entry=key, value__in=_at_least(key, value))
    below = stored if place.level is Level.PLATFORM else stored.filter(workspace_id=place.workspace_id)
    return below.exists()


def _at_least(key: str, value: str) -> tuple[str, ...]:
    values = catalog.get(key).values
    return values[values.index(value) :]


def _is_webhook_at(place: Place) -> bool:
    """Whether a webhook starts the agent, or any agent of the workspace or of the platform."""
    hooks = webhooks()
    if hooks is None:
        return False
    try:
        if place.level is Level.AGENT:
            hooks = hooks.filter(agent_id=place.agent_id)
        elif place.level is Level.WORKSPACE:
            agents = _rows(catalog_conf.agent_model).filter(workspace_id=place.workspace_id)
            hooks = hooks.filter(agent_id__in=agents.values("pk"))
        return hooks.exists()
    except (ValueError, ValidationError):  # a stored key that is none of this platform's
        return False


def dangerous_agents() -> Iterator[tuple[Place, Dangers]]:
    """The dangerous agents among the first `MOST_LOOKED_AT`, as they are found."""
    for places in _agents_in_chunks():
        for place, found in dangers_of(resolve_many(HISTORY_ACCESS.key, places)).items():
            if found:
                yield place, found


def _agents_in_chunks() -> Iterator[list[Place]]:
    """The agents in the order of their keys; none where no row asks for all accounts."""
    stored = SettingValue.objects.using(router.db_for_write(SettingValue))
    if not stored.filter(entry=HISTORY_ACCESS.key, value=ALL_ACCOUNTS).exists():
        return
    agents, last = _rows(catalog_conf.agent_model).order_by("pk"), None
    for _chunk in range(MOST_LOOKED_AT // _AT_ONCE):
        after = agents if last is None else agents.filter(pk__gt=last)
        rows = list(after.values_list("workspace_id", "pk")[:_AT_ONCE])
        yield [Place.agent(*row) for row in rows]
        if len(rows) < _AT_ONCE:
            return
        last = rows[-1][1]


def _risks(places: list[Place]) -> dict[Place, Dangers]:
    """What would be dangerous about all accounts for each of these agents."""
    started, writing = _started_by_webhooks(places), _writing_shared_files(places)
    return {
        place: (
            *((WEBHOOK,) if place.agent_id in started else ()),
            *((SHARED_FILES,) if place in writing else ()),
        )
        for place in places
    }


def _started_by_webhooks(places: list[Place]) -> set[str]:
    """The keys of those agents that a webhook starts; none where the platform names no triggers."""
    hooks = webhooks()
    if hooks is None:
        return set()
    keys = [key for place in places if (key := _agent_key(place)) is not None]
    return {key_text(key) for key in hooks.filter(agent_id__in=keys).values_list("agent_id", flat=True)}


def _writing_shared_files(places: list[Place]) -> set[Place]:
    """Those agents that may write shared files; none where the platform names no setting for it."""
    if conf.shared_files_setting is None:
        return set()
    key, value = conf.shared_files_setting
    return {place for place, held in resolve_many(key, places).items() if held.allows(value)}


def _agent_key(place: Place) -> Any | None:
    """The key of a place's agent, as its table has it; None for one that is none of this platform's."""
    key: Any = place.agent_id
    try:
        return catalog_conf.agent_model._meta.pk.clean(key, None) if is_storable(key) else None
    except (ValidationError, ValueError, OverflowError):
        return None


def _rows(model: type[Model]) -> "QuerySet[Any]":
    return model._base_manager.using(router.db_for_write(model))


def _and(reasons: Iterable[Words]) -> str:
    return ", and ".join(map(str, reasons))
