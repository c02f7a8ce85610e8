"""Several clients at once, each a process of its own: how much the product gets through beside the floor."""

import multiprocessing
import os
import random
import statistics
import time
from typing import Any

from benchmarks.measuring import SEED, Spread

CLIENTS = 8
_SECONDS = 1.0


def throughput(
    turn_id: Any, session_id: Any, start: int, *, rounds: int
) -> dict[str, dict[str, list[float]]]:
    """Calls a second of all clients together, by work and shape, one number of each round.

    Product and floor take turns in shuffled order; all clients do the same at the same time.
    """
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(CLIENTS), context.Queue()
    phases = _phases(rounds)
    clients = [
        context.Process(target=_client, args=(barrier, answers, phases, turn_id, session_id, start))
        for _ in range(CLIENTS)
    ]
    for one in clients:
        one.start()
    counts = [answers.get() for _ in clients]
    for one in clients:
        one.join()
    found: dict[str, dict[str, list[float]]] = {}
    for phase, of_all in zip(phases, zip(*counts, strict=True), strict=True):
        found.setdefault(phase[0], {}).setdefault(phase[1], []).append(sum(of_all) / _SECONDS)
    return found


def share(found: dict[str, list[float]]) -> Spread:
    """The product's part of the floor's throughput, round by round."""
    return Spread.of([one / other for one, other in zip(found["product"], found["floor"], strict=True)])


def median(values: list[float]) -> float:
    """Rounded for a table."""
    return round(statistics.median(values), 1)


def _phases(rounds: int) -> list[tuple[str, str]]:
    order, phases = random.Random(SEED), []
    for _ in range(rounds):
        both = [(work, shape) for work in ("list", "read") for shape in ("product", "floor")]
        phases += order.sample(both, len(both))
    return phases


def _client(
    barrier: Any, answers: Any, phases: list[tuple[str, str]], turn_id: Any, session_id: Any, start: int
) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.settings")
    import django

    django.setup()
    from django.db import connection

    from benchmarks.databases import floor_of
    from history_access.tools import toolset_for

    floor, toolset = floor_of(connection), toolset_for(turn_id)
    reading = {"conversation_id": str(session_id), "start": start}
    calls = {
        ("list", "product"): lambda: toolset.call("list_conversations", {"limit": 50}),
        ("read", "product"): lambda: toolset.call("read_conversation", reading),
        ("list", "floor"): lambda: floor.list_newest(turn_id),
        ("read", "floor"): lambda: floor.read(turn_id, session_id, start),
    }
    for call in calls.values():
        for _ in range(3):
            call()
    counts = []
    for phase in phases:
        call, count = calls[phase], 0
        barrier.wait()
        end = time.perf_counter() + _SECONDS
        while time.perf_counter() < end:
            call()
            count += 1
        counts.append(count)
    answers.put(counts)
    floor.close()
    connection.close()
