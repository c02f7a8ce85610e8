"""Writes `docs/speed.md` and its drawings: `make speed`.

From what `make bench SIZE=medium`, `make growth` and `make soak` found.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("speed.md")
RESULTS = PAGE.parent.parent / "benchmarks" / "results"
RESULT, GROWTH, SOAK = (RESULTS / f"{name}.json" for name in ("medium", "growth", "soak"))

_LEAD = """# Speed

Made by `make speed` from the results of one run for each database; a test fails where the two differ.

What counts here are ratios within one run. Milliseconds are the machine's, and a busy machine's are larger.

- **The floor** is the best SQL that we could write by hand for the same work, with the database's own
  driver: one durable transaction; turn, reader and setting looked up; visibility in the statement that
  fetches the text; the page cut in SQL; reads and names recorded; the setting looked at again; COMMIT. On
  PostgreSQL that is five round trips.
- **The product** is `toolset.call(...)` as an agent's loop calls it, to the dictionary that goes to the
  model.
- **The plain ORM** is the same work, record included, as somebody writes it with model instances.
- **The other shapes** are how other systems keep and page conversations. They record nothing and look at no
  setting.
"""

_REPEAT = """## How to repeat it

```
make bench                # a small corpus, some minutes on two cores
make bench SIZE=medium    # the one below, some ten minutes
make bench SIZE=full      # 200,000 sessions, 4 million messages: half an hour, 8 GB of disk
make bench ARGUMENTS="small 31 sqlite"    # another number of rounds, one database only
make growth               # ten times as much of everything, some five minutes
make soak                 # ten minutes of calls
make speed                # this page, from benchmarks/results/*.json
```

It needs nothing but what `make test` needs: PostgreSQL comes from a pip package and is gone afterwards. The
corpus is made by a fixed seed, with the product's own migrations and indexes; with `SIZE=full` SQLite has
the medium one. PostgreSQL looks at its tables once (`VACUUM ANALYZE`), SQLite never does. Every shape is
warmed up, then measured in rounds, each
in a shuffled order of its own: a block of calls a round, of which the median counts. Shown is the median of
the rounds, and between what the middle eight of ten lie. Ratios are taken round by round. A test runs every
shape once and asks that all give the same rows.
"""

_NOT = """## What is not measured

- A network between the application and its database: each statement that the floor saves would count for
  more.
- Memory that is too small: everything here fits.
- Connections: all shapes keep one. The product's has `prepare_threshold` set in `OPTIONS`, as an operator
  sets it who has no connection pooler in between.
- Writing conversations; who waits while the record is erased or pruned (`make bench-erasing`), and the pages
  of auditors (`make bench-audit`), which have figures of their own.
- Conversations with very long messages, or with text that is not ASCII.
"""


def main() -> None:
    """Write the page and its drawings anew."""
    for name, text in files().items():
        PAGE.with_name(name).write_text(text, encoding="utf-8")


def files() -> dict[str, str]:
    """What should stand in this folder: the page and the drawings, by the names of their files."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "demo.settings")
    django.setup()
    from benchmarks.plots import plots

    result = json.loads(RESULT.read_text(encoding="utf-8"))
    drawings = {plot.file: plot.svg() for plot in plots(_first(result))}
    return {PAGE.name: _page(result, list(drawings)), **drawings}


def _first(result: dict[str, Any]) -> dict[str, Any]:
    """What is drawn: PostgreSQL."""
    return next(iter(result["databases"].values()))


def _page(result: dict[str, Any], drawings: list[str]) -> str:
    from benchmarks.table import goals, shapes

    parts = [_LEAD, _circumstances(result)]
    parts += [f"![{_words(name)}]({name})\n" for name in drawings]
    parts.append("## Goals\n")
    for name, found in result["databases"].items():
        parts += [f"### {_TITLES[name]}\n", "\n".join(goals(found)) + "\n"]
        parts += list(_together(found))
    parts += [*_grown(), *_soaked(), _REPEAT, _NOT, "## All times\n"]
    for name, found in result["databases"].items():
        parts += [f"### All times on {_TITLES[name]}\n", "\n".join(shapes(found)) + "\n"]
    return "\n".join(parts)


_VERDICTS = {True: "reached", False: "**not reached**"}
_TITLES = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}


def _words(file: str) -> str:
    what = {
        "length": "length of a conversation",
        "sessions": "number of conversations",
        "depth": "page depth",
    }
    return f"Time by {what[file.removesuffix('.svg').partition('-')[2]]}, on PostgreSQL"


def _circumstances(result: dict[str, Any]) -> str:
    machine = result["machine"]
    lines = [
        f"Measured on {result['day']}: Python {machine['python']}, Django {machine['django']}, psycopg "
        f"{machine['psycopg']}, {machine['cores']} cores, {result['rounds']} rounds.",
        "",
        "| | sessions | messages | largest agent | version | a durable commit | load while measuring |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in result["databases"].items():
        facts = found["facts"]
        load = " to ".join(f"{one:.1f}" for one in found["load_while_measuring"])
        lines.append(
            f"| {_TITLES[name]} | {found['sessions']:,} | {found['messages']:,} | {found['largest_agent']:,} "
            f"| {facts['version']} | {found['commit_ms']:.2f} ms | {load} |"
        )
    return "\n".join([*lines, ""])


def _together(found: dict[str, Any]) -> Iterator[str]:
    if found["calls_a_second"]:
        yield "Eight clients at once, calls a second:\n"
        rows = [
            f"| {work} | {of['product']:,.0f} | {of['floor']:,.0f} |"
            for work, of in found["calls_a_second"].items()
        ]
        yield "\n".join(["| | product | floor |", "|---|---|---|", *rows]) + "\n"


def _grown() -> Iterator[str]:
    """What ten times as much of everything costs."""
    result = json.loads(GROWTH.read_text(encoding="utf-8"))
    times, reads, sessions = result["times"], result["reads"], result["sessions"]
    yield "## Ten times as much\n"
    yield (
        f"On PostgreSQL, side by side in one run of {result['rounds']} rounds: a record of {reads:,} reads "
        f"and an agent of {sessions:,} conversations, and a record of {times * reads:,} and an agent of "
        f"{times * sessions:,}. At most 1.3 times as long is wanted.\n"
    )
    rows = [
        f"| {name} | {one['small_ms']:.2f} | {one['large_ms']:.2f} | {one['ratio'][0]:.2f} "
        f"| {one['ratio'][1]:.2f}–{one['ratio'][2]:.2f} | {_VERDICTS[one['reached']]} |"
        for name, one in result["jobs"].items()
    ]
    yield "\n".join(["| | ms | tenfold, ms | ratio | spread | |", "|---|---|---|---|---|---|", *rows]) + "\n"


def _soaked() -> Iterator[str]:
    """What a day of calls leaves behind."""
    result = json.loads(SOAK.read_text(encoding="utf-8"))
    counts, settled, last = result["counts"], result["settled"], result["last"]
    changes, turns = counts["rights and settings changed"], counts["turns begun and ended"]
    yield "## A day of calls in ten minutes\n"
    yield (
        f"Four clients list and read without a pause for {result['seconds']} seconds. Meanwhile rights and a "
        f"setting change {changes:,} times, {turns:,} turns begin and end in conversations that are opened "
        f"for them, and the record is sealed {counts['seals']:,} times: {last['calls']:,} calls and changes "
        f"in all, {len(result['failed'])} failures.\n"
    )
    rows = [
        f"| {words} | {settled[name]:,} | {last[name]:,} |"
        for words, name in (
            ("memory of the process, MB", "memory_mb"),
            ("statements kept", "kept_statements"),
            ("connections", "connections"),
        )
    ]
    yield "\n".join(["| | after a fifth of the time | at the end |", "|---|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    main()
