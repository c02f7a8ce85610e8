"""tool-list: PostgreSQL goes down an index for a page of the list, whatever plan it keeps for later values.

A prepared statement is planned without its values after a few calls. What looks like few sessions then may be
many: a plan that sorts them reads every session of an account for each page of its list.
"""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from history_access.agent_platform.models import Account, Agent, Session
from history_access.references import desk_for, offerable_conversations
from history_access.tools import toolset_for
from tests.worlds import NOON, World

AGENTS, ACCOUNTS, SESSIONS = 20, 40, 3_000

WHOSE: dict[str, tuple[str, Callable[[World], dict[str, Any]], bool]] = {
    "a named account": ("same_account", lambda world: {"account": world.acme}, True),
    "no account": ("same_account", lambda world: {}, True),
    "every account": ("all_accounts", lambda world: {}, True),
    "own ones of a named account": ("same_account", lambda world: {"account": world.acme}, False),
    "own ones without an account": ("same_account", lambda world: {}, False),
    "own ones of every account": ("all_accounts", lambda world: {}, False),
}


@pytest.fixture
def crowded(open_world: World) -> World:
    """One agent with thousands of sessions, most of one account and of one person, beside small ones."""
    world = open_world
    if connection.vendor != "postgresql":
        pytest.skip("SQLite plans each statement for itself, and keeps to what its indexes say")
    if connection.pg_version < 160000:
        pytest.skip("PostgreSQL shows the plan that it keeps from version 16 on")
    accounts = Account.objects.bulk_create(
        Account(workspace=world.hollowbrook, name=f"Account {nth}") for nth in range(ACCOUNTS)
    )
    agents = Agent.objects.bulk_create(
        Agent(workspace=world.hollowbrook, name=f"Agent {nth}") for nth in range(AGENTS)
    )
    Session.objects.bulk_create(
        Session(
            workspace=world.hollowbrook,
            agent=world.agent if nth % 2 else agents[nth // 2 % AGENTS],
            account=(world.acme, None, accounts[nth // 8 % ACCOUNTS])[nth // 2 % 4 % 3],
            person=world.mara if nth // 2 % 5 else world.operator,
            title=f"Conversation {nth}",
            started_at=NOON,
            last_moved_at=NOON - timedelta(minutes=nth),
        )
        for nth in range(2 * SESSIONS)
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "ANALYZE agent_platform_session, agent_platform_account, agent_platform_agent, auth_user"
        )
    return world


def kept_plans(asked: Callable[[], Any]) -> Iterator[str]:
    """The plans, without any values, of what lists sessions in a call."""
    plans: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "ORDER BY" in sql and 'FROM "agent_platform_session"' in sql:
            plans.append(kept_plan(sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        asked()
    assert plans, "nothing was listed"
    yield from plans


def kept_plan(sql: str, params: Any) -> str:
    kinds = {int: "int", str: "text", UUID: "uuid"}
    values = enumerate(params, 1)

    def numbered(_: re.Match[str]) -> str:
        number, value = next(values)
        kind = next((kinds[one] for one in kinds if isinstance(value, one)), "timestamptz")
        return f"${number}::{kind}"

    statement = re.sub(r"%s", numbered, sql)
    with connection.connection.cursor() as cursor:
        return "\n".join(row[0] for row in cursor.execute(f"EXPLAIN (GENERIC_PLAN) {statement}"))


@pytest.mark.parametrize("whose", WHOSE)
def test_tool_list_keeps_a_plan_that_goes_down_an_index(crowded: World, whose: str) -> None:
    value, given, granted = WHOSE[whose]
    crowded.allow(value)
    if granted:
        crowded.grant(crowded.mara)
    toolset = toolset_for(crowded.turn(crowded.mara, **given(crowded)))
    first = toolset.call("list_conversations", {"limit": 5})
    assert len(first["conversations"]) == 5

    def pages() -> None:
        toolset.call("list_conversations", {"limit": 5})
        toolset.call("list_conversations", {"limit": 5, "cursor": first["next_cursor"]})

    for plan in kept_plans(pages):
        assert "Sort" not in plan, plan
        assert "Seq Scan on agent_platform_session" not in plan, plan


@pytest.mark.parametrize("granted", [True, False])
def test_what_a_person_picks_from_comes_off_an_index_too(crowded: World, granted: bool) -> None:
    """refs-discovery: outside the tools' transaction, and with a plan that is kept for every person."""
    crowded.allow("all_accounts")
    crowded.allow_references()
    crowded.grant(crowded.mara, "runs:read")
    if granted:
        crowded.grant(crowded.mara)
    desk = desk_for(crowded.mara, str(crowded.agent.pk))
    first = offerable_conversations(crowded.mara, desk, limit=5)
    assert len(first.offers) == 5

    def pages() -> None:
        offerable_conversations(crowded.mara, desk, limit=5)
        offerable_conversations(crowded.mara, desk, limit=5, cursor=first.next_cursor)

    for plan in kept_plans(pages):
        assert "Sort" not in plan, plan
