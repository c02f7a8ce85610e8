"""How long readers wait while thousands of values are erased, or thousands of reads pruned.

    make bench-erasing        or: python -m benchmarks.erasing [values] [postgresql|sqlite]

Two readers list conversations again and again, as agents do; what counts is the longest that one call took,
against the longest while nothing else happened.
"""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

KEY = "jonas@guests.example"
READERS = 2


def main(values: int, vendor: str) -> None:
    """Fill a database, erase, prune, and print the longest waits."""
    from demo.databases import started_postgresql

    file = f"sqlite:///{tempfile.mkdtemp()}/benchmark.sqlite3"
    os.environ["DATABASE_URL"] = file if vendor == "sqlite" else started_postgresql()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.settings")
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    from history_access.erasing import erase_person
    from history_access.models import Seal
    from history_access.pruning import prune
    from history_access.seals import seal

    call_command("migrate", verbosity=0)
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "NAMING_KEYS": ["person"]}
    turns = _turns()
    _fill(values)
    seal()
    newest = Seal.objects.latest("number").number
    who = {"by": "benchmark", "why": "to see who waits"}
    for name, job in (
        ("nothing", lambda: time.sleep(3)),
        (f"{values:,} values are erased", lambda: erase_person(KEY, **who)),
        (f"{values:,} reads are pruned", lambda: prune(through=newest, **who)),
    ):
        taken, waits = _while_reading(turns, job)
        print(f"{name:32} {taken:6.1f} s, longest read of {len(waits):5}: {max(waits) * 1000:8.1f} ms")


def _turns() -> list[Any]:
    """A running turn for each reader, in a world where it may list a few conversations."""
    from django.contrib.auth import get_user_model

    from history_access.agent_platform import services
    from history_access.agent_platform.models import Agent, Workspace
    from settings_catalog.models import SettingValue

    reader = get_user_model().objects.create_user("reader")
    agent = Agent.objects.create(workspace=Workspace.objects.create(name="Hollowbrook"), name="Digest")
    SettingValue.objects.create(
        entry="history_access", level="platform", value="all_accounts", ceiling="all_accounts"
    )
    for _ in range(10):
        services.open_session(agent, person=reader, title="hello")
    return [
        services.start_turn(services.open_session(agent, person=reader), sender=reader)
        for _ in range(READERS)
    ]


def _fill(values: int) -> None:
    from django.utils import timezone

    from history_access.models import TurnConversationRead

    TurnConversationRead.objects.bulk_create(
        (
            TurnConversationRead(
                workspace_id="w",
                agent_id="a",
                turn_id=f"t{number}",
                reader_id="somebody",
                session_id=f"s{number % 50}",
                session_person_id=KEY,
                setting="all_accounts",
                how="history",
                what="title",
                characters=0,
                read_at=timezone.now(),
            )
            for number in range(values)
        ),
        batch_size=1000,
    )


def _while_reading(turns: list[Any], job: Callable[[], Any]) -> tuple[float, list[float]]:
    """How long a job takes, and each read that ran meanwhile."""
    done = threading.Event()
    waits: list[float] = []

    def read(turn: Any) -> None:
        from django.db import connection

        from history_access.tools import list_conversations

        while not done.is_set():
            began = time.perf_counter()
            list_conversations(turn, limit=5)
            waits.append(time.perf_counter() - began)
            time.sleep(0.01)
        connection.close()

    threads = [threading.Thread(target=read, args=(turn,)) for turn in turns]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    began = time.perf_counter()
    try:
        job()
    finally:
        done.set()
    taken = time.perf_counter() - began
    for thread in threads:
        thread.join()
    return taken, waits


if __name__ == "__main__":
    values, vendor, *_ = [*sys.argv[1:], *("5000", "postgresql")[len(sys.argv) - 1 :]]
    main(int(values), vendor)
