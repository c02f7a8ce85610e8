"""reach-now, record-both-ways: each statement of the tools and of handing over names its workspace wherever
it touches a table that grows, and none of them goes to a replica.

On a cluster such tables are sharded by workspace: a statement that does not name it would ask every shard.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from history_access.agent_platform.models import Message, Session, Turn, Workspace
from history_access.models import (
    ExcerptText,
    RecordedName,
    ReferenceSubmission,
    Refusal,
    TurnConversationRead,
    TurnReference,
)
from history_access.reach import NoTurnError
from history_access.references import (
    attach_excerpt,
    bind_references,
    desk_for,
    offerable_conversations,
    preview_conversation,
    references_block,
    references_of,
    take_back,
)
from history_access.tools import toolset_for
from tests.sealed_records import without_guards
from tests.worlds import World

GROWING = {
    model._meta.db_table
    for model in (
        *(Session, Message, Turn),
        *(TurnConversationRead, RecordedName, TurnReference, ReferenceSubmission, ExcerptText, Refusal),
    )
}
TOUCHED = re.compile(r'(?:FROM|JOIN|INTO|UPDATE) "(\w+)"(?: "?([A-Z]+\d+)\b)?')


@pytest.fixture
def told(world: World) -> World:
    world.allow("all_accounts")
    world.allow_references()
    world.grant(world.mara, "runs:read")
    return world


def list_(world: World, turn: Any, session: Any) -> None:
    toolset = toolset_for(turn)
    page = toolset.call("list_conversations", {"limit": 1})
    assert toolset.call("list_conversations", {"limit": 1, "cursor": page["next_cursor"]})["conversations"]


def read(world: World, turn: Any, session: Any) -> None:
    toolset = toolset_for(turn)
    for arguments in ({}, {"start": -1}, {"view": "summary"}):
        page = toolset.call("read_conversation", {"conversation_id": str(session.pk), **arguments})
        assert page["kind"] == "quoted_conversation"


def refused(world: World, turn: Any, session: Any) -> None:
    found = toolset_for(turn).call("read_conversation", {"conversation_id": str(world.agent.pk)})
    assert found["kind"] == "error"


def handed_over(world: World, turn: Any, session: Any) -> None:
    bind_references(turn, [str(session.pk)], submission_key="once")
    attach_excerpt(turn, str(session.pk), messages=[1])
    assert references_block(turn).conversations
    for one in references_of(turn):
        assert take_back(turn, one)


def picked(world: World, turn: Any, session: Any) -> None:
    desk = desk_for(world.mara, str(world.agent.pk))
    assert offerable_conversations(world.mara, desk, title="talk").offers
    assert preview_conversation(world.mara, desk, str(session.pk)).messages


JOBS: dict[str, Callable[[World, Any, Any], None]] = {
    "list": list_,
    "read": read,
    "refused": refused,
    "handed over": handed_over,
    "picked": picked,
}


def unnamed(sql: str) -> list[str]:
    """The growing tables in a statement that it touches without naming their workspace."""
    statement = re.sub(r"\s+", " ", sql)
    return [
        match[1]
        for match in TOUCHED.finditer(statement)
        if match[1] in GROWING and not names_workspace(statement, match)
    ]


def names_workspace(statement: str, match: "re.Match[str]") -> bool:
    if match[0].startswith("INTO"):
        return '"workspace_id"' in statement[match.end() :].partition(")")[0]
    column = rf'"?{match[2] or match[1]}"?\."workspace_id"'
    within = scope(statement, match.start())
    return re.search(rf"{column}\)? (?:=|IN)|= \(?{column}", within) is not None


def scope(statement: str, place: int) -> str:
    """The SELECT that a place is in: the whole statement, or a subquery in its brackets."""
    open_, begins = 0, 0
    for at in range(place, 0, -1):
        open_ += {"(": 1, ")": -1}.get(statement[at], 0)
        if open_ == 1 and statement.startswith("(SELECT", at):
            begins = at
            break
        open_ = min(open_, 0) if statement[at] == "(" else open_
    depth = 0
    for at in range(begins, len(statement)):
        depth += {"(": 1, ")": -1}.get(statement[at], 0)
        if begins and depth == 0:
            return statement[begins:at]
    return statement


@pytest.mark.parametrize("kept", [True, False], ids=["kept SQL", "built anew"])
@pytest.mark.parametrize("job", JOBS)
def test_every_statement_names_the_workspace(told: World, settings: Any, job: str, kept: bool) -> None:
    settings.SETTINGS_CATALOG_COMPILED_QUERIES = kept
    session = told.session("hello", "there", person=told.mara, title="A talk")
    told.session("hello", person=told.mara, title="A talk, too")
    turn = told.turn(told.mara)
    ran: list[str] = []

    def note(execute: Any, sql: str, *given: Any) -> Any:
        ran.append(sql)
        return execute(sql, *given)

    with connection.execute_wrapper(note):
        JOBS[job](told, turn, session)
    assert len(ran) > 3
    assert {sql: tables for sql in ran if (tables := unnamed(sql))} == {}


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        (
            'SELECT 1 FROM "agent_platform_turn" WHERE "agent_platform_turn"."id" = %s',
            ["agent_platform_turn"],
        ),
        ('SELECT 1 FROM "agent_platform_turn" U0 WHERE U0."id" = %s', ["agent_platform_turn"]),
        ('SELECT 1 FROM "agent_platform_turn" U0 WHERE U0."workspace_id" = %s', []),
        (
            'SELECT 1 FROM "agent_platform_message" JOIN "agent_platform_session" ON (1 = 1) '
            'WHERE "agent_platform_message"."workspace_id" = %s',
            ["agent_platform_session"],
        ),
        ('INSERT INTO "history_access_refusal" ("id", "tool") VALUES (%s)', ["history_access_refusal"]),
        ('SELECT 1 FROM "agent_platform_account" WHERE "agent_platform_account"."id" = %s', []),
    ],
)
def test_a_statement_without_it_is_found(sql: str, tables: list[str]) -> None:
    """The opposite: what the test above looks for."""
    assert unnamed(sql) == tables


def test_reach_agent_what_stands_under_another_workspace_is_not_read(told: World) -> None:
    """Whoever put it there: the opposite of what the statements name."""
    elsewhere = Workspace.objects.create(name="Elsewhere")
    session = told.session("hello", "there", person=told.mara)
    turn, moved = told.turn(told.mara), told.turn(told.mara)
    with without_guards():
        Message.objects.filter(session=session, number=2).update(workspace=elsewhere)
        Turn.objects.filter(pk=moved.pk).update(workspace=elsewhere)
    page = toolset_for(turn).call("read_conversation", {"conversation_id": str(session.pk)})
    assert [one["number"] for one in page["messages"]] == [1]
    for one in (moved.pk, moved, Turn.objects.get(pk=moved.pk)):
        with pytest.raises(NoTurnError):
            toolset_for(one)


@pytest.mark.parametrize("job", JOBS)
def test_nothing_is_read_from_a_replica(told: World, settings: Any, job: str) -> None:
    """reach-now: it may not know yet that a right was lost. Here it is not even there."""
    session = told.session("hello", "there", person=told.mara, title="A talk")
    told.session("hello", person=told.mara, title="A talk, too")
    turn = told.turn(told.mara)
    settings.DATABASE_ROUTERS = ["tests.routers.ReplicaForReads"]
    JOBS[job](told, turn, session)
