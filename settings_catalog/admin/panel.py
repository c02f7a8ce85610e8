"""The settings of one place as part of another page: for the admin of a platform's agents and workspaces."""

from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from settings_catalog.admin import addresses, words
from settings_catalog.catalog import catalog
from settings_catalog.places import Place
from settings_catalog.resolver import resolve_at


def settings_panel(place: Place, site_name: str = "admin") -> SafeString:
    """Every setting at one place, as HTML: what holds, why, and a link to where it is changed.

    Use it in a read-only field of a ModelAdmin: `settings_panel(Place.of(agent=agent))`.
    """
    return format_html_join(
        "",
        '<p>{}: {}<br><a href="{}">{}</a></p>',
        (
            (
                entry.title,
                words.outcome(resolve_at(entry.key, place)),
                addresses.place_url(site_name, entry.key, place),
                _("Look at it, or change it"),
            )
            for entry in catalog
        ),
    )
