"""tool-caps: how much one page takes, that every cut is said, and that nothing is out of reach.

Boundaries of grapheme clusters are looked up in the whole original text, never in a piece of it.
"""

import json
import random
from itertools import accumulate
from typing import Any

import pytest
import regex

from history_access.agent_platform import services
from history_access.agent_platform.models import Session
from history_access.models import Role
from history_access.paging import write_cursor
from history_access.tools import Toolset
from tests.worlds import NOON, World, pages, pieces, read, rows_sent

MESSAGE, PAGE, MESSAGES = 4_000, 20_000, 50

FAMILY = "👩\u200d👩\u200d👧\u200d👦"
CLUSTERS = {
    "family": FAMILY,
    "skin-tone": "👍🏽",
    "rainbow-flag": "🏳️\u200d🌈",
    "flag": "🇳🇱",
    "scottish-flag": "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "keycap": "1\ufe0f\u20e3",
    "combining": "e\u0301\u0323\u0308",
    "hangul-jamo": "\u1112\u1161\u11ab",
    "crlf": "\r\n",
    "devanagari-conjunct": "क्ष्म्य",
    "tamil": "நி",
    "thai": "กำ",
    "prepended": "\u0600١",
    "zero-width-joined-letter": "a\u200d",
}
PLAIN = ["a", " ", "é", "漢", "\n", "\r", "\u200d", "🇦", "\u0301", "👩", "क", "\u094d", "ᄀ", "ᅡ", "\u2028"]


@pytest.fixture
def tools(world: World) -> Toolset:
    """The tools of a turn that may read everything of the agent's."""
    world.allow("all_accounts")
    world.grant(world.mara)
    return world.tools(world.mara)


def boundaries(text: str) -> set[int]:
    """Where a text may be cut: the ends of its grapheme clusters, and anywhere in one above the cap."""
    found = {0}
    for cluster in regex.finditer(r"\X", text):
        start, end = cluster.span()
        found.update(range(start, end + 1) if end - start > MESSAGE else [end])
    return found


def assert_cut_well(found: list[str], text: str) -> None:
    """The pieces make the text, each as long as the cap allows, none cut inside a grapheme cluster."""
    assert "".join(found) == text
    assert all(0 < len(piece) <= MESSAGE for piece in found) or found == [""]
    assert set(accumulate(map(len, found))) <= boundaries(text)


def sizes(page: dict[str, Any]) -> list[tuple[int, int]]:
    """Number and length of each message of a page."""
    return [(one["number"], len(one["quoted"]["text"] or "")) for one in page["messages"]]


# How much fits


@pytest.mark.parametrize(("many", "asked", "first"), [(50, None, 50), (51, None, 50), (51, 10**12, 50)])
def test_fifty_messages_a_page(world: World, tools: Toolset, many: int, asked: int | None, first: int):
    """tool-caps: whatever the limit, and never a message lost between two pages."""
    session = world.session(*(["x"] * many))
    found = [[number for number, _ in sizes(page)] for page in pages(tools, session.pk, limit=asked)]
    assert found == [one for one in (list(range(1, first + 1)), list(range(first + 1, many + 1))) if one]


def test_a_message_within_the_cap_is_whole(world: World, tools: Toolset):
    """tool-caps"""
    lengths = [0, 1, 3_999, 4_000]
    page = read(tools, world.session(*("x" * length for length in lengths)).pk)
    assert [length for _, length in sizes(page)] == lengths
    assert {one["truncated"] for one in page["messages"]} == {None}


def test_a_message_above_the_cap_goes_on(world: World, tools: Toolset):
    """tool-caps: in pieces of 4,000, each under the message's own number, with its offset and total."""
    lengths = [4_001, 8_000, 8_001, 12_345]
    found = pieces(tools, world.session(*("x" * length for length in lengths)).pk)
    for length, its in zip(lengths, found.values(), strict=True):
        full, rest = divmod(length, MESSAGE)
        assert [len(piece) for piece in its] == [MESSAGE] * full + ([rest] if rest else [])


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        pytest.param([3_500] * 6, [[3_500] * 5, [3_500]], id="six-of-3500"),
        pytest.param([4_000] * 5, [[4_000] * 5], id="exactly-full"),
        pytest.param([4_000] * 5 + [0], [[4_000] * 5 + [0]], id="full-and-an-empty-one"),
        pytest.param([4_000] * 5 + [1], [[4_000] * 5, [1]], id="one-character-too-many"),
        pytest.param([3_999] * 5 + [6], [[3_999] * 5, [6]], id="six-where-five-are-left"),
        pytest.param([3_999] * 5 + [5], [[3_999] * 5 + [5]], id="five-where-five-are-left"),
        pytest.param([9_000] * 6, [[4_000] * 5, [4_000]], id="cut-ones-count-as-shown"),
        pytest.param([1] + [4_000] * 5, [[1] + [4_000] * 4, [4_000]], id="a-short-one-first"),
    ],
)
def test_a_message_that_does_not_fit_starts_the_next_page_whole(
    world: World, tools: Toolset, lengths: list[int], expected: list[list[int]]
):
    """tool-caps: 20,000 characters a page."""
    session = world.session(*("x" * length for length in lengths))
    found = pages(tools, session.pk)
    assert [[length for _, length in sizes(page)] for page in found] == expected
    assert all(one["offset"] == 0 for page in found for one in page["messages"])


def test_what_is_left_out_takes_no_room(world: World, tools: Toolset):
    """tool-caps: neither tool results nor hidden messages count towards a page."""
    session = services.open_session(world.agent)
    for _ in range(5):
        services.add_message(session, Role.PERSON, "x" * MESSAGE)
        services.add_message(session, Role.TOOL, "x" * PAGE)
        services.add_message(session, Role.AGENT, "x" * PAGE, hidden=True)
    assert sizes(read(tools, session.pk)) == [(number, MESSAGE) for number in (1, 4, 7, 10, 13)]


def test_the_rest_of_a_message_comes_alone(world: World, tools: Toolset):
    """tool-caps: so no piece pushes another message out; the page that it was cut on goes on."""
    session = world.session("x" * 4_500, "y")
    rest = read(tools, session.pk)["messages"][0]["truncated"]["continue"]
    page = read(tools, session.pk, cursor=rest)
    assert (sizes(page), page["messages"][0]["offset"]) == ([(1, 500)], MESSAGE)
    assert page["next_cursor"] is None


# Where it is cut


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cut_never_splits_a_grapheme_cluster(world: World, tools: Toolset, name: str):
    """tool-caps: wherever the cluster stands across the cut, alone or among its like."""
    cluster = CLUSTERS[name]
    befores = range(MESSAGE - len(cluster), MESSAGE + 1)
    texts = ["x" * before + cluster * 4 + "y" for before in befores]
    texts += ["-" + cluster * (MESSAGE // len(cluster) + 2)]
    found = pieces(tools, world.session(*texts).pk)
    for text, its in zip(texts, found.values(), strict=True):
        assert_cut_well(its, text)
        assert len(its[0]) > MESSAGE - len(cluster)


LONG = {
    "combining": "e" + "\u0301" * 9_001,
    "joined": FAMILY + "\u200d👦" * 4_500,
    "conjunct": "क" + "\u094dष" * 4_500,
    "jamo": "ᄀ" * 9_001,
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("before", [0, 3_999])
def test_a_cluster_longer_than_the_cap_is_cut_at_a_code_point(
    world: World, tools: Toolset, name: str, before: int
):
    """tool-caps: it goes on, nothing is lost, and what stands before and after it is cut as usual."""
    text = "x" * before + LONG[name] + "🇳🇱" * 2_100
    assert len(regex.findall(r"\X", LONG[name])) == 1
    [found] = pieces(tools, world.session(text).pk).values()
    assert_cut_well(found, text)


@pytest.mark.parametrize("seed", range(6))
def test_joined_pages_equal_the_original(world: World, tools: Toolset, seed: int):
    """tool-caps: exactly, for any texts of any lengths, in pages of any size."""
    chance = random.Random(seed)
    texts = [
        "".join(chance.choices([*CLUSTERS.values(), *PLAIN], k=chance.choice([0, 1, 90, 1_500, 4_200])))
        for _ in range(6)
    ]
    found = pieces(tools, world.session(*texts).pk, limit=chance.randint(2, 7))
    for text, its in zip(texts, found.values(), strict=True):
        assert_cut_well(its, text)


def test_long_titles_are_cut_between_grapheme_clusters(world: World, tools: Toolset):
    """tool-caps: with an ellipsis that says so."""
    for before in range(190, 201):
        services.open_session(world.agent, title="x" * before + FAMILY * 4)
    for one in tools.call("list_conversations", {})["conversations"]:
        title = one["quoted"]["title"]
        assert len(title) <= 200
        assert title.endswith("…")
        assert len(title[:-1].lstrip("x")) % len(FAMILY) == 0


# What is loaded


def mark(name: str) -> str:
    """Text that is found again wherever it was loaded."""
    return f"MARK-{name}-"


@pytest.fixture
def large(world: World) -> Session:
    """A session in which everything that a first page does not return is marked."""
    session = services.open_session(world.agent, started_at=NOON, title="t" * 250 + mark("title"))
    call = {"name": "find", "arguments": mark("argument") * 1_000, "result": mark("call-result") * 1_000}
    services.add_message(session, Role.SYSTEM, mark("system") * 1_000)
    services.add_message(session, Role.PERSON, "x" * 10_000 + mark("rest") * 1_000)
    services.add_message(session, Role.AGENT, "looking", tool_calls=[call])
    services.add_message(session, Role.TOOL, mark("tool-result") * 100_000)
    services.add_message(session, Role.AGENT, mark("hidden") * 1_000, hidden=True)
    for _ in range(60):
        services.add_message(session, Role.PERSON, "y" * 3_000 + mark("later-page"))
    services.summarize_session(session, mark("summary") * 10_000, through=5)
    return session


def loaded(rows: list[tuple[Any, ...]]) -> tuple[set[str], int]:
    """The marks among these rows, and how many characters they have."""
    text = "\n".join(str(value) for row in rows for value in row)
    return set(regex.findall(r"MARK-([a-z-]+)-", text)), len(text)


def test_a_page_loads_nothing_that_it_does_not_return(tools: Toolset, large: Session):
    """tool-caps, tool-read: no tool result, argument, hidden text or summary, nor the rest of a message."""
    with rows_sent() as rows:
        page = read(tools, large.pk)
    marks, size = loaded(rows)
    assert len(page["messages"]) == 7
    assert marks == {"later-page"}
    assert size < PAGE + 5_000
    texts = [value for row in rows for value in row if isinstance(value, str)]
    assert sum(text.count("later-page") for text in texts) == 5


def test_the_rest_of_a_message_loads_only_its_piece(tools: Toolset, large: Session):
    """tool-caps: and none of the messages after it."""
    cursor = read(tools, large.pk)["messages"][0]["truncated"]["continue"]
    with rows_sent() as rows:
        read(tools, large.pk, cursor=cursor)
    marks, size = loaded(rows)
    assert (marks, size < MESSAGE + 5_000) == (set(), True)


def test_a_summary_loads_no_messages(tools: Toolset, large: Session):
    """tool-caps, tool-summary: and of the summary only its first piece."""
    with rows_sent() as rows:
        read(tools, large.pk, view="summary")
    marks, size = loaded(rows)
    assert (marks, size < PAGE + 5_000) == ({"summary"}, True)


def test_a_list_loads_no_words(tools: Toolset, large: Session):
    """tool-caps, tool-list: no messages, no summary, and titles only as far as they are shown."""
    with rows_sent() as rows:
        tools.call("list_conversations", {})
    marks, size = loaded(rows)
    assert (marks, size < 5_000) == (set(), True)


def test_a_page_of_a_list_loads_one_row_more(world: World, tools: Toolset):
    """tool-caps, tool-list: however many there are."""
    for number in range(30):
        services.open_session(world.agent, title=f"MARK-{chr(97 + number % 26)}-")
    with rows_sent() as rows:
        tools.call("list_conversations", {"limit": 5})
    assert str(rows).count("MARK-") == 6


@pytest.mark.parametrize(
    "calls",
    [[{"name": "x" * 100_000}], [{"name": f"tool_{number}"} for number in range(20_000)]],
    ids=["long", "many"],
)
def test_names_of_tools_are_loaded_only_as_far_as_they_are_shown(
    world: World, tools: Toolset, calls: list[dict[str, str]]
):
    """tool-caps, tool-read: a model made them up, and may have made up much."""
    session = services.open_session(world.agent)
    services.add_message(session, Role.AGENT, "calling", tool_calls=calls)
    with rows_sent() as rows:
        read(tools, session.pk)
    assert loaded(rows)[1] < PAGE


# Very much


def test_a_message_of_more_than_ten_megabytes(world: World, tools: Toolset):
    """tool-caps, tool-text-is-hostile: each piece of them can be reached, the last one too."""
    text = "".join(random.Random(1).choices(["a", "é", "漢", "🇳🇱", FAMILY], k=64)) * 50_000
    session = world.session(text, "after")
    scope = ("read", str(world.agent.pk), str(world.mara.pk), str(session.pk), "messages")
    starts = [0, *(start for start in (4_321, len(text) // 2, len(text) - 9_000))]
    for near in starts:
        start = min(edge for edge in boundaries(text[near : near + 200]) if edge or near == 0) + near
        page = read(tools, session.pk, **({"cursor": write_cursor([1, start], scope)} if start else {}))
        shown = page["messages"][0]["quoted"]["text"]
        assert shown == text[start : start + len(shown)]
        assert MESSAGE - len(FAMILY) < len(shown) <= MESSAGE
        assert page["messages"][0]["truncated"]["total"] == len(text)
    assert len(json.dumps(page)) < 60_000
