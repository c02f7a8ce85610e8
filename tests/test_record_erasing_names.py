"""record-erasure: every place that can name a person, and every way in which their key can be written."""

from typing import Any

import pytest
from django.utils import timezone

from history_access.erasing import erase_conversations, erase_person
from history_access.leaves import ERASED
from history_access.models import (
    AuditQuery,
    MaintenanceEvent,
    Named,
    RecordedName,
    Refusal,
    SealedRow,
    WrittenPlace,
)
from history_access.pruning import prune
from history_access.queries import log_query
from history_access.record import wrote
from history_access.seals import seal
from history_access.testing import lift_guards, put_back_guards
from history_access.tools import list_conversations, read_conversation
from settings_catalog import changes
from settings_catalog.models import SettingChange
from tests.sealed_records import write_reads
from tests.test_record_erasing import WHO, dump, findings, naming
from tests.worlds import World

JONAS = "jonas@guests.example"


@pytest.fixture
def told(world: World) -> World:
    world.allow("all_accounts")
    world.grant(world.mara)
    return world


def pruned_by(by: str, why: str) -> MaintenanceEvent:
    """A maintenance event of somebody's, sealed."""
    write_reads(1, reader_id=JONAS)
    seal()
    newest = SealedRow.objects.filter(kind="read").order_by("seal_number").last()
    assert newest is not None
    prune(by=by, why=why, through=newest.seal_number)
    return MaintenanceEvent.objects.latest("id")


def test_record_erasure_of_somebody_who_only_took_part(told: World) -> None:
    """Neither a reader nor a sender: their name was recorded when their conversation was read."""
    jonas = told.person(JONAS)
    session, turn = told.session("hello", person=jonas), told.turn(told.mara)
    for read in (list_conversations, lambda turn: read_conversation(turn, conversation_id=str(session.pk))):
        RecordedName.objects.all().delete()
        read(turn)
        assert RecordedName.objects.get(kind=Named.PERSON, key=str(jonas.pk)).name == JONAS
    wrote(turn, f"workspace/notes-on-{JONAS}.md")
    key = jonas.pk
    jonas.delete()
    assert erase_person(key, **WHO).names == 1
    assert "jonas" not in dump()


def test_record_erasure_takes_further_names_and_those_of_the_platform(told: World) -> None:
    person = told.person(JONAS, first_name="Jonas", last_name="Reyes", email="reyes@guests.example")
    session, turn = told.session("hello", person=person), told.turn(told.mara)
    read_conversation(turn, conversation_id=str(session.pk))
    for place in ("notes/JONAS REYES.md", "notes/reyes@guests.example.md", "notes/joni.md", "notes/joy.md"):
        wrote(turn, place)
    erase_person(person, names=["Joni"], **WHO)
    assert set(WrittenPlace.objects.values_list("place", flat=True)) == {ERASED, "notes/joy.md"}


def test_record_erasure_takes_a_name_as_file_systems_spell_it(told: World) -> None:
    """Some keep an accent as a character of its own; a keyboard makes one character of both."""
    person = told.person("zo\u00eb-lind")
    session, turn = told.session("hello", person=person), told.turn(told.mara)
    read_conversation(turn, conversation_id=str(session.pk))
    for spelling in ("zo\u00eb-lind", "zoe\u0308-lind"):
        wrote(turn, f"notes/{spelling}.md")
        changes.set_value("history_access", agent=told.agent, value=None, by=told.operator, why=spelling)
        changes.set_value(
            "history_access", agent=told.agent, value="all_accounts", by=told.operator, why=spelling
        )
    erase_person(person, **WHO)
    assert set(WrittenPlace.objects.values_list("place", flat=True)) == {ERASED}
    whys = set(SettingChange.objects.filter(agent_id=str(told.agent.pk)).values_list("why", flat=True))
    assert whys == {"a test", ERASED}


@pytest.mark.parametrize("argument", ["names", "accounts", "sessions"])
def test_record_erasure_one_text_is_no_list(told: World, argument: str) -> None:
    """Each of its letters would be a name, and gone from every reason."""
    with pytest.raises(ValueError, match=f"{argument}: is a list"):
        if argument == "sessions":
            erase_conversations("7", **WHO)
        else:
            erase_person(told.mara, **{argument: "Jo"}, **WHO)
    assert not MaintenanceEvent.objects.exists()


def test_record_erasure_takes_a_mention_out_of_a_reason(told: World) -> None:
    """Of a log only the words go; a name within another word is another word."""
    told.set(agent=told.agent, value=None)
    jonas = told.person("jonas", first_name="Jo")
    for why in ("JONAS asked, and jo_too", "Jonasville is open, joy!"):
        for value in ("same_account", None):
            changes.set_value("history_access", agent=told.agent, value=value, by=told.operator, why=why)
    erase_person(jonas, **WHO)
    whys = set(SettingChange.objects.filter(agent_id=str(told.agent.pk)).values_list("why", flat=True))
    assert whys == {"a test", "(erased) asked, and (erased)_too", "Jonasville is open, joy!"}


def test_record_erasure_takes_a_key_out_of_an_auditors_filters(world: World, settings: Any) -> None:
    naming(settings, "person")
    write_reads(1, reader_id=JONAS)
    log_query("auditor", "reads", {"reader": JONAS, "after": "2026-11-29"})
    log_query(JONAS, "reads", {"reader": f"x{JONAS}"})
    log_query("auditor", "reads", {"reader": "mara"})
    assert erase_person(JONAS, dry_run=True, **WHO).values == erase_person(JONAS, **WHO).values == 3
    assert list(AuditQuery.objects.order_by("id").values_list("by_id", "filters")) == [
        ("auditor", {"reader": ERASED, "after": "2026-11-29"}),
        (ERASED, {"reader": f"x{JONAS}"}),
        ("auditor", {"reader": "mara"}),
    ]


def test_record_erasure_leaves_keys_that_name_nobody(world: World) -> None:
    log_query(world.mara.pk, "reads", {"reader": str(world.mara.pk)})
    event = pruned_by(str(world.mara.pk), f"number {world.mara.pk} is over")
    assert erase_person(world.mara, **WHO).values == 0
    assert AuditQuery.objects.get().filters == {"reader": str(world.mara.pk)}
    event.refresh_from_db()
    assert (event.by, event.why) == (str(world.mara.pk), f"number {world.mara.pk} is over")


def test_record_erasure_of_somebody_who_maintained_the_record(db: None, settings: Any) -> None:
    """Events are sealed: a blank in one keeps its commitment, and is explained by a later event."""
    naming(settings, "person")
    event, other = pruned_by(JONAS, f"as {JONAS} asked"), pruned_by("auditor", "a year is over")
    assert erase_person(JONAS, **WHO).values == 2
    event.refresh_from_db()
    other.refresh_from_db()
    assert (event.by, event.why) == (ERASED, ERASED)
    assert (other.by, other.why) == ("auditor", "a year is over")
    assert set(SealedRow.objects.get(pk=event.pk).salts) == {"row"}
    assert JONAS not in dump()
    assert findings() == []


@pytest.mark.parametrize("column", ["by", "why"])
def test_record_erasure_a_blank_in_an_event_made_by_hand_is_found(db: None, column: str) -> None:
    event = pruned_by(JONAS, "a year is over")
    lift_guards()
    MaintenanceEvent.objects.filter(pk=event.pk).update(**{column: ERASED})
    found = findings()
    put_back_guards()
    assert any(
        str(event.pk) in one and f"{column} is blank, and no erasure explains it" in one for one in found
    )


def test_record_erasure_takes_another_spelling_of_a_key(told: World, settings: Any) -> None:
    """A UUID in capitals or without hyphens is that key; other keys are taken to the letter."""
    naming(settings, "account")
    session = told.session("hello", person=told.mara, account=told.acme)
    read_conversation(told.turn(told.mara), conversation_id=str(session.pk))
    for spelt in (str(session.pk).upper(), session.pk.hex, session.pk, session):
        assert len(erase_conversations([spelt], dry_run=True, **WHO).follow_ups) == 1
    erased = erase_person(told.person("jonas"), accounts=[told.acme.pk.hex.upper()], **WHO)
    assert (erased.names, erased.values) == (1, 1)
    assert str(told.acme.pk) not in dump()
    for spelt in (f"0{told.mara.pk}", f" {told.mara.pk}"):
        with pytest.raises(ValueError, match="person: nothing is known"):
            erase_person(spelt, **WHO)


@pytest.mark.parametrize("log", ["refusal", "query", "change", "event", "read", "name", "nowhere"])
def test_record_erasure_knows_a_key_wherever_it_stands(told: World, log: str) -> None:
    """The platform knows nobody by it any more."""
    key, now = "gone-person", timezone.now()
    given = {"workspace_id": "w", "agent_id": "a", "turn_id": "t", "reader_id": key}
    write: dict[str, Any] = {
        "refusal": lambda: Refusal.objects.create(**given, tool="", code="x", refused_at=now),
        "query": lambda: log_query(key, "reads", {}),
        "change": lambda: SettingChange.objects.create(
            entry="x", level="platform", by_id=key, changed_at=now, why="x"
        ),
        "event": lambda: pruned_by(key, "a year is over"),
        "read": lambda: write_reads(1, session_person_id=key),
        "name": lambda: RecordedName.objects.create(workspace_id="w", kind="person", key=key, name="Mara"),
    }
    if log in write:
        write[log]()
        erase_person(key, **WHO)
    else:
        with pytest.raises(ValueError, match="nothing is known by the key 'gone-person'"):
            erase_person(key, **WHO)
    assert findings() == []
