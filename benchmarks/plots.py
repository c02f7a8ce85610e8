"""Draws how times grow, as SVG that is readable on a light and on a dark page."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from benchmarks.works import (
    COUNTED,
    EVERY_ROW,
    FLOOR,
    OFFSET,
    ORM,
    PRODUCT,
    WALKED,
    WHOLE,
    listing,
    page_of,
    reading,
)

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 800, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 570, 44, 310
_STYLE = """
  text { fill: #3a444b; font: 13px system-ui, sans-serif }
  .title { font-weight: 600 }
  .grid { stroke: #d9dfe2; stroke-width: 1 }
  .line { fill: none; stroke-width: 2.2 }
  .lead { stroke-width: 1 }
  .c0 { --c: #0b7a4b } .c1 { --c: #6b7780 } .c2 { --c: #b3541e } .c3 { --c: #3566b8 } .c4 { --c: #8a3fa0 }
  @media (prefers-color-scheme: dark) {
    text { fill: #d5dde2 }
    .grid { stroke: #3a444b }
    .c0 { --c: #4cc38a } .c1 { --c: #a3afb7 } .c2 { --c: #e8935c } .c3 { --c: #82aaf0 } .c4 { --c: #cf8fe3 }
  }
  .c0, .c1, .c2, .c3, .c4 { stroke: var(--c) }
  text.c0, text.c1, text.c2, text.c3, text.c4 { fill: var(--c); stroke: none }
  circle { fill: var(--c); stroke: none }
"""


@dataclass(frozen=True, kw_only=True)
class Plot:
    """One drawing: `series` by the name of their shape, each a list of (x, milliseconds)."""

    file: str
    title: str
    across: str
    series: Mapping[str, Points]

    def svg(self) -> str:
        """The drawing; both axes are logarithmic."""
        points = [point for series in self.series.values() for point in series]
        x = _Scale([x for x, _ in points], _LEFT, _RIGHT)
        y = _Scale([y for _, y in points], _BOTTOM, _TOP, decades=True)
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
                f'aria-label="{escape(self.title)}">',
                f"<style>{_STYLE}</style>",
                f'<text class="title" x="{_LEFT}" y="22">{escape(self.title)}</text>',
                *self._grid(x, y),
                *self._lines(x, y),
                *self._labels(y),
                "</svg>",
                "",
            ]
        )

    def _grid(self, x: "_Scale", y: "_Scale") -> Iterator[str]:
        for value in y.decades():
            at = y.place(value)
            yield f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
            yield f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{value:,.10g} ms</text>'
        for value in sorted({one for series in self.series.values() for one, _ in series}):
            at = x.place(value)
            yield f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{_BOTTOM}"/>'
            yield f'<text x="{at:.1f}" y="{_BOTTOM + 20}" text-anchor="middle">{value:,.0f}</text>'
        middle = (_LEFT + _RIGHT) / 2
        yield f'<text x="{middle}" y="{_BOTTOM + 42}" text-anchor="middle">{escape(self.across)}</text>'

    def _lines(self, x: "_Scale", y: "_Scale") -> Iterator[str]:
        for nth, series in enumerate(self.series.values()):
            places = [(x.place(one), y.place(value)) for one, value in series]
            path = " ".join(f"{one:.1f},{value:.1f}" for one, value in places)
            yield f'<polyline class="line c{nth}" points="{path}"/>'
            for one, value in places:
                yield f'<circle class="c{nth}" cx="{one:.1f}" cy="{value:.1f}" r="3.4"/>'

    def _labels(self, y: "_Scale") -> Iterator[str]:
        """Each series is named where it ends; names that would overlap are moved apart."""
        ends = sorted(
            (y.place(series[-1][1]), nth, name) for nth, (name, series) in enumerate(self.series.items())
        )
        places = _apart([at for at, _, _ in ends], least=17)
        for (at, nth, name), moved in zip(ends, places, strict=True):
            line = f'x1="{_RIGHT + 6}" x2="{_RIGHT + 18}" y1="{at:.1f}" y2="{moved:.1f}"'
            yield f'<line class="lead c{nth}" {line}/>'
            yield f'<text class="c{nth}" x="{_RIGHT + 22}" y="{moved + 4:.1f}">{escape(name)}</text>'


class _Scale:
    """A logarithmic scale."""

    def __init__(self, values: Sequence[float], begins: float, ends: float, *, decades: bool = False) -> None:
        low, high = math.log10(min(values)), math.log10(max(values))
        self.low, self.high = (math.floor(low), math.ceil(high)) if decades else (low, high)
        self.begins, self.ends = begins, ends

    def place(self, value: float) -> float:
        """Where a value stands."""
        part = (math.log10(value) - self.low) / ((self.high - self.low) or 1)
        return self.begins + part * (self.ends - self.begins)

    def decades(self) -> list[float]:
        """The powers of ten on it."""
        return [10.0**power for power in range(math.floor(self.low), math.ceil(self.high) + 1)]


def _apart(places: Sequence[float], *, least: float) -> list[float]:
    """The places, in order, each at least so far from the one before, and none below the drawing."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + least) if moved else place)
    for nth in range(len(moved) - 1, -1, -1):
        lowest = _BOTTOM if nth == len(moved) - 1 else moved[nth + 1] - least
        moved[nth] = min(moved[nth], lowest)
    return moved


def plots(found: Mapping[str, Any]) -> Iterator[Plot]:
    """The three drawings of one database's times."""
    times: Any = found["times_ms"]

    def series(shapes: Sequence[str], works: Mapping[int, str]) -> dict[str, Points]:
        there = {number: times[work] for number, work in works.items() if work in times}
        return {
            shape: [(number, of[shape][0]) for number, of in there.items() if shape in of] for shape in shapes
        }

    lengths = {length: reading(length, "middle") for length in found["lengths"]}
    yield Plot(
        file="speed-length.svg",
        title="50 messages from the middle of a conversation",
        across="messages in the conversation",
        series=series((PRODUCT, FLOOR, ORM, WHOLE, EVERY_ROW), lengths),
    )
    yield Plot(
        file="speed-sessions.svg",
        title="The newest 50 conversations of an agent",
        across="conversations of the agent",
        series=series((PRODUCT, FLOOR, ORM, WALKED, COUNTED), {n: listing(n) for n in found["agents"]}),
    )
    yield Plot(
        file="speed-depth.svg",
        title=f"A page of 50 in a list of {max(found['agents']):,} conversations",
        across="number of the page",
        series=series((PRODUCT, FLOOR, OFFSET, COUNTED), {page: page_of(page) for page in found["pages"]}),
    )
