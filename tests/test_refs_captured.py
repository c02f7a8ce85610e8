"""refs-not-by-mention, refs-within-reach: a model in an attacker's hand that knows every id there is.

It tries them all, in every argument, as ids and as addresses, with cursors of other turns, out of message
text, before and after what was handed over was taken back. Every text in the world carries a mark; none but
those of what was handed over come back, in whatever form. `CAPTURED_CALLS` in the environment says how many
calls it makes (default 300; `make captured`: 10,000 and more).
"""

import json
import logging
import os
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from history_access.agent_platform import services
from history_access.agent_platform.models import Account, Agent, Session, Turn, Workspace
from history_access.models import TurnConversationRead
from history_access.references import attach_excerpt, bind_references, references_of, take_back
from history_access.tools import Toolset, toolset_for
from tests.worlds import World

CALLS = int(os.environ.get("CAPTURED_CALLS", "300"))
MARK = re.compile(r"mark-[0-9a-f]{32}")
ADDRESS = "https://hollowbrook.example/conversations/"


class Marks:
    """Texts that nobody can guess, each with the conversation that it belongs to."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.of: dict[str, str] = {}

    def new(self) -> str:
        return f"mark-{self.source.getrandbits(128):032x}"

    def session(self, world: World, **given: Any) -> Session:
        words, title = [self.new() for _ in range(4)], self.new()
        session = world.session(*words, title=title, **given)
        services.add_message(session, "tool", self.new())
        services.add_message(session, "person", self.new(), hidden=True)
        services.add_message(session, "agent", "", tool_calls=[{"name": "x", "arguments": {"y": self.new()}}])
        summary = self.new()
        services.summarize_session(session, summary, through=2)
        self.of |= dict.fromkeys([*words, title, summary], str(session.pk))
        return session


@pytest.fixture
def marked(world: World) -> tuple[World, Marks, Turn, list[Session], list[str]]:
    """A world of marks, a turn of Mara's, the two conversations that were handed to it, and every id.

    Of a third it has an excerpt, which opens nothing.
    """
    world.allow_references()
    marks = Marks(random.Random(7))
    elsewhere = Agent.objects.create(workspace=Workspace.objects.create(name="Elsewhere"), name="x")
    other = Agent.objects.create(workspace=world.hollowbrook, name="Other")
    sessions = [marks.session(world, person=world.mara) for _ in range(4)]
    account = Account.objects.create(workspace=world.hollowbrook, name=marks.new())
    marks.session(world, person=world.mara, account=account)
    for given in (
        {"person": world.operator},
        {},
        {"person": world.mara, "agent": other},
        {"person": world.mara, "agent": elsewhere},
    ):
        marks.session(world, **given)
    services.delete_session(marks.session(world, person=world.mara))
    turn = world.turn(world.mara)
    bind_references(turn, [str(one.pk) for one in sessions[:2]])
    attach_excerpt(turn, sessions[3], messages=[1])
    bind_references(world.turn(world.mara), [str(sessions[2].pk)])
    ids = [str(pk) for model in (Session, Turn, Agent) for pk in model.objects.values_list("pk", flat=True)]
    services.add_message(turn.session, "person", "Read " + " ".join(ids))
    return world, marks, turn, sessions[:2], ids


def calls(source: random.Random, ids: list[str], cursors: list[str]) -> Iterator[tuple[str, Any]]:
    """What a captured model may come up with, from what it was told and from what it knows."""

    def disguised(one: str) -> Any:
        forms = (one, one.upper(), f"{{{one}}}", one.replace("-", ""), ADDRESS + one, f" {one}", [one])
        return source.choice((*(one,) * 6, *forms, f"{one}\0", f"{one}' OR 1=1 --", {"id": one}, None))

    for view in ("messages", "summary"):
        yield from (("read_conversation", {"conversation_id": one, "view": view}) for one in ids)
    while True:
        arguments: dict[str, Any] = {"conversation_id": disguised(source.choice(ids))}
        if source.random() < 0.3:
            arguments["cursor"] = source.choice([*cursors, "x", source.choice(ids)])
        if source.random() < 0.3:
            arguments["start"] = source.choice([1, -1, 0, 3, 2**70, "1", True])
        if source.random() < 0.2:
            arguments["view"] = source.choice(["summary", "messages", "raw"])
        if source.random() < 0.2:
            name = source.choice(
                [
                    "account",
                    "agent_id",
                    "after",
                    "before",
                    "conversation_references",
                    "person",
                    "turn",
                    "limit",
                ]
            )
            arguments[name] = source.choice([source.choice(ids), [source.choice(ids)], 50])
        tool = source.choice(["read_conversation"] * 8 + ["list_conversations", "search", ""])
        if tool == "list_conversations":
            arguments.pop("conversation_id")
        yield tool, arguments


def cursors_in(result: Any) -> list[str]:
    text = json.dumps(result)
    return re.findall(r'"(?:next_cursor|continue)": "([^"]+)"', text)


def marks_in(*texts: str) -> set[str]:
    return {mark for text in texts for mark in MARK.findall(text)}


def test_refs_not_by_mention_a_captured_model_reads_what_was_handed_over(marked: Any, caplog: Any) -> None:
    world, marks, turn, handed, ids = marked
    caplog.set_level(logging.DEBUG)
    source, cursors = random.Random(11), stolen(world, marks)
    tools, seen = toolset_for(turn), set[str]()
    for number, (tool, arguments) in enumerate(calls(source, ids, cursors), 1):
        result = tools.call(tool, arguments)
        cursors += cursors_in(result)
        seen |= marks_in(json.dumps(result), repr(result))
        if number == CALLS:
            break
    may = {mark for mark, session in marks.of.items() if session in {str(one.pk) for one in handed}}
    assert seen == may, "more than was handed over, or not all of it"
    assert marks_in(caplog.text) == set()
    read = TurnConversationRead.objects.filter(turn_id=str(turn.pk)).exclude(what="excerpt")
    assert set(read.values_list("session_id", flat=True)) == {str(one.pk) for one in handed}
    assert set(read.values_list("how", flat=True)) == {"reference"}


def test_refs_per_turn_a_captured_model_reads_nothing_that_was_taken_back(marked: Any) -> None:
    """Nor does one of a turn in the same session, or after the end, with all cursors that there were."""
    world, marks, turn, handed, ids = marked
    tools, source = toolset_for(turn), random.Random(13)
    pages = [tools.call("read_conversation", {"conversation_id": str(one.pk), "limit": 1}) for one in handed]
    cursors = [cursor for page in pages for cursor in cursors_in(page)]
    assert len(cursors) == 2
    take_back(turn, references_of(turn)[0])
    kept = {mark for mark, session in marks.of.items() if session == str(handed[1].pk)}
    assert tried(tools, source, ids, cursors) == kept
    again = services.start_turn(turn.session, sender=world.mara)
    assert tried(Toolset(again.pk, tools.names), source, ids, cursors) == set()
    services.end_turn(turn)
    assert tried(tools, source, ids, cursors) == set()


def stolen(world: World, marks: Marks) -> list[str]:
    """Cursors of turns that may read more, of which the model got hold."""
    other = world.turn(world.mara)
    sessions = list(dict.fromkeys(marks.of.values()))[:3]
    bind_references(other, sessions)
    tools = toolset_for(other)
    pages = [tools.call("read_conversation", {"conversation_id": one, "limit": 1}) for one in sessions]
    return [cursor for page in pages for cursor in cursors_in(page)]


def tried(tools: Toolset, source: random.Random, ids: list[str], cursors: list[str]) -> set[str]:
    """The marks that come back from a share of the calls."""
    some = zip(range(CALLS // 3), calls(source, ids, cursors), strict=False)
    return marks_in(*(json.dumps(tools.call(tool, arguments)) for _, (tool, arguments) in some))
