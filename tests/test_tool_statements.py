"""Constant statement counts, and plans that walk only what they return: tool-list, tool-read, tool-pages.

Whatever the number of sessions and messages, a call runs the same statements; page 500 costs what page 1
costs; and every statement about sessions and messages names its workspace.
"""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from history_access import door
from history_access.agent_platform.models import Message, Session
from history_access.door.messages import _messages_in_reach
from history_access.models.keyset import beyond
from history_access.models.platform import session_model
from history_access.reach import reach_of
from history_access.tools import toolset_for
from tests.worlds import NOON, World

TOGETHER = connection.vendor == "postgresql" and settings.SETTINGS_CATALOG_COMPILED_QUERIES
RECORDING = 1 if TOGETHER else 3
"""Reads, names and the look at the setting are one statement where SQL is kept and a database can do it."""

TRANSACTION = ("BEGIN", "COMMIT", "SET TRANSACTION", "SAVEPOINT", "RELEASE")


def make_sessions(world: World, number: int, **given: Any) -> None:
    Session.objects.bulk_create(
        Session(
            workspace=world.hollowbrook,
            agent=world.agent,
            title=f"Conversation {index}",
            started_at=NOON + timedelta(minutes=index),
            last_moved_at=NOON + timedelta(minutes=index),
            **given,
        )
        for index in range(number)
    )


def make_messages(session: Session, number: int) -> None:
    first = session.messages.count() + 1
    Message.objects.bulk_create(
        Message(
            workspace_id=session.workspace_id,
            session=session,
            number=first + index,
            role="tool" if index % 3 == 0 else "person",
            text="x" * 500,
            created_at=NOON,
        )
        for index in range(number)
    )


def statements_of(job: Any) -> list[str]:
    """The statements of a job, without those that only control its transaction."""
    with CaptureQueriesContext(connection) as captured:
        job()
    return [q["sql"] for q in captured.captured_queries if not q["sql"].startswith(TRANSACTION)]


@pytest.fixture
def told(world: World) -> World:
    world.allow("all_accounts")
    return world


def test_toolset_for_takes_two_statements(told: World) -> None:
    turn = told.turn(told.mara)
    assert len(statements_of(lambda: toolset_for(turn))) == 2


@pytest.mark.parametrize("number", [1, 60])
def test_tool_list_takes_a_constant_number_of_statements(told: World, number: int) -> None:
    """Facts, setting, reader; the page; its record, and the setting again."""
    make_sessions(told, number, person=told.mara)
    tools = told.tools(told.mara)
    assert len(statements_of(lambda: tools.call("list_conversations", {"limit": 50}))) == 4 + RECORDING


@pytest.mark.parametrize("number", [1, 400])
@pytest.mark.parametrize("arguments", [{}, {"start": -5}, {"view": "summary"}], ids=str)
def test_tool_read_takes_a_constant_number_of_statements(
    told: World, number: int, arguments: dict[str, Any]
) -> None:
    """Facts, setting, reader; messages and head (a summary is in the head); record, and the setting again."""
    session = told.session("hello", person=told.mara)
    make_messages(session, number)
    tools = told.tools(told.mara)
    call = {"conversation_id": str(session.pk), **arguments}
    wanted = 4 if "view" in arguments else 5
    assert len(statements_of(lambda: tools.call("read_conversation", call))) == wanted + RECORDING


def test_every_statement_about_sessions_and_messages_names_its_workspace(told: World) -> None:
    session = told.session("hello", "there", person=told.mara)
    tools = told.tools(told.mara)
    page = tools.call("list_conversations", {"limit": 1})
    arguments = {"conversation_id": str(session.pk)}
    ran: list[tuple[str, list[str]]] = []

    def note(execute: Any, sql: str, params: Any, *others: Any) -> Any:
        ran.append((sql, [str(one) for one in params or ()]))
        return execute(sql, params, *others)

    with connection.execute_wrapper(note):
        tools.call("read_conversation", arguments)
        tools.call("read_conversation", {**arguments, "view": "summary"})
        tools.call("list_conversations", {"limit": 1})
    assert page["conversations"]
    texts = [bound for sql, bound in ran if "SUBSTR" in sql]
    assert len(texts) == 4
    keys = {str(told.hollowbrook.pk), told.hollowbrook.pk.hex}
    assert all(keys & set(bound) for bound in texts)


def plan(query: Any) -> dict[str, Any]:
    """What PostgreSQL does for a query, with the rows that it really touched."""
    sql, parameters = query.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", parameters)
        found = cursor.fetchone()[0]
    parsed: list[dict[str, Any]] = json.loads(found) if isinstance(found, str) else found
    return parsed[0]["Plan"]


def nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node, *(below for child in node.get("Plans", ()) for below in nodes(child))]


def sorts(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sorts of more rows than a page has; somebody's few own sessions may be sorted."""
    return [node for node in found if node["Node Type"] == "Sort" and node["Actual Rows"] > 20]


@pytest.fixture
def large(told: World) -> World:
    if connection.vendor != "postgresql":
        pytest.skip("its plans are PostgreSQL's")
    make_sessions(told, 6000, person=told.mara)
    make_sessions(told, 3000, person=told.mara, account=told.acme)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return told


SHAPES = {
    "granted, all accounts": ("granted", "all_accounts", None),
    "granted, one account": ("granted", "same_account", "acme"),
    "granted, no account": ("granted", "same_account", None),
    "own, all accounts": ("own", "all_accounts", None),
    "own, one account": ("own", "same_account", "acme"),
    "stranger": ("stranger", "all_accounts", None),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_tool_pages_page_500_costs_what_page_1_costs(large: World, shape: str) -> None:
    """No sort, no filter that throws rows away by the thousand, no more rows touched than are returned."""
    who, setting, account = SHAPES[shape]
    reader = large.mara if who == "own" else large.person("reader")
    if who == "granted":
        large.grant(reader)
    large.allow(setting)
    reach = reach_of(large.turn(reader, account=large.acme if account else None))
    deep = door.Position(moved=NOON + timedelta(minutes=500), key=Session.objects.first().pk)
    for after in (None, deep):
        sessions = reach.sessions()
        if after is not None:
            sessions = sessions.filter(beyond(session_model(), after.moved, after.key))
        found = nodes(plan(sessions.order_by("-last_moved_at", "-pk").values("pk", "title")[:20]))
        assert not sorts(found), found
        thrown_away = sum(node.get("Rows Removed by Filter", 0) for node in found)
        assert thrown_away < 100, found
        assert sum(node["Actual Rows"] for node in found) < 200, found


def test_tool_read_in_the_middle_touches_only_its_page(told: World) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("its plans are PostgreSQL's")
    session = told.session("hello", person=told.mara)
    make_messages(session, 6000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    reach = reach_of(told.turn(told.mara))
    messages = _messages_in_reach(reach, session.pk).filter(number__gte=3000).order_by("number")
    found = nodes(plan(messages.values("number", "text")[:51]))
    assert not sorts(found), found
    assert sum(node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in found) < 300, found


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("account", [None, "acme"])
def test_tool_pages_sqlite_reads_the_list_from_an_index(
    told: World, after: bool, account: str | None
) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("its plans are SQLite's")
    make_sessions(told, 300, person=told.mara)
    told.grant(told.mara)
    told.allow("same_account")
    reach = reach_of(told.turn(told.mara, account=told.acme if account else None))
    sessions = reach.sessions()
    if after:
        sessions = sessions.filter(beyond(session_model(), NOON, Session.objects.first().pk))
    sql, parameters = sessions.order_by("-last_moved_at", "-pk").values("pk")[:20].query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        steps = [row[3] for row in cursor.fetchall()]
    assert not [step for step in steps if "TEMP B-TREE" in step], steps
    assert [
        step for step in steps if "agent_platform_session USING" in step and "platform_session_" in step
    ], steps


def test_page_after_page_costs_sqlite_the_same(told: World) -> None:
    """Counted in steps of its machine, not by the clock: the hundredth page takes what the second does."""
    if connection.vendor != "sqlite":
        pytest.skip("the plans of PostgreSQL are looked at above")
    make_sessions(told, 2000, person=told.mara)
    tools = told.tools(told.mara)
    steps = []
    cursor = None
    for _ in range(100):
        counted = [0]

        def count(counted: list[int] = counted) -> int:
            counted[0] += 1
            return 0

        connection.connection.set_progress_handler(count, 100)
        page = tools.call("list_conversations", {"limit": 20, "cursor": cursor})
        connection.connection.set_progress_handler(None, 0)
        cursor = page["next_cursor"]
        steps.append(counted[0])
    assert steps[-2] <= 1.2 * steps[1]
