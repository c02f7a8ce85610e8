"""A day of calls in ten minutes: whether memory, kept SQL and connections stay what they are.

    make soak                 or: python -m benchmarks.soak [seconds]

Clients list and read without a pause, while rights come and go, settings change, conversations are opened and
written to, turns end and begin, and the record is sealed. `benchmarks/results/soak.json`.
"""

import json
import os
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

RESULT = Path(__file__).with_name("results") / "soak.json"
LIMITS = (1, 5, 10, 20, 50)
CLIENTS, EVERY, GROWTH = 4, 5.0, 1.1
"""Threads that read; seconds between two looks; what the memory of the first fifth may be multiplied by."""


class Soak:
    """What runs, and what was seen."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.over = seconds, threading.Event()
        self.counts: dict[str, int] = {}
        self.seen: list[dict[str, float]] = []
        self.failed: list[str] = []
        self.lock = threading.Lock()

    def count(self, what: str) -> None:
        """One more of these."""
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def look(self) -> None:
        """Note how much memory this process has, how many statements are kept and how many connections."""
        from django.db import connection

        from settings_catalog import compiled

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            [connections] = cursor.fetchone()
        self.seen.append(
            {
                "calls": sum(self.counts.values()),
                "memory_mb": round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1),
                "kept_statements": len(compiled._kept),
                "connections": connections,
            }
        )


def main(seconds: float) -> None:
    """Run, judge, print and write the results."""
    from demo.databases import started_postgresql

    os.environ["DATABASE_URL"] = started_postgresql()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.settings")
    import django

    django.setup()
    from django.core.management import call_command

    from benchmarks.corpus import SIZES
    from benchmarks.loading import fill

    call_command("migrate", verbosity=0)
    corpus = fill(SIZES["tiny"])
    result = soaked(corpus, seconds)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(text(result))
    if not result["flat"] or result["failed"]:
        raise SystemExit(1)


def soaked(corpus: Any, seconds: float) -> dict[str, Any]:
    """What was seen in so many seconds, ready for JSON."""
    soak = Soak(seconds)
    jobs = [lambda nth=nth: _client(soak, corpus, nth) for nth in range(CLIENTS)]
    jobs += [lambda: _operators(soak, corpus), lambda: _people(soak, corpus), lambda: _sealer(soak)]
    threads = [threading.Thread(target=_guarded, args=(soak, job)) for job in jobs]
    began = time.monotonic()
    for one in threads:
        one.start()
    while time.monotonic() - began < seconds and not soak.failed:
        time.sleep(min(EVERY, seconds / 20))
        soak.look()
    soak.over.set()
    for one in threads:
        one.join()
    settled = soak.seen[len(soak.seen) // 5]
    last = soak.seen[-1]
    return {
        "seconds": round(seconds),
        "counts": dict(sorted(soak.counts.items())),
        "failed": soak.failed,
        "settled": settled,
        "last": last,
        "flat": last["memory_mb"] <= GROWTH * settled["memory_mb"]
        and last["kept_statements"] <= GROWTH * settled["kept_statements"]
        and last["connections"] <= settled["connections"],
        "seen": soak.seen[:: max(1, len(soak.seen) // 20)],
    }


def text(result: dict[str, Any]) -> str:
    """For a terminal."""
    lines = [f"{name}: {number:,}" for name, number in result["counts"].items()]
    lines += [f"after a fifth: {result['settled']}", f"at the end:    {result['last']}"]
    lines += [*result["failed"], "flat" if result["flat"] else "NOT FLAT"]
    return "\n".join(lines)


def _guarded(soak: Soak, job: Any) -> None:
    from django.db import connection

    try:
        job()
    except Exception as error:  # whatever it is, the soak has failed
        soak.failed.append(f"{type(error).__name__}: {error}")
    finally:
        connection.close()


def _client(soak: Soak, corpus: Any, nth: int) -> None:
    """Lists and reads, now of this turn, now of that, now what is not there."""
    from history_access.tools import toolset_for

    chance = random.Random(nth)
    sessions = [str(one) for one in corpus.conversations.values()]
    while not soak.over.is_set():
        toolset = toolset_for(chance.choice(list(corpus.turns.values())))
        page = toolset.call("list_conversations", {"limit": chance.choice(LIMITS)})
        soak.count(page["kind"])
        for one in page.get("conversations", [])[:3]:
            soak.count(toolset.call("read_conversation", {"conversation_id": one["id"]})["kind"])
        asked = {"conversation_id": chance.choice([*sessions, "nobody's"]), "start": -chance.choice(LIMITS)}
        soak.count(toolset.call("read_conversation", asked)["kind"])


def _operators(soak: Soak, corpus: Any) -> None:
    """Rights come and go, and so does the setting of an agent."""
    from django.contrib.auth import get_user_model

    from history_access.agent_platform.models import Agent, Authority
    from settings_catalog import changes

    operator = get_user_model().objects.get(username="operator")
    stranger = get_user_model().objects.get(username="stranger")
    agent = Agent.objects.get(pk=min(corpus.agents.items())[1])
    while not soak.over.wait(0.2):
        right = Authority.objects.create(
            workspace_id=agent.workspace_id, person=stranger, permission="sessions:read"
        )
        for value in ("none", "all_accounts"):
            changes.set_value("history_access", agent=agent, value=value, by=operator, why="soak")
        right.delete()
        soak.count("rights and settings changed")


def _people(soak: Soak, corpus: Any) -> None:
    """Open conversations, write to them, run a turn in each and end it."""
    from django.contrib.auth import get_user_model

    from history_access.agent_platform import services
    from history_access.agent_platform.models import Agent
    from history_access.tools import toolset_for

    reader = get_user_model().objects.get(username="reader")
    agent = Agent.objects.get(pk=max(corpus.agents.items())[1])
    while not soak.over.wait(0.02):
        session = services.open_session(agent, person=reader, title="now")
        services.add_message(session, "person", "What was yesterday?")
        turn = services.start_turn(session, sender=reader)
        toolset_for(turn).call("list_conversations", {"limit": 5})
        services.end_turn(turn)
        soak.count("turns begun and ended")


def _sealer(soak: Soak) -> None:
    from history_access.seals import seal

    while not soak.over.wait(1):
        seal(quick=True)
        soak.count("seals")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 600.0)
