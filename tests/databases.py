"""The databases that the tests run on: SQLite, and a real PostgreSQL that they start themselves."""

import os
import tempfile
from pathlib import Path
from typing import Any

import dj_database_url

from demo.databases import SQLITE_OPTIONS, started_postgresql

POSTGRESQL, SQLITE = "postgresql", "sqlite"


def chosen() -> dict[str, Any]:
    """The database of `TEST_DATABASE`: "postgresql" (that of `DATABASE_URL` where it is set) or "sqlite"."""
    name = os.environ.get("TEST_DATABASE", SQLITE)
    if name == POSTGRESQL:
        return dict(dj_database_url.parse(os.environ.get("DATABASE_URL") or started_postgresql()))
    if name != SQLITE:
        raise ValueError(f"TEST_DATABASE: {name!r} is neither {SQLITE} nor {POSTGRESQL}")
    path = Path(tempfile.gettempdir()) / f"history-access-{os.getpid()}.sqlite3"
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": SQLITE_OPTIONS,
        # A file, as in real use: threads of one test share it, and lock it.
        "TEST": {"NAME": path},
    }
