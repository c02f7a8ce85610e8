"""refs-within-reach, refs-not-by-mention: what a turn may read of what was handed to it, and for how long."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from history_access.agent_platform import services
from history_access.agent_platform.models import Account, Agent, Authority, Session, Turn
from history_access.models import ReferenceKind, TurnConversationRead, TurnReference
from history_access.reach import handover_of
from history_access.references import bind_references, take_back
from history_access.references.binding import new_reference
from history_access.testing import lift_guards
from history_access.tools import Toolset, toolset_for
from tests.worlds import World, error, read

SETTINGS = ["none", "same_account", "all_accounts"]
REFERENCES = ["none", "excerpts", "conversations"]
ACCOUNTS = ["Acme", "Brightside", None]
BOTH, READ_ALONE, NEITHER = ("list_conversations", "read_conversation"), ("read_conversation",), ()


@dataclass(frozen=True)
class Source:
    """One conversation, by what the contract asks of it."""

    name: str
    session: Session
    account: str | None
    standing: bool = True
    mine: bool = True
    same_agent: bool = True


def expected(
    history: str, references: str, granted: bool, turn_account: str | None, one: Source, handed: bool
) -> str | None:
    """The contract in plain words: what lets this turn read that conversation, None for nothing."""
    if not one.standing or not one.same_agent:
        return None
    if not one.mine and not granted:
        return None
    if history != "all_accounts" and one.account != turn_account:
        return None
    if handed and references == "conversations":
        return "reference"
    return None if history == "none" else "history"


def make_sources(world: World) -> list[Source]:
    accounts: dict[str | None, Account | None] = {
        "Acme": world.acme,
        "Brightside": world.brightside,
        None: None,
    }
    other = Agent.objects.create(workspace=world.hollowbrook, name="Other")
    found = []
    for name, account in accounts.items():
        given = {"account": account, "title": f"title of {name}"}
        mine = world.session(f"words of {name}", person=world.mara, **given)
        found.append(Source(f"mine, {name}", mine, name))
        theirs = world.session("words", person=world.operator, **given)
        found.append(Source(f"theirs, {name}", theirs, name, mine=False))
        if name == "Brightside":
            continue
        gone = world.session("words", person=world.mara, **given)
        services.delete_session(gone)
        found.append(Source(f"deleted, {name}", gone, name, standing=False))
        foreign = world.session("words", person=world.mara, agent=other, **given)
        found.append(Source(f"another agent's, {name}", foreign, name, same_agent=False))
    return found


def hand_over(turn: Turn, sources: list[Source]) -> None:
    """Hand over whatever it is, as if each had been in reach when it was bound."""
    handover = handover_of(turn, "conversations")
    TurnReference.objects.bulk_create(
        new_reference(handover, one.session, ReferenceKind.CONVERSATION) for one in sources
    )


@pytest.mark.parametrize("granted", [False, True], ids=["own", "granted"])
@pytest.mark.parametrize("history", SETTINGS)
def test_refs_within_reach_in_every_cell(world: World, history: str, granted: bool) -> None:
    """history_access × conversation_references × conversation × handed over or not: a third of the cells."""
    sources = make_sources(world)
    if granted:
        world.grant(world.mara, agent=world.agent)
    world.allow(history)
    turns = {}
    for name, account, handed in (("Acme", world.acme, True), (None, None, True), (None, None, False)):
        turns[name, handed] = world.turn(world.mara, account=account)
        if handed:
            hand_over(turns[name, handed], sources)
    for references in REFERENCES:
        world.allow_references(references)
        for (account_name, handed), turn in turns.items():
            tools = toolset_for(turn)
            assert tools.names == offered(history, references, handed)
            for one in sources:
                wanted = expected(history, references, granted, account_name, one, handed)
                check(turn, one, wanted, history, offers=bool(tools))


def offered(history: str, references: str, handed: bool) -> tuple[str, ...]:
    if history != "none":
        return BOTH
    return READ_ALONE if handed and references == "conversations" else NEITHER


def check(turn: Turn, one: Source, wanted: str | None, history: str, *, offers: bool) -> None:
    """What a read gives, and what the record says of it."""
    before = TurnConversationRead.objects.count()
    result = Toolset(turn.pk, ()).call("read_conversation", {"conversation_id": str(one.session.pk)})
    rows = TurnConversationRead.objects.order_by("id")[before:]
    if wanted is None:
        code = "conversation_unavailable" if offers else "history_unavailable"
        assert (error(result)["code"], list(rows)) == (code, []), one
        return
    assert (result["kind"], result["by"]) == ("quoted_conversation", wanted), (one, result)
    [row] = rows
    found = (row.how, row.what, row.setting, row.session_id, row.turn_id, row.first_number)
    assert found == (wanted, "messages", history, str(one.session.pk), str(turn.pk), 1)


@pytest.fixture
def handed(world: World) -> tuple[World, Turn, Session]:
    """A turn of Mara's with one conversation handed to it, on an agent that reads nothing by itself."""
    world.allow_references()
    session = world.session("Two eggs?", "Three.", person=world.mara, title="Breakfast")
    turn = world.turn(world.mara)
    bind_references(turn, [str(session.pk)])
    return world, turn, session


def unreadable(turn: Turn, session: Session) -> bool:
    call = {"conversation_id": str(session.pk)}
    return error(Toolset(turn.pk, ()).call("read_conversation", call))["code"] == "history_unavailable"


def test_refs_within_reach_the_list_is_refused_where_history_is_off(handed: Any) -> None:
    """Not offered, and refused when it is called all the same; the reason names no conversation."""
    _, turn, session = handed
    tools = toolset_for(turn)
    assert [one["name"] for one in tools.definitions("mcp")] == ["read_conversation"]
    found = error(tools.call("list_conversations", {}))
    assert found["code"] == "history_unavailable"
    assert str(session.pk) not in str(found)
    assert not TurnConversationRead.objects.exists()


def test_reach_same_answer_for_everything_that_was_not_handed_over(handed: Any) -> None:
    """To the letter, and with as many statements, while there is something that was."""
    world, turn, _ = handed
    elsewhere = Agent.objects.create(workspace=world.hollowbrook, name="Other")
    sessions = [
        world.session("a", person=world.mara),
        world.session("a", person=world.mara, account=world.acme),
        world.session("a", person=world.operator),
        world.session("a"),
        world.session("a", person=world.mara, agent=elsewhere),
    ]
    services.delete_session(world.session("a", person=world.mara, pk="00000000-0000-4000-8000-000000000000"))
    ids = [*(str(one.pk) for one in sessions), "00000000-0000-4000-8000-000000000000"]
    found, tools = set(), toolset_for(turn)
    for one in (*ids, "7", "", "x" * 300, str(turn.session_id)):
        with CaptureQueriesContext(connection) as captured:
            answer = tools.call("read_conversation", {"conversation_id": one})
        found.add((json.dumps(answer), len(captured)))
    [(answer, _)] = found
    assert json.loads(answer)["error"]["code"] == "conversation_unavailable"


def test_refs_within_reach_a_summary_is_read_too(handed: Any) -> None:
    _, turn, session = handed
    services.summarize_session(session, "They had eggs.", through=1)
    page = read(toolset_for(turn), session.pk, view="summary")
    assert (page["by"], page["summary"]["quoted"]["text"]) == ("reference", "They had eggs.")
    row = TurnConversationRead.objects.get()
    assert (row.how, row.what) == ("reference", "summary")


# It ends with the turn


def test_refs_per_turn_ends_with_the_turn(handed: Any) -> None:
    _, turn, session = handed
    tools = toolset_for(turn)
    assert read(tools, session.pk)["by"] == "reference"
    services.end_turn(turn)
    assert not toolset_for(turn)
    assert unreadable(turn, session)


def test_refs_per_turn_ends_with_a_turn_that_a_platform_ends_by_itself(handed: Any) -> None:
    """Nobody noted it for the reference: reading stops all the same."""
    _, turn, session = handed
    Turn.objects.filter(pk=turn.pk).update(ended_at=turn.started_at)
    assert TurnReference.objects.get().ended_at is None
    assert unreadable(turn, session)


def test_refs_per_turn_nothing_carries_over(handed: Any) -> None:
    """A resume, a replay, a retry, another turn of the session, a sub-agent's, a trigger's."""
    world, turn, session = handed
    sub_agent = Agent.objects.create(workspace=world.hollowbrook, name="Sub-agent")
    trigger = services.create_trigger(world.agent, kind="schedule", name="Digest", by=world.mara)
    others = {
        "at the same time": services.start_turn(turn.session, sender=world.mara),
        "another session": world.turn(world.mara),
        "a trigger of hers": world.turn(trigger=trigger),
        "a trigger in the session": services.start_turn(turn.session, trigger=trigger),
        "another person, in the session": services.start_turn(turn.session, sender=world.operator),
        "a sub-agent": world.turn(world.mara, agent=sub_agent),
    }
    for name, other in others.items():
        assert not toolset_for(other), name
        assert unreadable(other, session), name
    services.end_turn(turn)
    resumed = services.start_turn(turn.session, sender=world.mara)
    assert not toolset_for(resumed)
    assert unreadable(resumed, session)
    bind_references(resumed, [str(session.pk)])
    assert read(toolset_for(resumed), session.pk)["by"] == "reference", "handed over anew"


@pytest.mark.parametrize("setting", SETTINGS)
def test_refs_per_turn_a_cursor_is_no_right(world: World, setting: str) -> None:
    """A page's cursor, and a message's, after the reference was taken back, and in another turn of hers."""
    world.allow(setting)
    world.allow_references()
    session = world.session("x" * 5_000, "second", person=world.mara, account=world.acme)
    turn = world.turn(world.mara, account=world.acme)
    [reference] = bind_references(turn, [str(session.pk)])
    page = read(toolset_for(turn), session.pk, limit=1)
    cursors = [page["next_cursor"], page["messages"][0]["truncated"]["continue"]]
    other = world.turn(world.mara, account=world.acme)
    take_back(turn, reference)
    for running in (turn, other):
        for cursor in cursors:
            result = Toolset(running.pk, ()).call(
                "read_conversation", {"conversation_id": str(session.pk), "cursor": cursor}
            )
            if setting == "none":
                assert error(result)["code"] == "history_unavailable"
            else:
                assert result["by"] == "history", "it is in reach of the setting"


def test_refs_per_turn_one_taken_back_leaves_the_others(handed: Any) -> None:
    world, turn, session = handed
    other = world.session("other", person=world.mara)
    [reference] = bind_references(turn, [str(other.pk)])
    take_back(turn, reference)
    assert read(toolset_for(turn), session.pk)["by"] == "reference"
    call = {"conversation_id": str(other.pk)}
    refused = [
        error(Toolset(turn.pk, ()).call("read_conversation", {"conversation_id": str(key)}))
        for key in (other.pk, world.session("never", person=world.mara).pk, turn.pk, turn.session_id)
    ]
    assert refused == [error(Toolset(turn.pk, ()).call("read_conversation", call))] * 4


# Not by mention


def test_refs_not_by_mention(handed: Any) -> None:
    """Ids in a message, a title, a tool's call, a handed-over text or a model's arguments grant nothing."""
    world, turn, session = handed
    secret = world.session("secret", person=world.mara)
    mention = f"Read {secret.pk} https://hollowbrook.example/conversations/{secret.pk}"
    own = turn.session
    services.add_message(own, "person", mention)
    services.add_message(own, "person", json.dumps({"conversation_references": [str(secret.pk)]}))
    services.add_message(
        own, "agent", mention, tool_calls=[{"name": "read_conversation", "arguments": mention}]
    )
    services.add_message(own, "system", mention, hidden=True)
    services.add_message(session, "person", mention)
    Session.objects.filter(pk__in=(own.pk, session.pk)).update(title=mention)
    tools = toolset_for(turn)
    assert mention in str(read(tools, session.pk))
    for arguments in (
        {"conversation_id": str(secret.pk)},
        {"conversation_id": mention},
        {"conversation_id": f"https://hollowbrook.example/conversations/{secret.pk}"},
        {"conversation_id": str(session.pk), "conversation_references": [str(secret.pk)]},
        {"conversation_id": str(secret.pk), "turn": str(turn.pk)},
    ):
        assert error(tools.call("read_conversation", arguments))
    assert {row.session_id for row in TurnConversationRead.objects.all()} == {str(session.pk)}


def test_refs_per_turn_only_the_sender_who_handed_it_over_is_read_as(handed: Any) -> None:
    """Where a platform's tables let a turn pass to somebody else, what was handed to it does not pass."""
    world, turn, session = handed
    world.grant(world.operator)
    lift_guards()
    Turn.objects.filter(pk=turn.pk).update(sender=world.operator)
    assert not toolset_for(turn)
    assert unreadable(turn, session)


def test_refs_within_reach_a_right_that_comes_back_counts_again(world: World) -> None:
    """Rechecked at each read: the reference lasts, the right is that of the moment."""
    world.allow_references()
    session = world.session("words", person=world.operator)
    right = world.grant(world.mara)
    turn = world.turn(world.mara)
    bind_references(turn, [str(session.pk)])
    call = {"conversation_id": str(session.pk)}
    tools = toolset_for(turn)
    right.delete()
    assert error(tools.call("read_conversation", call))["code"] == "conversation_unavailable"
    world.grant(world.mara)
    assert read(tools, session.pk)["by"] == "reference"
    assert Authority.objects.filter(person=world.mara).count() == 1
