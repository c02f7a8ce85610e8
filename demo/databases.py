"""One database from `DATABASE_URL`, or a SQLite file, each with what history access needs of it."""

import os
from pathlib import Path
from typing import Any

import dj_database_url

SQLITE_OPTIONS = {
    # A read of history is one write transaction: with IMMEDIATE the second one waits instead of failing.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL",
}


def database(*, default: Path) -> dict[str, Any]:
    """Django's settings for one database: `DATABASE_URL` where it is set, else the file `default`."""
    url = os.environ.get("DATABASE_URL")
    if not url:
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": default, "OPTIONS": SQLITE_OPTIONS}
    return dict(dj_database_url.parse(url))
