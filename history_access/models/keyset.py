"""Keyset paging in SQL: a row comparison, which an index answers without walking what lies before."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db.models import BooleanField, F, Func, QuerySet, TextField, Value
from django.db.models.expressions import Combinable


def beyond(model: Any, moved: datetime, key: Any) -> Func:
    """The sessions after (moved, key) in the order newest first.

    In SQL: `(last_moved_at, id) < (moved, key)`, the same on PostgreSQL and SQLite.
    """
    return _compared(model, {"last_moved_at": moved, model._meta.pk.name: key}, " < ")


def up_to(model: Any, moved: datetime, key: Any) -> Func:
    """The others: those down to (moved, key), which is among them."""
    return _compared(model, {"last_moved_at": moved, model._meta.pk.name: key}, " >= ")


def in_pages(rows: "QuerySet[Any, Any]", *columns: str, size: int) -> Iterator[Any]:
    """The rows, objects or `values()`, in the order of columns that are unique together, a page a statement.

    It holds one page, whatever the settings: `iterator()` holds every row where Django may keep no cursor on
    the server, which it must not behind a connection pooler. Steady only while nobody else is seen to write.
    """
    ordered = rows.order_by(*columns)
    page = list(ordered[:size])
    while page:
        yield from page
        last = page[-1]
        if len(page) < size:
            return
        values = {name: last[name] if isinstance(last, dict) else getattr(last, name) for name in columns}
        page = list(ordered.filter(_compared(rows.model, values, " > "))[:size])


def _compared(model: Any, values: Mapping[str, Any], sign: str) -> Func:
    columns = [F(name) for name in values]
    given = [
        value if isinstance(value, Combinable) else Value(value, output_field=model._meta.get_field(name))
        for name, value in values.items()
    ]
    return Func(
        _row(*columns),
        _row(*given),
        template="%(expressions)s",
        arg_joiner=sign,
        output_field=BooleanField(),
    )


def _row(*columns: Combinable) -> Func:
    return Func(*columns, template="(%(expressions)s)", output_field=TextField())
