"""The declared settings: each one ordered choice, frozen once the project has started."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from django.apps import apps
from django.utils.functional import Promise

from settings_catalog.places import Place

Words = str | Promise


class Choice(NamedTuple):
    """One value of an entry: what is stored, what people read, and what it allows."""

    value: str
    label: Words
    allows: Words


class Lowered(NamedTuple):
    """A guard's answer: the value that may hold instead, and why."""

    value: str
    why: Words


Guard = Callable[[Mapping[Place, str]], Mapping[Place, Lowered]]


class CatalogError(Exception):
    """A setting is declared wrongly, twice, too late, or not at all."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """One ordered choice, least first (`catalog-ordered`); each is declared once and equal to itself alone.

    `default` is what is asked for where no row asks. `starting_ceiling` is the platform's ceiling until an
    operator sets one; None holds nothing down. `guard` is given agents, each with the value that would
    hold, and answers which of them it lowers: in a number of statements that does not grow with them.
    A CatalogError where the values repeat, or where the default or the ceiling is not among them.
    """

    key: str
    title: Words
    help: Words
    choices: tuple[Choice, ...]
    default: str
    starting_ceiling: str | None
    guard: Guard | None = None

    def __post_init__(self) -> None:
        values = self.values
        if not values:
            raise CatalogError(f"{self.key}: a setting needs at least one choice")
        if len(set(values)) != len(values):
            raise CatalogError(f"{self.key}: a choice is named twice")
        for name in ("default", "starting_ceiling"):
            value = getattr(self, name)
            if value is not None and value not in values:
                raise CatalogError(f"{self.key}: {name} {value!r} is not one of its choices")

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The values, least first."""
        return tuple(choice.value for choice in self.choices)

    @property
    def least(self) -> str:
        """The value that allows least: what everything unknown counts as (`catalog-unknown-is-least`)."""
        return self.choices[0].value

    def knows(self, value: str) -> bool:
        """Whether `value` is one of the choices, to the letter."""
        return value in self.values

    def rank(self, value: str) -> int:
        """How much `value` allows, from 0; an unknown value allows the least."""
        return self.values.index(value) if self.knows(value) else 0

    def choice(self, value: str) -> Choice:
        """The choice that stands for `value`, the least one where it is unknown."""
        return self.choices[self.rank(value)]


class Catalog:
    """The entries of one project, in the order in which they were registered."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def register(self, entry: Entry) -> Entry:
        """Add an entry while the project starts (call it in `AppConfig.ready`), and return it.

        A CatalogError where its key is taken or the project has started (`catalog-ordered`).
        """
        if entry.key in self._entries:
            raise CatalogError(f"{entry.key}: a setting of this key is registered already")
        if apps.ready:
            raise CatalogError(f"{entry.key}: settings are registered in AppConfig.ready, not later")
        self._entries[entry.key] = entry
        return entry

    def get(self, key: str) -> Entry:
        """The entry of this key; a CatalogError where there is none."""
        try:
            return self._entries[key]
        except KeyError:
            raise CatalogError(f"{key}: no setting of this key is registered") from None

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __contains__(self, key: object) -> bool:
        return key in self._entries


catalog = Catalog()
register = catalog.register
get = catalog.get
