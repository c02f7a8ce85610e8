"""The auditors' list at a million reads: the first page against the thousandth, for each filter.

    make bench-audit          or: python -m benchmarks.audit_pages [rows]

It starts a PostgreSQL of its own, writes the rows with SQL by a fixed seed, and asks over REST, in process.
Both pages are measured in shuffled turns of one run; what counts is their ratio. A page has 50 rows.
"""

import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

PAGE, DEEP, TURNS = 50, 1000, 15
LIST = "/api/history/reads/"
ROWS = """
INSERT INTO history_access_turnconversationread (id, workspace_id, agent_id, turn_id, turn_account_id,
  reader_id, trigger_id, session_id, session_account_id, session_person_id, setting, how, what, characters,
  read_at)
SELECT (lpad(to_hex(1790000000000 + n * 100), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' ||
        substr(md5(n::text), 4, 15))::uuid,
  'w' || n % 4, 'a' || n % 8, 't' || n / 2, CASE WHEN n % 3 > 0 THEN 'c' || n % 3 END, 'p' || n % 9,
  CASE WHEN n % 5 = 0 THEN 'g' || n % 2 END, 's' || n % 10, CASE WHEN n % 4 > 0 THEN 'c' || n % 4 END,
  'p' || n % 7,
  CASE WHEN n % 2 = 0 THEN 'same_account' ELSE 'all_accounts' END,
  CASE WHEN n % 10 = 0 THEN 'reference' ELSE 'history' END,
  (ARRAY['title', 'messages', 'summary', 'excerpt'])[n % 4 + 1], n % 4000,
  to_timestamp(1790000000 + n / 10.0)
FROM generate_series(1, {rows}) AS n
"""
FILTERS = [
    "",
    "workspace=w1",
    "agent=a3",
    "account=c1",
    "account_absent=true",
    "turn_account=c1",
    "turn_account_absent=true",
    "reader=p4",
    "trigger=g0",
    "conversation=s7",
    "how=history",
    "how=reference",
    "what=summary",
    "setting=all_accounts",
    "crossed=true",
    "crossed=false",
    "after=2026-09-22",
    "before=2027-01-01",
]


def main(rows: int) -> None:
    """Fill a database, measure each filter, and print a table."""
    from demo.databases import started_postgresql

    os.environ["DATABASE_URL"] = started_postgresql()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.settings")
    import django

    django.setup()
    client = _auditor(rows)
    print(f"{rows:,} reads, pages of {PAGE}, median of {TURNS} turns; ms and ratio of page {DEEP} to page 1")
    for asked in FILTERS:
        deep = _deep(client, f"{LIST}?{asked}&limit={PAGE}")
        if deep is None:
            print(f"{asked or '(none)':28} fewer than {DEEP} pages")
            continue
        first, last = _measured(
            [
                lambda asked=asked: client.get(f"{LIST}?{asked}&limit={PAGE}"),
                lambda deep=deep: client.get(deep),
            ]
        )
        print(f"{asked or '(none)':28} {first:7.1f} {last:7.1f}   {last / first:.2f}")


def _auditor(rows: int) -> Any:
    """A client of somebody who may audit everything, on a database with that many reads."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.db import connection
    from rest_framework.test import APIClient

    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(ROWS.replace("{rows}", str(rows)), None)
        cursor.execute("VACUUM ANALYZE history_access_turnconversationread")
    client = APIClient()
    client.force_authenticate(get_user_model().objects.create_superuser("auditor"))
    return client


def _deep(client: Any, first: str) -> str | None:
    """Where the thousandth page is; found with larger pages, since only the way there is longer."""
    from history_access.api.pages import MOST

    address: str | None = first.replace(f"limit={PAGE}", f"limit={MOST}")
    for _ in range(PAGE * (DEEP - 1) // MOST):
        if address is None:
            return None
        address = client.get(address).json()["next"]
    return address and address.replace(f"limit={MOST}", f"limit={PAGE}")


def _measured(jobs: list[Callable[[], Any]]) -> list[float]:
    """The median time of each job in milliseconds, taken in shuffled turns."""
    taken: list[list[float]] = [[] for _ in jobs]
    order = random.Random(7)
    for _ in range(TURNS):
        for index in order.sample(range(len(jobs)), len(jobs)):
            began = time.perf_counter()
            response = jobs[index]()
            taken[index].append((time.perf_counter() - began) * 1000)
            assert not response.exception, response.content
    return [statistics.median(one) for one in taken]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
