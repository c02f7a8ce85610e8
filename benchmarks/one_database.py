"""Measures one database and writes what it found as JSON: started by `benchmarks.run`, once for each."""

import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.corpus import SIZES

CLIENT_ROUNDS = 5
_CLIENTS_AT_LEAST = 0.7


def main(size_name: str, rounds: int, file: str) -> None:
    """Fill the database that `DATABASE_URL` names, measure, and write to `file`."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from benchmarks import clients
    from benchmarks.databases import floor_of
    from benchmarks.goals import goals, judged, statement_goals
    from benchmarks.loading import fill
    from benchmarks.measuring import Spread, measured
    from benchmarks.works import Works, middle_of

    call_command("migrate", verbosity=0)
    began, load = time.perf_counter(), os.getloadavg()[0]
    size = SIZES[size_name]
    corpus = fill(size)
    filled = time.perf_counter() - began
    works = Works(corpus, floor_of(connection))
    loads = [os.getloadavg()[0]]
    times = measured(works.all(), rounds=rounds)
    loads.append(os.getloadavg()[0])
    found = [goal.looked_at(times) for goal in goals(size, connection.vendor)]
    found += statement_goals(works)
    together: dict[str, Any] = {}
    if connection.vendor == "postgresql" and size_name != "tiny":
        length = max(corpus.conversations)
        session = corpus.conversations[length]
        connection.close()
        together = clients.throughput(works.turn, session, middle_of(length), rounds=CLIENT_ROUNDS)
        for work, shapes in together.items():
            words = f"{clients.CLIENTS} clients, {work}: the product's throughput to the floor's"
            found.append(judged(words, clients.share(shapes), least=_CLIENTS_AT_LEAST))
    result = {
        "facts": _facts(connection),
        "sessions": size.sessions,
        "messages": size.entries,
        "largest_agent": max(size.growing),
        "agents": size.growing,
        "lengths": size.lengths,
        "pages": size.pages,
        "seconds_to_fill": round(filled),
        "load_before": round(load, 2),
        "load_while_measuring": [round(one, 2) for one in loads],
        "commit_ms": round(_commit(connection) * 1000, 3),
        "times_ms": {
            work: {
                shape: _milliseconds(Spread.of(values))
                for (one, shape), values in times.items()
                if one == work
            }
            for work in dict.fromkeys(work for work, _ in times)
        },
        "calls_a_second": {
            work: {shape: clients.median(values) for shape, values in shapes.items()}
            for work, shapes in together.items()
        },
        "goals": found,
    }
    works.floor.close()
    Path(file).write_text(json.dumps(result), encoding="utf-8")


def _milliseconds(spread: Any) -> list[float]:
    return [round(one * 1000, 3) for one in (spread.median, spread.low, spread.high)]


def _facts(connection: Any) -> dict[str, str]:
    """What the database says of itself."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            import sqlite3

            return {"version": sqlite3.sqlite_version, "journal": "WAL", "synchronous": "FULL"}
        asked = ("server_version", "fsync", "synchronous_commit", "shared_buffers", "jit")
        facts = {}
        for name in asked:
            cursor.execute(f"SHOW {name}")
            facts[name.removeprefix("server_")] = cursor.fetchone()[0]
        return facts


def _commit(connection: Any) -> float:
    """The median seconds of a transaction that writes one row and commits durably: nobody is quicker."""
    taken = []
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE benchmark_commit (n integer)")
        for _ in range(50):
            began = time.perf_counter()
            cursor.execute("INSERT INTO benchmark_commit VALUES (1)")
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
