"""Filters of the record, named and valued as over REST."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from history_access.admin.visitors import Visitor
from history_access.entries import HISTORY_ACCESS
from history_access.models import EventKind, How, SealedKind, What
from history_access.tools import Code, list_conversations, read_conversation
from settings_catalog.admin.lists import KnownValues
from settings_catalog.admin.words import inert

WORKSPACE = "workspace"
"""The parameter that names a workspace, as over REST."""

_TRUTH = ("true", "false")


class WorkspaceFilter(KnownValues):
    """Offers the workspaces that the person may audit; the rows come from `auditors.Scope` alone."""

    title = _("workspace")
    parameter_name = WORKSPACE

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        """The first of them, and the one that the address names."""
        named, offered = request.GET.get(WORKSPACE), dict(Visitor.of(request).workspaces)
        if named is not None:
            offered.setdefault(named, inert(named))
        return offered.items()

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        """The rows as they come."""
        return queryset

    def choices(self, changelist: Any) -> Iterator[Any]:
        """All workspaces at once for those alone who may audit everywhere."""
        every, *others = super().choices(changelist)
        if Visitor.of(self.request).everywhere:
            yield every
        yield from others


class _WhenFilter(KnownValues):
    """Rows of the last days, until now: a comparison with one moment, the same on every database."""

    column: str

    title = _("when")
    parameter_name = "days"
    known = (
        ("1", _("Past 24 hours")),
        ("7", _("Past 7 days")),
        ("30", _("Past 30 days")),
        ("365", _("Past year")),
    )

    def condition(self, value: str) -> Q:
        """Rows of the moment so many days ago, and later ones."""
        return Q(**{f"{self.column}__gte": timezone.now() - timedelta(days=int(value))})


class ReadWhenFilter(_WhenFilter):
    """By when it was read."""

    column = "read_at"


class RefusedWhenFilter(_WhenFilter):
    """By when it was refused."""

    column = "refused_at"


class AskedWhenFilter(_WhenFilter):
    """By when it was asked."""

    column = "asked_at"


class CrossedFilter(KnownValues):
    """Reads of a conversation whose account is not the turn's own, and the others."""

    title = _("crossed account")
    parameter_name = "crossed"
    known = tuple(zip(_TRUTH, (_("Yes"), _("No")), strict=True))

    def condition(self, value: str) -> Q:
        """What the list shows in its column."""
        return Q(is_crossed=value == "true")


class _AbsentFilter(KnownValues):
    """Reads in which an account is absent: NULL, never an account of that name."""

    column: str
    known = tuple(zip(_TRUTH, (_("Absent"), _("Not absent")), strict=True))

    def condition(self, value: str) -> Q:
        """Whether the account is absent."""
        return Q(**{f"{self.column}__isnull": value == "true"})


class AccountAbsentFilter(_AbsentFilter):
    """By the conversation's account."""

    title = _("conversation's account")
    parameter_name = "account_absent"
    column = "session_account_id"


class TurnAccountAbsentFilter(_AbsentFilter):
    """By the turn's account."""

    title = _("turn's account")
    parameter_name = "turn_account_absent"
    column = "turn_account_id"


class HowFilter(KnownValues):
    """Reads by the setting, or by reference."""

    title = _("how")
    parameter_name = "how"
    known = How.choices


class WhatFilter(KnownValues):
    """Reads of titles, of messages, of summaries or of excerpts."""

    title = _("what")
    parameter_name = "what"
    known = What.choices


class SettingFilter(KnownValues):
    """Reads under one of the values that the setting has today."""

    title = _("setting at the time")
    parameter_name = "setting"
    known = tuple((choice.value, choice.label) for choice in HISTORY_ACCESS.choices)


class ToolFilter(KnownValues):
    """Refused calls of one of the tools, or of a tool that there is not."""

    title = _("tool")
    parameter_name = "tool"
    known = (
        *((tool.__name__, tool.__name__) for tool in (list_conversations, read_conversation)),
        ("", _("none of ours")),
    )


class CodeFilter(KnownValues):
    """Refused calls with one error code."""

    title = _("code")
    parameter_name = "code"
    known = tuple((code.value, code.value) for code in Code)


class SealedKindFilter(KnownValues):
    """Seals over reads, or over maintenance of the record."""

    title = _("kind")
    parameter_name = "kind"
    known = SealedKind.choices


class EventKindFilter(KnownValues):
    """What was pruned, or what was erased."""

    title = _("kind")
    parameter_name = "kind"
    known = EventKind.choices
