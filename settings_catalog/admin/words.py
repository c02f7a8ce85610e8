"""Words for rows that hold keys: labels of settings, and names of places and people, fetched once a page."""

import re
from collections.abc import Iterable
from datetime import datetime

from django.contrib.auth import get_user_model
from django.db.models import Model
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from settings_catalog.admin.lists import as_key
from settings_catalog.catalog import catalog, get
from settings_catalog.conf import conf
from settings_catalog.keys import key_text
from settings_catalog.places import Level, Place
from settings_catalog.resolver import Resolution

NOTHING = "–"

_SHORT = 100

_MOMENT = ("Y-m-d", "H:i:s", "T")

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def inert(name: object) -> str:
    """A name that others wrote, with line breaks and text direction overrides spelt out.

    What is left cannot reorder or break the words around it; escaping is the template's to do.
    """
    return _CONTROLS.sub(lambda found: f"[U+{ord(found.group()):04X}]", str(name))


def shortened(text: str) -> str:
    """The beginning of a text, on one line."""
    return inert(Truncator(" ".join(text.split())).chars(_SHORT))


def moment(when: datetime) -> SafeString:
    """A time to the second, in the time zone that the admin shows; broken into lines between its parts."""
    local = timezone.localtime(when)
    parts = format_html_join(" ", "<span>{}</span>", ((date_format(local, form),) for form in _MOMENT))
    return format_html('<time class="moment" datetime="{}">{}</time>', local.isoformat(), parts)


def title(key: str) -> str:
    """The title of a setting; its key where no such setting is registered."""
    return str(get(key).title) if key in catalog else inert(key)


def label(key: str, value: str | None) -> str:
    """The label of a value, a dash for none; a value that the setting does not know is shown as it is."""
    if value is None:
        return NOTHING
    if key not in catalog or not get(key).knows(value):
        return _("“%(value)s”, unknown") % {"value": inert(value)}
    return str(get(key).choice(value).label)


def outcome(resolution: Resolution) -> SafeString:
    """The label of what holds, the resolver's own sentence on why, and each fault in what is stored."""
    faults = format_html_join("", "<br><strong>{}</strong>", ((inert(fault),) for fault in resolution.faults))
    return format_html("<strong>{}</strong><br>{}{}", resolution.choice.label, inert(resolution), faults)


class Names:
    """The names of rows of one model by their keys, from one query; a row that is gone goes by its key."""

    def __init__(self, model: type[Model], keys: Iterable[str | None]) -> None:
        wanted = {key for text in keys if (key := as_key(model._meta.pk, text)) is not None}
        rows = model._default_manager.filter(pk__in=wanted) if wanted else ()
        self._names = {key_text(row.pk): inert(row) for row in rows}

    def __getitem__(self, key: str | None) -> str:
        if key is None:
            return NOTHING
        if key not in self._names:
            return _("%(key)s (gone)") % {"key": inert(key)}
        return self._names[key] or inert(key)


class PlaceNames:
    """The names of several places, from one query for each model."""

    def __init__(self, places: Iterable[Place]) -> None:
        places = list(places)
        self._workspaces = Names(conf.workspace_model, (place.workspace_id for place in places))
        self._agents = Names(conf.agent_model, (place.agent_id for place in places))

    def __getitem__(self, place: Place) -> str:
        names = {"workspace": self._workspaces[place.workspace_id], "agent": self._agents[place.agent_id]}
        if place.level is Level.PLATFORM:
            return _("the whole platform")
        if place.level is Level.WORKSPACE:
            return _("the workspace %(workspace)s") % names
        return _("the agent %(agent)s of %(workspace)s") % names


def people(keys: Iterable[str | None]) -> Names:
    """The names of people, those who still exist."""
    return Names(get_user_model(), keys)
