"""tool-quoted: what a model is given is to the letter what Python callers get, and what the schema says.

The tools write their results as they go over the wire, without making the models that describe them.
"""

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from history_access.agent_platform import services
from history_access.tools import list_conversations, read_conversation, toolset_for
from history_access.tools.results import ConversationList, QuotedConversation
from tests.worlds import World

LONG = "words, and more words. " * 400


@pytest.fixture
def told(world: World) -> World:
    world.allow("all_accounts")
    return world


def conversations(world: World) -> dict[str, Any]:
    """Of every kind: empty, long, trimmed, summarized, with calls, with and without an account."""
    found = {
        "empty": world.session(person=world.mara, title=""),
        "plain": world.session(
            "hello", "there", person=world.mara, account=world.acme, title="A <b>talk</b>"
        ),
        "long": world.session(*[LONG] * 7, person=world.mara, title="t" * 300),
        "trimmed": world.session(*"abcdef", person=world.mara),
        "summarized": world.session(*"abc", person=world.mara),
        "nobody's": world.session("hello", "there"),
    }
    services.add_message(
        found["plain"], "agent", "", tool_calls=[{"name": "search", "arguments": {}}, {"name": "n" * 200}]
    )
    services.trim_session(found["trimmed"], before=3)
    services.summarize_session(found["summarized"], "They talked. " * 2000, through=2)
    return found


ASKED: list[dict[str, Any]] = [{}, {"start": -2}, {"start": 2, "limit": 1}, {"view": "summary"}]


def same(given: dict[str, Any], model: BaseModel) -> None:
    dumped = model.model_dump(mode="json")
    assert given == dumped
    assert list(given) == list(dumped)
    schema = type(model).model_json_schema(mode="serialization")
    Draft202012Validator(schema).validate(given)


def test_a_list_is_what_its_model_says(told: World) -> None:
    conversations(told)
    told.grant(told.mara)
    turn = told.turn(told.mara)
    given = toolset_for(turn).call("list_conversations", {"limit": 4})
    same(given, ConversationList.model_validate(given))
    following = {"limit": 4, "cursor": given["next_cursor"]}
    same(toolset_for(turn).call("list_conversations", following), list_conversations(turn, **following))
    assert [one.model_dump() for one in list_conversations(turn, limit=4).conversations] == given[
        "conversations"
    ]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_page_is_what_its_model_says(told: World, asked: dict[str, Any]) -> None:
    found = conversations(told)
    told.grant(told.mara)
    turn = told.turn(told.mara)
    toolset = toolset_for(turn)
    for session in found.values():
        arguments = {"conversation_id": str(session.pk), **asked}
        given = toolset.call("read_conversation", arguments)
        same(given, read_conversation(turn, **arguments))
        if given["next_cursor"]:
            arguments = {"conversation_id": str(session.pk), "cursor": given["next_cursor"]}
            same(toolset.call("read_conversation", arguments), read_conversation(turn, **arguments))
    assert isinstance(read_conversation(turn, conversation_id=str(session.pk)), QuotedConversation)
