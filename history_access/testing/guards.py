"""Lifting the database's guards, so that a test suite can empty its tables.

A `TransactionTestCase` (pytest-django's `transactional_db`) flushes the database when it ends, which the
guards refuse. Call `lift_guards()` just before; the flush itself puts them back, as `migrate` does.
"""

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections

from settings_catalog.guards import Guard, GuardedConfig, install, remove


def all_guards() -> tuple[Guard, ...]:
    """The guards of every installed app."""
    configs = (config for config in apps.get_app_configs() if isinstance(config, GuardedConfig))
    return tuple(guard for config in configs for guard in config.guards())


def lift_guards(using: str = DEFAULT_DB_ALIAS) -> None:
    """Take every guard away from a database. For tests alone: in production nothing calls this."""
    remove(connections[using], all_guards())


def put_back_guards(using: str = DEFAULT_DB_ALIAS) -> None:
    """Put every guard back; safe to repeat."""
    install(connections[using], all_guards())
