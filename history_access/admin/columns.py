"""Columns that several pages share: what an auditor sees of a row, as `history_access.audited` says it."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from django.contrib import admin
from django.db.models import Model
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from history_access.audited import Row as Audited
from settings_catalog.admin.words import NOTHING, inert

One = TypeVar("One", bound=Model)


def with_names(rows: list[One], shown: Callable[[Iterable[One]], list[Audited]]) -> list[One]:
    """The rows, each with what auditors see of it: the names that were recorded beside its keys."""
    for row, seen in zip(rows, shown(rows), strict=True):
        vars(row)["seen"] = seen
    return rows


def name(row: Any, whose: str) -> str:
    """The name recorded for a key; the key where there is none, a dash for the absent key."""
    key = row.seen[f"{whose}_id"]
    return NOTHING if key is None else inert(row.seen[f"{whose}_name"] or key)


def account(row: Any, whose: str) -> str:
    """Its name; the absent account looks like no name, not even like an account that is named "none"."""
    if row.seen[f"{whose}_id"] is None:
        return format_html("<em>{}</em>", gettext("no account"))
    return name(row, whose)


def lines(pairs: Iterable[tuple[Any, Any]]) -> SafeString:
    """What is said of several things, each on a line of its own."""
    return format_html_join("", "<div>{}: {}</div>", pairs)


def wrapped(text: object) -> SafeString:
    """A text that may break into lines anywhere, as a digest has to."""
    return format_html('<span class="wrapped">{}</span>', inert(text))


def told(details: Any) -> SafeString:
    """A stored dictionary, each of its entries on a line; anything else as it is."""
    pairs = details.items() if isinstance(details, dict) else [("", details)]
    return lines((inert(key), wrapped(value)) for key, value in pairs)


class TurnColumns:
    """Who called: what a read and a refused call have in common."""

    @admin.display(description=_("workspace"))
    def workspace(self, row: Any) -> str:
        """Its name."""
        return name(row, "workspace")

    @admin.display(description=_("agent"))
    def agent(self, row: Any) -> str:
        """Its name."""
        return name(row, "agent")

    @admin.display(description=_("read as"))
    def reader(self, row: Any) -> str:
        """The name of the person that the turn read as."""
        return name(row, "reader")

    @admin.display(description=_("trigger"))
    def trigger(self, row: Any) -> str:
        """Its name."""
        return name(row, "trigger")

    @admin.display(description=_("turn"))
    def turn_key(self, row: Any) -> str:
        """Its key."""
        return inert(row.turn_id)

    @admin.display(description=_("keys"))
    def keys(self, row: Any) -> SafeString:
        """Every key as it was recorded, a dash for an absent one."""
        fields = (field for field in row._meta.fields if field.name.endswith("_id"))
        keys = ((field.verbose_name, getattr(row, field.name)) for field in fields)
        return lines((capfirst(label), NOTHING if key is None else inert(key)) for label, key in keys)

    @admin.display(description=_("who"))
    def who(self, row: Any) -> SafeString:
        """The agent, and the person that it read as."""
        return format_html(
            "{}<br>{}", self.agent(row), gettext("as %(reader)s") % {"reader": self.reader(row)}
        )
