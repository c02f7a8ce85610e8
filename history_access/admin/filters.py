"""Filters of the record."""

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from history_access.entries import HISTORY_ACCESS
from history_access.models import How, What
from settings_catalog.admin.lists import KnownValues


class WhenFilter(KnownValues):
    """Reads of the last days, until now: a comparison with one moment, the same on every database."""

    title = _("when")
    parameter_name = "days"
    known = (
        ("1", _("Past 24 hours")),
        ("7", _("Past 7 days")),
        ("30", _("Past 30 days")),
        ("365", _("Past year")),
    )

    def condition(self, value: str) -> Q:
        """Reads at or after the moment so many days ago."""
        return Q(read_at__gte=timezone.now() - timedelta(days=int(value)))


class CrossedFilter(KnownValues):
    """Reads of a conversation whose account is not the turn's own, and the others."""

    title = _("account line")
    parameter_name = "crossed"
    known = (("yes", _("Crossed")), ("no", _("Not crossed")))

    def condition(self, value: str) -> Q:
        """What the list shows in its column."""
        return Q(is_crossed=value == "yes")


class AbsentFilter(KnownValues):
    """Reads in which an account is absent: NULL, never an account of that name."""

    title = _("account absent")
    parameter_name = "absent"
    known = (
        ("turn", _("The turn's")),
        ("conversation", _("The conversation's")),
        ("both", _("Both")),
        ("neither", _("Neither")),
    )

    def condition(self, value: str) -> Q:
        """Whose account is absent."""
        turn, conversation = Q(turn_account_id__isnull=True), Q(session_account_id__isnull=True)
        return {
            "turn": turn,
            "conversation": conversation,
            "both": turn & conversation,
            "neither": ~turn & ~conversation,
        }[value]


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
