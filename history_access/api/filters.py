"""What a request may ask for. A parameter that is unknown, empty, repeated or wrong is refused by name.

A misspelt filter never means "everything"; keys are compared as plain text, so that a filter never tells
which keys exist.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import QueryDict
from django_filters import filters
from django_filters.filterset import FilterSet
from drf_spectacular.utils import extend_schema_field

from history_access.entries import HISTORY_ACCESS
from history_access.models import How, TurnConversationRead, What
from history_access.models.reads import KEY_LENGTH
from history_access.times import MomentError, moment

_KEY_RULE = f"must be a key as the record shows it: 1 to {KEY_LENGTH} characters, no NUL, no lone surrogate"
_MOMENT_RULE = (
    "must be a date like 2026-11-29 (in UTC), or a time with an offset like 2026-11-29T14:30:00Z "
    "(a + is written %2B), within the calendar"
)
_WHOLE_DAY = "Of a date, before the end of that day."
_UTC = ZoneInfo("UTC")
_NO_KEY = re.compile("[\0\ud800-\udfff]")
_WITHOUT_OFFSET = re.compile(r".*[T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?", re.DOTALL)


class ParameterError(ValueError):
    """Parameters that cannot be taken: `rules` names each, with the rule that it breaks."""

    def __init__(self, rules: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name} {rule}" for name, rule in rules.items()))
        self.rules = rules


def checked_key(text: str) -> str:
    """The key itself; a ValidationError for what can be none, and which no database could be asked for."""
    if not 1 <= len(text) <= KEY_LENGTH or _NO_KEY.search(text):
        raise ValidationError(_KEY_RULE)
    return text


class KeyField(forms.Field):
    """A key, as it is."""

    def to_python(self, value: str | None) -> str | None:
        """The key to the letter; None where none is given."""
        return None if value is None else checked_key(value)


class MomentField(forms.Field):
    """A moment: a time with its offset, or a date in UTC."""

    def __init__(self, *, end_of_day: bool, **given: Any) -> None:
        super().__init__(**given)
        self.end_of_day = end_of_day

    def to_python(self, value: str | None) -> datetime | None:
        """The instant in UTC; of a date its midnight, or with `end_of_day` the next day's."""
        if value is None:
            return None
        try:
            if not _WITHOUT_OFFSET.fullmatch(value):
                return moment(value, _UTC, end_of_day=self.end_of_day)
        except MomentError:
            pass
        raise ValidationError(_MOMENT_RULE)


def _documented(one: filters.Filter, schema: dict[str, Any], help_text: str) -> None:
    """State in an OpenAPI schema what a filter takes."""
    extend_schema_field({**schema, "description": help_text})(one)


class KeyFilter(filters.Filter):
    """Rows whose column is exactly this key."""

    field_class = KeyField

    def __init__(self, field_name: str, help_text: str) -> None:
        super().__init__(field_name, help_text=help_text)
        _documented(self, {"type": "string", "minLength": 1, "maxLength": KEY_LENGTH}, help_text)


class ChosenFilter(filters.ChoiceFilter):
    """Rows whose column is one of a few known values."""

    def __init__(self, field_name: str, values: Iterable[str], help_text: str) -> None:
        values = tuple(values)
        rule = f"must be one of {', '.join(values)}"
        super().__init__(
            field_name,
            choices=[(value, value) for value in values],
            help_text=help_text,
            empty_label=None,
            error_messages={"invalid_choice": rule},
        )
        _documented(self, {"type": "string", "enum": list(values)}, help_text)


class TruthFilter(ChosenFilter):
    """Rows for which a condition of theirs is true, or is not; `lookup` makes the condition of a column."""

    def __init__(self, field_name: str, help_text: str, lookup: str = "exact") -> None:
        super().__init__(field_name, ("true", "false"), help_text)
        self.lookup = lookup
        _documented(self, {"type": "boolean"}, help_text)

    def filter(self, rows: "QuerySet[Any]", value: str) -> "QuerySet[Any]":
        """The rows that are left; all of them where nothing is asked."""
        return rows.filter(**{f"{self.field_name}__{self.lookup}": value == "true"}) if value else rows


class MomentFilter(filters.Filter):
    """Rows from a moment on, or before one."""

    field_class = MomentField

    def __init__(self, field_name: str, lookup: str, help_text: str) -> None:
        super().__init__(field_name, lookup, help_text=help_text, end_of_day=lookup == "lt")
        forms_of_time = [{"format": "date-time"}, {"format": "date"}]
        _documented(self, {"type": "string", "anyOf": forms_of_time}, help_text)


def _absent(column: str, whose: str) -> TruthFilter:
    return TruthFilter(column, f"Whether {whose} is absent; one of any name is not.", "isnull")


class AuditFilters(FilterSet):
    """What every question of an auditor's may name. Several filters hold all at once."""

    workspace = KeyFilter(
        "workspace_id",
        help_text="Of this workspace. Required of everybody who may not audit all workspaces.",
    )


class ReadFilters(AuditFilters):
    """Filters of reads."""

    agent = KeyFilter("agent_id", "By this agent.")
    account = KeyFilter("session_account_id", "Of conversations with this account.")
    account_absent = _absent("session_account_id", "the conversation's account")
    person = KeyFilter("session_person_id", "Of conversations of this person.")
    person_absent = _absent("session_person_id", "the conversation's person")
    turn_account = KeyFilter("turn_account_id", "By turns with this account.")
    turn_account_absent = _absent("turn_account_id", "the turn's account")
    reader = KeyFilter("reader_id", "By turns that read as this person.")
    trigger = KeyFilter("trigger_id", "By turns that this trigger started.")
    turn = KeyFilter("turn_id", "By this turn.")
    conversation = KeyFilter("session_id", "Of this conversation.")
    how = ChosenFilter("how", How.values, "By the setting, or by a reference.")
    what = ChosenFilter("what", What.values, "What was given.")
    setting = ChosenFilter("setting", HISTORY_ACCESS.values, "Under this value of the setting at the time.")
    crossed = TruthFilter("is_crossed", "Whether the conversation's account is not the turn's own.")
    after = MomentFilter("read_at", "gte", "Read at or after this.")
    before = MomentFilter("read_at", "lt", f"Read before this. {_WHOLE_DAY}")


class RefusalFilters(AuditFilters):
    """Filters of refused calls."""

    agent = KeyFilter("agent_id", "Of this agent.")
    turn = KeyFilter("turn_id", "Of this turn.")
    reader = KeyFilter("reader_id", "Of turns that read as this person.")
    trigger = KeyFilter("trigger_id", "Of turns that this trigger started.")
    tool = KeyFilter("tool", "Of this tool.")
    code = KeyFilter("code", "With this error code.")
    after = MomentFilter("refused_at", "gte", "Refused at or after this.")
    before = MomentFilter("refused_at", "lt", f"Refused before this. {_WHOLE_DAY}")


class NoFilters(FilterSet):
    """Nothing to filter by."""


Filters = TypeVar("Filters", bound=FilterSet)
Check = Callable[[str], Any]


def checked(kind: type[Filters], given: QueryDict, besides: Mapping[str, Check]) -> Filters:
    """The filters that a request names; a ParameterError names every parameter that cannot be taken.

    `besides` checks further parameters, such as those of pages; a check raises a ValidationError.
    """
    found: Filters = kind(given, TurnConversationRead.objects.none())  # which rows are filtered is said later
    rules = {name: str(rules[0]) for name, rules in found.errors.items()}
    for name, values in given.lists():
        rule = _general_rule(values) if name in {*kind.base_filters, *besides} else _unknown(kind, besides)
        if rule is None and name in besides:
            rule = _broken_rule(besides[name], values[0])
        if rule is not None:
            rules[name] = rule
    if rules:
        raise ParameterError(rules)
    return found


def _general_rule(values: list[str]) -> str | None:
    """What every parameter has to keep; None where it does."""
    if len(values) > 1:
        return "must be given once"
    return "must not be empty; leave it out" if values[0] == "" else None


def _broken_rule(check: Check, value: str) -> str | None:
    try:
        check(value)
    except ValidationError as error:
        return str(error.message)
    return None


def _unknown(kind: type[FilterSet], besides: Collection[str]) -> str:
    known = sorted({*kind.base_filters, *besides})
    return f"is not known here; there are {', '.join(known) or 'none'}"
