"""record-sealed: `verify` finds any row changed, removed, inserted or reordered, and says where.

By itself it finds every kind of `tests.tampering.TAMPERING`. A cut-off end and a rewritten record
(`OUTSIDE`) it finds only against an exported seal. `NEVER` is what no seal can show.
`TAMPERED_RECORDS` in the environment says how many random records each kind is tried on: by default a few, by
`make tampering` 200.
"""

import os
from typing import Any

import pytest

from history_access import leaves
from history_access.models import TurnConversationRead
from history_access.seals import export, seal
from history_access.testing import lift_guards
from history_access.verifying import Finding
from tests.sealed_records import SealedRecord, a_read, erase, findings, undone
from tests.tampering import NEVER, OUTSIDE, TAMPERING, Place, Tamper

RECORDS = int(os.environ.get("TAMPERED_RECORDS", "3"))

pytestmark = pytest.mark.django_db


def named(place: Place, found: list[Finding]) -> bool:
    """Whether a finding names the place."""
    number, row = place
    return any(number in (None, one.seal) and row in (None, one.row) for one in found)


def missed(record: SealedRecord, kinds: dict[str, Tamper], against: dict[str, Any] | None) -> dict[str, Any]:
    """The kinds that were not found, or not where they were done, with what was found instead."""
    wrong = {}
    for name, tamper in kinds.items():
        with undone():
            place = tamper(record)
            found = findings(against)
            if not named(place, found):
                wrong[name] = (place, [str(one) for one in found])
    return wrong


@pytest.mark.parametrize("seed", range(RECORDS))
def test_seals_find_tampering(seed: int) -> None:
    record = SealedRecord(seed)
    lift_guards()
    assert findings() == findings(export()) == []
    assert missed(record, TAMPERING, None) == {}


@pytest.mark.parametrize("seed", range(RECORDS))
def test_seals_find_a_cut_off_or_rewritten_record_against_an_exported_seal_alone(seed: int) -> None:
    record = SealedRecord(seed)
    lift_guards()
    exported = export()
    assert missed(record, OUTSIDE, exported) == {}
    assert sorted(missed(record, OUTSIDE, None)) == sorted(OUTSIDE)


def test_seals_cannot_show_what_was_done_before_sealing() -> None:
    """What the documentation says that seals do not find."""
    record = SealedRecord(1)
    lift_guards()
    exported = export()
    assert sorted(missed(record, NEVER, exported)) == sorted(NEVER)


SAYS = {
    "a whole seal is removed": "seals from {number} up to here are missing",
    "two leaves swap places": "not those that were sealed, or in another order",
    "read is removed alone": "the row was removed",
    "read is removed with its leaf": "leaves, and was sealed with",
    "leaf column position is changed": "is missing or was moved",
    "leaf column seal_number is changed": "leaves, and was sealed with",
    "a part of a batch is removed as if it had been pruned": "was pruned, and yet has",
    "a batch is removed as if it had been pruned": "no sealed event says that it was pruned",
    "a value is blanked": "reader_id is blank, and no erasure explains it",
    "an erased value is written in again": "reader_id was erased, and yet is not blank",
    "a seal is made anew for a changed row": "the chain is broken",
    "seal column root is changed": "the seal itself was changed",
    "an old read is replayed under a new key": "and its key was made at",
    "a row is put in with an old date and sealed": "was put in after that time had been sealed",
}


@pytest.mark.parametrize("kind", SAYS)
def test_seals_say_what_was_done(kind: str) -> None:
    record = SealedRecord(3)
    lift_guards()
    number, row = TAMPERING[kind](record)
    says = SAYS[kind].format(number=number and number - 1)
    found = [one for one in findings() if says in one.what]
    assert named((number, row), found), [str(one) for one in findings()]


def test_seals_do_not_take_a_key_for_an_erasure(db: None) -> None:
    """A platform's own key may be spelled as what stands in place of an erased one, and be erased in turn."""
    record = SealedRecord(1)
    new = a_read(record.now, record.source, reader_id=leaves.ERASED, session_person_id=leaves.ERASED)
    new.save(force_insert=True)
    seal()
    assert findings() == []
    erase(new.pk)
    assert findings() == []
    lift_guards()
    TurnConversationRead.objects.filter(pk=new.pk).update(session_person_id="mara")
    assert [one.row for one in findings()] == [new.pk]
