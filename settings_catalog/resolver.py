"""The one place that combines the levels of a setting and says why a value holds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from django.db import router
from django.db.models import F, IntegerField, Q, QuerySet
from django.db.models.expressions import RawSQL

from settings_catalog.catalog import Choice, Entry, Lowered, get
from settings_catalog.compiled import First, Question, compiled
from settings_catalog.keys import is_storable, stored_text
from settings_catalog.models import SettingValue
from settings_catalog.places import Level, Place


@dataclass(frozen=True, kw_only=True)
class Step:
    """One rung of the ladder as it was read: what its row asks for and allows, None where it says nothing."""

    place: Place
    value: str | None
    ceiling: str | None


@dataclass(frozen=True, kw_only=True)
class Hold:
    """What held a value down: a ceiling at `by`, or the entry's guard (None); `reason` follows "because"."""

    by: Level | None
    value: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """Which value holds and why (`catalog-explains`); `str()` says it in one sentence for an operator.

    `asked_at` is None where nothing asks and the default counts. `held_by` is None where nothing was held
    down; `limit` is what would hold down anything higher, None where every choice is allowed. `steps` run
    from the nearest place to the platform. `faults` are sentences about stored values that the entry does
    not know. `changes` is how many changes of these steps were logged; None where no row stands, or where
    several places were resolved together.
    """

    entry: Entry
    place: Place
    value: str
    asked: str
    asked_at: Level | None
    held_by: Hold | None
    limit: Hold | None
    steps: tuple[Step, ...]
    faults: tuple[str, ...]
    changes: int | None = None

    @property
    def choice(self) -> Choice:
        """The effective value with its words."""
        return self.entry.choice(self.value)

    def compiled_as(self) -> str:
        """What of it shapes a query."""
        return self.value

    def allows(self, value: str) -> bool:
        """Whether the effective value is at least `value`."""
        return self.entry.rank(self.value) >= self.entry.rank(value)

    def unchanged_since(self, earlier: "Resolution") -> bool:
        """Whether the same holds as at an earlier look, and has held all the time in between.

        A change that was taken back again has left its trace in the log (`reach-now`).
        """
        return (self.value, self.changes) == (earlier.value, earlier.changes)

    def __str__(self) -> str:
        asked = f"Asked for {self.asked} on the {self.asked_at.value}" if self.asked_at else ""
        asked = asked or f"Nothing is asked for, which means {self.asked}"
        if not self.entry.knows(self.asked):
            asked += f", which is unknown and counts as {self.entry.least}"
        if self.held_by is not None:
            return f"{asked}; held at {self.value}, because {self.held_by.reason}."
        if self.limit is not None:
            return f"{asked}; {self.limit.reason}."
        return f"{asked}; nothing holds it down."


Row = tuple[str | None, str | None]
Resolutions = dict[Place, Resolution]

_COLUMNS = ("level", "workspace_id", "agent_id", "value", "ceiling")


def resolve(key: str, agent: Any = None, *, workspace: Any = None) -> Resolution:
    """The value of a setting for an agent, a workspace, or (with neither) the platform, as it holds now.

    One SQL query, never cached (`catalog-fresh`). A CatalogError where no entry has this key.
    """
    platform = agent is None and workspace is None
    return resolve_at(key, Place.of(agent=agent, workspace=workspace, platform=platform))


def resolve_at(key: str, place: Place) -> Resolution:
    """Like `resolve`, for a place given by its keys."""
    return resolve_each([key], place)[0]


def resolve_each(keys: Sequence[str], place: Place, *, after: First | None = None) -> tuple[Resolution, ...]:
    """The values of several settings at one place, in this order, with one query for all of them.

    `after` is written before, where the database can in the same statement.
    """
    entries = [get(key) for key in keys]
    workspace, agent = _storable(place.workspace_id), _storable(place.agent_id)
    stored = _ladder.after(after, workspace, agent, keys=tuple(keys))
    return tuple(
        _resolved(entry, place, [row for row in stored if row["entry"] == entry.key]) for entry in entries
    )


def _resolved(entry: Entry, place: Place, stored: Sequence[Mapping[str, Any]]) -> Resolution:
    rows = tuple([tuple([row[name] for name in _COLUMNS]) for row in stored])
    found = _combined(entry, place, rows, stored[0]["changes"] if stored else None)
    return found if entry.guard is None else _guarded(entry, {place: found})[place]


@lru_cache(maxsize=1_024)
def _combined(
    entry: Entry, place: Place, rows: tuple[tuple[Any, ...], ...], changes: int | None
) -> Resolution:
    """What rows that were just read come to: no row is remembered, only the sum of them (`catalog-fresh`)."""
    return replace(combine(entry, place, _rows(rows)), changes=changes)


def resolve_many(key: str, places: Iterable[Place]) -> Resolutions:
    """The value at each of several places, with one query for all of them, and one question to the guard."""
    entry, places = get(key), list(places)
    rows = _rows(_stored([key], places).values_list(*_COLUMNS))
    return _guarded(entry, {place: combine(entry, place, rows) for place in places})


def combine(entry: Entry, place: Place, rows: Mapping[Place, Row]) -> Resolution:
    """The rule itself (`catalog-resolve`), from the rows of the ladder; the entry's guard is not asked."""
    steps = tuple(_step(rung, rows.get(rung, (None, None))) for rung in place.ladder)
    asking = next((step for step in steps if step.value is not None), None)
    asked = asking.value if asking and asking.value is not None else entry.default
    limit = _lowest_ceiling(entry, steps)
    value, held_by = entry.choice(asked).value, None
    if limit is not None and entry.rank(limit.value) < entry.rank(value):
        value, held_by = limit.value, limit
    return Resolution(
        entry=entry,
        place=place,
        value=value,
        asked=asked,
        asked_at=asking.place.level if asking else None,
        held_by=held_by,
        limit=limit,
        steps=steps,
        faults=tuple(_faults(entry, steps)),
    )


def _stored(keys: Iterable[str], places: Iterable[Place]) -> "QuerySet[SettingValue]":
    return _values().filter(_among(places), entry__in=list(keys))


def _values() -> "QuerySet[SettingValue]":
    return SettingValue.objects.using(router.db_for_write(SettingValue))


@compiled(lambda: (router.db_for_write(SettingValue), None), literal=("keys",))
def _ladder(workspace: str | None, agent: str | None, *, keys: Sequence[str]) -> Question:
    """What stands at a place and above it for several entries; None is a key under which nothing stands."""
    place = Q(level=Level.PLATFORM)
    if workspace is not None:
        place |= Q(level=Level.WORKSPACE, workspace_id=workspace)
    if workspace is not None and agent is not None:
        place |= Q(level=Level.AGENT, workspace_id=workspace, agent_id=agent)
    logged = RawSQL(_LOGGED, (workspace, workspace, agent), output_field=IntegerField())  # noqa: S611 (ours)
    columns = {"entry": F("entry"), "changes": logged, **{name: F(name) for name in _COLUMNS}}
    return _values().filter(place, entry__in=keys), columns


_LOGGED = """(
    SELECT COUNT(*) FROM settings_catalog_settingchange
    WHERE entry = settings_catalog_settingvalue.entry AND (
        level = 'platform' OR level = 'workspace' AND workspace_id = %s
        OR level = 'agent' AND workspace_id = %s AND agent_id = %s
    )
)"""
"""How many changes of a place and those above it were logged, in the statement that reads their rows."""


def _rows(stored: Iterable[Any]) -> dict[Place, Row]:
    """What stands where; what is no text is no value of any entry."""
    return {
        Place(Level(level), stored_text(workspace), stored_text(agent)): (
            stored_text(value),
            stored_text(ceiling),
        )
        for level, workspace, agent, value, ceiling in stored
    }


def _among(places: Iterable[Place]) -> Q:
    """The rows of these places and of those above them; nothing stands under a key that nobody can store."""
    rungs = {rung for place in places for rung in place.ladder}
    workspaces = _stored_keys(rung.workspace_id for rung in rungs if rung.level is Level.WORKSPACE)
    agents = _stored_keys(rung.agent_id for rung in rungs if rung.level is Level.AGENT)
    return (
        Q(level=Level.PLATFORM)
        | Q(level=Level.WORKSPACE, workspace_id__in=workspaces)
        | Q(level=Level.AGENT, workspace_id__in=workspaces, agent_id__in=agents)
    )


def _stored_keys(keys: Iterable[str | None]) -> list[str]:
    return sorted(key for key in keys if key is not None and is_storable(key))


def _storable(key: str | None) -> str | None:
    return key if key is not None and is_storable(key) else None


def _step(place: Place, row: Row) -> Step:
    return Step(place=place, value=row[0], ceiling=row[1])


def _lowest_ceiling(entry: Entry, steps: Sequence[Step]) -> Hold | None:
    """What holds down everything above it: the lowest ceiling, and of equal ones that of the widest place."""
    found = [(step, ceiling) for step in reversed(steps) if (ceiling := _ceiling(entry, step)) is not None]
    if not found:
        return None
    step, ceiling = min(found, key=lambda pair: entry.rank(pair[1]))
    if entry.rank(ceiling) == len(entry.choices) - 1:
        return None
    reason = _ceiling_reason(entry, step, ceiling)
    return Hold(by=step.place.level, value=entry.choice(ceiling).value, reason=reason)


def _ceiling(entry: Entry, step: Step) -> str | None:
    """A place's ceiling; the platform's starts where the entry says (`catalog-closed`)."""
    if step.ceiling is None and step.place.level is Level.PLATFORM:
        return entry.starting_ceiling
    return step.ceiling


def _ceiling_reason(entry: Entry, step: Step, ceiling: str) -> str:
    if not entry.knows(ceiling):
        return f"{step.place.phrase} has the unknown ceiling {ceiling!r}, which counts as {entry.least}"
    return f"{step.place.phrase} allows nothing above {ceiling}"


def _guarded(entry: Entry, found: Resolutions) -> Resolutions:
    """What the entry's guard leaves of the values of agents: it is asked once for all of them."""
    agents = {place: held.value for place, held in found.items() if place.level is Level.AGENT}
    if entry.guard is None or not agents:
        return found
    answers = entry.guard(agents)
    lowered = {place: _lowered(found[place], answers[place]) for place in agents if place in answers}
    return found | lowered


def _lowered(held: Resolution, answer: Lowered) -> Resolution:
    """What a guard can only lower."""
    entry = held.entry
    if entry.rank(answer.value) >= entry.rank(held.value):
        return held
    value = entry.choice(answer.value).value
    return replace(held, value=value, held_by=Hold(by=None, value=value, reason=str(answer.why)))


def _faults(entry: Entry, steps: Iterable[Step]) -> Iterable[str]:
    for step in steps:
        for kind, stored in (("value", step.value), ("ceiling", step.ceiling)):
            if stored is not None and not entry.knows(stored):
                yield (
                    f"The {kind} {stored!r} on {step.place.phrase} is not one of {entry.key}'s choices "
                    f"and counts as {entry.least}."
                )
