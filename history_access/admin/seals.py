"""What proves the record, in the admin: seals, and what maintenance did. For those who audit everywhere."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from history_access.admin import columns, filters
from history_access.admin.auditing import AuditAdmin
from history_access.admin.waiting import waiting_words
from history_access.models import MaintenanceEvent, Seal
from settings_catalog.admin import words


@admin.register(Seal)
class SealAdmin(AuditAdmin[Seal]):
    """Seals over the whole record, newest first, and what waits for one."""

    asked, key = "seals", "seal"
    list_display = ("number", "kind", "at", "rows_sealed", "complete", "digest_wrapped")
    list_filter = (filters.SealedKindFilter,)
    search_fields = ("number", "digest", "root")
    search_help_text = _("The whole number, digest or root of a seal.")
    fields = ("number", "kind", "at", "rows_sealed", "complete", "root", "previous", "digest")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """With how many rows wait for a seal, and for how long."""
        waiting = {"subtitle": waiting_words()} if self.has_view_permission(request) else {}
        return super().changelist_view(request, {**waiting, **(extra_context or {})})

    @admin.display(description=_("sealed at"))
    def at(self, seal: Seal) -> SafeString:
        """When, to the second."""
        return words.moment(seal.sealed_at)

    @admin.display(description=_("rows"))
    def rows_sealed(self, seal: Seal) -> int:
        """How many rows it seals."""
        return seal.rows

    @admin.display(description=_("complete before"))
    def complete(self, seal: Seal) -> SafeString | str:
        """Up to when everything that was read had been sealed by then."""
        return words.NOTHING if seal.complete_before is None else words.moment(seal.complete_before)

    @admin.display(description=_("digest"))
    def digest_wrapped(self, seal: Seal) -> SafeString:
        """To compare with one that was kept elsewhere; broken into lines where it does not fit."""
        return columns.wrapped(seal.digest)


@admin.register(MaintenanceEvent)
class MaintenanceEventAdmin(AuditAdmin[MaintenanceEvent]):
    """What was pruned and erased: each lifting of the guards, by whom and why."""

    asked, key = "maintenance", "event"
    list_display = ("at", "kind", "by_whom", "why_short", "told")
    list_filter = (filters.EventKindFilter,)
    search_fields = ("id", "by")
    search_help_text = _("The whole key of an event, or who did it.")
    fields = ("at", "kind", "by_whom", "why_whole", "told", "id")

    @admin.display(description=_("happened at"))
    def at(self, event: MaintenanceEvent) -> SafeString:
        """When, to the second."""
        return words.moment(event.happened_at)

    @admin.display(description=_("by"))
    def by_whom(self, event: MaintenanceEvent) -> str:
        """Who did it, as they said."""
        return words.inert(event.by)

    @admin.display(description=_("why"))
    def why_short(self, event: MaintenanceEvent) -> str:
        """The beginning of the reason."""
        return words.shortened(event.why)

    @admin.display(description=_("why"))
    def why_whole(self, event: MaintenanceEvent) -> str:
        """The reason."""
        return words.inert(event.why)

    @admin.display(description=_("details"))
    def told(self, event: MaintenanceEvent) -> SafeString:
        """Counts, seal numbers and digests."""
        return columns.told(event.details)
