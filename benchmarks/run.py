"""The floor, the product, the plain ORM and the shapes of others, side by side in one run.

    make bench                      PostgreSQL and SQLite, small: a few minutes
    make bench SIZE=medium          an agent with 50,000 sessions, and few messages in most
    make bench SIZE=full            200,000 sessions, 4 million messages; on SQLite the medium one
    python -m benchmarks.run [size] [rounds] [postgresql|sqlite]

What counts are the ratios of one run. The results go to `benchmarks/results/`.
"""

import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import table
from benchmarks.corpus import SIZES

RESULTS = Path(__file__).with_name("results")
DATABASES = ("postgresql", "sqlite")
SMALLER = {"full": "medium"}
"""The size for SQLite beside PostgreSQL: few keep millions of messages in one file. Alone it may have any."""


def main(arguments: list[str]) -> None:
    """Measure, write the results, and print them."""
    size, rounds, databases = _asked(arguments)
    result: dict[str, Any] = {
        "size": size,
        "rounds": rounds,
        "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {
            "python": platform.python_version(),
            "django": version("django"),
            "psycopg": version("psycopg"),
            "cores": os.cpu_count(),
            "system": platform.system(),
        },
        "databases": {},
    }
    RESULTS.mkdir(exist_ok=True)
    for name in databases:  # what the first took long to find is kept, whatever becomes of the second
        large = name == "postgresql" or len(databases) == 1
        result["databases"][name] = _measured(name, size if large else SMALLER.get(size, size), rounds)
        (RESULTS / f"{size}.json").write_text(written(result), encoding="utf-8")
    print(table.text(result))


def written(result: dict[str, Any]) -> str:
    """The results as JSON, in which numbers that belong together stand on one line."""
    text = json.dumps(result, indent=1, ensure_ascii=False)
    return re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"


def _asked(arguments: list[str]) -> tuple[str, int, tuple[str, ...]]:
    given = [*arguments, *[""] * 3]
    size = given[0] or os.environ.get("SIZE") or "small"
    if size not in SIZES:
        raise SystemExit(f"SIZE: {size!r} is none of {', '.join(SIZES)}")
    rounds = int(given[1] or SIZES[size].rounds)
    if given[2] and given[2] not in DATABASES:
        raise SystemExit(f"database: {given[2]!r} is none of {', '.join(DATABASES)}")
    return size, rounds, (given[2],) if given[2] else DATABASES


def _measured(name: str, size: str, rounds: int) -> Any:
    """One database, measured in a process of its own, since Django keeps the one that it began with."""
    from demo.databases import started_postgresql

    print(f"== {name}, {size}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="history-access-benchmark-") as folder:
        url = started_postgresql() if name == "postgresql" else f"sqlite:///{folder}/benchmark.sqlite3"
        file = Path(folder) / "found.json"
        subprocess.run(
            [sys.executable, "-W", "error", "-m", "benchmarks.one_database", size, str(rounds), str(file)],
            env={**os.environ, "DATABASE_URL": url},
            check=True,
        )
        return json.loads(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(sys.argv[1:])
