"""Whether the tables are what they are going to be: `migrate` runs the checks, too, before it changes any."""

from django.core.checks import CheckMessage
from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.exceptions import BadMigrationError, CircularDependencyError, NodeNotFoundError
from django.db.migrations.executor import MigrationExecutor


def unless_migrations_wait(connection: BaseDatabaseWrapper, found: list[CheckMessage]) -> list[CheckMessage]:
    """The findings about tables; none while a migration waits, which may be the one that mends them.

    An error would keep that migration from running. Where nothing was found, nothing is asked.
    """
    return found if found and _all_have_run(connection) else []


def _all_have_run(connection: BaseDatabaseWrapper) -> bool:
    try:
        executor = MigrationExecutor(connection)
        return not executor.migration_plan(executor.loader.graph.leaf_nodes())
    except (BadMigrationError, CircularDependencyError, NodeNotFoundError, DatabaseError):
        return False  # `migrate` says what is wrong with them
