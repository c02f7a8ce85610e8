"""Ten times as much of everything, side by side in one run: what costs the same, and what does not.

    make growth               half a million reads and five million, 5,000 conversations and 50,000
    python -m benchmarks.growth [reads] [conversations] [rounds]

Two databases on one PostgreSQL of its own, the second ten times the first. Each job is done in both, in
shuffled turns; what counts is how many times longer it takes in the larger one. The results go to
`benchmarks/results/growth.json`.
"""

import itertools
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.audit_pages import ROWS
from benchmarks.databases import Chosen
from benchmarks.measuring import SEED, Spread, ratio

RESULT = Path(__file__).with_name("results") / "growth.json"
TIMES, CALLS, MOST = 10, 5, 1.3
SMALL, LARGE = "default", "tenfold"
SEALED_AT_ONCE, EXPORTED = 1_000, 4

SESSIONS = """
INSERT INTO agent_platform_session (id, workspace_id, agent_id, account_id, person_id, title, started_at,
  last_moved_at, message_count, trimmed_before, erased_before)
SELECT (lpad(to_hex(1735689600000 + n * 1000), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' ||
        substr(md5(n::text), 4, 15))::uuid,
  %s, %s, NULL, %s, 'Conversation ' || n, to_timestamp(1735689600 + n), to_timestamp(1735689600 + n), 60, 1, 1
FROM generate_series(1, {sessions}) AS n
"""
MESSAGES = """
INSERT INTO agent_platform_message (id, workspace_id, session_id, number, role, hidden, text, tool_calls,
  created_at)
SELECT gen_random_uuid(), s.workspace_id, s.id, n, (ARRAY['person', 'agent'])[n % 2 + 1], false,
  repeat('words of a conversation ', 12), '[]', s.started_at
FROM (SELECT * FROM agent_platform_session WHERE message_count = 60 ORDER BY id LIMIT {sessions}) AS s,
  generate_series(1, 60) AS n
"""
WITH_MESSAGES = 50
"""Of so many conversations there are messages: those that are read."""

Jobs = dict[str, Callable[[], Any]]


def main(reads: int, sessions: int, rounds: int) -> None:
    """Measure, print, and write the results."""
    result = grown(reads, sessions, rounds)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(text(result))


def grown(reads: int, sessions: int, rounds: int) -> dict[str, Any]:
    """Fill both databases and measure, ready for JSON; in a process of its own, since it starts Django."""
    _two_databases()
    jobs: dict[str, Jobs] = {}
    for alias, times in ((SMALL, 1), (LARGE, TIMES)):
        Chosen.alias = alias
        print(f"filling {times * reads:,} reads, {times * sessions:,} conversations", file=sys.stderr)
        jobs[alias] = _jobs(times * reads, times * sessions)
    taken = _measured(jobs, rounds)
    result: dict[str, Any] = {"reads": reads, "sessions": sessions, "times": TIMES, "rounds": rounds}
    result["jobs"] = {}
    for name in jobs[SMALL]:
        small, large = taken[SMALL, name], taken[LARGE, name]
        found = ratio(large, small)
        result["jobs"][name] = {
            "small_ms": round(Spread.of(small).median * 1000, 3),
            "large_ms": round(Spread.of(large).median * 1000, 3),
            "ratio": [round(one, 3) for one in (found.median, found.low, found.high)],
            "reached": found.median <= MOST,
        }
    return result


def text(result: dict[str, Any]) -> str:
    """A table for a terminal."""
    lines = [f"{'':44} {'once, ms':>10} {'tenfold, ms':>12} {'ratio':>7}  spread"]
    for name, one in result["jobs"].items():
        middle, low, high = one["ratio"]
        lines.append(
            f"{name:44} {one['small_ms']:10.2f} {one['large_ms']:12.2f} {middle:7.2f}  {low:.2f}-{high:.2f}"
        )
    return "\n".join(lines)


def _two_databases() -> None:
    from demo.databases import started_postgresql

    os.environ["DATABASE_URL"] = started_postgresql()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.settings")
    import django
    from django.conf import settings

    databases: dict[str, Any] = settings.DATABASES
    databases[LARGE] = {**databases[SMALL], "NAME": "growth_tenfold"}
    settings.DATABASE_ROUTERS = ["benchmarks.databases.Chosen"]
    django.setup()
    from django.core.management import call_command
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE growth_tenfold")
    for alias in (SMALL, LARGE):
        Chosen.alias = alias
        call_command("migrate", database=alias, verbosity=0)


def _jobs(reads: int, sessions: int) -> Jobs:
    """Fill the chosen database, and say what is measured in it."""
    from django.contrib.auth import get_user_model
    from django.db import connections

    from history_access.agent_platform import services
    from history_access.agent_platform.models import Agent, Authority, Session, Workspace
    from history_access.references import desk_for, offerable_conversations
    from history_access.tools import toolset_for
    from settings_catalog import changes

    operator = get_user_model().objects.create_superuser("operator")
    reader = get_user_model().objects.create_user("reader")
    workspace = Workspace.objects.create(name="Hollowbrook", time_zone="America/New_York")
    agent = Agent.objects.create(workspace=workspace, name="Digest")
    for person, right in ((operator, "settings:write"), (reader, "sessions:read"), (reader, "runs:read")):
        Authority.objects.create(workspace=workspace, person=person, permission=right)
    given: dict[str, Any] = {"by": operator, "why": "benchmark"}
    for key, value in (("history_access", "all_accounts"), ("conversation_references", "conversations")):
        changes.set_value(key, platform=True, ceiling=value, **given)
        changes.set_value(key, agent=agent, value=value, **given)
    with connections[Chosen.alias].cursor() as cursor:
        cursor.execute(SESSIONS.format(sessions=sessions), [workspace.pk, agent.pk, reader.pk])
        cursor.execute(MESSAGES.format(sessions=WITH_MESSAGES), None)
        cursor.execute(ROWS.replace("{rows}", str(reads)), None)
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("CHECKPOINT")
    read = Session.objects.order_by("id")[0].pk
    turn = services.start_turn(services.open_session(agent, person=reader, title="now"), sender=reader).pk
    toolset, desk = toolset_for(turn), desk_for(reader, str(agent.pk))
    return {
        "list 50": lambda: _given(toolset.call("list_conversations", {"limit": 50})),
        "read 50": lambda: _given(toolset.call("read_conversation", {"conversation_id": str(read)})),
        "pick from 50": lambda: offerable_conversations(reader, desk, limit=50).offers[0],
        "record a read": lambda: _given(toolset.call("list_conversations", {"limit": 1})),
        "which reply drew on what": lambda: _drawn_on(turn),
        f"seal {SEALED_AT_ONCE:,} reads": _seal,
        f"export {EXPORTED * 500:,} reads": _export,
    }


def _given(result: dict[str, Any]) -> None:
    if result["kind"] == "error":
        raise RuntimeError(result["error"]["message"])


def _drawn_on(turn: Any) -> None:
    from history_access.record import conversations_drawn_on

    if not conversations_drawn_on(turn)[:1]:
        raise RuntimeError("the turn drew on nothing")


def _seal() -> None:
    from history_access.seals import seal_batches

    batches = seal_batches(size=SEALED_AT_ONCE)
    if next(batches).rows != SEALED_AT_ONCE:
        raise RuntimeError("there was less to seal")
    batches.close()  # type: ignore[attr-defined]


def _export() -> None:
    from history_access import audited, exporting

    rows = exporting.export(audited.reads(), exporting.JSON_LINES)
    if len(list(itertools.islice(rows, EXPORTED))) < EXPORTED:
        raise RuntimeError("there was less to export")


def _measured(jobs: dict[str, Jobs], rounds: int) -> dict[tuple[str, str], list[float]]:
    """Seconds a call of each job in each database, one of each round."""
    every = [(alias, name) for alias, of in jobs.items() for name in of]
    taken: dict[tuple[str, str], list[float]] = {one: [] for one in every}
    order = random.Random(SEED)
    for round_ in range(rounds + 1):
        for alias, name in order.sample(every, len(every)):
            Chosen.alias = alias
            calls = []
            for _ in range(CALLS):
                began = time.perf_counter()
                jobs[alias][name]()
                calls.append(time.perf_counter() - began)
            if round_:  # the first warms up
                taken[alias, name].append(statistics.median(calls))
    return taken


if __name__ == "__main__":
    asked = [int(one) for one in sys.argv[1:]] + [0, 0, 0]
    main(asked[0] or 500_000, asked[1] or 5_000, asked[2] or 15)
