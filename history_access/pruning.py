"""Pruning: the oldest reads are removed in whole sealed batches, and a sealed event says which.

The seals stay, so the chain still proves everything that is kept. Of a pruned batch the reads and all their
leaves go, salts included; batches of maintenance events are never pruned.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import connections
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from history_access.lifting import check_said, step, without_guards
from history_access.models import EventKind, Seal, SealedKind, SealedRow, TurnConversationRead
from history_access.models.platform import primary
from history_access.seals import BATCH, record_event
from history_access.verifying import verify_batches

_MOST_DAYS = 36_500


class PruneError(Exception):
    """A batch is not as it was sealed: it is kept, as the proof of that."""


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """What one transaction of pruning removes: the rows of the seals from `first` to `last`."""

    first: int
    last: int
    rows: int


def prune(
    *,
    by: str,
    why: str,
    keep_days: int | None = None,
    through: int | None = None,
    dry_run: bool = False,
    progress: Callable[[Pruned], Any] | None = None,
) -> list[Pruned]:
    """Remove whole sealed batches of reads, the oldest first; what each transaction removed is returned.

    Either those that were sealed more than `keep_days` days ago, or those up to the seal number `through`.
    `by` (a key, not a name) and `why` stand in the event that each transaction writes and seals; `progress`
    is called once that is committed. A `dry_run` returns the same, needs neither and removes nothing.

    A ValueError that names the argument. A PruneError at a batch that does not verify. An OperationalError
    where somebody's transaction keeps the tables for too long, and an OpenTransactionError inside one of the
    caller's. What was committed before stays pruned.
    """
    using = primary()
    if not dry_run:
        check_said(by, why, "prunes")
    groups = list(_groups(_prunable(using, keep_days, through), BATCH[connections[using].vendor]))
    for group in groups if not dry_run else ():
        step(using, partial(_remove, using, group, by, why))
        if progress is not None:
            progress(group)
    return groups


def _prunable(using: str, keep_days: int | None, through: int | None) -> "QuerySet[Seal]":
    """Seals of reads that still have leaves; a seal is younger than each of its rows."""
    leaves = SealedRow.objects.filter(seal_number=OuterRef("number"))
    seals = Seal.objects.using(using).filter(Exists(leaves), kind=SealedKind.READ).order_by("number")
    if (keep_days is None) == (through is None):
        raise ValueError("keep_days, through: give one of the two")
    if through is not None:
        if not Seal.objects.using(using).filter(number=through).exists():
            raise ValueError(f"through: there is no seal {through}")
        return seals.filter(number__lte=through)
    if keep_days is None or not 1 <= keep_days <= _MOST_DAYS:
        raise ValueError(f"keep_days: from 1 to {_MOST_DAYS} days are kept")
    return seals.filter(sealed_at__lt=timezone.now() - timedelta(days=keep_days))


def _groups(seals: "QuerySet[Seal]", size: int) -> Iterator[Pruned]:
    """Neighbouring seals together, up to `size` rows, so that small seals do not need an event each."""
    group: Pruned | None = None
    for number, rows in seals.values_list("number", "rows").iterator():
        if group is not None and number == group.last + 1 and group.rows + rows <= size:
            group = Pruned(first=group.first, last=number, rows=group.rows + rows)
            continue
        if group is not None:
            yield group
        group = Pruned(first=number, last=number, rows=rows)
    if group is not None:
        yield group


def _remove(using: str, group: Pruned, by: str, why: str) -> None:
    _check_whole(using, group)
    details = {"first_seal": group.first, "last_seal": group.last, "rows": group.rows}
    record_event(EventKind.PRUNE, by=by, why=why, details=details, using=using)
    stored = SealedRow.objects.using(using).filter(seal_number__range=(group.first, group.last))
    reads = TurnConversationRead.objects.using(using).filter(pk__in=stored.values("row_id"))
    with without_guards(using, "DELETE", (TurnConversationRead, SealedRow)):
        reads.delete()
        removed, _ = stored.delete()
    if removed != group.rows:
        raise PruneError(f"seals {group.first} to {group.last} were pruned by somebody else meanwhile")


def _check_whole(using: str, group: Pruned) -> None:
    finding = next(verify_batches(using, group.first, group.last), None)
    if finding is not None:
        raise PruneError(f"{finding} (nothing was removed from here on; run verify_reads)")
