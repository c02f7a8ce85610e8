"""Pages of the settings' admin: the catalog, the choice of a place, and one setting at one place."""

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from settings_catalog.admin import addresses, words
from settings_catalog.admin.forms import PlaceForm, SettingForm
from settings_catalog.authority import missing_permission
from settings_catalog.catalog import Entry, catalog
from settings_catalog.conf import conf
from settings_catalog.dangers import warnings_of
from settings_catalog.places import Level, Place
from settings_catalog.resolver import Resolution, Step, resolve, resolve_at

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

    from settings_catalog.models import SettingValue

    Owner = ModelAdmin[SettingValue]

_OK, _FORBIDDEN = 200, 403


def catalog_page(owner: "Owner", request: HttpRequest) -> HttpResponse:
    """Every registered setting: its words, its choices, and what holds on the platform."""
    shown = [_shown(owner, resolve(entry.key)) for entry in catalog]
    return _page(owner, request, "catalog.html", title=_("Catalog of settings"), settings=shown)


def chosen_page(owner: "Owner", request: HttpRequest) -> HttpResponse:
    """The page of the place that the address names; without one, a form that asks for it."""
    asked = request.GET if "entry" in request.GET else None
    form = PlaceForm(asked, admin_site=owner.admin_site)
    if form.is_valid():
        return place_page(owner, request, form.cleaned_data["entry"], form.cleaned_data["place"])
    title = _("Look at a setting, or change it")
    return _page(owner, request, "choose.html", title=title, form=form, media=owner.media + form.media)


def place_page(owner: "Owner", request: HttpRequest, key: str, place: Place) -> HttpResponse:
    """One setting at one place: what holds and why, and the form for whoever may change it.

    A POST of anybody else is a 403, and says which permission is missing (`catalog-who`).
    """
    if key not in catalog:
        return _page(owner, request, "unregistered.html", title=words.title(key))
    resolution, posted = resolve_at(key, place), request.method == "POST"
    form = SettingForm(request.POST if posted else None, resolution=resolution)
    missing = missing_permission(request.user, place, conf.authority)
    if missing is None and form.is_valid():
        saved = form.save(by=request.user)
        if saved is not None:
            return _saved(owner, request, saved)
    shown = {"form": None if missing else form, "missing": missing, **_place_shown(owner, resolution)}
    status = _FORBIDDEN if posted and missing else _OK
    return _page(owner, request, "place.html", status=status, refused=posted and missing, **shown)


def _saved(owner: "Owner", request: HttpRequest, resolution: Resolution) -> HttpResponse:
    messages.success(request, _("Saved. %(what)s") % {"what": words.inert(resolution)})
    for warning in warnings_of(resolution, resolution.value):
        messages.warning(request, str(warning))
    url = addresses.place_url(owner.admin_site.name, resolution.entry.key, resolution.place)
    return HttpResponseRedirect(url)


def _shown(owner: "Owner", resolution: Resolution) -> dict[str, Any]:
    entry, site_name = resolution.entry, owner.admin_site.name
    return {
        "entry": entry,
        "resolution": resolution,
        "outcome": words.outcome(resolution),
        "place_url": addresses.place_url(site_name, entry.key, resolution.place),
    }


def _place_shown(owner: "Owner", resolution: Resolution) -> dict[str, Any]:
    entry, names = resolution.entry, words.PlaceNames(resolution.place.ladder)
    return {
        "title": entry.title,
        "subtitle": capfirst(names[resolution.place]),
        "log_url": addresses.log_url(owner.admin_site.name, entry.key, resolution.place),
        "warnings": warnings_of(resolution, resolution.value),
        "steps": [(capfirst(names[step.place]), *_step_words(entry, step)) for step in resolution.steps],
        **_shown(owner, resolution),
    }


def _step_words(entry: Entry, step: Step) -> tuple[str, str]:
    """What a rung asks for and allows; the starting ceiling where the platform has no other."""
    ceiling = words.label(entry.key, step.ceiling)
    if step.ceiling is None and step.place.level is Level.PLATFORM and entry.starting_ceiling is not None:
        starting = words.label(entry.key, entry.starting_ceiling)
        ceiling = _("%(ceiling)s (the starting ceiling)") % {"ceiling": starting}
    return words.label(entry.key, step.value), ceiling


def _page(
    owner: "Owner", request: HttpRequest, template: str, *, status: int = _OK, **context: Any
) -> TemplateResponse:
    context = {
        **owner.admin_site.each_context(request),
        "opts": owner.opts,
        "has_view_permission": True,
        "original": context["title"],
        "list_url": addresses.list_url(owner.admin_site.name),
        "media": owner.media,
        **context,
    }
    return TemplateResponse(request, f"settings_catalog/admin/{template}", context, status=status)
