"""Checks of the databases themselves: their guards, and how they keep what was committed."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import connections, router

from history_access.models import TurnConversationRead
from history_access.models.platform import primary
from settings_catalog import guards
from settings_catalog.models import SettingValue

LEAST_PATIENCE = 5000
"""Milliseconds that a reader waits for a writer: what Python's SQLite does unless it is told otherwise."""

_SETTINGS: dict[str, tuple[str, Callable[..., CheckMessage], str, str]] = {
    "session_replication_role": (
        "replica",
        Error,
        "history_access.E023",
        "no trigger fires, so that the record can be altered",
    ),
    "synchronous_commit": (
        "off",
        CheckWarning,
        "history_access.W005",
        "a crash can undo what was confirmed, such as a right that was taken away or a setting that was "
        "lowered (reads are recorded with it on, whatever it is elsewhere)",
    ),
    "fsync": ("off", CheckWarning, "history_access.W006", "a crash can destroy the record"),
    "full_page_writes": ("off", CheckWarning, "history_access.W006", "a crash can destroy the record"),
}
"""By name: the value that is wrong, what it is called, and what comes of it."""

_SOURCES = {
    "client": "by the connection's options",
    "user": "for the role",
    "database": "for the database",
    "database user": "for the role in this database",
    "configuration file": "in the server's configuration",
    "command line": "on the server's command line",
}


@register(Tags.database)
def check_guards(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """E008: a table can be altered that must not be, because a guard is missing, switched off or altered
    (`record-append-only`).
    """
    configs = [config for config in apps.get_app_configs() if isinstance(config, guards.GuardedConfig)]
    ours = [config for config in configs if config.name.startswith("history_access")]
    wanted = [guard for config in ours for guard in config.guards()]
    return guards.missing_errors(databases, wanted, "history_access.E008")


@register(Tags.database)
def check_one_database(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """E009: sessions and the record live in two databases, so that no transaction covers both."""
    try:
        sessions, record = primary(), router.db_for_write(TurnConversationRead)
    except LookupError:
        return []  # no model is named, which another check says
    if sessions == record:
        return []
    hint = "Route both to one database: a read and its record are one transaction."
    message = f"Sessions are in the database {sessions!r} and the record is in {record!r}."
    return [Error(message, hint=hint, id="history_access.E009")]


@register(Tags.database)
def check_sqlite(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """W001: SQLite begins transactions late, so that reads at the same time fail instead of waiting. W004:
    SQLite waits so short a time for its turn that reads fail while somebody else writes.
    """
    return [
        warning
        for alias in _with_our_tables(databases, "sqlite")
        for warning in (*_check_transactions(alias), *_check_patience(alias))
    ]


def _check_transactions(alias: str) -> Iterable[CheckMessage]:
    mode = connections[alias].settings_dict["OPTIONS"].get("transaction_mode")
    if str(mode).upper() not in ("IMMEDIATE", "EXCLUSIVE"):
        yield CheckWarning(
            f"The SQLite database {alias!r} does not begin its transactions with IMMEDIATE.",
            hint=f'Put "OPTIONS": {{"transaction_mode": "IMMEDIATE"}} into DATABASES[{alias!r}].',
            id="history_access.W001",
        )


def _check_patience(alias: str) -> Iterable[CheckMessage]:
    """What the connection itself says: a timeout may be set by an option or by a pragma."""
    with connections[alias].cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        (milliseconds,) = cursor.fetchone()
    if milliseconds < LEAST_PATIENCE:
        yield CheckWarning(
            f"The SQLite database {alias!r} waits {milliseconds} ms for others that write, then fails.",
            hint=f'Put "OPTIONS": {{"timeout": 20}} (seconds) into DATABASES[{alias!r}].',
            id="history_access.W004",
        )


@register(Tags.database)
def check_postgresql(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """E023: PostgreSQL fires no guard on our connections. W005: PostgreSQL confirms a commit before it is on
    disk, so that a crash brings back rights, settings and conversations that were taken away. W006:
    PostgreSQL does not see to it that what it writes reaches the disk, so that a crash can destroy all of it.
    """
    names = list(_SETTINGS)
    found: list[CheckMessage] = []
    for alias in _with_our_tables(databases, "postgresql"):
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT name, setting, source FROM pg_settings WHERE name = ANY(%s)", [names])
            found += [problem for row in sorted(cursor.fetchall()) for problem in judged(alias, *row)]
    return found


def judged(alias: str, name: str, setting: str, source: str) -> Iterable[CheckMessage]:
    """What there is to say of one of PostgreSQL's settings, as `pg_settings` shows it on our connection."""
    wrong, kind, check_id, consequence = _SETTINGS[name]
    if setting == wrong:
        where = _SOURCES.get(source, f"by {source}")
        yield kind(
            f"The PostgreSQL database {alias!r} has {name} = {setting}, set {where}: {consequence}.",
            hint=_remedy(alias, name, source),
            id=check_id,
        )


def _remedy(alias: str, name: str, source: str) -> str:
    good = "origin" if name == "session_replication_role" else "on"
    return {
        "client": f'Take {name} out of DATABASES[{alias!r}]["OPTIONS"], or set it to {good} there.',
        "user": f"Run `ALTER ROLE <the role> RESET {name}`, or set it to {good}.",
        "database": f"Run `ALTER DATABASE <the database> RESET {name}`, or set it to {good}.",
        "database user": f"Run `ALTER ROLE <the role> IN DATABASE <the database> RESET {name}`.",
    }.get(source, f"Set {name} = {good} in postgresql.conf, or with `ALTER SYSTEM`, and reload it.")


def _with_our_tables(databases: Sequence[str] | None, vendor: str) -> list[str]:
    """Those of the databases that hold conversations, settings or the record, of one kind."""
    ours = {router.db_for_write(TurnConversationRead), router.db_for_write(SettingValue)}
    with suppress(LookupError):  # no model is named, which another check says
        ours.add(primary())
    return [alias for alias in databases or () if alias in ours and connections[alias].vendor == vendor]
