"""The databases that the tests run on: SQLite, and a real PostgreSQL that they start themselves."""

import os
import tempfile
from pathlib import Path
from shutil import disk_usage
from typing import Any

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured

from demo.databases import POSTGRESQL as ENGINE
from demo.databases import SECONDS_TO_CONNECT, SQLITE_OPTIONS, parsed, started_postgresql

POSTGRESQL, SQLITE = "postgresql", "sqlite"
MEMORY, ROOM = Path("/dev/shm"), 2**30
UNSET = "Unset it, and the tests start a PostgreSQL of their own."


def given_postgresql() -> str | None:
    """What `DATABASE_URL` says, where it is set; a UsageError where that is no PostgreSQL that answers."""
    url = os.environ.get("DATABASE_URL")
    if not url:
        return None
    try:
        if parsed(url)["ENGINE"] != ENGINE:
            raise pytest.UsageError(f"DATABASE_URL names no PostgreSQL. {UNSET}")
        psycopg.connect(url, connect_timeout=SECONDS_TO_CONNECT).close()
    except ImproperlyConfigured as error:
        raise pytest.UsageError(str(error)) from None
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise pytest.UsageError(f"The PostgreSQL of DATABASE_URL does not answer: {reason} {UNSET}") from None
    return url


def quick_postgresql() -> str:
    """The URL of a PostgreSQL of the tests' own, with its files in memory: it writes through to no disk."""
    url = started_postgresql(_folder())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET autovacuum TO off")
        connection.execute("SELECT pg_reload_conf()")
    return url


def _folder() -> Path:
    """Where the files of databases go: into memory where there is room, since they need not last."""
    roomy = os.access(MEMORY, os.W_OK) and disk_usage(MEMORY).free > ROOM
    return MEMORY if roomy else Path(tempfile.gettempdir())


def chosen() -> dict[str, Any]:
    """The database of `TEST_DATABASE`: "postgresql" (that of `DATABASE_URL` where it is set) or "sqlite"."""
    name = os.environ.get("TEST_DATABASE", SQLITE)
    if name == POSTGRESQL:
        return parsed(given_postgresql() or quick_postgresql())
    if name != SQLITE:
        raise ValueError(f"TEST_DATABASE: {name!r} is neither {SQLITE} nor {POSTGRESQL}")
    path = _folder() / f"history-access-{os.getpid()}.sqlite3"
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": SQLITE_OPTIONS,
        # A file, as in real use: threads of one test share it, and lock it.
        "TEST": {"NAME": path},
    }
