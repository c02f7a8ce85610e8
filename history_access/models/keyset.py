"""Keyset paging in SQL: a row comparison, which an index answers without walking what lies before."""

from datetime import datetime
from typing import Any

from django.db.models import BooleanField, F, Func, TextField, Value
from django.db.models.expressions import Combinable


def beyond(model: Any, moved: datetime, key: Any) -> Func:
    """The sessions after (moved, key) in the order newest first.

    In SQL: `(last_moved_at, id) < (moved, key)`, the same on PostgreSQL and SQLite.
    """
    moved_at = Value(moved, output_field=model._meta.get_field("last_moved_at"))
    position = _row(moved_at, Value(key, output_field=model._meta.pk))
    return Func(
        _row(F("last_moved_at"), F("pk")),
        position,
        template="%(expressions)s",
        arg_joiner=" < ",
        output_field=BooleanField(),
    )


def _row(*columns: Combinable) -> Func:
    return Func(*columns, template="(%(expressions)s)", output_field=TextField())
