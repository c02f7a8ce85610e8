"""Going back over migrations: refused before anything is done, while it would drop what must be kept.

What an app's guards keep from being removed row by row is not to go with its table either.
"""

import os
from collections.abc import Iterable, Sequence

from django.apps import AppConfig
from django.core.management import CommandError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import AddField, CreateModel, Migration
from django.db.models import Model

CONFIRMATION = "REMOVE_RECORD_OF"
"""The variable of the environment that confirms a removal. Its value is the label of the app."""

Plan = Sequence[tuple[Migration, bool]]
"""What `migrate` is about to do: each migration, and whether it is undone."""


class RemovalRefusedError(CommandError):
    """The migrations would drop rows that are kept. Nothing was done."""


def refuse_removal(
    connection: BaseDatabaseWrapper, config: AppConfig, kept: Iterable[str], plan: Plan, first: str
) -> None:
    """A RemovalRefusedError where `plan` would drop rows of the `kept` tables of an app.

    It says how many, and what to do `first`. Tables without rows may go, and so may all where the
    environment confirms it.
    """
    if os.environ.get(CONFIRMATION) == config.label:
        return
    lost = [_counted(model, rows) for model, rows in _rows(connection, config, kept, plan)]
    if lost:
        raise RemovalRefusedError(
            f"{config.label} keeps {', '.join(lost)}, which going back would drop. Nothing was done. "
            f"{first} Then set {CONFIRMATION}={config.label} in the environment of this one command. "
            "See docs/upgrading.md."
        )


def _rows(
    connection: BaseDatabaseWrapper, config: AppConfig, kept: Iterable[str], plan: Plan
) -> Iterable[tuple[type[Model], int]]:
    """The kept models whose table or column would be dropped, with the number of their rows, if any."""
    names = {name for migration, undone in plan if undone for name in _made(migration, config.label)}
    tables = set(kept).intersection(connection.introspection.table_names()) if names else ()
    for model in config.get_models():
        if model._meta.model_name in names and model._meta.db_table in tables:
            rows = model._base_manager.using(connection.alias).count()
            if rows:
                yield model, rows


def _counted(model: type[Model], rows: int) -> str:
    return f"{rows} {model._meta.verbose_name if rows == 1 else model._meta.verbose_name_plural}"


def _made(migration: Migration, label: str) -> Iterable[str]:
    """The models of which a migration of the app makes the table or a column."""
    for operation in migration.operations if migration.app_label == label else ():
        if isinstance(operation, CreateModel):
            yield operation.name_lower
        elif isinstance(operation, AddField):
            yield operation.model_name_lower
