"""Keyset paging in SQL: a row comparison, which an index answers without walking what lies before."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db.models import F, Func, Lookup, QuerySet, TextField, Value
from django.db.models.expressions import Combinable


def beyond(model: Any, moved: datetime, key: Any) -> "Lookup[Any]":
    """The sessions after (moved, key) in the order newest first.

    In SQL: `(last_moved_at, id) < (moved, key)`, the same on PostgreSQL and SQLite.
    """
    return _compared(model, {"last_moved_at": moved, model._meta.pk.name: key}, _Less)


def up_to(model: Any, moved: datetime, key: Any) -> "Lookup[Any]":
    """The others: those down to (moved, key), which is among them."""
    return _compared(model, {"last_moved_at": moved, model._meta.pk.name: key}, _NotLess)


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
        page = list(ordered.filter(_compared(rows.model, values, _Greater))[:size])


class _Comparison(Lookup):
    """Two rows compared. As a lookup it stands in WHERE by itself: of another condition Django's SQLite asks
    whether it is true, and then it uses no index.
    """

    prepare_rhs = False
    sign = ""

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        """The comparison in SQL."""
        left, of_left = compiler.compile(self.lhs)
        right, of_right = compiler.compile(self.rhs)
        return f"{left} {self.sign} {right}", (*of_left, *of_right)


class _Less(_Comparison):
    lookup_name, sign = "row_less", "<"


class _NotLess(_Comparison):
    lookup_name, sign = "row_not_less", ">="


class _Greater(_Comparison):
    lookup_name, sign = "row_greater", ">"


def _compared(model: Any, values: Mapping[str, Any], how: type[_Comparison]) -> "Lookup[Any]":
    columns = [F(name) for name in values]
    given = [
        value if isinstance(value, Combinable) else Value(value, output_field=model._meta.get_field(name))
        for name, value in values.items()
    ]
    return how(_row(*columns), _row(*given))


def _row(*columns: Combinable) -> Func:
    return Func(*columns, template="(%(expressions)s)", output_field=TextField())
