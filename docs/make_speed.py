"""Writes `docs/speed.md` and its drawings from what `make bench SIZE=medium` found: `make speed`."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("speed.md")
RESULT = PAGE.parent.parent / "benchmarks" / "results" / "medium.json"

_LEAD = """# Speed

Made by `make speed` from the results of one run; a test fails where the page and the results differ.

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
make speed                # this page, from benchmarks/results/medium.json
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
- Writing conversations, sealing the record (`make bench-erasing` measures who waits for erasing and
  pruning), and the pages of auditors (`make bench-audit`).
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
    parts += [_REPEAT, _NOT, "## All times\n"]
    for name, found in result["databases"].items():
        parts += [f"### All times on {_TITLES[name]}\n", "\n".join(shapes(found)) + "\n"]
    return "\n".join(parts)


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


if __name__ == "__main__":
    main()
