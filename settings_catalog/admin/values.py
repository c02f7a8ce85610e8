"""The list of settings: what each place asks for and allows, what holds there, and why."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from settings_catalog.admin import addresses, pages, words
from settings_catalog.admin.filters import LevelFilter, SettingFilter
from settings_catalog.admin.lists import BoundedAdmin, is_searchable
from settings_catalog.authority import missing_permission
from settings_catalog.catalog import catalog
from settings_catalog.conf import conf
from settings_catalog.keys import key_text
from settings_catalog.models import SettingValue
from settings_catalog.places import Place
from settings_catalog.resolver import Resolution, resolve_many

_MOST_NAMED = 100
"""How many workspaces or agents a search by name takes at most."""


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """What the list shows beside a row; no resolution where the setting is not registered."""

    place: str
    resolution: Resolution | None


@admin.register(SettingValue)
class SettingValueAdmin(BoundedAdmin[SettingValue]):
    """Whoever may view the model sees every page; who may change what, `catalog-who` says."""

    list_display = ("setting", "where", "asks_for", "allows_at_most", "outcome")
    list_filter = (SettingFilter, LevelFilter)
    search_fields = ("workspace_id", "agent_id")
    search_help_text = _("The name or the key of a workspace or an agent.")
    change_list_template = "settings_catalog/admin/setting_list.html"

    def get_urls(self) -> list[URLPattern]:
        """Django's pages, and the catalog's."""
        view = self.admin_site.admin_view(self.catalog_view)
        return [path("catalog/", view, name="settings_catalog_settingvalue_catalog"), *super().get_urls()]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """No button of Django's: people look at a place first, and set it there."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: SettingValue | None = None) -> bool:
        """Whether the person may change this row; without a row, the platform's."""
        place = obj.place if obj else Place.platform()
        may_look = self.has_view_permission(request, obj)
        return may_look and missing_permission(request.user, place, conf.authority) is None

    def has_delete_permission(self, request: HttpRequest, obj: SettingValue | None = None) -> bool:
        """A row goes when its value and its ceiling are cleared, with a reason; nobody deletes it."""
        return False

    def prepared(self, rows: list[SettingValue]) -> list[SettingValue]:
        """The rows with the names of their places and with what holds there."""
        names = words.PlaceNames(row.place for row in rows)
        found = _resolutions(rows)
        for row in rows:
            shown = _Shown(place=names[row.place], resolution=found.get((row.entry, row.place)))
            vars(row)["shown"] = shown
        return rows

    def get_search_results(
        self, request: HttpRequest, queryset: "QuerySet[Any]", search_term: str
    ) -> "tuple[QuerySet[SettingValue], bool]":
        """Rows whose workspace or agent has this key, or a name that its own admin finds."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if not is_searchable(term):
            return queryset.none(), False
        workspaces = [term, *self._named(request, conf.workspace_model, term)]
        agents = [term, *self._named(request, conf.agent_model, term)]
        return queryset.filter(Q(workspace_id__in=workspaces) | Q(agent_id__in=agents)), False

    def _named(self, request: HttpRequest, model: type[Model], term: str) -> list[str]:
        """Keys of rows that the model's own admin finds, where the person may look at it."""
        if not self.admin_site.is_registered(model):
            return []
        own = self.admin_site.get_model_admin(model)
        if not own.get_search_fields(request) or not own.has_view_permission(request):
            return []
        rows, _duplicates = own.get_search_results(request, own.get_queryset(request), term)
        return [key_text(key) for key in rows.order_by("-pk").values_list("pk", flat=True)[:_MOST_NAMED]]

    def catalog_view(self, request: HttpRequest) -> HttpResponse:
        """Every registered setting, with its choices and what the platform says."""
        self._may_look(request)
        return pages.catalog_page(self, request)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of the place that the address names; without one, a form that asks for it."""
        self._may_look(request)
        return pages.chosen_page(self, request)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of the place where a row stands."""
        self._may_look(request)
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return HttpResponseRedirect(addresses.list_url(self.admin_site.name))
        return pages.place_page(self, request, row.entry, row.place)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The change log of the place where a row stands."""
        self._may_look(request)
        row, site_name = self.get_object(request, unquote(object_id)), self.admin_site.name
        log = addresses.log_url(site_name, row.entry, row.place) if row else addresses.list_url(site_name)
        return HttpResponseRedirect(log)

    def _may_look(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    @admin.display(description=_("setting"))
    def setting(self, row: SettingValue) -> str:
        """Its title."""
        return words.title(row.entry)

    @admin.display(description=_("where"))
    def where(self, row: Any) -> str:
        """The name of its place."""
        return str(row.shown.place)

    @admin.display(description=_("asks for"))
    def asks_for(self, row: SettingValue) -> str:
        """The label of its value."""
        return words.label(row.entry, row.value)

    @admin.display(description=_("allows at most"))
    def allows_at_most(self, row: SettingValue) -> str:
        """The label of its ceiling."""
        return words.label(row.entry, row.ceiling)

    @admin.display(description=_("what holds there, and why"))
    def outcome(self, row: Any) -> str:
        """The effective value with the resolver's own sentence, and the faults of what is stored."""
        if row.shown.resolution is None:
            return gettext("Nothing: no setting of this key is registered.")
        return words.outcome(row.shown.resolution)


def _resolutions(rows: Iterable[SettingValue]) -> dict[tuple[str, Place], Resolution]:
    """What holds at the place of each row: at most one statement for each registered setting."""
    places: dict[str, list[Place]] = {}
    for row in rows:
        if row.entry in catalog:
            places.setdefault(row.entry, []).append(row.place)
    return {
        (key, place): resolution
        for key, wanted in places.items()
        for place, resolution in resolve_many(key, wanted).items()
    }
