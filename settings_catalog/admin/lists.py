"""Admin lists for tables of any size: bounded counts, declared filters, and searches that cannot fail."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.db.models import Field, Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

MOST_ROWS = 1000
"""How far a list is counted and paged; what lies beyond is found by a filter or a search."""

MOST_SEARCHED = 200
"""A longer search term than this finds nothing."""

Row = TypeVar("Row", bound=Model)

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin
    _Paginator = Paginator[Any]
else:
    _Paginator = Paginator

    class _ModelAdmin(admin.ModelAdmin):
        """Django's own, which can be subscripted in its stubs alone."""

        def __class_getitem__(cls, row: object) -> type:
            return cls


def is_searchable(term: str) -> bool:
    """Whether both databases can be asked for it: short, without NUL and lone surrogates."""
    unknown = any(character == "\0" or "\ud800" <= character <= "\udfff" for character in term)
    return len(term) <= MOST_SEARCHED and not unknown


def as_key(field: "Field[Any, Any]", text: str | None) -> Any | None:
    """`text` as a key of this column, or of the table that it points at; None where it can be none."""
    if not isinstance(text, str) or not is_searchable(text):
        return None
    try:
        return getattr(field, "target_field", field).clean(text, None)
    except (ValidationError, ValueError, OverflowError):
        return None


def holding_key(queryset: "QuerySet[Row]", columns: Iterable[str], term: str) -> "QuerySet[Row]":
    """The rows in which one of the columns is exactly the key `term`; all of them where it is empty."""
    if not term:
        return queryset
    found = Q(pk__in=[])
    for column in columns:
        field: Any = queryset.model._meta.get_field(column)
        key = as_key(field, term.strip())
        if key is not None:
            found |= Q(**{column: key})
    return queryset.filter(found)


class BoundedPaginator(_Paginator):
    """Counts at most `MOST_ROWS` rows, so that no page waits for a count of the whole table."""

    @cached_property
    def count(self) -> int:
        """How many rows there are, `MOST_ROWS` where there are more."""
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows[:MOST_ROWS].count()


class KnownValues(admin.SimpleListFilter):
    """A filter by a few named values; every other value finds nothing, never everything."""

    known: ClassVar[Iterable[tuple[str, Any]]] = ()
    """The values and their labels."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        """The known values."""
        return self.known

    def condition(self, value: str) -> Q:
        """Which rows a known value stands for: those with it in the column of the filter's name."""
        return Q(**{self.parameter_name or "": value})

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        """The rows that the chosen value leaves."""
        value = self.value()
        if value is None:
            return queryset
        known = value in (str(choice) for choice, _label in self.lookup_choices)
        return queryset.filter(self.condition(value)) if known else queryset.none()


class PreparedList(ChangeList):
    """A page of rows, each with what its columns show beside it."""

    def get_results(self, request: HttpRequest) -> None:
        """Fetch the page, and what belongs to it, in a fixed number of statements."""
        super().get_results(request)
        shown: Any = self.model_admin
        self.result_list = shown.prepared(list(self.result_list))
        if not (self.query or self.has_active_filters):
            self.full_result_count = self.result_count  # and no link to "all" of what is all already
        if self.result_count >= MOST_ROWS:
            more = _("Only the newest %(count)s are shown: search or filter to find the others.")
            messages.info(request, more % {"count": MOST_ROWS})


class BoundedAdmin(_ModelAdmin[Row]):
    """A list that costs the same however large its table is.

    It takes no lookups from the address but those of its own filters (a misspelt one is a 400, and nobody
    can ask about a column that is not shown), keeps its one order, and has no facets.
    """

    paginator = BoundedPaginator
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)
    sortable_by = ()
    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    actions: Any = None

    class Media:
        css = {"all": ("settings_catalog/admin.css",)}

    def prepared(self, rows: list[Row]) -> list[Row]:
        """The rows of a page, with what their columns show fetched for all of them at once."""
        return rows

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list that prepares its rows."""
        return PreparedList

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Row | None:
        """One row, prepared like those of a list."""
        row = super().get_object(request, object_id, from_field)
        return None if row is None else self.prepared([row])[0]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Only what a filter of this list takes."""
        filters: Any = self.list_filter
        return lookup in {one.parameter_name for one in filters}

    def get_search_results(
        self, request: HttpRequest, queryset: "QuerySet[Any]", search_term: str
    ) -> "tuple[QuerySet[Row], bool]":
        """What Django finds; nothing for a term that no database could be asked for."""
        if not is_searchable(search_term):
            return queryset.none(), False
        return super().get_search_results(request, queryset, search_term)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list; a list without actions takes no POST."""
        if request.method == "POST" and not self.get_actions(request):
            raise PermissionDenied
        return super().changelist_view(request, extra_context)


class KeySearchAdmin(BoundedAdmin[Row]):
    """A list that is searched by whole keys alone, in the columns of `search_fields`."""

    def get_search_results(
        self, request: HttpRequest, queryset: "QuerySet[Any]", search_term: str
    ) -> "tuple[QuerySet[Row], bool]":
        """The rows that hold exactly this key."""
        return holding_key(queryset, self.search_fields, search_term), False


class ReadOnlyAdmin(KeySearchAdmin[Row]):
    """Pages to look at: nobody adds, changes or deletes here, and a POST is refused."""

    change_form_template = "settings_catalog/admin/read_only.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds a row here."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        """Nobody changes a row here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        """Nobody deletes a row here."""
        return False

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """One row; a POST is refused before it is looked for."""
        if request.method == "POST":
            raise PermissionDenied
        return super().changeform_view(request, object_id, form_url, extra_context)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Nobody deletes a row here, whether it is there or not."""
        raise PermissionDenied

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Nothing ever happens to a row here, so there is no history of it."""
        raise Http404
