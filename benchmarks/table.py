"""The results as tables of ratios: for a terminal, and as Markdown."""

from collections.abc import Iterator
from typing import Any

FLOOR = "floor"


def text(result: dict[str, Any]) -> str:
    """Everything that was measured, for a terminal."""
    lines: list[str] = []
    for name, found in result["databases"].items():
        lines += [
            "",
            f"== {name}: {found['sessions']:,} sessions, {found['messages']:,} messages; "
            f"load {found['load_while_measuring']}; a durable commit {found['commit_ms']} ms",
            "",
            f"{'':54} {'median ms':>10} {'of 10, 8 within':>19} {'to the floor':>13}",
        ]
        lines += [
            f"{work:54}"
            if shape is None
            else f"  {shape:52} {times[0]:10.3f} {_between(times):>19} {ratio:>13}"
            for work, shape, times, ratio in rows(found)
        ]
        lines += [f"{work}, calls a second: {shapes}" for work, shapes in found["calls_a_second"].items()]
        lines += ["", f"{'goal':78} {'wanted':>7} {'ratio':>8} {'spread':>17}"]
        lines += [
            f"{one['goal']:78} {one['wanted']:>7} {one['ratio']:8.2f} "
            f"{one['low']:8.2f}-{one['high']:<8.2f} {'reached' if one['reached'] else 'NOT REACHED'}"
            for one in found["goals"]
        ]
    return "\n".join(lines)


def rows(found: dict[str, Any]) -> Iterator[tuple[str, str | None, list[float], str]]:
    """(work, shape, times, ratio to the floor); a work's own line has no shape."""
    for work, shapes in found["times_ms"].items():
        yield work, None, [], ""
        for shape, times in shapes.items():
            yield work, shape, times, to_floor(shapes, shape)


def to_floor(shapes: dict[str, list[float]], shape: str) -> str:
    """How many times the floor's time a shape takes; "" where there is no floor."""
    return f"{shapes[shape][0] / shapes[FLOOR][0]:.2f}" if FLOOR in shapes else ""


def goals(found: dict[str, Any]) -> Iterator[str]:
    """The goals as rows of a Markdown table."""
    yield "| goal | wanted | found | spread | |"
    yield "|---|---|---|---|---|"
    for one in found["goals"]:
        whole = float(one["ratio"]).is_integer() and one["low"] == one["high"]
        ratio = f"{one['ratio']:.0f}" if whole else f"{one['ratio']:.2f}"
        spread = "" if whole else f"{one['low']:.2f}–{one['high']:.2f}"
        verdict = "reached" if one["reached"] else "**not reached**"
        yield f"| {one['goal']} | {one['wanted']} | {ratio} | {spread} | {verdict} |"


def shapes(found: dict[str, Any]) -> Iterator[str]:
    """All times as rows of a Markdown table."""
    yield "| work | shape | median ms | spread | to the floor |"
    yield "|---|---|---|---|---|"
    for work, shape, times, ratio in rows(found):
        if shape is not None:
            yield f"| {work} | {shape} | {times[0]:.2f} | {_between(times)} | {ratio} |"


def _between(times: list[float]) -> str:
    return f"{times[1]:.2f}–{times[2]:.2f}"
