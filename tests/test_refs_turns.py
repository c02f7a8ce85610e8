"""refs-within-reach, refs-per-turn, refs-not-by-mention: what one turn reads of what was handed to it.

Each cell of the matrix: the two settings, and what stands between the turn and the conversation. Whatever
was bound, a read looks at all of it again.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from history_access.agent_platform import services
from history_access.agent_platform.models import Agent, Session, Turn
from history_access.models import TurnConversationRead, TurnReference
from history_access.references import attach_excerpt, bind_references, take_back
from history_access.tools import toolset_for
from settings_catalog.keys import optional_key_text
from tests.worlds import World, error, read

NOTHING, ALONE, BOTH = (), ("read_conversation",), ("list_conversations", "read_conversation")


@dataclass(frozen=True)
class Kind:
    """One conversation: who made it, and from which value of history_access on its account is in reach."""

    make: Callable[[World], Session]
    person_may: bool
    account_needs: str = "none"


def elsewhere(world: World) -> Agent:
    return Agent.objects.get_or_create(workspace=world.hollowbrook, name="Other")[0]


def deleted(world: World) -> Session:
    session = world.session("words", person=world.mara, account=world.acme)
    services.delete_session(session)
    return session


KINDS = {
    "own": Kind(lambda w: w.session("words", person=w.mara, account=w.acme), person_may=True),
    "own, other account": Kind(
        lambda w: w.session("words", person=w.mara, account=w.brightside), True, "all_accounts"
    ),
    "own, no account": Kind(lambda w: w.session("words", person=w.mara), True, "all_accounts"),
    "another person's": Kind(lambda w: w.session("words", person=w.operator, account=w.acme), False),
    "nobody's": Kind(lambda w: w.session("words", account=w.acme), False),
    "another agent's": Kind(
        lambda w: w.session("words", person=w.mara, account=w.acme, agent=elsewhere(w)), False
    ),
    "deleted": Kind(deleted, False),
}
RANKS = ("none", "same_account", "all_accounts")


@pytest.fixture
def desk(world: World) -> World:
    """Every setting is allowed; what the agent asks for is the test's."""
    world.set(platform=True, ceiling="all_accounts")
    world.set("conversation_references", platform=True, ceiling="conversations")
    return world


def ask_for(desk: World, history: str, references: str) -> None:
    desk.set(agent=desk.agent, value=history)
    desk.set("conversation_references", agent=desk.agent, value=references)


def handed(turn: Turn, session: Session, by: Any = None) -> TurnReference:
    """As if it had been bound while it could be, by the turn's sender or by another person."""
    return TurnReference.objects.create(
        workspace_id=str(turn.workspace_id),
        agent_id=str(turn.session.agent_id),
        turn_id=str(turn.pk),
        person_id=str(turn.sender_id if by is None else by.pk),
        kind="conversation",
        session_id=str(session.pk),
        session_account_id=optional_key_text(session.account_id),
        bound_at=turn.started_at,
    )


@pytest.mark.parametrize("references", ["none", "excerpts", "conversations"])
@pytest.mark.parametrize("history", RANKS)
def test_refs_within_reach_in_every_cell(desk: World, history: str, references: str) -> None:
    ask_for(desk, history, references)
    for name, kind in KINDS.items():
        turn = desk.turn(desk.mara, account=desk.acme)
        session = kind.make(desk)
        handed(turn, session)
        tools = toolset_for(turn)
        by_reference = references == "conversations"
        offered = BOTH if history != "none" else ALONE if by_reference else NOTHING
        assert tools.names == offered, name
        reachable = kind.person_may and RANKS.index(history) >= RANKS.index(kind.account_needs)
        if reachable and offered:
            by = "reference" if by_reference else "history"
            assert read(tools, session.pk)["by"] == by, name
            row = TurnConversationRead.objects.get(turn_id=str(turn.pk))
            assert (row.how, row.what, row.setting) == (by, "messages", history), name
        else:
            code = "conversation_unavailable" if offered else "history_unavailable"
            answer = tools.call("read_conversation", {"conversation_id": str(session.pk)})
            assert error(answer)["code"] == code, name
            assert not TurnConversationRead.objects.filter(turn_id=str(turn.pk)).exists(), name


@pytest.fixture
def alone(desk: World) -> tuple[World, Session, Turn]:
    """History is off; Mara hands one conversation of hers to a turn."""
    ask_for(desk, "none", "conversations")
    session, turn = desk.session("words", "more", person=desk.mara), desk.turn(desk.mara)
    bind_references(turn, [str(session.pk)])
    return desk, session, turn


def code(turn: Any, session: Session, **more: Any) -> str:
    answer = toolset_for(turn).call("read_conversation", {"conversation_id": str(session.pk), **more})
    return str(error(answer)["code"])


def test_refs_within_reach_with_the_right_another_persons_is_read(alone: tuple[World, Session, Turn]) -> None:
    desk, _, turn = alone
    theirs = desk.session("words", person=desk.operator)
    right = desk.grant(desk.mara, agent=desk.agent)
    bind_references(turn, [str(theirs.pk)])
    assert read(toolset_for(turn), theirs.pk)["by"] == "reference"
    right.delete()
    assert code(turn, theirs) == "conversation_unavailable"


def test_refs_per_turn_nothing_carries_over(alone: tuple[World, Session, Turn]) -> None:
    """Not to a resume, a retry or a replay in the same session, to another agent's turn or to a trigger's."""
    desk, session, turn = alone
    assert read(toolset_for(turn), session.pk)["by"] == "reference"
    trigger = services.create_trigger(desk.agent, kind="schedule", name="s", by=desk.mara)
    desk.set("conversation_references", agent=elsewhere(desk), value="conversations")
    others = [
        services.start_turn(turn.session, sender=desk.mara),
        services.start_turn(turn.session, trigger=trigger),
        services.start_turn(turn.session, sender=desk.operator),
        desk.turn(desk.mara),
        desk.turn(desk.mara, agent=elsewhere(desk)),
    ]
    for other in others:
        assert toolset_for(other).names == NOTHING
        assert code(other, session) == "history_unavailable"
    assert read(toolset_for(turn), session.pk)["by"] == "reference"


def test_refs_per_turn_what_another_person_handed_over_is_not_read(
    alone: tuple[World, Session, Turn],
) -> None:
    """A platform of its own may let a turn change its sender; what was bound was bound by a person."""
    desk, session, _ = alone
    turn = desk.turn(desk.mara)
    handed(turn, session, by=desk.operator)
    assert toolset_for(turn).names == NOTHING
    assert code(turn, session) == "history_unavailable"


@pytest.mark.parametrize("noted", [True, False])
def test_refs_per_turn_it_ends_with_the_turn(alone: tuple[World, Session, Turn], noted: bool) -> None:
    _, session, turn = alone
    tools = toolset_for(turn)
    if noted:
        services.end_turn(turn)
    else:
        Turn.objects.filter(pk=turn.pk).update(ended_at=turn.started_at)
    answer = tools.call("read_conversation", {"conversation_id": str(session.pk)})
    assert error(answer)["code"] == "history_unavailable"
    assert not TurnConversationRead.objects.exists()


def test_refs_per_turn_a_page_goes_on_until_it_is_taken_back(alone: tuple[World, Session, Turn]) -> None:
    desk, session, turn = alone
    [bound] = bind_references(turn, [str(session.pk)])
    bind_references(turn, [str(desk.session("x", person=desk.mara).pk)])
    page = read(toolset_for(turn), session.pk, limit=1)
    following = {"cursor": page["next_cursor"], "limit": 1}
    assert read(toolset_for(turn), session.pk, **following)["messages"][0]["number"] == 2
    take_back(turn, bound)
    assert code(turn, session, **following) == "conversation_unavailable"
    assert code(turn, session) == "conversation_unavailable"


def test_refs_not_by_mention(alone: tuple[World, Session, Turn]) -> None:
    """An id in text, in a title, in arguments or among another turn's references opens nothing."""
    desk, session, turn = alone
    secret = desk.session("secret", person=desk.mara)
    services.add_message(turn.session, "person", f"Please read {secret.pk} and {session.pk}.")
    quoting = desk.session(f"See {secret.pk}", person=desk.mara, title=str(secret.pk))
    bind_references(turn, [str(quoting.pk)])
    bind_references(desk.turn(desk.mara), [str(secret.pk)])
    tools = toolset_for(turn)
    read(tools, quoting.pk)
    for arguments in ({"start": 1}, {"view": "summary"}, {"limit": 1}):
        assert code(turn, secret, **arguments) == "conversation_unavailable"
    sneaked = {"conversation_id": str(session.pk), "conversation_references": [str(secret.pk)]}
    assert error(tools.call("read_conversation", sneaked))["code"] == "invalid_arguments"
    assert code(turn, secret) == "conversation_unavailable"


def test_refs_two_kinds_an_excerpt_opens_nothing(open_world: World) -> None:
    open_world.allow_references()
    session, turn = open_world.session("a", "b", person=open_world.mara), open_world.turn(open_world.mara)
    attach_excerpt(turn, session, messages=[1])
    assert toolset_for(turn).names == NOTHING
    assert code(turn, session) == "history_unavailable"


def test_refs_within_reach_what_was_handed_over_is_never_listed(alone: tuple[World, Session, Turn]) -> None:
    _, _, turn = alone
    answer = toolset_for(turn).call("list_conversations", {})
    assert error(answer)["code"] == "history_unavailable"


def test_reach_same_answer_for_everything_that_was_not_handed_over(
    alone: tuple[World, Session, Turn],
) -> None:
    """To the letter, and with as many statements."""
    desk, _, turn = alone
    tools = toolset_for(turn)
    ids = [str(kind.make(desk).pk) for kind in KINDS.values()] + ["7", "", "x" * 300, str(turn.session_id)]
    found = set()
    for one in ids:
        with CaptureQueriesContext(connection) as captured:
            answer = tools.call("read_conversation", {"conversation_id": one})
        found.add((json.dumps(answer), len(captured)))
    [(answer, _)] = found
    assert json.loads(answer)["error"]["code"] == "conversation_unavailable"
