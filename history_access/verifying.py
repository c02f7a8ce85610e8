"""Verifying: whether the record is still what was sealed, and where it is not (`record-sealed`).

What it cannot find by itself: rows changed before they were sealed, and a record that was cut off at its end
or sealed anew as a whole. The last two it finds against a seal that was exported and kept elsewhere. A row
that was put in with an old date it finds by what earlier seals promise (`Seal.complete_before`); a clock that
was set back takes the promise back, for all to see (`seals.taken_back`).
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from history_access import leaves
from history_access.maintenance import Maintenance
from history_access.models import Seal, SealedKind
from history_access.models.platform import primary
from history_access.sealed import Leaf, batches, snapshot
from history_access.seals import TOLERANCE, digest_of, moment_of, time_at, unsealed, was_set_back

Progress = Callable[[int], Any]

ONE_READING = timedelta(seconds=1)
"""How far a read's date and its key may be apart: they are of one reading of the clock."""

_PAGE = 500
_TO_THE_SECOND = "%Y-%m-%d %H:%M:%S"
_DATED: dict[SealedKind, str] = {SealedKind.READ: "read_at", SealedKind.EVENT: "happened_at"}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is not as it was sealed: in which seal, at which row (None where at none), and what."""

    seal: int | None = None
    row: uuid.UUID | None = None
    what: str

    def __str__(self) -> str:
        places = [f"seal {self.seal}"] if self.seal is not None else []
        places += [f"row {self.row}"] if self.row is not None else []
        return f"{', '.join(places) or 'the record'}: {self.what}"


def verify(against: Mapping[str, Any] | None = None, progress: Progress | None = None) -> Iterator[Finding]:
    """Every finding, the oldest seal first; none means that the record is what was sealed.

    `against` is an exported seal (`seals.export`): the chain has to hold it. `progress` is called with the
    number of rows of each seal that was checked. Streams, in one snapshot that blocks nobody: use it to the
    end or close it, and write nothing through the same connection meanwhile. Rows that wait for a seal are
    no finding (see `seals.waiting`), unless they are older than what was already sealed as complete.
    """
    using = primary()
    with snapshot(using):
        try:
            yield from _findings(using, _Chain(against), progress or (lambda rows: None))
        except ValueError as error:  # SQLite keeps whatever it is given in any column
            yield Finding(what=f"a value cannot even be read, and nothing after it was checked: {error}")


def _findings(using: str, chain: "_Chain", progress: Progress) -> Iterator[Finding]:
    maintenance = Maintenance(using)
    for event, why in maintenance.faults.items():
        yield Finding(row=event, what=f"the event of an erasure {why}")
    for number, seal, own in batches(using):
        yield from chain.link(seal) if seal is not None else ()
        yield from _check_batch(number, seal, own, maintenance, chain.complete_before)
        if seal is not None:
            chain.complete(seal)
            progress(seal.rows)
    yield from chain.end()
    floor = None if was_set_back(chain.complete_before, time_at(using)) else chain.complete_before
    for kind in _DATED:
        yield from _check_waiting(using, kind, floor)


def verify_batches(using: str, first: int, last: int) -> Iterator[Finding]:
    """The findings in the batches of these seals alone, in the caller's transaction; no chain, no times."""
    maintenance = Maintenance(using)
    for number, seal, own in batches(using, first, last):
        yield from _check_batch(number, seal, own, maintenance, None)


@dataclass
class _Chain:
    """The seals as they follow each other: each number once, each naming the digest of the one before."""

    against: Mapping[str, Any] | None
    number: int = 0
    digest: str = leaves.NO_ROWS
    complete_before: datetime | None = None

    def link(self, seal: Seal) -> Iterator[Finding]:
        """What is wrong with a seal, given the one before."""
        if seal.number != self.number + 1:
            yield Finding(seal=seal.number, what=f"seals from {self.number + 1} up to here are missing")
        elif seal.previous != self.digest:
            yield Finding(seal=seal.number, what="does not follow from the seal before: the chain is broken")
        if seal.digest != digest_of(seal):
            yield Finding(seal=seal.number, what="the seal itself was changed: its digest is another")
        if self.against is not None and seal.number == self.against["number"]:
            if seal.digest != self.against["digest"]:
                yield Finding(seal=seal.number, what="is not the exported seal: the record was sealed anew")
            self.against = None
        self.number, self.digest = seal.number, seal.digest

    def complete(self, seal: Seal) -> None:
        """From the next seal on, older rows than this one promised were put in afterwards."""
        self.complete_before = seal.complete_before

    def end(self) -> Iterator[Finding]:
        """Whether the exported seal was never met."""
        if self.against is not None:
            what = f"was exported and is not there: the record was cut off, and ends with seal {self.number}"
            yield Finding(seal=self.against["number"], what=what)


def _check_batch(
    number: int,
    seal: Seal | None,
    own: Iterator[Leaf],
    maintenance: Maintenance,
    floor: datetime | None,
) -> Iterator[Finding]:
    """What is wrong with the leaves of one seal, and with their rows; `floor` is how old rows can be."""
    digests: list[str] = []
    position = 0
    for leaf in own:
        key = leaf.stored.row_id
        if leaf.stored.position != position:
            what = f"the leaf at position {position} is missing or was moved"
            yield Finding(seal=number, row=key, what=what)
        position = leaf.stored.position + 1
        digests.append(leaf.stored.digest)
        yield from (Finding(seal=number, row=key, what=what) for what in _faults_of(leaf, maintenance, floor))
    if seal is None:
        yield Finding(seal=number, what=f"{len(digests)} leaves name this seal, which is not there")
    else:
        yield from _check_root(seal, digests, maintenance)


def _check_root(seal: Seal, digests: list[str], maintenance: Maintenance) -> Iterator[Finding]:
    """Whether the leaves are those that were sealed; a pruned seal has none, and a sealed event says so."""
    if seal.kind == SealedKind.READ and maintenance.pruned(seal.number):
        if digests:
            yield Finding(seal=seal.number, what=f"was pruned, and yet has {len(digests)} leaves")
        return
    if not digests and seal.rows:
        what = f"all its {seal.rows} leaves are gone, and no sealed event says that it was pruned"
        yield Finding(seal=seal.number, what=what)
        return
    if len(digests) != seal.rows:
        yield Finding(seal=seal.number, what=f"has {len(digests)} leaves, and was sealed with {seal.rows}")
    if _root(digests) != seal.root:
        yield Finding(seal=seal.number, what="its leaves are not those that were sealed, or in another order")


def _root(digests: list[str]) -> str | None:
    try:
        return leaves.root(digests)
    except ValueError:  # what is no digest was never sealed
        return None


def _faults_of(leaf: Leaf, maintenance: Maintenance, floor: datetime | None) -> Iterator[str]:
    if leaf.row is None:
        yield "the row was removed"
        return
    kind = SealedKind(leaf.stored.kind)
    whole = _leaf_of(kind, leaf) == leaf.stored.digest
    yield from _blank_faults(kind, leaf, maintenance, whole=whole)
    if not whole:
        yield "the row, or its leaf, was changed after it was sealed"
    yield from _time_faults(kind, leaf.row, floor)


def _leaf_of(kind: SealedKind, leaf: Leaf) -> str | None:
    erased = {column: value.commitment for column, value in leaf.erased.items()}
    try:
        return leaves.leaf(kind, leaf.row or {}, leaf.stored.salts, erased)
    except (KeyError, TypeError):  # salts that are none
        return None


def _blank_faults(kind: SealedKind, leaf: Leaf, maintenance: Maintenance, *, whole: bool) -> Iterator[str]:
    """What is blank without an erasure that explains it, or the other way round (`record-erasure`).

    That a value is erased is said by its `ErasedValue` alone, never by the text in its place: a leaf that is
    whole was made of that very text, which then is a platform's own key.
    """
    row = leaf.row or {}
    for column in leaves.ERASABLE[kind]:
        value = leaf.erased.get(column)
        if value is None:
            if row[column] == leaves.ERASED and not whole:
                yield f"{column} is blank, and no erasure explains it"
        elif value.event_id in maintenance.faults:
            yield f"{column} refers to an erasure that does not explain it"
        elif row[column] != leaves.ERASED:
            yield f"{column} was erased, and yet is not blank"
        elif column in leaf.stored.salts:
            yield f"{column} was erased, and yet its salt is kept"


def _time_faults(kind: SealedKind, row: Mapping[str, Any], floor: datetime | None) -> Iterator[str]:
    """Whether the row is dated when it can have been made: its key says so, and so do earlier seals.

    An event's key can be older than its date: the erasure refers to it before it is written.
    """
    dated, made = row[_DATED[kind]], moment_of(row["id"])
    if not isinstance(dated, datetime):
        yield "the row has no date"
    elif kind == SealedKind.READ and abs(dated - made) > ONE_READING:
        yield f"the row is dated {dated:{_TO_THE_SECOND}}, and its key was made at {made:{_TO_THE_SECOND}}"
    elif floor is not None and floor - dated > TOLERANCE:
        yield f"the row is dated {dated:{_TO_THE_SECOND}}, and was put in after that time had been sealed"


def _check_waiting(using: str, kind: SealedKind, floor: datetime | None) -> Iterator[Finding]:
    for row in _waiting(using, kind):
        for what in _time_faults(kind, row, floor):
            yield Finding(row=row["id"], what=what)


def _waiting(using: str, kind: SealedKind) -> Iterator[Mapping[str, Any]]:
    """The rows that wait for a seal, a page a statement."""
    since: uuid.UUID | None = None
    while page := list(unsealed(using, kind, since).values("id", _DATED[kind])[:_PAGE]):
        yield from page
        if len(page) < _PAGE:
            return
        since = page[-1]["id"]
