"""What an auditor's pages have in common: who may look at them, as over REST, and that each look is logged.

Django's own permissions to view count for nothing here: `history_access.auditors` says who may see what.
"""

from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db import router
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from history_access import auditors
from history_access.admin.filters import WORKSPACE
from history_access.admin.visitors import Visitor
from history_access.queries import NotLoggedError, log_query
from settings_catalog.admin.lists import PreparedList, ReadOnlyAdmin, Row, as_key, is_searchable
from settings_catalog.admin.words import inert

_UNAVAILABLE = 503


class _LoggedList(PreparedList):
    """A page of rows that is logged once its filters are understood, before a row is fetched."""

    def get_results(self, request: HttpRequest) -> None:
        """The page; a NotLoggedError where the question cannot be logged."""
        shown: Any = self.model_admin
        log_query(request.user.pk, shown.asked, _given(request))
        super().get_results(request)


class AuditAdmin(ReadOnlyAdmin[Row]):
    """Rows of all workspaces together, for those who may audit everywhere.

    A subclass says what it is `asked` in the log, and what a `key` in its address is called there: as REST
    does, where it has the same question.
    """

    asked: ClassVar[str]
    key: ClassVar[str]

    def rows(self) -> "QuerySet[Row]":
        """All the rows that there are."""
        return self.model._default_manager.all()

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whoever may see a page sees that it is there."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        """Whether the person may audit everywhere now."""
        return Visitor.of(request).everywhere

    def scope_of(self, request: HttpRequest) -> auditors.Scope | None:
        """What the person may see of what the address asks for."""
        return auditors.scope_of(request.user.pk, None)

    def scope_of_row(self, request: HttpRequest, key: Any) -> auditors.Scope | None:
        """What the person may see of the row of this key."""
        return auditors.scope_of(request.user.pk, None)

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Row]":
        """The rows that the person may see, the right looked at in the same statement."""
        scope = self.scope_of(request)
        return self.rows().none() if scope is None else scope.of(self.rows())

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list that logs what is asked."""
        return _LoggedList

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list; nothing where the question cannot be logged."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            return super().changelist_view(request, extra_context)
        except NotLoggedError as error:
            return self._not_logged(request, error)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """One row; nothing where the question cannot be logged."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except NotLoggedError as error:
            return self._not_logged(request, error)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Row | None = None,
    ) -> HttpResponse:
        """One row, whose title has keys that others chose, made inert."""
        title = inert(obj)
        shown = {**context, "original": title, "subtitle": title}
        return super().render_change_form(request, shown, add, change, form_url, obj)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Row | None:
        """One row, once the question is logged; None for what is not there or may not be seen.

        Another spelling of a key is no key, and no question.
        """
        if not self.has_view_permission(request):
            raise PermissionDenied
        key = as_key(self.opts.pk, object_id)
        if key is None or str(key) != object_id:
            return None
        log_query(request.user.pk, f"{self.asked}/{{{self.opts.pk.name}}}", {self.key: object_id})
        scope = self.scope_of_row(request, key)
        found = [] if scope is None else list(scope.of(self.rows()).filter(pk=key))
        return next(iter(self.prepared(found)), None)

    def _not_logged(self, request: HttpRequest, error: NotLoggedError) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "title": _("Not answered"), "error": error}
        return TemplateResponse(request, "history_access/admin/not_logged.html", context, status=_UNAVAILABLE)


class WorkspaceAuditAdmin(AuditAdmin[Row]):
    """Rows of workspaces: whoever may not audit everywhere sees one of theirs, which the address names."""

    def has_view_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        """Whether the person may audit any workspace now."""
        visitor = Visitor.of(request)
        return visitor.everywhere or bool(visitor.workspaces)

    def scope_of(self, request: HttpRequest) -> auditors.Scope | None:
        """What the person may see of the workspace that the address names."""
        return auditors.scope_of(request.user.pk, request.GET.get(WORKSPACE))

    def scope_of_row(self, request: HttpRequest, key: Any) -> auditors.Scope | None:
        """What the person may see of the workspace of this row.

        Of no row as much is asked as of a foreign one (`reach-same-answer`).
        """
        rows = self.rows().using(router.db_for_write(self.model)).filter(pk=key)
        workspace = rows.values_list("workspace_id", flat=True).first()
        asked = next(iter(Visitor.of(request).workspaces), None) if workspace is None else workspace
        scope = auditors.scope_of(request.user.pk, asked)
        return None if workspace is None else scope

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list; to a first workspace where one has to be named, and a 404 for what may not be seen."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        named = request.GET.get(WORKSPACE)
        if named is None and not Visitor.of(request).everywhere:
            first = next(iter(Visitor.of(request).workspaces))
            return HttpResponseRedirect(f"?{urlencode({**request.GET.dict(), WORKSPACE: first})}")
        if named is not None and (not is_searchable(named) or self.scope_of(request) is None):
            raise Http404
        return super().changelist_view(request, extra_context)


def _given(request: HttpRequest) -> dict[str, str]:
    """What the address asks for, in characters that every database can keep."""
    return {inert(name): inert(value) for name, value in request.GET.dict().items()}
