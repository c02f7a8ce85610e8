"""record-refusals: refused calls are visible to auditors, apart from reads, bounded per turn, and logged."""

import logging
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from history_access import refusals
from history_access.models import Refusal, TurnConversationRead
from history_access.tools import ToolError, Toolset, list_conversations, toolset_for
from tests.worlds import World, error, listed


@pytest.fixture
def told(world: World) -> World:
    world.allow("all_accounts")
    return world


REFUSED: list[tuple[str, dict[str, Any], str, str, str | None]] = [
    ("list_conversations", {"limit": 0}, "list_conversations", "invalid_arguments", "limit"),
    ("list_conversations", {"account": "x"}, "list_conversations", "invalid_arguments", None),
    ("read_conversation", {"conversation_id": "x"}, "read_conversation", "conversation_unavailable", None),
    ("drop_tables", {}, "", "invalid_arguments", None),
]


@pytest.mark.parametrize(("name", "arguments", "tool", "code", "argument"), REFUSED)
def test_record_refusals(
    told: World, caplog: Any, name: str, arguments: Any, tool: str, code: str, argument: Any
) -> None:
    turn = told.turn(told.mara)
    with caplog.at_level(logging.INFO, logger="history_access.refused"):
        toolset_for(turn).call(name, arguments)
    row = Refusal.objects.get()
    assert (row.tool, row.code, row.argument) == (tool, code, argument)
    keys = (str(turn.pk), str(told.agent.pk), str(told.hollowbrook.pk), str(told.mara.pk))
    assert (row.turn_id, row.agent_id, row.workspace_id, row.reader_id) == keys
    (logged,) = [one for one in caplog.records if one.name == "history_access.refused"]
    assert (logged.turn_id, code in logged.getMessage()) == (str(turn.pk), True)
    assert not TurnConversationRead.objects.exists()


def test_record_refusals_when_switched_off_and_from_python(world: World) -> None:
    turn = world.turn(world.mara)
    with pytest.raises(ToolError):
        list_conversations(turn)
    assert Refusal.objects.get().code == "history_unavailable"


def test_record_refusals_not_for_what_is_given(told: World) -> None:
    told.session("hello", person=told.mara)
    assert len(listed(told.tools(told.mara))) == 1
    assert not Refusal.objects.exists()


def test_record_refusals_are_bounded_for_each_turn(told: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(refusals, "MOST_A_TURN", 3)
    first, second = told.tools(told.mara), told.tools(told.mara)
    for _ in range(5):
        first.call("list_conversations", {"limit": 0})
    second.call("list_conversations", {"limit": 0})
    assert Refusal.objects.filter(turn_id=str(first.turn_id)).count() == 3
    assert Refusal.objects.filter(turn_id=str(second.turn_id)).count() == 1


def test_record_refusals_keep_nothing_of_what_was_asked(told: World, caplog: Any) -> None:
    """Not the value of an argument, and not a name that the model made up either."""
    tools = told.tools(told.mara)
    with caplog.at_level(logging.INFO, logger="history_access.refused"):
        for arguments in ({"conversation_id": "Zq7Mark"}, {"conversation_id": "x", "Zq7Mark": 1}):
            result = tools.call("read_conversation", arguments)
    assert error(result)["argument"] == "Zq7Mark", "the model is told which"
    assert Refusal.objects.count() == 2
    assert "Zq7Mark" not in str(list(Refusal.objects.values()))
    assert not [one for one in caplog.records if "Zq7Mark" in str(vars(one))]


def test_record_refusals_that_cannot_be_kept_are_refusals_still(told: World) -> None:
    def refuse(execute: Any, sql: str, *rest: Any) -> Any:
        if 'INTO "history_access_refusal"' in sql:
            raise OperationalError("no room on the disk")
        return execute(sql, *rest)

    with connection.execute_wrapper(refuse):
        result = told.tools(told.mara).call("list_conversations", {"limit": 0})
    assert result["error"]["code"] == "invalid_arguments"
    assert not Refusal.objects.exists()


def test_record_refusals_of_no_turn_are_logged(db: None, caplog: Any) -> None:
    with caplog.at_level(logging.INFO, logger="history_access.refused"):
        Toolset("no-such-turn", ()).call("list_conversations", {})
    assert [one.turn_id for one in caplog.records if one.name == "history_access.refused"] == [None]


def test_record_refusals_are_append_only(told: World) -> None:
    told.tools(told.mara).call("list_conversations", {"limit": 0})
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        Refusal.objects.update(code="none")
