"""record-every-read, record-or-nothing, record-both-ways: what was given is recorded, or nothing is given."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, OperationalError, connection, transaction

from history_access.agent_platform import services
from history_access.agent_platform.models import Session
from history_access.models import RecordedName, TurnConversationRead
from history_access.record import conversations_drawn_on, turns_drawing_on
from history_access.tools import ToolError, list_conversations, read_conversation, toolset_for
from settings_catalog.keys import uuid7
from tests.worlds import World, error, listed, pages, read


def recorded(turn: Any) -> list[dict[str, Any]]:
    columns = ("session_id", "what", "first_number", "last_number", "characters")
    return list(TurnConversationRead.objects.filter(turn_id=str(turn.pk)).order_by("id").values(*columns))


@pytest.fixture
def told(world: World) -> World:
    world.allow("all_accounts")
    return world


def test_record_every_read_of_a_title(told: World) -> None:
    sessions = [told.session("hello", person=told.mara, title="t" * size) for size in (1, 2, 3)]
    turn = told.turn(told.mara)
    assert len(listed(toolset_for(turn), limit=2)) == 3
    assert {(row["session_id"], row["what"], row["characters"]) for row in recorded(turn)} == {
        (str(session.pk), "title", size) for session, size in zip(sessions, (1, 2, 3), strict=True)
    }


def test_record_every_read_of_messages_by_page(told: World) -> None:
    session = told.session(*["four"] * 7, person=told.mara)
    services.add_message(session, "tool", "result")
    services.add_message(session, "agent", "done")
    turn = told.turn(told.mara)
    assert len(pages(toolset_for(turn), session.pk, limit=4)) == 2
    first, second = recorded(turn)
    assert (first["what"], first["first_number"], first["last_number"], first["characters"]) == (
        "messages",
        1,
        4,
        16,
    )
    assert (second["first_number"], second["last_number"], second["characters"]) == (5, 9, 16)


def test_record_every_read_of_a_summary_and_of_a_title_alone(told: World) -> None:
    session = told.session("a", "b", person=told.mara)
    services.summarize_session(session, "They talked.", through=2)
    turn = told.turn(told.mara)
    tools = toolset_for(turn)
    tools.call("read_conversation", {"conversation_id": str(session.pk), "view": "summary"})
    tools.call("read_conversation", {"conversation_id": str(session.pk), "start": 99})
    rows = [(row["what"], row["last_number"], row["characters"]) for row in recorded(turn)]
    assert rows == [("summary", 2, 12), ("title", None, 0)]


def test_record_every_read_says_who_where_how_and_under_which_setting(world: World) -> None:
    world.allow("same_account")
    trigger = services.create_trigger(world.agent, kind="schedule", name="Morning digest", by=world.mara)
    session = world.session("hello", person=world.mara, account=world.acme)
    turn = world.turn(trigger=trigger, account=world.acme)
    pages(toolset_for(turn), session.pk)
    row = TurnConversationRead.objects.get()
    assert {
        "workspace_id": row.workspace_id,
        "agent_id": row.agent_id,
        "turn_id": row.turn_id,
        "turn_account_id": row.turn_account_id,
        "reader_id": row.reader_id,
        "trigger_id": row.trigger_id,
        "session_id": row.session_id,
        "session_account_id": row.session_account_id,
    } == {
        "workspace_id": str(world.hollowbrook.pk),
        "agent_id": str(world.agent.pk),
        "turn_id": str(turn.pk),
        "turn_account_id": str(world.acme.pk),
        "reader_id": str(world.mara.pk),
        "trigger_id": str(trigger.pk),
        "session_id": str(session.pk),
        "session_account_id": str(world.acme.pk),
    }
    assert (row.setting, row.how) == ("same_account", "history")
    assert set(RecordedName.objects.values_list("kind", "name")) == {
        ("workspace", "Hollowbrook"),
        ("agent", "Digest"),
        ("account", "Acme"),
        ("person", "mara"),
        ("trigger", "Morning digest"),
    }


def test_record_every_read_of_a_platform_whose_names_are_numbers(world: World, monkeypatch: Any) -> None:
    """A user model may name people by an integer, and have neither a username nor a full name."""
    monkeypatch.setattr(get_user_model(), "USERNAME_FIELD", "id")
    for name in ("person_name", "account_name", "agent_name"):
        monkeypatch.setattr(Session, name, "person__id")
    world.allow("all_accounts")
    session = world.session("hello", "hi", person=world.mara, account=world.acme)
    tools, number = world.tools(world.mara, account=world.acme), str(world.mara.pk)
    assert len(listed(tools)) == 1
    page = read(tools, session.pk)
    assert page["conversation"]["quoted"]["account"] == number
    assert [one["quoted"]["name"] for one in page["messages"]] == [number, number]
    named = RecordedName.objects.filter(kind__in=("person", "account", "agent"))
    assert set(named.values_list("name", flat=True)) == {number}


@pytest.mark.parametrize(
    ("account", "turn_account", "crossed"),
    [
        ("acme", "acme", False),
        (None, None, False),
        ("acme", None, True),
        (None, "acme", True),
        ("acme", "brightside", True),
    ],
)
def test_record_every_read_tells_a_crossed_account_line(
    told: World, account: str | None, turn_account: str | None, crossed: bool
) -> None:
    named = {"acme": told.acme, "brightside": told.brightside, None: None}
    session = told.session("hello", person=told.mara, account=named[account])
    pages(told.tools(told.mara, account=named[turn_account]), session.pk)
    assert TurnConversationRead.objects.filter(TurnConversationRead.crossed_account()).exists() is crossed
    assert (
        TurnConversationRead.objects.exclude(TurnConversationRead.crossed_account()).exists() is not crossed
    )


def test_record_every_read_refused_calls_record_nothing(told: World) -> None:
    stranger = told.session("hello", person=told.operator)
    turn = told.turn(told.mara)
    tools = toolset_for(turn)
    assert error(tools.call("read_conversation", {"conversation_id": str(stranger.pk)}))
    assert error(tools.call("list_conversations", {"limit": 0}))
    assert listed(tools) == []
    assert recorded(turn) == []


def failing_on(word: str) -> Any:
    """Make the database refuse every statement that contains `word`."""

    def refuse(execute: Any, sql: str, *rest: Any) -> Any:
        if word in sql:
            raise OperationalError("no room on the disk")
        return execute(sql, *rest)

    return connection.execute_wrapper(refuse)


@pytest.mark.parametrize("table", ["history_access_turnconversationread", "history_access_recordedname"])
@pytest.mark.parametrize("tool", ["list_conversations", "read_conversation"])
def test_record_or_nothing_when_the_insert_fails(told: World, table: str, tool: str, caplog: Any) -> None:
    session = told.session("the words", person=told.mara, title="the title")
    turn = told.turn(told.mara)
    arguments = {} if tool == "list_conversations" else {"conversation_id": str(session.pk)}
    with failing_on(f'INTO "{table}"'):
        result = toolset_for(turn).call(tool, arguments)
    assert error(result) == {
        "code": "history_unavailable",
        "message": "History could not be read and recorded; nothing was read.",
        "argument": None,
    }
    assert recorded(turn) == []
    assert "the words" not in caplog.text


def test_record_or_nothing_when_the_commit_fails(open_world: World, monkeypatch: Any) -> None:
    open_world.allow("all_accounts")
    session = open_world.session("hello", person=open_world.mara)
    turn = open_world.turn(open_world.mara)
    tools = toolset_for(turn)

    def refuse() -> None:
        raise IntegrityError("deferred")

    with monkeypatch.context() as patched:
        patched.setattr(connection, "_commit", refuse)
        result = tools.call("read_conversation", {"conversation_id": str(session.pk)})
    assert error(result)["code"] == "history_unavailable"
    assert recorded(turn) == []
    assert pages(tools, session.pk)


def test_record_or_nothing_refuses_inside_a_transaction_of_the_callers(open_world: World) -> None:
    open_world.allow("all_accounts")
    open_world.session("hello", person=open_world.mara)
    turn = open_world.turn(open_world.mara)
    with transaction.atomic():
        refused = error(toolset_for(turn).call("list_conversations", {}))
        with pytest.raises(ToolError, match=r"outside transaction\.atomic\(\)"):
            list_conversations(turn)
    assert refused["code"] == "history_unavailable"
    assert "outside transaction.atomic()" in refused["message"]
    assert recorded(turn) == []


def test_record_or_nothing_refuses_without_autocommit(open_world: World) -> None:
    """With autocommit off every statement joins a transaction that the caller may roll back."""
    open_world.allow("all_accounts")
    open_world.session("hello", person=open_world.mara)
    turn = open_world.turn(open_world.mara)
    transaction.set_autocommit(False)
    try:
        with pytest.raises(ToolError, match="transaction of its own"):
            list_conversations(turn)
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert recorded(turn) == []


def test_record_or_nothing_stays_when_the_turn_fails_afterwards(open_world: World) -> None:
    open_world.allow("all_accounts")
    open_world.session("hello", person=open_world.mara)
    turn = open_world.turn(open_world.mara)
    with pytest.raises(ZeroDivisionError):
        list_conversations(turn)
        with transaction.atomic():
            services.end_turn(turn)
            _ = 1 / 0
    assert len(recorded(turn)) == 1


def test_record_or_nothing_asks_postgresql_to_commit_durably(open_world: World) -> None:
    """Whatever the connection's default, the record's commit waits for the disk."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite is durable by its PRAGMA synchronous")
    open_world.allow("all_accounts")
    turn = open_world.turn(open_world.mara)
    seen: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        result = execute(sql, *rest)
        if "agent_platform_session" in sql:
            seen.extend(shown("synchronous_commit", "transaction_isolation"))
        return result

    def shown(*names: str) -> list[str]:
        return [connection.connection.execute(f"SHOW {name}").fetchone()[0] for name in names]

    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit TO off")
        cursor.execute("SET default_transaction_isolation TO 'repeatable read'")
    try:
        with connection.execute_wrapper(note):
            list_conversations(turn)
    finally:
        connection.close()
    assert set(seen) == {"on", "read committed"}


def test_record_both_ways(told: World) -> None:
    """Which conversations did this reply draw on, and which replies drew on this conversation."""
    one, two = (told.session("hello", "there", person=told.mara, account=a) for a in (told.acme, None))
    first, second = told.turn(told.mara), told.turn(told.mara)
    for _ in range(2):
        read_conversation(first, conversation_id=str(one.pk))
    read_conversation(first, conversation_id=str(two.pk))
    read_conversation(second, conversation_id=str(one.pk))
    drawn = {row["session_id"]: (row["reads"], row["characters"]) for row in conversations_drawn_on(first)}
    assert drawn == {str(one.pk): (2, 20), str(two.pk): (1, 10)}
    assert [row["session_account_id"] for row in conversations_drawn_on(first)] == [str(told.acme.pk), None]
    assert [row["turn_id"] for row in turns_drawing_on(one)] == [str(second.pk), str(first.pk)]
    assert [row["turn_id"] for row in turns_drawing_on(two)] == [str(first.pk)]


@pytest.mark.parametrize("ask", [conversations_drawn_on, turns_drawing_on])
def test_record_both_ways_needs_to_be_told_of_what(db: None, ask: Any) -> None:
    with pytest.raises(ValueError, match="name a turn or a conversation"):
        ask(None)


@pytest.mark.parametrize("gone", ["session", "person", "agent", "trigger", "workspace", "account"])
def test_record_outlives(told: World, gone: str) -> None:
    """Nothing blocks the deletion; the record stays readable by keys, with the names that were noted."""
    trigger = services.create_trigger(told.agent, kind="schedule", name="Morning digest", by=told.mara)
    session = told.session("hello", person=told.mara, account=told.acme)
    turn = told.turn(trigger=trigger, account=told.acme)
    pages(toolset_for(turn), session.pk)
    before = list(TurnConversationRead.objects.values())
    turn_key, session_key, workspace_key = str(turn.pk), str(session.pk), str(turn.workspace_id)
    if gone == "account":
        Session.objects.filter(account=told.acme).delete()
    subjects = {
        "session": session,
        "person": told.mara,
        "agent": told.agent,
        "trigger": trigger,
        "workspace": told.hollowbrook,
        "account": told.acme,
    }
    subjects[gone].delete()
    assert list(TurnConversationRead.objects.values()) == before
    assert [row["session_id"] for row in conversations_drawn_on(turn_key)] == [session_key]
    assert conversations_drawn_on(turn_key, workspace=workspace_key).count() == 1
    assert turns_drawing_on(session_key, workspace=workspace_key).count() == 1
    assert turns_drawing_on(session_key, workspace="another").count() == 0
    assert RecordedName.objects.count() == 5


def test_record_outlives_without_titles_names_or_words(told: World) -> None:
    mark = "Zq7Mark"
    session = told.session(f"{mark} words", person=told.person(f"{mark} person"), title=f"{mark} title")
    services.summarize_session(session, f"{mark} summary", through=1)
    told.grant(told.mara)
    tools = told.tools(told.mara)
    listed(tools), pages(tools, session.pk)
    pages(tools, session.pk, view="summary")
    kept = [str(row) for row in TurnConversationRead.objects.values()]
    assert len(kept) == 3
    assert mark not in "".join(kept)
    assert mark not in "".join(str(read) for read in TurnConversationRead.objects.all())


def test_record_outlives_has_no_foreign_keys() -> None:
    relations = [field for field in TurnConversationRead._meta.get_fields() if field.is_relation]
    assert relations == []


@pytest.mark.parametrize("named", [True, False])
def test_record_both_ways_is_answered_by_an_index(told: World, named: bool) -> None:
    """With the workspace and without it, as after the turn is gone (record-both-ways)."""
    session = told.session("hello", person=told.mara)
    turn = told.turn(told.mara)
    read_conversation(turn, conversation_id=str(session.pk))
    workspace = told.hollowbrook if named else None
    asked = [
        conversations_drawn_on(str(turn.pk), workspace=workspace),
        turns_drawing_on(str(session.pk), workspace=workspace),
    ]
    (row,) = TurnConversationRead.objects.values()
    others = ({**row, "id": uuid7(), "turn_id": f"t{n}", "session_id": f"s{n}"} for n in range(2000))
    TurnConversationRead.objects.bulk_create(TurnConversationRead(**other) for other in others)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    plans = "".join(rows.explain() for rows in asked)
    assert "history_access_read_turn" in plans
    assert "history_access_read_session" in plans
