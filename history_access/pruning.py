"""Pruning: the oldest reads are removed in whole sealed batches, and a sealed event says which.

The seals stay, so the chain still proves everything that is kept. Of a pruned batch the reads and all their
leaves go, salts included; batches of maintenance events are never pruned.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from django.apps import apps
from django.db import connections
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from history_access.apps import HistoryAccessConfig
from history_access.models import EventKind, Seal, SealedKind, SealedRow, TurnConversationRead
from history_access.models.platform import primary
from history_access.models.reads import KEY_LENGTH
from history_access.seals import BATCH, leave_to_others, record_event, sealing
from history_access.verifying import verify_batches
from settings_catalog.guards import Guard, lifted

_MOST_DAYS = 36_500
_WAIT_FOR_READERS = "SET LOCAL lock_timeout TO '5s'"


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

    A ValueError that names the argument. A PruneError at a batch that does not verify. On PostgreSQL an
    OperationalError, rather than keep readers waiting for somebody else's transaction. What was committed
    before stays pruned.
    """
    using = primary()
    if not dry_run:
        _check(by, why)
    groups = list(_groups(_prunable(using, keep_days, through), BATCH[connections[using].vendor]))
    for group in groups if not dry_run else ():
        started = time.monotonic()
        _remove(using, group, by, why)
        leave_to_others(using, started)
        if progress is not None:
            progress(group)
    return groups


def _check(by: str, why: str) -> None:
    if not by.strip() or len(by) > KEY_LENGTH:
        raise ValueError(f"by: say who prunes, in 1 to {KEY_LENGTH} characters")
    if not why.strip():
        raise ValueError("why: say why the record is pruned")
    for name, text in (("by", by), ("why", why)):
        if "\0" in text or text != text.encode(errors="replace").decode():
            raise ValueError(f"{name}: has characters that no database stores")


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


def _remove(using: str, group: Pruned, by: str, why: str) -> Pruned:
    connection = connections[using]
    with sealing(using):
        _check_whole(using, group)
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(_WAIT_FOR_READERS)
        with lifted(connection, _guards()):
            stored = SealedRow.objects.using(using).filter(seal_number__range=(group.first, group.last))
            keys = stored.values("row_id")
            TurnConversationRead.objects.using(using).filter(pk__in=keys).delete()
            removed, _ = stored.delete()
        if removed != group.rows:
            raise PruneError(f"seals {group.first} to {group.last} were pruned by somebody else meanwhile")
        details = {"first_seal": group.first, "last_seal": group.last, "rows": group.rows}
        record_event(EventKind.PRUNE, by=by, why=why, details=details, using=using)
    return group


def _check_whole(using: str, group: Pruned) -> None:
    finding = next(verify_batches(using, group.first, group.last), None)
    if finding is not None:
        raise PruneError(f"{finding} (nothing was removed from here on; run verify_reads)")


def _guards() -> Iterable[Guard]:
    """Only what keeps reads and leaves from being deleted."""
    config = cast("HistoryAccessConfig", apps.get_app_config("history_access"))
    tables = {TurnConversationRead._meta.db_table, SealedRow._meta.db_table}
    return [one for one in config.guards() if one.table in tables and one.event == "DELETE"]
