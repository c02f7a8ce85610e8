"""Lifting guards for maintenance of the record: in short steps, so that no reader waits long for one.

A step is one transaction. To lift a guard is to lock its table against writers, and whoever reads a
conversation writes: so a step waits for the lock for an instant only, or gives way and tries again.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.apps import apps
from django.db import OperationalError, connections
from django.db.models import Model

from history_access.leaves import ERASED
from history_access.models.reads import KEY_LENGTH
from history_access.seals import leave_to_others, sealing
from settings_catalog.guards import GuardedConfig, lifted

Result = TypeVar("Result")

MOST_WHY = 1000
PATIENCE = "200ms"
"""How long a step waits for a table, on PostgreSQL: so long may readers have to queue behind it."""

PAUSES = (0.2, 0.5, 1, 2, 5, 10)
"""Seconds between its attempts."""

_GIVE_WAY = {"55P03", "40P01"}  # PostgreSQL: the lock was not to be had in time; a deadlock


def check_said(by: str, why: str, does: str) -> None:
    """Refuse with a ValueError what the record could not keep, or what says nothing."""
    if not by.strip() or len(by) > KEY_LENGTH or not by.isprintable():
        raise ValueError(f"by: say who {does}, by key, in 1 to {KEY_LENGTH} printable characters")
    if not why.strip() or len(why) > MOST_WHY:
        raise ValueError(f"why: say why, in 1 to {MOST_WHY} characters")
    if "\0" in why or why != why.encode(errors="replace").decode():
        raise ValueError("why: has characters that no database stores")
    for name, text in (("by", by), ("why", why)):
        if text == ERASED:
            raise ValueError(f"{name}: {ERASED!r} is what an erasure leaves behind")


def step(using: str, work: Callable[[], Result]) -> Result:
    """What `work` returns, done in one transaction in which nobody else seals (`seals.sealing`).

    An OperationalError where others keep the tables for too long: nothing of this step was done. An
    OpenTransactionError inside a transaction of the caller's.
    """
    for pause in (*PAUSES, None):
        started = time.monotonic()
        try:
            with sealing(using):
                result = work()
        except OperationalError as error:
            if pause is None or getattr(error.__cause__, "sqlstate", None) not in _GIVE_WAY:
                raise
            time.sleep(pause)
        else:
            leave_to_others(using, started)
            return result
    raise AssertionError("the last attempt returns or raises")


@contextmanager
def without_guards(using: str, event: str, models: Iterable[type[Model]]) -> Iterator[None]:
    """Lift what keeps these tables from `event` for a block at the end of a step, and nothing else."""
    connection = connections[using]
    tables = {model._meta.db_table for model in models}
    configs = (config for config in apps.get_app_configs() if isinstance(config, GuardedConfig))
    guards = [guard for config in configs for guard in config.guards()]
    wanted = [guard for guard in guards if guard.table in tables and guard.event == event]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [PATIENCE])
    with lifted(connection, wanted):
        yield
