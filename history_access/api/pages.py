"""Pages by key: exact whatever is written meanwhile, without offsets and without counts.

An order ends in what is unique, so that each row comes once. A cursor is signed and good for the question
that it came from alone; it opens nothing, since every page is filtered and allowed anew.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from drf_spectacular.plumbing import append_meta
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from history_access.api.filters import ParameterError
from history_access.paging import CursorError, read_cursor, write_cursor

USUAL, MOST = 50, 200
"""How many rows a page has where nobody says, and at most."""

_CURSOR = re.compile(r"[\w:.-]{1,8000}", re.ASCII)
_CURSOR_RULE = "must be the cursor of a page of this very question; start again without one"


@dataclass(frozen=True, kw_only=True)
class Order:
    """The order of a list: its columns, which together are unique, and how each is read from a cursor."""

    columns: tuple[str, ...]
    read: tuple[Callable[[str], Any], ...]
    newest_first: bool = True

    def sorted(self, rows: "QuerySet[Any, Any]") -> "QuerySet[Any, Any]":
        """The rows in this order."""
        return rows.order_by(*(f"-{column}" if self.newest_first else column for column in self.columns))

    def beyond(self, place: Sequence[Any]) -> Q:
        """What comes after this place."""
        lookup = "lt" if self.newest_first else "gt"
        *before, last = zip(self.columns, place, strict=True)
        condition = Q(**{f"{last[0]}__{lookup}": last[1]})
        for column, value in reversed(before):
            condition = Q(**{f"{column}__{lookup}": value}) | Q(**{column: value}) & condition
        return condition

    def place_of(self, row: Any) -> list[str]:
        """Where a row stands, as text."""
        return [str(row[name] if isinstance(row, dict) else getattr(row, name)) for name in self.columns]


def checked_limit(text: str) -> int:
    """How many rows a page has; a ValidationError beyond `MOST`: nobody takes a page for the whole."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST)) and 1 <= int(text) <= MOST):
        raise ValidationError(f"must be a whole number from 1 to {MOST}")
    return int(text)


def checked_cursor(text: str) -> str:
    """A text that may be a cursor; a ValidationError for what is none in any case."""
    if not _CURSOR.fullmatch(text):
        raise ValidationError(_CURSOR_RULE)
    return text


class KeyPages(BasePagination):
    """Pages of a list whose view states its `order`, and in `cursor_scope` what a cursor is bound to."""

    parameters: ClassVar[dict[str, Callable[[str], Any]]] = {
        "limit": checked_limit,
        "cursor": checked_cursor,
    }

    next_link: str | None = None

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """The rows of the page that is asked for; a ParameterError where the cursor is not this list's."""
        limit = checked_limit(request.query_params.get("limit", str(USUAL)))
        place = _place(request.query_params.get("cursor"), view.order, view.cursor_scope())
        rows = view.order.sorted(queryset if place is None else queryset.filter(view.order.beyond(place)))
        found = list(rows[: limit + 1])
        if len(found) > limit:
            cursor = write_cursor(view.order.place_of(found[limit - 1]), view.cursor_scope())
            self.next_link = replace_query_param(request.build_absolute_uri(), "cursor", cursor)
        return found[:limit]

    def get_paginated_response(self, data: Any) -> Response:
        """The page, and where the next one is."""
        return Response({"next": self.next_link, "results": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """What the page looks like."""
        link = append_meta({"type": "string", "format": "uri"}, {"nullable": True})
        properties = {"next": link, "results": schema}
        return {"type": "object", "required": list(properties), "properties": properties}

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """The parameters of a page."""
        limit = {"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL}
        return [
            _parameter("limit", f"How many rows at most. More than {MOST} is refused.", limit),
            _parameter("cursor", "Which page: from the link to the next one.", {"type": "string"}),
        ]


def _place(cursor: str | None, order: Order, scope: Sequence[str]) -> list[Any] | None:
    """Where a page begins; None for the first."""
    if cursor is None:
        return None
    try:
        place = read_cursor(cursor, scope, [str] * len(order.columns))
    except CursorError:
        raise ParameterError({"cursor": _CURSOR_RULE}) from None
    return [read(text) for read, text in zip(order.read, place, strict=True)]


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}
