"""`manage.py scale_history`: write SQL that partitions the record by month, or distributes by workspace."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections, router

from history_access.models import TurnConversationRead
from history_access.models.platform import message_model, session_model, turn_model
from history_access.scaling.citus import distribution
from history_access.scaling.partitions import partitions
from settings_catalog.guards import GuardedConfig

MOST_MONTHS = 120


class Command(BaseCommand):
    """Nothing is run: an operator reads the SQL, tries it on a copy, and runs it while nobody writes."""

    help = (
        "Write SQL for PostgreSQL, for an operator to read and run; nothing is changed here. `partitions` "
        "makes the record a table for each month, or adds the next months; `citus` distributes the tables by "
        "workspace."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Which of the two."""
        parser.add_argument("how", choices=["partitions", "citus"])
        parser.add_argument(
            "--months", type=int, default=12, help="how many months ahead get a partition (12)"
        )

    def handle(self, *, how: str, months: int, **options: Any) -> None:
        """Print the statements, one to a line; a CommandError on another database than PostgreSQL."""
        connection = connections[router.db_for_write(TurnConversationRead)]
        if connection.vendor != "postgresql":
            raise CommandError(f"The record is kept in {connection.display_name}: this is for PostgreSQL.")
        if not 1 <= months <= MOST_MONTHS:
            raise CommandError(f"--months: name 1 to {MOST_MONTHS} months")
        statements = (
            partitions(connection, tuple(_guards()), months=months)
            if how == "partitions"
            else distribution(connection, _models())
        )
        for statement in statements:
            self.stdout.write(statement)


def _guards() -> Iterator[Any]:
    table = TurnConversationRead._meta.db_table
    for config in apps.get_app_configs():
        for guard in config.guards() if isinstance(config, GuardedConfig) else ():
            if guard.table == table and guard.statement("postgresql") is not None:
                yield guard


def _models() -> list[Any]:
    """What grows: the platform's conversations, and the record."""
    return [
        *(session_model(), message_model(), turn_model()),
        *apps.get_app_config("history_access").get_models(),
    ]
