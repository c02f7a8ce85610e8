"""Checks of the databases themselves: their guards, and how they keep what was committed."""

from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import connections, router

from history_access.models import TurnConversationRead
from history_access.models.platform import primary
from settings_catalog import guards


@register(Tags.database)
def check_guards(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """E008: a table can be altered that must not be, because a guard is missing (`record-append-only`)."""
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
    """W001: SQLite begins transactions late, so that reads at the same time fail instead of waiting."""
    return [
        CheckWarning(
            f"The SQLite database {alias!r} does not begin its transactions with IMMEDIATE.",
            hint=f'Put "OPTIONS": {{"transaction_mode": "IMMEDIATE"}} into DATABASES[{alias!r}].',
            id="history_access.W001",
        )
        for alias in databases or ()
        if connections[alias].vendor == "sqlite"
        and connections[alias].settings_dict["OPTIONS"].get("transaction_mode") != "IMMEDIATE"
    ]
