"""record-label: at any moment the platform can ask what a turn has drawn on, and is told of each read."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from history_access.agent_platform import services
from history_access.agent_platform.models import Trigger, Turn
from history_access.models import AbstractTurn, TurnConversationRead
from history_access.reach import NoTurnError
from history_access.record import drawn_on, wrote
from history_access.signals import conversations_read
from history_access.tools import list_conversations, read_conversation
from tests.worlds import NOON, World


@pytest.fixture
def told(world: World) -> World:
    world.allow("all_accounts")
    world.grant(world.mara)
    return world


def test_record_label_of_a_turn_that_has_read_nothing(told: World) -> None:
    label = drawn_on(told.turn(told.mara))
    assert (label.accounts, label.people) == (frozenset(), frozenset())
    assert (label.other_account, label.other_person, label.webhook) == (False, False, False)


@pytest.mark.parametrize("account", [None, "acme"])
@pytest.mark.parametrize("turn_account", [None, "acme", "brightside"])
@pytest.mark.parametrize("person", ["mara", "operator", None])
def test_record_label(told: World, account: str | None, turn_account: str | None, person: str | None) -> None:
    people = {"mara": told.mara, "operator": told.operator, None: None}
    named = {"acme": told.acme, "brightside": told.brightside, None: None}
    session = told.session("hello", person=people[person], account=named[account])
    turn = told.turn(told.mara, account=named[turn_account])
    read_conversation(turn, conversation_id=str(session.pk))
    label = drawn_on(turn)
    assert label.accounts == {account and str(named[account].pk)}
    assert label.people == {person and str(people[person].pk)}
    assert label.other_account is (account != turn_account)
    assert label.other_person is (person != "mara")
    assert drawn_on(told.turn(told.mara)).accounts == frozenset(), "another turn has a label of its own"


@pytest.mark.parametrize(("kind", "heard"), [("webhook", True), ("schedule", False)])
def test_record_label_tells_of_a_webhook(told: World, kind: str, heard: bool) -> None:
    """One that started the turn, and one in a conversation that it drew on."""
    trigger = services.create_trigger(told.agent, kind=kind, name="Hook", by=told.mara)
    started = told.turn(trigger=trigger)
    assert drawn_on(started).webhook is heard
    reading = told.turn(told.mara)
    assert drawn_on(reading).webhook is False
    read_conversation(reading, conversation_id=str(started.session_id))
    assert drawn_on(reading).webhook is heard


def edited(told: World, trigger: Any) -> None:
    kind = "schedule" if trigger.kind == "webhook" else "webhook"
    services.edit_trigger(trigger, by=told.mara, kind=kind)


def deleted(told: World, trigger: Any) -> None:
    trigger.delete()


@pytest.mark.parametrize("change", [edited, deleted])
@pytest.mark.parametrize(("kind", "heard"), [("webhook", True), ("schedule", False)])
def test_record_label_tells_of_a_webhook_whatever_became_of_it(
    told: World, kind: str, heard: bool, change: Any
) -> None:
    """What a webhook said stays a stranger's words, and what a schedule said never becomes that."""
    trigger = services.create_trigger(told.agent, kind=kind, name="Hook", by=told.mara)
    started, reading = told.turn(trigger=trigger), told.turn(told.mara)
    read_conversation(reading, conversation_id=str(started.session_id))
    change(told, trigger)
    assert (drawn_on(started).webhook, drawn_on(reading).webhook) == (heard, heard)


@pytest.mark.parametrize(("kind", "heard"), [("webhook", True), ("schedule", False)])
def test_record_label_tells_of_a_webhook_that_spoke_before_in_the_same_conversation(
    told: World, kind: str, heard: bool
) -> None:
    trigger = services.create_trigger(told.agent, kind=kind, name="Hook", by=told.mara)
    session = told.turn(trigger=trigger).session
    assert drawn_on(services.start_turn(session, sender=told.mara)).webhook is heard


def test_record_label_a_turn_keeps_the_kind_that_its_trigger_has_now(told: World) -> None:
    """Not what the object at hand remembers; and the table lets nobody change or leave it out."""
    stale = services.create_trigger(told.agent, kind="schedule", name="Hook", by=told.mara)
    services.edit_trigger(stale, by=told.mara, kind="webhook")
    turn = told.turn(trigger=stale)
    assert turn.trigger_kind == "webhook"
    turns = Turn.objects.filter(pk=turn.pk)
    with pytest.raises(IntegrityError, match="keeps the kind"), transaction.atomic():
        turns.update(trigger_kind="schedule")
    given = {"workspace": told.hollowbrook, "session": turn.session, "started_at": NOON}
    with pytest.raises(IntegrityError, match="turn_keeps_kind"), transaction.atomic():
        Turn.objects.create(**given, trigger=stale)


def test_record_label_of_a_platform_whose_turns_keep_no_kind(
    told: World, settings: Any, monkeypatch: Any
) -> None:
    """Then its triggers say what they are now; without any, nothing is known of webhooks."""
    monkeypatch.setattr(Turn, "started_by_webhook", AbstractTurn.started_by_webhook)
    trigger = services.create_trigger(told.agent, kind="webhook", name="Hook", by=told.mara)
    started = told.turn(trigger=trigger)
    assert drawn_on(started).webhook is True
    edited(told, trigger)
    assert drawn_on(started).webhook is False
    edited(told, Trigger.objects.get(pk=trigger.pk))
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "TRIGGER_MODEL": None}
    assert drawn_on(started).webhook is False


def test_record_label_signal_on_every_read_and_on_nothing_else(told: World) -> None:
    heard: list[tuple[Any, list[Any]]] = []

    def listen(turn_id: Any, given: list[Any], **rest: Any) -> None:
        assert TurnConversationRead.objects.filter(turn_id=str(turn_id)).count() >= len(given)
        heard.append((turn_id, [one.session_id for one in given]))

    session = told.session("hello", person=told.mara)
    turn = told.turn(told.mara)
    conversations_read.connect(listen)
    try:
        list_conversations(turn)
        read_conversation(turn, conversation_id=str(session.pk))
        told.tools(told.mara).call("read_conversation", {"conversation_id": "x"})
    finally:
        conversations_read.disconnect(listen)
    assert heard == [(turn.pk, [session.pk])] * 2


def test_record_label_a_listener_that_fails_changes_nothing(told: World) -> None:
    def fail(**rest: Any) -> None:
        raise ZeroDivisionError

    told.session("hello", person=told.mara)
    conversations_read.connect(fail)
    try:
        assert len(list_conversations(told.turn(told.mara)).conversations) == 1
    finally:
        conversations_read.disconnect(fail)


@pytest.mark.parametrize("place", ["", "x" * 501, "a\0b", "a\nb", "a\ud800"])
def test_record_erasure_a_place_is_named_in_plain_words(told: World, place: str) -> None:
    turn = told.turn(told.mara)
    with pytest.raises(ValueError, match="place: name it"):
        wrote(turn, place)
    with pytest.raises(NoTurnError):
        wrote(None, "workspace/digest.md")


def test_record_label_is_what_a_storage_guard_asks(told: World) -> None:
    """The example platform refuses another account's words in shared files (record-label)."""
    from demo import files

    turn = told.turn(told.mara, account=told.acme)
    files.write(turn, "workspace/digest.md")
    other = told.session("hello", person=told.mara, account=told.brightside)
    read_conversation(turn, conversation_id=str(other.pk))
    with pytest.raises(files.RefusedPlaceError, match="other accounts"):
        files.write(turn, "workspace/digest.md")
    files.write(turn, "agent/digest.md")
