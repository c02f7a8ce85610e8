"""tool-errors, reach-same-answer: whatever a model sends, and whatever breaks, the answer is one of three."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import (
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connection,
)
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from history_access.agent_platform import services
from history_access.agent_platform.authority import PlatformAuthority
from history_access.agent_platform.models import Agent, Session, Turn, Workspace
from history_access.models import TurnConversationRead
from history_access.tools import ToolError, Toolset, list_conversations, read_conversation, wire_text
from tests.worlds import NOON, World, error, listed, read

LIST, READ = "list_conversations", "read_conversation"
SECRET = "SELECT secret FROM agent_platform_message"
LONG = "x" * 10_000_000

NOT_TEXT: list[Any] = [
    *(True, False, 0, 1, -1, 20, 1.5, float("nan"), float("inf"), 10**12, 2**70, -(2**70), Decimal(1)),
    *([], ["2026-11-29"], {}, {"text": "2026-11-29"}, (), {"a"}, b"2026-11-29", date(2026, 11, 29)),
    *(datetime(2026, 11, 29), object(), str),  # noqa: DTZ001
]
NOT_WHOLE: list[Any] = [
    *(True, False, 1.0, 1.5, -0.0, 1e300, float("nan"), float("inf"), Decimal(1), 1j),
    *("", " ", "1", "20", "１", "0x10", "1e1", "null", "NaN", "\0", "\ud800", LONG),
    *([], [1], {}, {"value": 1}, (), {1}, b"1", object(), int),
]
NO_TIME = [
    *("", " ", "\0", "\ud800", "today", "yesterday", "null", "0", "20", "1764435600", LONG, " " * 41),
    *("2026", "2026-11", "2026-1-1", "26-11-29", "20261129", "2026-W48-7", "2026-333", "2026/11/29"),
    *("29.11.2026", "11-29-2026", "2026-11-31", "2026-02-29", "2026-13-01", "2026-00-10", "2026-11-00"),
    *("0000-01-01", "10000-01-01", "-2026-11-29", "+2026-11-29", "2026-11-29\n", " 2026-11-29"),
    *("2026-11-29\0", "2026-11-29\ud800", "２０２６-１１-２９", "2026‑11‑29", "٢٠٢٦-١١-٢٩"),
    *("2026-11-29T", "2026-11-29T14", "2026-11-29T25:00", "2026-11-29T24:01", "2026-11-29T12:60"),
    *("2026-12-31T23:59:60", "2026-12-31T23:59:60Z", "2026-11-29T12:00:00.1234567", "T12:00", "12:00"),
    *("2026-11-29T12:00+24:00", "2026-11-29T12:00-24:00", "2026-11-29T12:00+99:99", "2026-11-29T12:00+1"),
    *("2026-11-29T12:00 +01:00", "2026-11-29T12:00Zulu", "2026-11-29T12:00[UTC]", "2026-11-29T12:00+00:00Z"),
    *("2026-11-29T12:00-00:00:01", "2026-11-29--2026-11-30", "' OR 1=1 --", "<b>2026-11-29</b>"),
]
OUTSIDE = ["0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "9999-12-31T23:00"]
NO_CURSOR = ["", " ", "\0", "\ud800", "null", "1", LONG, "x" * 501, "' OR 1=1 --"]
NO_VIEW = ["", " ", "Messages", "messages ", "summary\0", "\ud800", "all", "messages,summary", LONG]

WRONG: dict[tuple[str, str], list[Any]] = {
    (LIST, "after"): NOT_TEXT + NO_TIME + OUTSIDE,
    (LIST, "before"): [*NOT_TEXT, *NO_TIME, *OUTSIDE, "9999-12-31"],
    (LIST, "cursor"): NOT_TEXT + NO_CURSOR,
    (LIST, "limit"): [*NOT_WHOLE, 0, -1, -20, -(10**12), -(2**70), -(10**5_000)],
    (READ, "conversation_id"): NOT_TEXT,
    (READ, "start"): [*NOT_WHOLE, 0],
    (READ, "limit"): [*NOT_WHOLE, 0, -1, -20, -(10**12), -(2**70), -(10**5_000)],
    (READ, "cursor"): NOT_TEXT + NO_CURSOR,
    (READ, "view"): NOT_TEXT + NO_VIEW,
}

IDENTITY = [
    *("agent", "agent_id", "account", "account_id", "account__isnull", "person", "person_id", "workspace"),
    *("workspace_id", "turn", "turn_id", "reader", "reach", "setting", "how", "by", "using", "user"),
]
OTHER_NAMES: list[Any] = [
    *("self", "cls", "arguments", "kwargs", "model", "tool", "model_config", "model_fields", "__class__"),
    *("Limit", "LIMIT", "after__gte", "acount", "ids", "order_by", "offset", "page"),
]
NO_NAMES: list[Any] = [
    *("", " ", "limit ", "a b", "<b>limit</b>", "limit\n</tool>", "ключ", "ｌｉｍｉｔ", "\0", "\ud800"),
    *("x" * 65, LONG, 1, 0, None, True, 1.5, ("limit",), b"limit", frozenset()),
]


@pytest.fixture
def tools(world: World) -> Toolset:
    """The tools of a turn that may read everything of the agent's."""
    world.allow("all_accounts")
    world.grant(world.mara)
    return world.tools(world.mara)


def required(tool: str, world: World) -> dict[str, Any]:
    """The arguments that a tool cannot do without."""
    return {} if tool == LIST else {"conversation_id": str(world.session("hello").pk)}


def refusal(result: dict[str, Any]) -> tuple[str, str | None]:
    """The code and the argument of a refused call, whose message tells nothing that it must not."""
    found = error(result)
    assert set(result) == {"kind", "error"}
    assert set(found) == {"code", "message", "argument"}
    assert 0 < len(found["message"]) < 300
    for unwanted in (
        "SELECT",
        "secret",
        "Traceback",
        "File ",
        "agent_platform",
        "psycopg",
        "django",
        "object at",
    ):
        assert unwanted not in found["message"]
    return found["code"], found["argument"]


# Arguments


@pytest.mark.parametrize(("tool", "argument"), WRONG)
def test_a_wrong_argument_is_refused_by_its_name(world: World, tools: Toolset, tool: str, argument: str):
    """tool-errors: and by the rule that it broke, never by its value."""
    given = required(tool, world)
    for value in WRONG[tool, argument]:
        result = tools.call(tool, {**given, argument: value})
        assert refusal(result) == ("invalid_arguments", argument), repr(value)[:80]
        message = result["error"]["message"]
        assert message.startswith(f"{argument}: "), repr(value)[:80]
        assert len(message) > len(f"{argument}: ")


@pytest.mark.parametrize(("tool", "argument"), WRONG)
def test_null_means_that_an_argument_is_left_out(world: World, tools: Toolset, tool: str, argument: str):
    """tool-errors: as the strict form sends it; what is required is missing then."""
    given = required(tool, world)
    result = tools.call(tool, {**given, argument: None})
    if argument in given:
        assert result == tools.call(tool, {})
        assert refusal(result) == ("invalid_arguments", argument)
    else:
        assert result == tools.call(tool, given)
        assert result["kind"] != "error"


@pytest.mark.parametrize("tool", [LIST, READ])
def test_a_limit_above_the_highest_is_capped(world: World, tools: Toolset, tool: str):
    """tool-errors, tool-list"""
    given = required(tool, world)
    for limit in (10**12, 2**63, 2**64, 2**70, 10**5_000):
        assert tools.call(tool, {**given, "limit": limit})["kind"] != "error"


def test_a_start_far_outside_is_a_start(world: World, tools: Toolset):
    """tool-errors, tool-read"""
    session = world.session("hello")
    for start in (10**12, 2**70, 10**5_000):
        assert read(tools, session.pk, start=start)["messages"] == []
        assert [one["number"] for one in read(tools, session.pk, start=-start)["messages"]] == [1]


CALENDAR = [
    ("America/New_York", "after", "0001-01-01", True),
    ("Asia/Tokyo", "after", "0001-01-01", False),
    ("Asia/Tokyo", "before", "0001-01-01", True),
    ("Asia/Tokyo", "after", "9999-12-31T23:59", True),
    ("America/New_York", "after", "9999-12-31", True),
    ("America/New_York", "after", "9999-12-31T19:00", False),
    ("UTC", "before", "9999-12-31", False),
    ("UTC", "before", "9999-12-31T23:59:59.999999", True),
]


def test_the_ends_of_the_calendar(world: World, tools: Toolset):
    """tool-errors: what still is an instant is one, and the rest is refused by name."""
    for zone, argument, text, valid in CALENDAR:
        Workspace.objects.filter(pk=world.hollowbrook.pk).update(time_zone=zone)
        result = tools.call(LIST, {argument: text})
        if valid:
            assert result["kind"] == "conversation_list", (zone, text)
        else:
            assert refusal(result) == ("invalid_arguments", argument), (zone, text)


@pytest.mark.parametrize("tool", [LIST, READ])
def test_unknown_arguments_are_refused(world: World, tools: Toolset, tool: str):
    """tool-errors: nobody says who they are; also where null is said, and in one's own words for markup."""
    given = required(tool, world)
    for name in [*IDENTITY, *OTHER_NAMES, *NO_NAMES]:
        for value in ("1", None):
            result = tools.call(tool, {**given, name: value})
            expected = None if name in NO_NAMES else name
            assert refusal(result) == ("invalid_arguments", expected), repr(name)[:80]


def test_an_argument_of_the_other_tool_is_unknown(world: World, tools: Toolset):
    """tool-errors"""
    session = world.session("hello")
    assert refusal(tools.call(LIST, {"conversation_id": str(session.pk)}))[1] == "conversation_id"
    for name in ("after", "before"):
        given = {"conversation_id": str(session.pk), name: "2026-11-29"}
        assert refusal(tools.call(READ, given))[1] == name


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"start": 1, "cursor": "a"}, "start"),
        ({"start": -5, "cursor": ""}, "start"),
        ({"start": 1, "view": "summary"}, "start"),
    ],
)
def test_arguments_that_contradict_each_other(
    world: World, tools: Toolset, arguments: dict[str, Any], argument: str
):
    """tool-errors: one of the two is named."""
    result = tools.call(READ, {**required(READ, world), **arguments})
    assert refusal(result) == ("invalid_arguments", argument)


NO_OBJECTS: list[Any] = [
    *([], [["limit", 1]], [("limit", 1)], (), "", "{}", '{"limit": 1}', LONG, "\ud800", None, 0, 1, True),
    *(1.5, float("nan"), b"{}", {"limit"}, object(), dict, {}.items()),
]


@pytest.mark.parametrize("tool", [LIST, READ])
def test_arguments_that_are_no_object(tools: Toolset, tool: str):
    """tool-errors"""
    for arguments in NO_OBJECTS:
        assert refusal(tools.call(tool, arguments)) == ("invalid_arguments", None), repr(arguments)[:80]


NO_TOOLS: list[Any] = [
    *("", " ", "drop_table", "list_conversations ", "LIST_CONVERSATIONS", "list-conversations", "call"),
    *(
        "__class__",
        "\0",
        "\ud800",
        LONG,
        f"<b>{SECRET}</b>",
        None,
        0,
        1,
        True,
        1.5,
        [],
        ["list_conversations"],
    ),
    *({}, {"name": "list_conversations"}, b"list_conversations", object(), len),
]


def test_unknown_tools(tools: Toolset):
    """tool-errors: whatever stands for a tool's name."""
    for name in NO_TOOLS:
        assert refusal(tools.call(name, {})) == ("invalid_arguments", None), repr(name)[:80]


def test_errors_are_json(world: World, tools: Toolset):
    """tool-errors, tool-quoted: as text they can be handed to a model like any result."""
    for given in ({"after": "\ud800"}, {"\ud800": 1}, {"<b>": 1}, None):
        assert tools.call_text(LIST, given) == wire_text(tools.call(LIST, given))


# Ids


def elsewhere(world: World) -> Session:
    """A session of another workspace."""
    workspace = Workspace.objects.create(name="Elsewhere")
    agent = Agent.objects.create(workspace=workspace, name="Other")
    return services.open_session(agent, person=world.mara)


def unreadable_ids(world: World, tools: Toolset, readable: str) -> dict[str, str]:
    """Ids that this turn may not read, each for another reason, and other spellings of one that it may."""
    other = Agent.objects.create(workspace=world.hollowbrook, name="Other")
    deleted = world.session("hello", person=world.mara)
    services.delete_session(deleted)
    foreign = {
        "another-agent": world.session("hello", agent=other, person=world.mara).pk,
        "another-account": world.session("hello", account=world.acme, person=world.mara).pk,
        "another-person": world.session("hello", person=world.person("noah")).pk,
        "no-person": world.session("hello").pk,
        "another-workspace": elsewhere(world).pk,
        "deleted": deleted.pk,
        "own": Session.objects.get(turns=tools.turn_id).pk,
        "agent": world.agent.pk,
        "turn": tools.turn_id,
    }
    spelt = {
        **{name: str(key) for name, key in foreign.items()},
        "one": "1",
        "zero": "0",
        "empty": "",
        "blank": " ",
        "null": "null",
        "none": "None",
        "sql": "' OR 1=1 --",
        "path": "../../etc/passwd",
        "percent": "%00",
        "long": LONG,
        "digits": "9" * 5_000,
        "37-characters": readable + "0",
        "35-characters": readable[:-1],
        "braces": f"{{{readable}}}",
        "upper-case": readable.upper(),
        "urn": f"urn:uuid:{readable}",
        "hex": readable.replace("-", ""),
        "blank-before": f" {readable}",
        "newline-after": f"{readable}\n",
        "nul-after": f"{readable}\0",
        "surrogate-after": f"{readable}\ud800",
        "surrogate": "\udfff",
        "full-width": readable.translate({ord("0") + n: ord("０") + n for n in range(10)}),
        "no-break-hyphens": readable.replace("-", "\u2011"),
        "direction-mark": f"\u202e{readable}",
        "link": f"https://hollowbrook.example/conversations/{readable}",
        "twice": f"{readable},{readable}",
    }
    assert readable not in spelt.values()
    return spelt


@pytest.mark.parametrize("how", [{}, {"start": -5}, {"view": "summary"}], ids=str)
def test_every_unreadable_id_has_one_answer(world: World, how: dict[str, Any]):
    """reach-same-answer, tool-errors: to the byte, and with as many statements."""
    world.allow("same_account")
    tools = world.tools(world.mara)
    readable = str(world.session("hello", person=world.mara).pk)
    read(tools, readable, **how)
    answers = {}
    for name, key in unreadable_ids(world, tools, readable).items():
        with CaptureQueriesContext(connection) as statements:
            answer = tools.call_text(READ, {"conversation_id": key, **how})
        answers[name] = (answer, len(statements))
    expected = answers["deleted"]
    assert '"code":"conversation_unavailable"' in expected[0]
    assert {name for name, answer in answers.items() if answer != expected} == set()


# What breaks


class RaisingAuthority(PlatformAuthority):
    """One whose answer is an accident."""

    def holds(self, *given: Any, **named: Any) -> Any:
        raise RuntimeError(SECRET)


class EmptyAuthority(PlatformAuthority):
    """One whose answer is no condition, which must not count as "everything"."""

    def holds(self, *given: Any, **named: Any) -> Any:
        return Q()


class WrongAuthority(PlatformAuthority):
    """One that asks for a column that is not there."""

    def holds(self, *given: Any, **named: Any) -> Any:
        return Q(secret=1)


def calls(world: World) -> list[tuple[str, dict[str, Any]]]:
    """A call of each kind that succeeds."""
    session = world.session("hello", "hi")
    services.summarize_session(session, "They met.", through=1)
    this = {"conversation_id": str(session.pk)}
    return [(LIST, {}), (READ, this), (READ, {**this, "view": "summary"})]


@pytest.mark.parametrize("authority", [RaisingAuthority, EmptyAuthority, WrongAuthority, int])
def test_an_authority_that_breaks_gives_nothing(world: World, tools: Toolset, settings: Any, authority: type):
    """tool-errors: and raises nothing into the loop."""
    asked = calls(world)
    path = f"{authority.__module__}.{authority.__name__}"
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "AUTHORITY": path}
    for tool, arguments in asked:
        assert refusal(tools.call(tool, arguments)) == ("history_unavailable", None)


def failing_at(position: int | None, failure: type[Exception], seen: list[str]) -> Callable[..., Any]:
    """Keep the statements that run, and raise instead of running the one at this position."""

    def wrapper(execute: Callable[..., Any], sql: str, *given: Any) -> Any:
        seen.append(sql)
        if len(seen) - 1 == position:
            raise failure(SECRET)
        return execute(sql, *given)

    return wrapper


FAILURES = [OperationalError, IntegrityError, DataError, ProgrammingError, InterfaceError, RuntimeError]


def test_a_database_that_fails_at_any_statement_gives_nothing(open_world: World):
    """tool-errors, record-or-nothing: no text, no record, no reason why; and the next call works."""
    open_world.allow("all_accounts")
    open_world.grant(open_world.mara)
    asked, tools = calls(open_world), open_world.tools(open_world.mara)
    for tool, arguments in asked:
        seen: list[str] = []
        with connection.execute_wrapper(failing_at(None, OperationalError, seen)):
            expected = tools.call(tool, arguments)
        recorded = TurnConversationRead.objects.count()
        for position, sql in enumerate(seen):
            failure = FAILURES[position % len(FAILURES)]
            with connection.execute_wrapper(failing_at(position, failure, [])):
                assert refusal(tools.call(tool, arguments)) == ("history_unavailable", None), sql
            assert TurnConversationRead.objects.count() == recorded, sql
        assert len(seen) > 5
        assert tools.call(tool, arguments) == expected


@pytest.mark.parametrize("failure", [OperationalError, IntegrityError, InterfaceError])
def test_python_callers_get_a_tool_error(world: World, tools: Toolset, failure: type[Exception]):
    """tool-errors: whichever of the database's errors it was."""
    turn, session = Turn.objects.get(pk=tools.turn_id), world.session("hello")
    with connection.execute_wrapper(failing_at(5, failure, [])), pytest.raises(ToolError) as found:
        list_conversations(turn)
    assert refusal(found.value.as_result()) == ("history_unavailable", None)
    with connection.execute_wrapper(failing_at(5, failure, [])), pytest.raises(ToolError) as found:
        read_conversation(turn, conversation_id=str(session.pk))
    assert refusal(found.value.as_result()) == ("history_unavailable", None)


NO_ZONES = [
    "",
    " ",
    "Nowhere/Land",
    "../../etc/passwd",
    "/etc/passwd",
    "America",
    "UTC\n",
    "é" * 64,
    "new_york",
]


def test_a_time_zone_that_is_none_is_the_projects(world: World, tools: Toolset):
    """tool-errors: and the result says which zone it is in."""
    session = world.session("hello", at=NOON)
    for name in NO_ZONES:
        Workspace.objects.filter(pk=world.hollowbrook.pk).update(time_zone=name)
        page = tools.call(LIST, {"after": "2026-11-29", "before": "2026-11-29"})
        assert page["time_zone"] == "UTC", name
        assert [one["started_at"] for one in page["conversations"]] == ["2026-11-29T17:00:00+00:00"]
        assert read(tools, session.pk)["messages"][0]["at"] == "2026-11-29T17:00:00+00:00"


def test_a_turn_that_is_gone_reads_nothing(world: World, tools: Toolset):
    """tool-errors: whatever it was offered."""
    asked = calls(world)
    Turn.objects.filter(pk=tools.turn_id).delete()
    for tool, arguments in asked:
        assert refusal(tools.call(tool, arguments)) == ("history_unavailable", None)


def test_switched_off_after_it_was_offered(world: World, tools: Toolset):
    """tool-errors, reach-now: every call is checked again when it runs."""
    asked = calls(world)
    world.set(agent=world.agent, value="none")
    for tool, arguments in asked:
        assert refusal(tools.call(tool, arguments)) == ("history_unavailable", None)
    world.set(agent=world.agent, value="all_accounts")
    assert len(listed(tools)) == 1


def test_inside_an_open_transaction_nothing_is_read(open_world: World):
    """tool-errors, record-or-nothing: and the answer says how to call it."""
    from django.db import transaction

    open_world.allow("all_accounts")
    tools = open_world.tools(open_world.mara)
    with transaction.atomic():
        result = tools.call(LIST, {})
    assert refusal(result) == ("history_unavailable", None)
    assert "transaction" in result["error"]["message"]
