"""Columns that several lists share: names that people wrote, made inert."""

from typing import Any

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from settings_catalog.admin.words import NOTHING, inert, moment


class NameColumns:
    """What a row belongs to, and when it began; each list joins the tables of those whose names it shows."""

    @admin.display(description=_("started"))
    def started(self, row: Any) -> SafeString:
        """When, to the second."""
        return moment(row.started_at)

    @admin.display(description=_("name"))
    def own_name(self, row: Any) -> str:
        """Its own name."""
        return inert(row.name)

    @admin.display(description=_("workspace"))
    def workspace_name(self, row: Any) -> str:
        """The name of its workspace."""
        return inert(row.workspace)

    @admin.display(description=_("agent"))
    def agent_name(self, row: Any) -> str:
        """The name of its agent."""
        return _name(row.agent)

    @admin.display(description=_("account"))
    def account_name(self, row: Any) -> str:
        """The name of its account; the absent one looks like no name, whatever accounts are called."""
        return (
            format_html("<em>{}</em>", gettext("no account")) if row.account is None else _name(row.account)
        )

    @admin.display(description=_("person"))
    def person_name(self, row: Any) -> str:
        """The name of its person."""
        return _name(row.person)

    @admin.display(description=_("sender"))
    def sender_name(self, row: Any) -> str:
        """The name of the person who sent it."""
        return _name(row.sender)

    @admin.display(description=_("trigger"))
    def trigger_name(self, row: Any) -> str:
        """The name of its trigger."""
        return _name(row.trigger)

    @admin.display(description=_("owner"))
    def owner_name(self, row: Any) -> str:
        """The name of its owner."""
        return _name(row.owner)


def _name(row: object | None) -> str:
    return NOTHING if row is None else inert(row)
