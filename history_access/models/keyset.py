"""Keyset paging in SQL: a row comparison, which an index answers without walking what lies before."""

from datetime import datetime
from typing import Any

from django.db.models import BooleanField, F, Func, TextField, Value
from django.db.models.expressions import Combinable


def beyond(model: Any, moved: datetime, key: Any) -> Func:
    """The sessions after (moved, key) in the order newest first.

    In SQL: `(last_moved_at, id) < (moved, key)`, the same on PostgreSQL and SQLite.
    """
    return _compared(model, moved, key, " < ")


def up_to(model: Any, moved: datetime, key: Any) -> Func:
    """The others: those down to (moved, key), which is among them."""
    return _compared(model, moved, key, " >= ")


def _compared(model: Any, moved: datetime, key: Any, sign: str) -> Func:
    moved_at = Value(moved, output_field=model._meta.get_field("last_moved_at"))
    return Func(
        _row(F("last_moved_at"), F("pk")),
        _row(moved_at, Value(key, output_field=model._meta.pk)),
        template="%(expressions)s",
        arg_joiner=sign,
        output_field=BooleanField(),
    )


def _row(*columns: Combinable) -> Func:
    return Func(*columns, template="(%(expressions)s)", output_field=TextField())
