"""record-erasure: what names a person goes, the fact stays, and seals verify only by the sealed event."""

import io
import re
import signal
import sys
from typing import Any

import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from history_access import blanking
from history_access.erasing import erase_conversations, erase_person
from history_access.leaves import ERASED
from history_access.models import (
    ErasedValue,
    EventKind,
    MaintenanceEvent,
    Refusal,
    SealedRow,
    TurnConversationRead,
    WrittenPlace,
)
from history_access.record import wrote
from history_access.seals import record_event, seal
from history_access.testing import lift_guards, put_back_guards
from history_access.tools import read_conversation
from history_access.verifying import verify
from settings_catalog.models import SettingChange
from tests.test_seals_commands import Terminal
from tests.worlds import World

WHO = {"by": "auditor", "why": "the person asked"}


@pytest.fixture
def drawn(open_world: World, settings: Any) -> World:
    """Mara reads Jonas's conversation and writes it down; her keys are as they are, or names themselves."""
    open_world.allow("all_accounts")
    open_world.grant(open_world.mara)
    open_world.jonas = open_world.person("jonas@guests.example")  # type: ignore[attr-defined]
    session = open_world.session("hello", person=open_world.jonas, account=open_world.acme)  # type: ignore[attr-defined]
    own = open_world.turn(open_world.jonas, account=open_world.acme)  # type: ignore[attr-defined]
    read_conversation(own, conversation_id=str(session.pk))
    turn = open_world.turn(open_world.mara)
    read_conversation(turn, conversation_id=str(session.pk))
    wrote(turn, "workspace/notes-on-jonas@guests.example.md")
    wrote(turn, "workspace/digest.md")
    open_world.drawing, open_world.source = turn, session  # type: ignore[attr-defined]
    return open_world


def dump() -> str:
    """Everything that the record's tables hold."""
    models = apps.get_app_config("history_access").get_models()
    return "\n".join(str(list(model._base_manager.values())) for model in models)


def findings() -> list[str]:
    return [str(finding) for finding in verify()]


def naming(settings: Any, *kinds: str) -> None:
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "NAMING_KEYS": kinds}


def test_record_erasure_removes_the_names_and_keeps_the_fact(drawn: Any) -> None:
    before = list(TurnConversationRead.objects.order_by("id").values())
    erased = erase_person(drawn.jonas, **WHO)
    assert "jonas" not in dump()
    assert not WrittenPlace.objects.filter(place__contains="jonas").exists()
    assert (erased.names, erased.values) == (1, 0)
    assert list(TurnConversationRead.objects.order_by("id").values()) == before
    assert findings() == []


def test_record_erasure_blanks_keys_that_name_somebody(drawn: Any, settings: Any) -> None:
    naming(settings, "person")
    seal()
    key = str(drawn.jonas.pk)
    erased = erase_person(drawn.jonas, **WHO)
    assert erased.values == 3
    reads = TurnConversationRead.objects
    assert not reads.filter(reader_id=key).exists() and not reads.filter(session_person_id=key).exists()
    assert reads.filter(session_person_id=ERASED).count() == 2
    assert reads.filter(reader_id=ERASED).count() == 1
    assert reads.filter(reader_id=str(drawn.mara.pk)).count() == 1, "nobody else is touched"
    salts = SealedRow.objects.filter(row_id__in=reads.filter(reader_id=ERASED).values("id"))
    assert all("reader_id" not in kept for kept in salts.values_list("salts", flat=True))
    assert findings() == []


def test_record_erasure_can_be_followed_by_more_reads_and_another_erasure(drawn: Any, settings: Any) -> None:
    naming(settings, "person", "account")
    erase_person(drawn.jonas, **WHO)
    read_conversation(drawn.drawing, conversation_id=str(drawn.source.pk))
    erase_person(drawn.mara, accounts=[drawn.acme], **WHO)
    seal()
    assert findings() == []
    assert str(drawn.acme.pk) not in str(list(TurnConversationRead.objects.values("session_account_id")))


def test_record_erasure_lists_the_turns_and_the_places_to_follow_up(drawn: Any) -> None:
    erased = erase_person(drawn.jonas, dry_run=True, **WHO)
    places = {one.turn_id: one.places for one in erased.follow_ups}
    assert places[str(drawn.drawing.pk)] == (
        "workspace/digest.md",
        "workspace/notes-on-jonas@guests.example.md",
    )
    assert len(places) == 2
    assert "jonas" in dump(), "a dry run changes nothing"
    assert not MaintenanceEvent.objects.exists()
    assert erase_person(drawn.jonas, **WHO).follow_ups == erased.follow_ups


def test_record_erasure_of_conversations_tells_who_drew_on_them(drawn: Any) -> None:
    erased = erase_conversations([drawn.source], **WHO)
    assert {one.turn_id for one in erased.follow_ups} >= {str(drawn.drawing.pk)}
    assert all(one.conversations == (str(drawn.source.pk),) for one in erased.follow_ups)
    event = MaintenanceEvent.objects.get()
    assert (event.kind, event.by, event.details["turns"]) == (EventKind.ERASE, "auditor", 2)
    assert findings() == []


@pytest.mark.parametrize(
    "column", ["reader_id", "session_person_id", "session_account_id", "turn_account_id"]
)
def test_record_erasure_the_same_blank_made_by_hand_is_found(drawn: Any, column: str) -> None:
    seal()
    lift_guards()
    TurnConversationRead.objects.update(**{column: ERASED})
    put_back_guards()
    assert findings() != []


def test_record_erasure_an_erased_value_without_its_event_is_found(drawn: Any, settings: Any) -> None:
    """Blank, commitment and forgotten salt, just as an erasure leaves them, but no sealed event says so."""
    naming(settings, "person")
    erase_person(drawn.jonas, **WHO)
    lift_guards()
    ErasedValue.objects.filter(column="reader_id").update(commitment="0" * 64)
    put_back_guards()
    assert findings() != []


def test_record_erasure_blanks_the_logs_beside_the_record(drawn: Any, settings: Any) -> None:
    naming(settings, "person")
    drawn.tools(drawn.jonas, account=drawn.acme).call("list_conversations", {"limit": 0})
    erase_person(drawn.jonas, **WHO)
    erase_person(drawn.operator, **WHO)
    assert Refusal.objects.get().reader_id == ERASED
    assert set(SettingChange.objects.values_list("by_id", flat=True)) == {ERASED}


def test_record_erasure_leaves_the_guards_standing(drawn: Any, settings: Any) -> None:
    naming(settings, "person")
    erase_person(drawn.jonas, **WHO)
    for model in (TurnConversationRead, SealedRow, ErasedValue, MaintenanceEvent):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            model._base_manager.update(**{model._meta.pk.attname: model._meta.pk.get_default() or 1})


def test_record_erasure_that_fails_changes_no_guarded_table(
    drawn: Any, settings: Any, monkeypatch: Any
) -> None:
    """Only the places, which nothing guards, are done by then."""
    naming(settings, "person")
    seal()
    WrittenPlace.objects.update(place="workspace/digest.md")
    before = dump()

    def fail(*args: Any, **given: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("history_access.blanking.record_event", fail)
    with pytest.raises(ZeroDivisionError):
        erase_person(drawn.jonas, **WHO)
    assert dump() == before
    assert findings() == []


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"by": " "}, "by: say who erases"),
        ({"by": "x" * 256}, "by: say who erases"),
        ({"by": "a\0b"}, "by: say who erases"),
        ({"by": "a\u202eb"}, "by: say who erases"),
        ({"by": "a\ud800"}, "by: say who erases"),
        ({"by": ERASED}, "by: '(erased)' is what an erasure leaves behind"),
        ({"by": "mara"}, "by: names whom it erases"),
        ({"why": ""}, "why: say why"),
        ({"why": "x" * 1001}, "why: say why"),
        ({"why": "a\0b"}, "why: has characters that no database stores"),
        ({"why": "Mara asked"}, "why: names whom it erases"),
        ({"person": None}, "not everything"),
        ({"person": "nobody@hollowbrook.example"}, "person: nothing is known by the key 'nobody@"),
        ({"person": 2**70}, "person: nothing is known by the key"),
        ({"accounts": ["acme"]}, "accounts: nothing is known by the key 'acme'"),
        ({"names": [""]}, "names: each is a name"),
    ],
)
def test_record_erasure_refuses_what_is_not_said(open_world: World, given: dict[str, Any], rule: str) -> None:
    asked = {"person": open_world.mara, **WHO, **given}
    with pytest.raises(ValueError, match=re.escape(rule)):
        erase_person(asked.pop("person"), **asked)
    with pytest.raises(ValueError, match="at least one"):
        erase_conversations([], **WHO)


def command(capsys: Any, *arguments: str) -> str:
    call_command(*arguments)
    return str(capsys.readouterr().out)


def test_record_erasure_by_command(drawn: Any, capsys: Any, tmp_path: Any) -> None:
    """A plain summary first, a dry run that changes nothing, and a written report."""
    key, report = str(drawn.jonas.pk), tmp_path / "report.txt"
    dry = command(capsys, "erase_person", key, "--dry-run", "--by", "auditor", "--why", "asked")
    assert dry.startswith("To be removed: 1 name and 0 keys or mentions.") and "workspace/digest.md" in dry
    assert "Removed" not in dry and "jonas" in dump()
    arguments = ("--by", "auditor", "--why", "asked", "--yes", "--report", str(report))
    done = command(capsys, "erase_person", key, *arguments)
    assert done.startswith("To be removed: 1 name") and "Removed: 1 name and 0 keys" in done
    assert "workspace/digest.md" in report.read_text() and "Removed: 1 name" in report.read_text()
    assert "jonas" not in dump()
    command(capsys, "erase_conversations", str(drawn.source.pk), "--by", "auditor", "--why", "asked", "--yes")
    assert MaintenanceEvent.objects.count() == 2


def test_record_erasure_by_command_asks_before_it_acts(drawn: Any, monkeypatch: Any, capsys: Any) -> None:
    arguments = ("erase_person", str(drawn.jonas.pk), "--by", "auditor", "--why", "asked")
    for typed, says in ((Terminal("no\n"), "Nothing was erased"), (io.StringIO("yes\n"), "--yes: is needed")):
        monkeypatch.setattr(sys, "stdin", typed)
        with pytest.raises(CommandError, match=says):
            call_command(*arguments)
    assert "jonas" in dump()
    monkeypatch.setattr(sys, "stdin", Terminal("yes\n"))
    call_command(*arguments)
    assert "jonas" not in dump()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("1", "--why", " "), "--why: say why"),
        (("1", "--why", "asked", "--by", "x" * 300), "--by: say who erases"),
        (("999", "--why", "asked"), "person: nothing is known by the key '999'"),
        (("1", "--why", "asked", "--account", "x"), "--account: nothing is known by the key 'x'"),
        (("1", "--why", "asked", "--name", " "), "--name: each is a name"),
        (("1", "--why", "asked", "--report", "/nowhere/report.txt"), "--report /nowhere/report.txt: No such"),
    ],
)
def test_record_erasure_by_command_names_what_is_wrong(drawn: Any, given: Any, says: str) -> None:
    arguments = [str(drawn.jonas.pk) if one == "1" else one for one in given]
    with pytest.raises(CommandError, match=re.escape(says)):
        call_command("erase_person", "--by", "auditor", *arguments, "--yes")
    assert "jonas" in dump()


def test_record_erasure_by_command_ends_between_two_steps(
    drawn: Any, settings: Any, monkeypatch: Any
) -> None:
    """Ctrl-C is obeyed once a step is committed; what was done verifies, and the next run goes on."""
    naming(settings, "person")
    monkeypatch.setattr(blanking, "CHUNK", 1)
    key = str(drawn.jonas.pk)
    arguments = ("erase_person", key, "--by", "auditor", "--why", "asked", "--yes")

    def interrupt(kind: Any, **given: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return record_event(kind, **given)

    with monkeypatch.context() as interrupted:
        interrupted.setattr(blanking, "record_event", interrupt)
        with pytest.raises(CommandError, match="Interrupted: what was removed stays so") as raised:
            call_command(*arguments)
    assert raised.value.returncode == 130
    assert TurnConversationRead.objects.filter(session_person_id=key).count() == 1
    assert findings() == []
    call_command(*arguments)
    assert not TurnConversationRead.objects.filter(session_person_id=key).exists()
    assert "jonas" not in dump() and findings() == []


def test_record_erasure_of_somebody_who_goes_on_reading(drawn: Any, settings: Any, monkeypatch: Any) -> None:
    """Rows that readers write while the erasure begins are sealed and blanked too."""
    naming(settings, "person")
    late = [lambda: read_conversation(drawn.drawing, conversation_id=str(drawn.source.pk))]

    def seal_and_read() -> None:
        seal()
        if late:
            late.pop()()

    monkeypatch.setattr("history_access.erasing.seal", seal_and_read)
    erase_person(drawn.jonas, **WHO)
    assert not TurnConversationRead.objects.filter(session_person_id=str(drawn.jonas.pk)).exists()
    assert findings() == []


@pytest.mark.parametrize("kinds", [("people",), ("Person",), "person"])
def test_record_erasure_refuses_naming_keys_that_it_does_not_know(
    drawn: Any, settings: Any, kinds: Any
) -> None:
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "NAMING_KEYS": kinds}
    with pytest.raises(ValueError, match="NAMING_KEYS"):
        erase_person(drawn.jonas, **WHO)
    assert "history_access.E014" in [message.id for message in run_checks()]


def test_record_erasure_leaves_the_places_of_other_turns(drawn: Any) -> None:
    """A short name is part of many words, and other turns' places are needed by other erasures."""
    other = drawn.turn(drawn.operator)
    wrote(other, "workspace/jonas@guests.example-and-more.md")
    erase_person(drawn.jonas, **WHO)
    places = set(WrittenPlace.objects.values_list("place", flat=True))
    assert places == {ERASED, "workspace/digest.md", "workspace/jonas@guests.example-and-more.md"}
