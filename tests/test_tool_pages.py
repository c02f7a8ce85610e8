"""tool-pages: pages that miss nothing and repeat nothing, and cursors that are good for one call alone."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from django.utils import timezone

from history_access import door
from history_access.agent_platform import services
from history_access.agent_platform.models import Agent, Session
from history_access.paging import CursorError, read_cursor, write_cursor
from history_access.tools import Toolset, listing
from history_access.tools.arguments import ListConversationsArguments, validated
from tests.worlds import NOON, World, error, listed, read

MINUTE = timedelta(minutes=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def tools(world: World) -> Toolset:
    """The tools of a turn that may read everything of the agent's."""
    world.allow("all_accounts")
    world.grant(world.mara)
    return world.tools(world.mara)


def keys(sessions: list[Session]) -> list[str]:
    return [str(session.pk) for session in sessions]


def sessions_of(world: World, many: int) -> list[Session]:
    """So many sessions, the newest first."""
    return [services.open_session(world.agent, started_at=NOON - n * MINUTE) for n in range(many)]


def page(tools: Toolset, **arguments: Any) -> tuple[list[str], str | None, bool]:
    """The ids of a page of a list, its cursor, and whether it says that there is newer activity."""
    found = tools.call("list_conversations", arguments)
    assert found["kind"] == "conversation_list", found
    return [one["id"] for one in found["conversations"]], found["next_cursor"], found["newer_activity"]


def move(session: Session, at: datetime | None = None) -> None:
    services.add_message(session, "person", "again", at=at or NOON + MINUTE)


# Pages


@pytest.mark.parametrize("limit", [1, 4, 5, 14, 15, 16])
def test_fifteen_sessions_in_one_microsecond(world: World, tools: Toolset, limit: int):
    """tool-pages: each exactly once, whatever the size of the pages."""
    sessions = [services.open_session(world.agent, started_at=NOON) for _ in range(15)]
    assert listed(tools, limit=limit) == sorted(keys(sessions), reverse=True)


@pytest.mark.parametrize("limit", [1, 3, 4, 50])
def test_ties_among_others(world: World, tools: Toolset, limit: int):
    """tool-pages: ties that a page's end cuts in two, with rows before and after them."""
    moments = (3, 2, 2, 2, 2, 2, 1, 1, 0)
    sessions = [services.open_session(world.agent, started_at=NOON + n * MINUTE) for n in moments]
    ordered = sorted(sessions, key=lambda one: (one.last_moved_at, one.pk), reverse=True)
    assert listed(tools, limit=limit) == keys(ordered)


def test_filters_hold_on_every_page(world: World, tools: Toolset):
    """tool-pages: a page never goes on beyond the range."""
    sessions = sessions_of(world, 9)
    span = {"after": (NOON - 7 * MINUTE).isoformat(), "before": (NOON - MINUTE).isoformat()}
    assert listed(tools, limit=2, **span) == keys(sessions[2:8])


def test_the_size_of_a_page_may_change(world: World, tools: Toolset):
    """tool-pages: a limit is no filter."""
    sessions = sessions_of(world, 6)
    first, cursor, _ = page(tools, limit=1)
    assert [*first, *page(tools, cursor=cursor, limit=50)[0]] == keys(sessions)


def test_messages_page_by_their_numbers(world: World, tools: Toolset):
    """tool-pages: each message once, over gaps where others were left out."""
    session = services.open_session(world.agent)
    for number in range(1, 16):
        services.add_message(session, "tool" if number % 3 == 0 else "person", str(number))
    found, cursor = [], {}
    while cursor is not None:
        one = read(tools, session.pk, limit=4, **cursor)
        found.append([message["number"] for message in one["messages"]])
        cursor = {"cursor": one["next_cursor"]} if one["next_cursor"] else None
    assert found == [[1, 2, 4, 5], [7, 8, 10, 11], [13, 14]]


def test_words_that_are_added_between_pages_come_on_the_last(world: World, tools: Toolset):
    """tool-pages"""
    session = world.session("1", "2", "3")
    cursor = read(tools, session.pk, limit=2)["next_cursor"]
    services.add_message(session, "agent", "4")
    following = read(tools, session.pk, limit=2, cursor=cursor)
    assert [one["quoted"]["text"] for one in following["messages"]] == ["3", "4"]
    assert following["next_cursor"] is None


# What moves, comes and goes between two pages


def test_nothing_newer_where_nothing_moved(world: World, tools: Toolset):
    """tool-pages"""
    sessions_of(world, 5)
    _, cursor, newer = page(tools, limit=2)
    _, second, still = page(tools, limit=2, cursor=cursor)
    assert (newer, still, page(tools, limit=2, cursor=second)[2]) == (False, False, False)


@pytest.mark.parametrize("which", [0, 1, 3, 5])
def test_a_session_that_moves_between_pages_is_at_the_top(world: World, tools: Toolset, which: int):
    """tool-pages: every later page says that newer activity exists; a fresh list begins with it."""
    sessions = sessions_of(world, 6)
    first, cursor, _ = page(tools, limit=2)
    move(sessions[which])
    second, following, newer = page(tools, limit=2, cursor=cursor)
    third, _, still = page(tools, limit=2, cursor=following)
    staying = [one for one in sessions[2:] if one is not sessions[which]]
    assert (first, [*second, *third]) == (keys(sessions[:2]), keys(staying))
    assert (newer, still) == (True, True)
    assert page(tools, limit=1)[0] == keys([sessions[which]])


def test_a_new_session_is_newer_activity(world: World, tools: Toolset):
    """tool-pages"""
    sessions_of(world, 3)
    cursor = page(tools, limit=2)[1]
    services.open_session(world.agent, started_at=NOON + MINUTE)
    assert page(tools, limit=2, cursor=cursor)[2] is True


@pytest.mark.parametrize("limit", [1, 2])
def test_a_session_in_the_microsecond_of_the_top_is_newer_activity(world: World, tools: Toolset, limit: int):
    """tool-pages: ties count here too."""
    sessions_of(world, 3)
    cursor = page(tools, limit=limit)[1]
    services.open_session(world.agent, started_at=NOON)
    assert page(tools, limit=limit, cursor=cursor)[2] is True


@pytest.mark.parametrize("seconds", [1, 10, 50])
def test_a_session_whose_move_is_committed_late_is_not_lost_in_silence(
    world: World, tools: Toolset, seconds: int
):
    """tool-pages: it moved just before the first page's top did, and was committed after that page."""
    apart, now = timedelta(seconds=seconds), timezone.now()
    sessions = [services.open_session(world.agent, started_at=now - n * apart) for n in range(5)]
    seen, cursor, _ = page(tools, limit=2)
    move(sessions[3], now - apart / 2)
    found, _, newer = page(tools, limit=50, cursor=cursor)
    assert keys([sessions[3]])[0] in [*seen, *found] or newer


def test_pages_of_very_many_that_moved_just_now(world: World, tools: Toolset):
    """tool-pages: they are counted once, and nothing among them is called newer."""
    now = timezone.now()
    sessions = [
        services.open_session(world.agent, started_at=now - n * timedelta(seconds=1)) for n in range(9)
    ]
    assert listed(tools, limit=2) == keys(sessions)
    cursor = page(tools, limit=2)[1]
    assert page(tools, limit=2, cursor=cursor)[2] is False
    move(sessions[8], now)
    assert page(tools, limit=2, cursor=cursor)[2] is True


def test_pages_at_the_beginning_of_the_calendar(world: World, tools: Toolset):
    """tool-pages: no instant lies before these sessions."""
    for _ in range(3):
        services.open_session(world.agent, started_at=datetime(1, 1, 1, tzinfo=UTC))
    assert len(listed(tools, limit=1)) == 3


def test_a_move_out_of_reach_is_no_activity(world: World, tools: Toolset):
    """tool-pages, reach-agent, reach-not-self: the flag tells nothing of what the turn may not see."""
    sessions_of(world, 3)
    cursor = page(tools, limit=2)[1]
    other = Agent.objects.create(workspace=world.hollowbrook, name="Other")
    services.open_session(other, started_at=NOON + MINUTE)
    services.delete_session(services.open_session(world.agent, started_at=NOON + MINUTE))
    own = Session.objects.get(turns=tools.turn_id)
    services.add_message(own, "person", "and now?")
    assert page(tools, limit=2, cursor=cursor)[2] is False


def test_a_move_out_of_range_is_no_activity(world: World, tools: Toolset):
    """tool-pages: a session that began after the range is none of its."""
    sessions_of(world, 3)
    end = NOON + MINUTE
    cursor = page(tools, limit=2, before=end.isoformat())[1]
    services.open_session(world.agent, started_at=end)
    assert page(tools, limit=2, cursor=cursor, before=end.isoformat())[2] is False


@pytest.mark.parametrize("which", [0, 1, 2, 5])
def test_a_session_that_is_deleted_between_pages_is_gone(world: World, tools: Toolset, which: int):
    """tool-pages, reach-not-deleted: also the first page's top, and the row that the cursor stands on."""
    sessions = sessions_of(world, 6)
    cursor = page(tools, limit=2)[1]
    services.delete_session(sessions[which])
    rest = [one for one in sessions[2:] if one is not sessions[which]]
    assert page(tools, limit=50, cursor=cursor) == (keys(rest), None, False)


def test_a_conversation_that_is_deleted_between_pages_is_gone(world: World, tools: Toolset):
    """tool-pages, reach-not-deleted: its cursor gives what an unknown id gives."""
    session = world.session("a", "b", "c")
    cursor = read(tools, session.pk, limit=1)["next_cursor"]
    services.delete_session(session)
    given = {"conversation_id": str(session.pk), "cursor": cursor}
    assert error(tools.call("read_conversation", given))["code"] == "conversation_unavailable"


# Cursors


@pytest.fixture
def cursors(world: World, tools: Toolset) -> dict[str, tuple[dict[str, Any], str]]:
    """For each tool and view the arguments of a call and the cursor that it gave."""
    session = world.session("a" * 9_000, "b")
    services.summarize_session(session, "c" * 30_000, through=2)
    world.session("d")
    this = {"conversation_id": str(session.pk)}
    long = read(tools, session.pk)["messages"][0]["truncated"]["continue"]
    summary = {**this, "view": "summary"}
    return {
        "list": ({}, tools.call("list_conversations", {"limit": 1})["next_cursor"]),
        "read": (this, read(tools, session.pk, limit=1)["next_cursor"]),
        "message": (this, long),
        "summary": (summary, read(tools, **summary)["summary"]["truncated"]["continue"]),
    }


NAMES = ["list", "read", "message", "summary"]


def tool_of(name: str) -> str:
    return "list_conversations" if name == "list" else "read_conversation"


def refused(tools: Toolset, name: str, arguments: dict[str, Any], cursor: str) -> bool:
    """Whether the call is refused because of its cursor, with nothing said about what that cursor holds."""
    result = tools.call(tool_of(name), {**arguments, "cursor": cursor})
    if result["kind"] != "error":
        return False
    found = result["error"]
    assert len(cursor) < 9 or cursor not in found["message"]
    return (found["code"], found["argument"]) == ("invalid_arguments", "cursor")


def test_an_unchanged_cursor_is_good_twice(tools: Toolset, cursors: Any):
    """tool-pages: the set-up of the refusals below."""
    for name, (arguments, cursor) in cursors.items():
        first, second = (tools.call(tool_of(name), {**arguments, "cursor": cursor}) for _ in range(2))
        assert first == second
        assert first["kind"] != "error"


FORGERIES: dict[str, Callable[[str], str]] = {
    "empty": lambda _: "",
    "blank": lambda _: " ",
    "short": lambda cursor: cursor[:-1],
    "long": lambda cursor: cursor + "A",
    "blank-after": lambda cursor: cursor + " ",
    "newline-after": lambda cursor: cursor + "\n",
    "padded": lambda cursor: cursor.replace(":", "=:"),
    "unsigned": lambda cursor: cursor.partition(":")[0],
    "signature-only": lambda cursor: cursor.partition(":")[2],
    "empty-signature": lambda cursor: cursor.partition(":")[0] + ":",
    "swapped-halves": lambda cursor: ":".join(reversed(cursor.split(":"))),
    "twice": lambda cursor: f"{cursor}:{cursor}",
    "compressed": lambda cursor: "." + cursor,
    "upper-case": str.upper,
    "reversed": lambda cursor: cursor[::-1],
    "full-width": lambda cursor: cursor.replace(":", "："),
    "quoted": lambda cursor: f'"{cursor}"',
    "json": lambda _: '[1, "a", 1, "a"]',
    "number": lambda _: "20",
    "nul": lambda cursor: cursor + "\0",
    "lone-surrogate": lambda cursor: cursor + "\ud800",
    "ten-thousand": lambda cursor: cursor * (10_000 // len(cursor) + 1),
    "ten-million": lambda _: "A" * 10_000_000,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_forged_cursor_is_refused(tools: Toolset, cursors: Any, name: str):
    """tool-pages: as invalid arguments, never as a first page."""
    arguments, cursor = cursors[name]
    forged = {how: forge(cursor) for how, forge in FORGERIES.items()}
    assert [how for how, one in forged.items() if not refused(tools, name, arguments, one)] == []


def changed(cursor: str) -> list[str]:
    """A cursor with one character changed, once for each of its characters."""
    others = ("B" if character == "A" else "A" for character in cursor)
    return [cursor[:index] + other + cursor[index + 1 :] for index, other in enumerate(others)]


def test_a_cursor_changed_by_one_character_is_refused(tools: Toolset, cursors: Any):
    """tool-pages"""
    for name, (arguments, cursor) in cursors.items():
        assert all(refused(tools, name, arguments, one) for one in changed(cursor)[::12])


@pytest.mark.parametrize(
    "place", [[0, 20_000], [1_764_435_600_000_000, "01a2", 1_764_435_600_000_001, "01a3"]]
)
def test_whichever_character_of_a_cursor_is_changed(place: list[int | str]):
    """tool-pages"""
    scope, kinds = ("list", "agent", "reader"), [type(value) for value in place]
    cursor = write_cursor(place, scope)
    assert read_cursor(cursor, scope, kinds) == place
    for one in changed(cursor):
        with pytest.raises(CursorError):
            read_cursor(one, scope, kinds)


LONGEST = {
    "ascii": "k" * 255,
    "other scripts": "鍵" * 255,
    "four bytes a character": "\U0001f511" * 255,
    "quotes": '"' * 255,
    "control characters": "\x01" * 255,
}


@pytest.mark.parametrize("key", LONGEST.values(), ids=LONGEST)
def test_a_cursor_of_the_longest_keys_is_taken(key: str):
    """tool-pages: a platform whose keys are text of 255 characters can page to the end."""
    moved = door.Position(moved=datetime(9999, 12, 31, 23, 59, tzinfo=UTC), key=key)
    paging = listing._Paging(last=moved, top=moved, since=moved.moved, recent=2**31)
    scope = ("list", key, key, None, None)
    cursor = write_cursor(paging.place, scope)
    assert validated(ListConversationsArguments, {"cursor": cursor}).cursor == cursor
    assert read_cursor(cursor, scope, (int, str, int, str, int, int)) == paging.place
    cursor = write_cursor([2**31, 10**9], ("read", key, key, key, "messages"))
    assert len(cursor) < 100


def test_a_cursor_of_another_tool_or_view_is_refused(tools: Toolset, cursors: Any):
    """tool-pages: pages and pieces of one conversation's messages share their kind."""
    for name, other in product(NAMES, NAMES):
        same = {name, other} <= {"read", "message"} or name == other
        assert refused(tools, name, cursors[name][0], cursors[other][1]) is not same, (name, other)


def test_a_signature_of_another_cursor_is_refused(tools: Toolset, cursors: Any):
    """tool-pages: one cursor's place with another's signature."""
    for name, other in product(NAMES, NAMES):
        forged = f"{cursors[name][1].split(':')[0]}:{cursors[other][1].split(':')[1]}"
        assert refused(tools, name, cursors[name][0], forged) is (name != other), (name, other)


OTHER_FILTERS: list[tuple[dict[str, str], dict[str, str]]] = [
    ({}, {"after": "2026-11-01"}),
    ({"after": "2026-11-01"}, {}),
    ({"after": "2026-11-01"}, {"before": "2026-11-01"}),
    ({"after": "2026-11-01"}, {"after": "2026-11-02"}),
    ({"after": "2026-11-01"}, {"after": "2026-11-01T00:00"}),
    ({"after": "2026-11-01", "before": "2026-12-30"}, {"after": "2026-11-01"}),
    ({"after": "2026-11-01", "before": "2026-12-30"}, {"before": "2026-11-01", "after": "2026-12-30"}),
]


def test_a_cursor_of_other_filters_is_refused(world: World, tools: Toolset):
    """tool-pages: also where they mean the same."""
    sessions_of(world, 2)
    for wrote, asked in OTHER_FILTERS:
        cursor = page(tools, limit=1, **wrote)[1]
        assert cursor is not None
        assert (refused(tools, "list", asked, cursor), refused(tools, "list", wrote, cursor)) == (True, False)


def test_a_cursor_of_another_conversation_is_refused(world: World, tools: Toolset, cursors: Any):
    """tool-pages"""
    other = world.session("a" * 9_000, "b")
    for name in ("read", "message", "summary"):
        assert refused(tools, name, {**cursors[name][0], "conversation_id": str(other.pk)}, cursors[name][1])


def test_a_cursor_of_another_person_is_refused(world: World, cursors: Any):
    """tool-pages: also where both may read the same."""
    noah = world.person("noah")
    world.grant(noah)
    tools = world.tools(noah)
    assert all(refused(tools, name, *cursors[name]) for name in NAMES)


def test_a_cursor_of_another_agent_is_refused(world: World, cursors: Any):
    """tool-pages"""
    other = Agent.objects.create(workspace=world.hollowbrook, name="Other")
    world.allow("all_accounts", agent=other)
    tools = world.tools(world.mara, agent=other)
    assert all(refused(tools, name, *cursors[name]) for name in NAMES)


def test_a_cursor_outlives_a_change_of_the_secret(tools: Toolset, cursors: Any, settings: Any):
    """tool-pages: while the old secret is among the fallbacks, and no longer."""
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "new", [settings.SECRET_KEY]
    assert not any(refused(tools, name, *cursors[name]) for name in NAMES)
    settings.SECRET_KEY_FALLBACKS = []
    assert all(refused(tools, name, *cursors[name]) for name in NAMES)


# Cursors signed by hand, as if the secret were known


def microseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def list_scope(world: World) -> tuple[str | None, ...]:
    return ("list", str(world.agent.pk), str(world.mara.pk), None, None)


def read_scope(world: World, conversation_id: str, view: str = "messages") -> tuple[str, ...]:
    return ("read", str(world.agent.pk), str(world.mara.pk), conversation_id, view)


@pytest.fixture
def foreign(world: World) -> dict[str, Session]:
    """Sessions that Mara's turns may not read, each for another reason."""
    other = Agent.objects.create(workspace=world.hollowbrook, name="Other")
    world.allow("all_accounts", agent=other)
    sessions = {
        "agent": world.session("FOREIGN words", agent=other, title="FOREIGN", person=world.mara),
        "account": world.session("FOREIGN words", account=world.acme, title="FOREIGN", person=world.mara),
        "person": world.session("FOREIGN words", title="FOREIGN", person=world.person("noah")),
        "deleted": world.session("FOREIGN words", title="FOREIGN", person=world.mara),
    }
    services.delete_session(sessions["deleted"])
    return sessions


@pytest.fixture
def narrow(world: World, foreign: Any) -> Toolset:
    """The tools of a turn of Mara's without an account, who may read her own conversations alone."""
    world.allow("same_account")
    return world.tools(world.mara)


@pytest.mark.parametrize("view", ["messages", "summary"])
def test_a_signed_cursor_cannot_widen_what_is_read(world: World, foreign: Any, narrow: Toolset, view: str):
    """tool-pages: with the right scope, on a foreign conversation."""
    for session in foreign.values():
        key = str(session.pk)
        cursor = write_cursor([1, 0], read_scope(world, key, view))
        given = {"conversation_id": key, "view": view, "cursor": cursor}
        text = narrow.call_text("read_conversation", given)
        assert '"conversation_unavailable"' in text
        assert "FOREIGN" not in text


def test_a_signed_cursor_cannot_widen_what_is_listed(world: World, foreign: Any, narrow: Toolset):
    """tool-pages: a place on or just above a foreign conversation, for the page and for its top."""
    own = world.session("hello", person=world.mara, at=NOON - MINUTE)
    for session in foreign.values():
        for moved in (session.last_moved_at, session.last_moved_at + MINUTE):
            at, key = microseconds(moved), str(session.pk)
            cursor = write_cursor([at, key, at, key, at, 9], list_scope(world))
            assert page(narrow, cursor=cursor) == (keys([own]), None, False)


PLACES: list[Any] = [
    [],
    [1],
    [1, 2, 3],
    [1, "a", 1, "a", 1],
    ["a", "a", "a", "a"],
    [None, None, None, None],
    [[], {}, [], {}],
    [1.5, "a", float("nan"), "a"],
    [1, None, 1, None],
    [1, 1, 1, 1],
    [True, "a", True, "a"],
    ["1", "0"],
    [1, "a"],
    [None, None],
    [[], {}],
    [1.5, 0],
    [1, False],
]


def test_a_signed_cursor_of_another_make_is_refused(world: World, tools: Toolset, cursors: Any):
    """tool-pages: one that an older version wrote, say."""
    for name, (arguments, _) in cursors.items():
        scope = list_scope(world)
        if name != "list":
            scope = read_scope(world, arguments["conversation_id"], arguments.get("view", "messages"))
        forged = [write_cursor(place, scope) for place in PLACES]
        assert [one for one in forged if not refused(tools, name, arguments, one)] == []
