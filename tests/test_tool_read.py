"""tool-read, tool-count, tool-summary, tool-unavailable, tool-quoted: what a read of a conversation gives."""

import random
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from history_access.agent_platform import services
from history_access.agent_platform.models import Session
from history_access.models import Role
from history_access.tools import Toolset, wire_text
from tests.worlds import NOON, World, error, pages, pieces, read

MINUTE = timedelta(minutes=1)


@pytest.fixture
def tools(world: World) -> Toolset:
    """The tools of a turn that may read everything of the agent's."""
    world.allow("all_accounts")
    world.grant(world.mara)
    return world.tools(world.mara)


@pytest.fixture
def ten(world: World) -> Session:
    """A session of the messages "1" to "10"."""
    return world.session(*map(str, range(1, 11)))


def numbers(page: dict[str, Any]) -> list[int]:
    return [message["number"] for message in page["messages"]]


def shown_count(tools: Toolset, session: Session) -> int:
    """The message count of a session in the list."""
    found = tools.call("list_conversations", {"limit": 50})["conversations"]
    [count] = [one["message_count"] for one in found if one["id"] == str(session.pk)]
    return int(count)


# Ranges


# start, limit, the first number that is read and the last
RANGES = [
    (None, None, 1, 10),
    (1, None, 1, 10),
    (3, None, 3, 10),
    (3, 4, 3, 6),
    (10, None, 10, 10),
    (None, 1, 1, 1),
    (-1, None, 10, 10),
    (-3, None, 8, 10),
    (-3, 2, 8, 9),
    (-10, None, 1, 10),
    (-11, None, 1, 10),
    (-11, 2, 1, 2),
    (-(10**12), None, 1, 10),
    (-(2**31), 3, 1, 3),
    (-(2**70), 3, 1, 3),
    (None, 10**12, 1, 10),
    (2, 2**70, 2, 10),
]


def test_a_range(tools: Toolset, ten: Session):
    """tool-read: from a number, or counted from the end; a start before the first is the first."""
    for start, limit, first, last in RANGES:
        page = read(tools, ten.pk, start=start, limit=limit)
        assert numbers(page) == list(range(first, last + 1)), (start, limit)
        assert (page["next_cursor"] is None) == (last == 10), (start, limit)


def test_a_start_beyond_the_end_reads_no_message(tools: Toolset, ten: Session):
    """tool-read: the conversation is there all the same, with its count."""
    for start in (11, 12, 2**31 - 1, 2**31, 2**63, 10**12, 2**70):
        page = read(tools, ten.pk, start=start)
        assert (page["messages"], page["next_cursor"], page["unavailable"]) == ([], None, None), start
        assert page["conversation"]["message_count"] == 10


def test_an_empty_conversation_can_be_read(world: World, tools: Toolset):
    """tool-read: from wherever."""
    session = services.open_session(world.agent)
    for start in (None, 1, -5, 7):
        page = read(tools, session.pk, start=start)
        assert (page["messages"], page["conversation"]["message_count"]) == ([], 0)


def test_paging_from_a_start_goes_on_to_the_end(tools: Toolset, ten: Session):
    """tool-read, tool-pages: also counted from the end."""
    for start, first in ((4, 4), (-7, 4)):
        found = [numbers(page) for page in pages(tools, ten.pk, start=start, limit=3)]
        assert found == [list(range(n, min(n + 3, 11))) for n in range(first, 11, 3)]


# What is read and what is left out


@pytest.fixture
def mixed(world: World) -> Session:
    """A session with entries of every kind, those that must not be read marked."""
    session = services.open_session(world.agent, started_at=NOON, person=world.mara, title="Mixed")
    call = {"name": "find_booking", "arguments": {"secret": "HIDDEN argument"}, "result": "HIDDEN result"}
    entries: list[tuple[Role, str, dict[str, Any]]] = [
        (Role.SYSTEM, "HIDDEN system prompt", {}),
        (Role.PERSON, "HIDDEN context", {"hidden": True}),
        (Role.PERSON, "Is my booking there?", {}),
        (Role.AGENT, "HIDDEN reasoning", {"hidden": True}),
        (Role.AGENT, "", {"tool_calls": [call, {"name": "notify"}]}),
        (Role.TOOL, "HIDDEN tool result", {}),
        (Role.TOOL, "HIDDEN second result", {"hidden": True}),
        (Role.AGENT, "It is.", {}),
        (Role.SYSTEM, "HIDDEN note", {"hidden": True}),
    ]
    for minute, (role, text, given) in enumerate(entries):
        services.add_message(session, role, text, at=NOON + minute * MINUTE, **given)
    return session


def test_the_persons_and_the_agents_words(tools: Toolset, mixed: Session):
    """tool-read: hidden context, system text, reasoning and tool results are left out, and tools named."""
    page = read(tools, mixed.pk)
    assert [(one["number"], one["speaker"], one["at"], one["quoted"]) for one in page["messages"]] == [
        (
            3,
            "person",
            "2026-11-29T12:02:00-05:00",
            {"name": "mara", "text": "Is my booking there?", "tool_calls": []},
        ),
        (
            5,
            "agent",
            "2026-11-29T12:04:00-05:00",
            {"name": "Digest", "text": None, "tool_calls": ["find_booking", "notify"]},
        ),
        (8, "agent", "2026-11-29T12:07:00-05:00", {"name": "Digest", "text": "It is.", "tool_calls": []}),
    ]
    assert "HIDDEN" not in wire_text(page)


def test_every_field_is_there(tools: Toolset, mixed: Session):
    """tool-read: those of the page, of a message and of the conversation, null where there is nothing."""
    page = read(tools, mixed.pk, limit=1)
    assert page.pop("notice")
    assert page.pop("next_cursor")
    assert page == {
        "kind": "quoted_conversation",
        "by": "history",
        "view": "messages",
        "conversation": {
            "id": str(mixed.pk),
            "account_id": None,
            "quoted": {"title": "Mixed", "account": None},
            "started_at": "2026-11-29T12:00:00-05:00",
            "last_moved_at": "2026-11-29T12:08:00-05:00",
            "message_count": 3,
            "link": f"https://hollowbrook.example/conversations/{mixed.pk}",
        },
        "messages": [
            {
                "number": 3,
                "speaker": "person",
                "at": "2026-11-29T12:02:00-05:00",
                "quoted": {"name": "mara", "text": "Is my booking there?", "tool_calls": []},
                "offset": 0,
                "truncated": None,
            }
        ],
        "summary": None,
        "unavailable": None,
    }


def test_the_fields_of_a_cut(world: World, tools: Toolset):
    """tool-caps, tool-read: shown, total and how to go on."""
    [message] = read(tools, world.session("x" * 4_500).pk)["messages"]
    assert sorted(message["truncated"]) == ["continue", "shown", "total"]
    assert (message["truncated"]["shown"], message["truncated"]["total"]) == (4_000, 4_500)


def test_counting_from_the_end_counts_what_is_read(tools: Toolset, mixed: Session):
    """tool-read: -2 is the last two that can be read, not the last two numbers."""
    for start in (-1, -2, -3, -99):
        assert numbers(read(tools, mixed.pk, start=start)) == [3, 5, 8][start:]


def test_a_start_among_what_is_left_out(tools: Toolset, mixed: Session):
    """tool-read: reading begins with the next message that can be read."""
    for start, first in ((1, [3]), (3, [3]), (4, [5]), (6, [8]), (9, [])):
        assert numbers(read(tools, mixed.pk, start=start))[:1] == first


def test_a_message_without_text_says_so(tools: Toolset, world: World):
    """tool-unavailable: null, where a message of blanks has its blanks."""
    session = world.session("", " ", "\n")
    assert [one["quoted"]["text"] for one in read(tools, session.pk)["messages"]] == [None, " ", "\n"]


def test_the_count_of_one_message_four_tool_rows_and_reasoning(world: World, tools: Toolset):
    """tool-count"""
    session = world.session("hello")
    for _ in range(4):
        services.add_message(session, Role.TOOL, "a result")
    services.add_message(session, Role.AGENT, "thinking", hidden=True)
    assert (shown_count(tools, session), numbers(read(tools, session.pk))) == (1, [1])


@pytest.mark.parametrize("seed", range(6))
def test_counts_equal_what_read_returns(world: World, tools: Toolset, seed: int):
    """tool-count: over sessions of any make, trimmed ones among them, read in pages of any size."""
    chance = random.Random(seed)
    session, expected = services.open_session(world.agent), []
    for number in range(1, chance.randint(1, 30)):
        role, hidden = chance.choice(Role.values), chance.random() < 0.2
        services.add_message(session, role, chance.choice(["", "hello"]), hidden=hidden)
        if role in ("person", "agent") and not hidden:
            expected.append(number)
        if chance.random() < 0.1:
            before = chance.randint(1, number + 1)
            services.trim_session(session, before=before)
            expected = [kept for kept in expected if kept >= before]
    found = pages(tools, session.pk, limit=chance.randint(5, 9))
    assert [number for page in found for number in numbers(page)] == expected
    counts = {page["conversation"]["message_count"] for page in found} | {shown_count(tools, session)}
    assert counts == {len(expected)}


# Names


@pytest.mark.parametrize("with_person", [True, False])
def test_who_speaks(world: World, tools: Toolset, with_person: bool):
    """tool-read, tool-quoted: the agent's name and the person's, null where nobody is known."""
    session = world.session("a", "b", person=world.mara if with_person else None)
    found = [(one["speaker"], one["quoted"]["name"]) for one in read(tools, session.pk)["messages"]]
    assert found == [("person", "mara" if with_person else None), ("agent", "Digest")]


def test_long_names_are_cut_with_an_ellipsis(world: World, tools: Toolset):
    """tool-quoted, tool-caps: a person's, an agent's, an account's and a tool's."""
    type(world.agent).objects.update(name="g" * 200)
    type(world.acme).objects.update(name="c" * 200)
    person = world.person("p" * 150)
    session = world.session("a", person=person, account=world.acme)
    services.add_message(session, Role.AGENT, "b", tool_calls=[{"name": "t" * 100}, {"name": "u" * 101}])
    page = read(tools, session.pk)
    assert page["conversation"]["quoted"]["account"] == "c" * 200
    assert [one["quoted"]["name"] for one in page["messages"]] == ["p" * 150, "g" * 200]
    assert page["messages"][1]["quoted"]["tool_calls"] == ["t" * 100, "u" * 99 + "…"]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL keeps these columns to their length")
def test_names_beyond_the_columns_length_are_cut_too(world: World, tools: Toolset):
    """tool-quoted, tool-caps: a platform's own tables may allow longer ones."""
    for one in (world.agent, world.acme):
        type(one).objects.update(name="n" * 9_000)
    session = world.session("a", "b", person=world.person("n" * 9_000), account=world.acme)
    page = read(tools, session.pk)
    names = [one["quoted"]["name"] for one in page["messages"]]
    assert [*names, page["conversation"]["quoted"]["account"]] == ["n" * 199 + "…"] * 3


def test_very_many_tool_calls_are_cut_and_said_so(world: World, tools: Toolset):
    """tool-caps: fifty are named; of more, that there are more."""
    session = services.open_session(world.agent)
    for many in (50, 51, 60):
        services.add_message(session, Role.AGENT, tool_calls=[{"name": f"t{n}"} for n in range(many)])
    first, second, third = [one["quoted"]["tool_calls"] for one in read(tools, session.pk)["messages"]]
    assert first == [f"t{n}" for n in range(50)]
    assert second == third == [*first, "… and more"]


# What is gone


# start, the first number that is read, and the numbers that are said to be gone
TRIMMED = [
    (None, [6], (1, 5)),
    (1, [6], (1, 5)),
    (3, [6], (3, 5)),
    (5, [6], (5, 5)),
    (6, [6], None),
    (8, [8], None),
    (11, [], None),
    (-1, [10], None),
    (-5, [6], None),
    (-6, [6], (1, 5)),
    (-(2**70), [6], (1, 5)),
]


def test_what_is_trimmed_says_so(tools: Toolset, ten: Session):
    """tool-unavailable: which of the numbers that were asked for are gone, instead of seeming complete."""
    services.trim_session(ten, before=6)
    for start, first, gone in TRIMMED:
        page = read(tools, ten.pk, start=start)
        said = {"first": gone[0], "last": gone[1], "why": "trimmed"} if gone else None
        assert (numbers(page)[:1], page["unavailable"]) == (first, said), start
        assert page["conversation"]["message_count"] == 5


def test_a_wholly_trimmed_conversation_says_so(tools: Toolset, ten: Session):
    """tool-unavailable, tool-count"""
    services.trim_session(ten, before=11)
    for page in (read(tools, ten.pk), read(tools, ten.pk, start=-3)):
        assert (page["messages"], page["conversation"]["message_count"]) == ([], 0)
        assert page["unavailable"] == {"first": 1, "last": 10, "why": "trimmed"}


def test_trimming_beyond_the_end_makes_nothing_up(tools: Toolset, ten: Session):
    """tool-unavailable: only what once existed is said to be gone."""
    services.trim_session(ten, before=1_000)
    assert read(tools, ten.pk)["unavailable"]["last"] == 10


def test_numbers_stay_when_the_beginning_is_trimmed(tools: Toolset, ten: Session):
    """tool-read: nothing is renumbered, and new messages go on."""
    services.trim_session(ten, before=11)
    services.add_message(ten, Role.PERSON, "eleventh")
    assert [(one["number"], one["quoted"]["text"]) for one in read(tools, ten.pk)["messages"]] == [
        (11, "eleventh")
    ]


def test_what_is_trimmed_between_pages_says_so(tools: Toolset, ten: Session):
    """tool-unavailable, tool-pages"""
    cursor = read(tools, ten.pk, limit=2)["next_cursor"]
    services.trim_session(ten, before=6)
    page = read(tools, ten.pk, cursor=cursor)
    assert numbers(page) == [6, 7, 8, 9, 10]
    assert page["unavailable"] == {"first": 3, "last": 5, "why": "trimmed"}


def test_a_message_that_is_trimmed_before_its_rest_was_read_says_so(world: World, tools: Toolset):
    """tool-unavailable, tool-caps: the next message is not taken for the rest of it."""
    session = world.session("x" * 9_000, "y" * 9_000)
    rest = read(tools, session.pk)["messages"][0]["truncated"]["continue"]
    services.trim_session(session, before=2)
    page = read(tools, session.pk, cursor=rest)
    assert page["unavailable"] == {"first": 1, "last": 1, "why": "trimmed"}
    assert [(one["number"], one["offset"]) for one in page["messages"]] == [(2, 0)]


# Summaries


@pytest.fixture
def summarized(ten: Session) -> Session:
    """The ten messages with a summary of the first six."""
    services.summarize_session(ten, "They counted.", through=6)
    return ten


def summary_of(tools: Toolset, session: Session, **arguments: Any) -> Any:
    page = read(tools, session.pk, view="summary", **arguments)
    assert (page["view"], page["messages"], page["next_cursor"]) == ("summary", [], None)
    return page["summary"]


def test_a_summary_says_whose_it_is_and_what_it_covers(tools: Toolset, summarized: Session):
    """tool-summary: a model's account, its range, and how many messages came after it."""
    assert summary_of(tools, summarized) == {
        "by": "model",
        "through": 6,
        "messages_after": 4,
        "quoted": {"text": "They counted."},
        "offset": 0,
        "truncated": None,
    }


def test_messages_after_a_summary_are_those_that_can_be_read(tools: Toolset, summarized: Session):
    """tool-summary, tool-count: hidden ones and tool results are none."""
    services.add_message(summarized, Role.PERSON, "hidden", hidden=True)
    services.add_message(summarized, Role.TOOL, "a result")
    assert summary_of(tools, summarized)["messages_after"] == 4
    services.add_message(summarized, Role.PERSON, "eleven")
    assert summary_of(tools, summarized)["messages_after"] == 5
    services.summarize_session(summarized, "They went on.", through=13)
    assert summary_of(tools, summarized)["messages_after"] == 0


def test_without_a_summary_there_is_none(tools: Toolset, ten: Session):
    """tool-summary: null, and the conversation is there."""
    assert summary_of(tools, ten) is None
    services.summarize_session(ten, "", through=6)
    assert summary_of(tools, ten) is None


def test_messages_are_read_without_the_summary(tools: Toolset, summarized: Session):
    """tool-summary: it is no part of the conversation."""
    page = read(tools, summarized.pk)
    assert page["summary"] is None
    assert "They counted." not in wire_text(page)


def test_trimming_keeps_the_summary_and_says_what_is_gone(tools: Toolset, summarized: Session):
    """tool-summary, tool-unavailable: a plain trim makes room."""
    services.trim_session(summarized, before=8)
    assert summary_of(tools, summarized)["messages_after"] == 3
    assert read(tools, summarized.pk, view="summary")["unavailable"] == {
        "first": 1,
        "last": 7,
        "why": "trimmed",
    }


def test_erasure_takes_the_summary_along(tools: Toolset, summarized: Session):
    """tool-summary: also where it covered more than what was erased."""
    services.trim_session(summarized, before=3, erasure=True)
    assert summary_of(tools, summarized) is None


@pytest.mark.parametrize("by_service", [True, False])
def test_deletion_takes_the_summary_along(tools: Toolset, summarized: Session, by_service: bool):
    """tool-summary, reach-not-deleted: also where a platform only marks the row."""
    if by_service:
        services.delete_session(summarized)
    else:
        Session.objects.filter(pk=summarized.pk).update(deleted_at=timezone.now())
    given = {"conversation_id": str(summarized.pk), "view": "summary"}
    assert error(tools.call("read_conversation", given))["code"] == "conversation_unavailable"


@pytest.mark.parametrize("length", [20_000, 20_001, 45_000])
def test_a_long_summary_can_be_continued(tools: Toolset, ten: Session, length: int):
    """tool-summary, tool-caps: no character is out of reach, and the pieces make the whole."""
    text = "".join(random.Random(length).choices("abcdefg é👍🏽\n", k=length))
    services.summarize_session(ten, text, through=6)
    found, cursor = "", {}
    while cursor is not None:
        piece = summary_of(tools, ten, **cursor)
        assert (piece["offset"], piece["through"], piece["messages_after"]) == (len(found), 6, 4)
        found, cut = found + piece["quoted"]["text"], piece["truncated"]
        cursor = {"cursor": cut["continue"]} if cut else None
        if cut:
            assert (cut["shown"], cut["total"]) == (len(piece["quoted"]["text"]), length)
    assert found == text


def test_a_summary_that_was_written_anew_is_shorter(tools: Toolset, ten: Session):
    """tool-summary: going on with one that is gone ends, and breaks nothing."""
    services.summarize_session(ten, "x" * 30_000, through=6)
    cursor = summary_of(tools, ten)["truncated"]["continue"]
    services.summarize_session(ten, "short", through=7)
    piece = summary_of(tools, ten, cursor=cursor)
    assert (piece["quoted"]["text"], piece["truncated"], piece["through"]) == ("", None, 7)


def test_messages_in_pieces_are_whole(world: World, tools: Toolset):
    """tool-read, tool-caps: from any start."""
    texts = ["a" * 9_001, "b", "c" * 4_001]
    session = world.session(*texts)
    assert ["".join(one) for one in pieces(tools, session.pk, start=-3).values()] == texts
    assert ["".join(one) for one in pieces(tools, session.pk, start=2).values()] == texts[1:]
