"""What maintenance says that it did: which sealed rows are gone, and which blanks an erasure explains.

Only a sealed event counts. Without one a missing batch or a blank is tampering (`record-erasure`).
"""

import uuid
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from history_access.leaves import erased_digest_in_order
from history_access.models import ErasedValue, EventKind, MaintenanceEvent, SealedKind, SealedRow
from history_access.models.keyset import in_pages

_PAGE = 500
_NOTHING = erased_digest_in_order(())
Triple = tuple[uuid.UUID, str, str]


class Maintenance:
    """The sealed maintenance events of one database, read once. What it holds grows with them alone."""

    def __init__(self, using: str) -> None:
        self._pruned = list(_joined(_pruned_ranges(using)))
        self.faults = dict(_erasure_faults(using))
        """Why an event does not explain the erased values that refer to it, by the event's id."""

    def pruned(self, number: int) -> bool:
        """Whether a sealed event says that the rows of this seal were pruned."""
        index = bisect_right(self._pruned, number, key=itemgetter(0)) - 1
        return index >= 0 and number <= self._pruned[index][1]


def _events(using: str, kind: EventKind) -> "QuerySet[Any, Any]":
    """The sealed events of one kind, with the number of the seal that each is in."""
    leaf = SealedRow.objects.filter(row_id=OuterRef("pk"), kind=SealedKind.EVENT)
    sealed = MaintenanceEvent.objects.using(using).annotate(seal_number=Subquery(leaf.values("seal_number")))
    return sealed.filter(kind=kind, seal_number__isnull=False)


def _pruned_ranges(using: str) -> Iterator[tuple[int, int]]:
    """First and last number of what each event pruned; an event can only speak of earlier seals."""
    events = _events(using, EventKind.PRUNE).values("id", "details", "seal_number")
    for event in in_pages(events, "id", size=_PAGE):
        first, last = (_told(event["details"], name) for name in ("first_seal", "last_seal"))
        if isinstance(first, int) and isinstance(last, int) and first <= last < event["seal_number"]:
            yield first, last


def _joined(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The same numbers in as few ranges as possible, least first."""
    held: tuple[int, int] | None = None
    for first, last in sorted(ranges):
        if held is not None and first <= held[1] + 1:
            held = (held[0], max(held[1], last))
            continue
        if held is not None:
            yield held
        held = (first, last)
    if held is not None:
        yield held


def _erasure_faults(using: str) -> Iterator[tuple[uuid.UUID, str]]:
    """The erasures that do not name exactly what was erased, and what refers to no sealed erasure."""
    values, events = ErasedValue.objects.using(using), _events(using, EventKind.ERASE)
    for event in in_pages(events.values("id", "details"), "id", size=_PAGE):
        named = _told(event["details"], "erased_digest") or _NOTHING
        if named != erased_digest_in_order(_in_order(_triples(values.filter(event_id=event["id"])))):
            yield event["id"], "does not name exactly the values that refer to it"
    unexplained = values.exclude(event_id__in=events.values("pk")).values("event_id").distinct()
    for value in in_pages(unexplained, "event_id", size=_PAGE):
        yield value["event_id"], "is no sealed erasure"


def _triples(values: "QuerySet[ErasedValue]") -> Iterator[Triple]:
    for value in in_pages(values, "row_id", "column", size=_PAGE):
        yield value.row_id, value.column, value.commitment


def _in_order(triples: Iterable[Triple]) -> Iterator[Triple]:
    """Triples that come by row, sorted within each row too: a database's collation is its own."""
    for _, of_one_row in groupby(triples, key=itemgetter(0)):
        yield from sorted(of_one_row)


def _told(details: Any, name: str) -> Any:
    return details.get(name) if isinstance(details, dict) else None
