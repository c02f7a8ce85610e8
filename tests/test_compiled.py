"""SQL that is kept gives what Django gives, and nothing is kept that could give anything else."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.backends.sqlite3.base import SQLiteCursorWrapper
from django.db.models import F, Q
from django.db.models.functions import Now
from django.db.models.sql.compiler import SQLCompiler
from django.utils import timezone

from history_access.agent_platform.authority import PlatformAuthority
from history_access.agent_platform.models import Session
from settings_catalog import compiled
from settings_catalog.models import SettingValue
from tests.worlds import World

HISTORY = ["list_conversations", {"limit": 20}]


@contextmanager
def building() -> Iterator[list[str]]:
    """Every query that Django compiles within the block."""
    built: list[str] = []
    original = SQLCompiler.as_sql

    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        built.append(self.query.model.__name__)
        return original(self, *args, **kwargs)

    SQLCompiler.as_sql = noted  # type: ignore[method-assign]
    try:
        yield built
    finally:
        SQLCompiler.as_sql = original  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def sql_is_kept(settings: Any) -> None:
    """SQL is kept here, also where the rest of a run is without it."""
    settings.SETTINGS_CATALOG_COMPILED_QUERIES = True


@pytest.fixture
def told(world: World) -> World:
    world.allow("all_accounts")
    for number in range(5):
        world.session("hello", "there", title=f"Talk {number}", person=world.mara)
    return world


def calls(world: World, tools: Any) -> list[tuple[str, dict[str, Any]]]:
    listed = tools.call("list_conversations", {"limit": 2})
    key = listed["conversations"][0]["id"]
    return [
        ("list_conversations", {"limit": 2}),
        ("list_conversations", {"limit": 2, "cursor": listed["next_cursor"]}),
        ("list_conversations", {"after": "2020-01-01", "before": "2031-01-01"}),
        ("read_conversation", {"conversation_id": key}),
        ("read_conversation", {"conversation_id": key, "start": -1}),
        ("read_conversation", {"conversation_id": key, "start": 2, "limit": 1}),
        ("read_conversation", {"conversation_id": key, "view": "summary"}),
        ("read_conversation", {"conversation_id": str(uuid4())}),
        ("read_conversation", {"conversation_id": "no key"}),
    ]


def test_kept_sql_gives_what_django_gives_to_the_byte(told: World, settings: Any) -> None:
    tools = told.tools(told.mara)
    asked = calls(told, tools)
    twice = [[tools.call_text(*one) for one in asked] for _ in range(2)]
    settings.SETTINGS_CATALOG_COMPILED_QUERIES = False
    with building() as built:
        plainly = [tools.call_text(*one) for one in asked]
    assert "Session" in built
    assert twice == [plainly, plainly]


def test_a_second_call_builds_no_query(told: World) -> None:
    tools = told.tools(told.mara)
    asked = calls(told, tools)[:7]
    for one in asked:
        tools.call(*one)
    other = told.tools(told.mara)
    with building() as built:
        answers = [other.call(*one) for one in asked]
    assert built == []
    assert {answer["kind"] for answer in answers} == {"conversation_list", "quoted_conversation"}


def test_nobody_is_given_what_was_bound_for_another(told: World) -> None:
    ravi = told.person("ravi")
    told.session("mine", title="Ravi's", person=ravi)
    titles = {
        person.username: [
            one["quoted"]["title"] for one in told.tools(person).call(*HISTORY)["conversations"]
        ]
        for person in (told.mara, ravi, told.mara)
    }
    assert titles["ravi"] == ["Ravi's"]
    assert "Ravi's" not in titles["mara"] and "Talk 4" in titles["mara"]


class NoPromise(PlatformAuthority):
    compiled_once = False


def looks_at(person_id: Any) -> Any:
    return Q(pk__isnull=False) if str(person_id) == "nobody" else Q(pk__in=[])


class Looks(PlatformAuthority):
    """It breaks its promise: it looks at a key."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Any:
        return super().holds(person_id, permission, workspace_id, agent_id) | looks_at(person_id)


class Asks(PlatformAuthority):
    """It breaks its promise: it asks the database itself, before its answer is looked at."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Any:
        answer = super().holds(person_id, permission, workspace_id, agent_id)
        Session.objects.filter(person_id=person_id).exists()
        return answer


@pytest.mark.parametrize(
    ("authority", "word"), [(NoPromise, None), (Looks, "not looked at"), (Asks, "Parameter")]
)
def test_what_a_platform_decides_in_python_is_asked_each_time(
    told: World, settings: Any, caplog: pytest.LogCaptureFixture, authority: type, word: str | None
) -> None:
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "AUTHORITY": f"{__name__}.{authority.__name__}"}
    tools = told.tools(told.mara)
    with caplog.at_level(logging.WARNING, "settings_catalog.compiled"):
        first = tools.call_text(*HISTORY)
    with building() as built:
        assert tools.call_text(*HISTORY) == first
    assert "Session" in built or "User" in built
    assert any(word in message for message in caplog.messages) if word else caplog.messages == []


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        (lambda: Q(started_at__lt=timezone.now() + timedelta(days=1)), False),
        (lambda: Q(started_at__lt=datetime(2031, 1, 1, tzinfo=timezone.get_default_timezone())), False),
        (lambda: Q(started_at__date__lt=date(2031, 1, 1)), False),
        (lambda: Q(started_at__lt=Now() + timedelta(days=1)), True),
        (lambda: Q(deleted_at__isnull=True), True),
    ],
    ids=["now in Python", "a moment", "a date", "now in the database", "a column"],
)
def test_a_clock_in_python_does_not_stand_still(
    told: World, monkeypatch: Any, condition: Any, kept: bool
) -> None:
    monkeypatch.setattr(Session, "not_deleted", classmethod(lambda cls: condition()))
    tools = told.tools(told.mara)
    first = tools.call(*HISTORY)
    assert len(first["conversations"]) == 5
    with building() as built:
        assert tools.call(*HISTORY) == first
    assert ("Session" not in built) == kept


def test_a_database_that_fails_is_no_reason_to_give_up(told: World, monkeypatch: Any) -> None:
    """What was not compiled for that moment's reason is compiled by the next call."""
    from django.db import OperationalError

    tools = told.tools(told.mara)

    def fails(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise OperationalError("the server went away")

    with monkeypatch.context() as patched:
        patched.setattr(SQLCompiler, "as_sql", fails)
        assert tools.call(*HISTORY)["kind"] == "error"
    tools.call(*HISTORY)
    with building() as built:
        assert tools.call(*HISTORY)["kind"] == "conversation_list"
    assert built == []


def test_parameters_show_nothing() -> None:
    parameter = compiled.Parameter(0, str)
    for look in (str, int, lambda one: one == "7", lambda one: one < 7, lambda one: f"{one}"):
        with pytest.raises(TypeError):
            look(parameter)
    assert parameter != None  # noqa: E711 (what Django asks)


@compiled.compiled(lambda: ("default", None), literal=("most",))
def values(entry: str, *, level: str, most: int) -> compiled.Question:
    return SettingValue.objects.filter(entry=entry, level=level)[:most], {"value": F("value")}


def test_values_are_bound_by_their_place_and_name(told: World) -> None:
    SettingValue.objects.create(entry="a", level="platform", value="x", ceiling=None)
    SettingValue.objects.create(entry="platform", level="agent", agent_id="7", workspace_id="7", value="y")
    for _ in range(2):
        assert values("a", level="platform", most=5) == [{"value": "x"}]
        assert values("platform", level="agent", most=5) == [{"value": "y"}]
        assert values("a", level="platform", most=0) == []
        assert values("b", level="platform", most=5) == []


def test_no_more_is_kept_than_there_is_room_for(told: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(compiled, "MOST_PLANS", 3)
    for most in (1, 2, 3, 4, 5, 1):
        values("a", level="platform", most=most)
        assert len(compiled._kept) <= 3


def test_prepared_where_the_options_say_so(open_world: World) -> None:
    """Django's own `prepare_threshold` counts: it is off unless set, for connection poolers."""
    if connection.vendor == "sqlite":
        pytest.skip("PostgreSQL alone prepares")
    open_world.allow("all_accounts")
    tools = open_world.tools(open_world.mara)
    names = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%agent_platform_session%'"

    def prepared() -> int:
        with connection.cursor() as cursor:
            cursor.execute(names)
            return int(cursor.fetchone()[0])

    for _ in range(3):
        tools.call(*HISTORY)
    assert prepared() == 0
    connection.connection.prepare_threshold = 0
    try:
        for _ in range(3):
            tools.call(*HISTORY)
        assert prepared() > 0
    finally:
        connection.close()


def test_placeholders_of_sqlite_are_put_in_once(told: World, monkeypatch: Any) -> None:
    """Django looks through the whole statement at every execution, which takes it longer than SQLite."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL takes other placeholders")
    tools = told.tools(told.mara)
    first = tools.call(*HISTORY)
    converted: list[str] = []
    monkeypatch.setattr(SQLiteCursorWrapper, "convert_query", lambda *given, **named: converted.append(given))
    assert tools.call(*HISTORY) == first
    assert converted == []


def test_json_is_decoded_once_on_both_paths(told: World) -> None:
    session = told.session("hello", "there", title="With calls", person=told.mara)
    session.messages.filter(number=2).update(tool_calls=[{"name": "find_rooms"}, {"name": "[1]"}])
    tools = told.tools(told.mara)
    for _ in range(2):
        page = tools.call("read_conversation", {"conversation_id": str(session.pk)})
        assert page["messages"][1]["quoted"]["tool_calls"] == ["find_rooms", "[1]"]
    assert json.loads(tools.call_text("read_conversation", {"conversation_id": str(session.pk)})) == page
