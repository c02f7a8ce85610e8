"""One question of an auditor's, in one order: understood, allowed, logged, and only then answered."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.generics import GenericAPIView
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from history_access.api.bodies import PlainJSONRenderer
from history_access.api.filters import AuditFilters, checked, checked_key
from history_access.api.pages import KeyPages, Order
from history_access.api.permissions import AuditThrottle, IsActivePerson, scope_of
from history_access.api.problems import answer_problem, nothing_here
from history_access.audited import Row
from history_access.auditors import Scope
from history_access.queries import log_query


class AlwaysJSON(DefaultContentNegotiation):
    """One form of answer, whatever is accepted; `?format=` is a parameter like any unknown one."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The first, which is JSON."""
        first = next(iter(renderers))
        return first, first.media_type


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: the filters, the keys in the path, and what of it the person may see."""

    filters: AuditFilters
    keys: Mapping[str, str]
    scope: Scope

    def of(self, rows: "QuerySet[Any, Any]") -> "QuerySet[Any, Any]":
        """Those of the rows that are asked for and may be seen."""
        found: QuerySet[Any, Any] = self.filters.filter_queryset(self.scope.of(rows))
        return found


class AuditView(GenericAPIView[Any]):
    """A question; a subclass says what it is `asked` in the log, and has an `answer`.

    Whoever may not audit gets the same refusal for what exists and for what does not. What is asked is
    logged before it is answered; where it cannot be, nothing is.
    """

    asked: ClassVar[str]
    filterset_class: ClassVar[Any] = AuditFilters
    filter_backends = (DjangoFilterBackend,)  # for the schema: the filters are asked in `get`
    pagination_class: Any = None
    renderer_classes = (PlainJSONRenderer,)
    content_negotiation_class = AlwaysJSON
    permission_classes = (IsActivePerson,)
    throttle_classes = (AuditThrottle,)

    def get(self, request: Request, **keys: str) -> HttpResponseBase:
        """The answer, a refusal as problem details."""
        besides = self.pagination_class.parameters if self.pagination_class else {}
        filters = checked(self.filterset_class, request.query_params, besides)
        asked_keys = {name: self.checked_key(text) for name, text in keys.items()}
        scope = self.scope_of(request.user.pk, filters.form.cleaned_data.get("workspace"))
        log_query(request.user.pk, self.asked, {**request.query_params.dict(), **asked_keys})
        return self.answer(Question(filters=filters, keys=asked_keys, scope=scope))

    def answer(self, question: Question) -> HttpResponseBase:
        """What is returned, once it is logged."""
        raise NotImplementedError

    def scope_of(self, person_id: Any, workspace: str | None) -> Scope:
        """What the person may see; NotFound or a ParameterError where it is nothing."""
        return scope_of(person_id, workspace)

    def checked_key(self, text: str) -> str:
        """A key of the path; NotFound for what can be none."""
        try:
            return checked_key(text)
        except ValidationError:
            raise nothing_here() from None

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        """Problem details, whatever the host's other views answer."""
        return answer_problem

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """No copy of an answer is kept on the way."""
        response.headers.setdefault("Cache-Control", "private, no-store")
        return super().finalize_response(request, response, *args, **kwargs)


class AuditList(AuditView):
    """A list in pages; a subclass says which rows, in which order, and how they are shown."""

    order: ClassVar[Order]
    pagination_class = KeyPages

    def rows(self, keys: Mapping[str, str]) -> "QuerySet[Any, Any]":
        """All the rows that there are."""
        raise NotImplementedError

    def shown(self, rows: list[Any]) -> list[Row]:
        """A page as it is answered."""
        raise NotImplementedError

    def answer(self, question: Question) -> HttpResponseBase:
        """The page that is asked for."""
        page = self.paginate_queryset(question.of(self.rows(question.keys)))
        return self.get_paginated_response(self.get_serializer(self.shown(page or []), many=True).data)

    def cursor_scope(self) -> list[str]:
        """What a cursor is good for: this list, under these filters."""
        given = {**self.request.query_params.dict(), **self.kwargs}
        return [self.asked, *(f"{name}={given[name]}" for name in sorted(given) if name not in _OF_A_PAGE)]


_OF_A_PAGE = frozenset(KeyPages.parameters)
