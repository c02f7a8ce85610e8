"""Takes times in shuffled blocks of one run, so that whatever the machine does meanwhile hits all alike."""

import gc
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

SEED = 7
_SECONDS, _MOST_CALLS, _FIRST_CALLS = 0.03, 40, 4

Name = tuple[str, str]
"""The work, and the shape in which it is done."""


@dataclass(frozen=True)
class Contender:
    """One way of doing some work.

    `seconds` may take the time of a call otherwise than by the clock around it.
    """

    work: str
    shape: str
    run: Callable[[], Any]
    seconds: Callable[[], float] | None = None

    @property
    def name(self) -> Name:
        """What the times go by."""
        return self.work, self.shape

    def block(self, calls: int) -> float:
        """The median seconds of so many calls in a row."""
        return statistics.median([(self.seconds or self._by_the_clock)() for _ in range(calls)])

    def _by_the_clock(self) -> float:
        began = time.perf_counter()
        self.run()
        return time.perf_counter() - began


@dataclass(frozen=True)
class Spread:
    """A median, and between what the middle eight of ten lie."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of at least one value."""
        ordered = sorted(values)
        tenth = (len(ordered) - 1) // 10
        return cls(statistics.median(ordered), ordered[tenth], ordered[-1 - tenth])


def measured(contenders: Iterable[Contender], *, rounds: int) -> dict[Name, list[float]]:
    """Seconds a call of each contender, one of each round; every round is in an order of its own."""
    contenders = list(contenders)
    if len({one.name for one in contenders}) < len(contenders):
        raise ValueError("two contenders have one name")
    calls = {one.name: _calls(one) for one in tqdm(contenders, "warming up", file=sys.stderr)}
    taken: dict[Name, list[float]] = {one.name: [] for one in contenders}
    order = random.Random(SEED)
    gc.collect()
    gc.freeze()
    for _ in tqdm(range(rounds), "rounds", file=sys.stderr):
        for one in order.sample(contenders, len(contenders)):
            taken[one.name].append(one.block(calls[one.name]))
    gc.unfreeze()
    return taken


def _calls(contender: Contender) -> int:
    """How many calls make a block that is long enough to be told from noise."""
    contender.block(_FIRST_CALLS)
    return max(1, min(_MOST_CALLS, round(_SECONDS / max(contender.block(2), 1e-6))))


def ratio(over: Sequence[float], under: Sequence[float]) -> Spread:
    """How many times longer one took than another, round by round."""
    return Spread.of([one / other for one, other in zip(over, under, strict=True)])
