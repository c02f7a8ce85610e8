"""tool-list: which conversations are listed, in what order, for which range of time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from history_access.agent_platform import services
from history_access.agent_platform.models import Session, Workspace
from history_access.tools import Toolset
from tests.worlds import NOON, World, error, listed

MINUTE = timedelta(minutes=1)
MICROSECOND = timedelta(microseconds=1)

# name, the first instant of the local day and the first one after it, in UTC
DAYS = [
    ("America/New_York", "2026-11-29", "2026-11-29T05:00", "2026-11-30T05:00"),
    ("America/New_York", "2026-03-08", "2026-03-08T05:00", "2026-03-09T04:00"),  # 23 hours
    ("America/New_York", "2026-11-01", "2026-11-01T04:00", "2026-11-02T05:00"),  # 25 hours
    ("America/Santiago", "2026-09-06", "2026-09-06T04:00", "2026-09-07T03:00"),  # without a midnight
    ("America/Santiago", "2026-04-04", "2026-04-04T03:00", "2026-04-05T04:00"),  # its last hour twice
    ("America/Santiago", "2026-04-05", "2026-04-05T04:00", "2026-04-06T04:00"),
    ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00", "2026-04-24T21:00"),  # without a midnight
    ("Africa/Cairo", "2026-10-29", "2026-10-28T21:00", "2026-10-29T22:00"),  # its last hour twice
    ("America/Havana", "2026-03-08", "2026-03-08T05:00", "2026-03-09T04:00"),  # without a midnight
    ("America/Havana", "2026-11-01", "2026-11-01T04:00", "2026-11-02T05:00"),  # with two midnights
    ("Atlantic/Azores", "2026-03-29", "2026-03-29T01:00", "2026-03-30T00:00"),  # without a midnight
    ("Atlantic/Azores", "2026-10-25", "2026-10-25T00:00", "2026-10-26T01:00"),  # with two midnights
    ("Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00", "2026-04-05T13:30"),  # 24 and a half hours
    ("Asia/Kathmandu", "2026-02-28", "2026-02-27T18:15", "2026-02-28T18:15"),
    ("Pacific/Kiritimati", "2026-12-31", "2026-12-30T10:00", "2026-12-31T10:00"),
    ("UTC", "2028-02-29", "2028-02-29T00:00", "2028-03-01T00:00"),
]


@pytest.fixture
def tools(world: World) -> Toolset:
    """The tools of a turn that may read everything of the agent's."""
    world.allow("all_accounts")
    world.grant(world.mara)
    return world.tools(world.mara)


def keys(*sessions: Session) -> list[str]:
    return [str(session.pk) for session in sessions]


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def moved(world: World, started: datetime, last: datetime | None = None) -> Session:
    """A session that started and last moved at these instants."""
    session = services.open_session(world.agent, started_at=started)
    services.add_message(session, "person", "hello", at=last or started)
    return session


def in_zone(world: World, name: str) -> None:
    Workspace.objects.filter(pk=world.hollowbrook.pk).update(time_zone=name)


def test_newest_first_by_when_they_last_moved(world: World, tools: Toolset):
    """tool-list: not by when they started, and not by when their rows were written."""
    middle = moved(world, NOON - 5 * MINUTE, NOON + 1 * MINUTE)
    oldest = moved(world, NOON, NOON)
    newest = moved(world, NOON - 9 * MINUTE, NOON + 2 * MINUTE)
    assert listed(tools) == keys(newest, middle, oldest)


def test_a_microsecond_decides(world: World, tools: Toolset):
    """tool-list"""
    sessions = [moved(world, NOON + n * MICROSECOND) for n in (2, 0, 3, 1)]
    assert listed(tools) == keys(*(sessions[n] for n in (2, 0, 3, 1)))


def test_ties_are_broken_by_id(world: World, tools: Toolset):
    """tool-list, tool-pages: sessions that moved in one microsecond, by id, the newest key first."""
    sessions = [moved(world, NOON) for _ in range(9)]
    assert listed(tools) == sorted(keys(*sessions), reverse=True)


# started and last moved, counted from the start of a range of ten minutes, and whether it is in it
MOMENTS = [
    (-9 * MINUTE, -MICROSECOND, False),
    (-9 * MINUTE, 0 * MINUTE, True),
    (-9 * MINUTE, 5 * MINUTE, True),
    (0 * MINUTE, 0 * MINUTE, True),
    (3 * MINUTE, 5 * MINUTE, True),
    (-9 * MINUTE, 99 * MINUTE, True),
    (5 * MINUTE, 99 * MINUTE, True),
    (10 * MINUTE - MICROSECOND, 99 * MINUTE, True),
    (10 * MINUTE, 99 * MINUTE, False),
    (11 * MINUTE, 99 * MINUTE, False),
]


def test_in_range_is_moved_at_any_time_within_it(world: World, tools: Toolset):
    """tool-list: started before its end and last moved at or after its start."""
    sessions = [moved(world, NOON + started, NOON + last) for started, last, _ in MOMENTS]
    found = listed(tools, after=NOON.isoformat(), before=(NOON + 10 * MINUTE).isoformat())
    assert [str(session.pk) in found for session in sessions] == [inside for _, _, inside in MOMENTS]


@pytest.mark.parametrize(("zone", "day", "first", "end"), DAYS)
def test_a_date_is_the_local_day(world: World, tools: Toolset, zone: str, day: str, first: str, end: str):
    """tool-list: from that day's midnight, and in `before` to that day's end, however long the day is."""
    in_zone(world, zone)
    too_early, earliest, latest, too_late = (
        moved(world, at)
        for at in (instant(first) - MICROSECOND, instant(first), instant(end) - MICROSECOND, instant(end))
    )
    assert listed(tools, after=day, before=day) == keys(latest, earliest)
    assert listed(tools, after=day) == keys(too_late, latest, earliest)
    assert listed(tools, before=day) == keys(latest, earliest, too_early)


def test_a_day_that_a_zone_left_out_has_nothing_in_it(world: World, tools: Toolset):
    """tool-list: Samoa went from 29 to 31 December 2011."""
    in_zone(world, "Pacific/Apia")
    before, after = (moved(world, instant("2011-12-30T10:00") - n * MICROSECOND) for n in (1, 0))
    day = "2011-12-30"
    assert listed(tools, after=day, before=day) == []
    assert (listed(tools, before=day), listed(tools, after=day)) == (keys(before), keys(after))


NOONS = [
    "2026-11-29T12:00",
    "2026-11-29 12:00",
    "2026-11-29T12:00:00",
    "2026-11-29T12:00:00.000000",
    "2026-11-29T12:00:00,0",
    "2026-11-29T17:00Z",
    "2026-11-29T17:00+00:00",
    "2026-11-29T18:00:00+01:00",
    "2026-11-29T07:30-09:30",
    "2026-11-30T16:59+23:59",
]


def test_a_time_without_an_offset_is_the_workspaces(world: World, tools: Toolset):
    """tool-list: all of these are noon in New York; `after` is included and `before` is not."""
    earlier, noon = moved(world, NOON - MICROSECOND), moved(world, NOON)
    for text in NOONS:
        assert (listed(tools, after=text), listed(tools, before=text)) == (keys(noon), keys(earlier)), text


def test_fractions_of_a_second_count(world: World, tools: Toolset):
    """tool-list"""
    earlier, later = moved(world, NOON + 249_999 * MICROSECOND), moved(world, NOON + 250_000 * MICROSECOND)
    text = "2026-11-29T12:00:00.25"
    assert (listed(tools, after=text), listed(tools, before=text)) == (keys(later), keys(earlier))


def test_a_range_that_ends_before_it_begins_is_empty(world: World, tools: Toolset):
    """tool-list"""
    moved(world, NOON - MINUTE, NOON - MICROSECOND)
    moved(world, NOON)
    assert listed(tools, after=NOON.isoformat(), before=NOON.isoformat()) == []
    assert listed(tools, after="2026-11-30", before="2026-11-28") == []


def test_a_range_can_be_the_whole_calendar(world: World, tools: Toolset):
    """tool-list: the first and the last day that a calendar has, in UTC."""
    in_zone(world, "UTC")
    session = moved(world, NOON)
    assert listed(tools, after="0001-01-01", before="9999-12-30") == keys(session)


def test_a_larger_limit_is_capped_and_said_so(world: World, tools: Toolset):
    """tool-list: twenty if left out, fifty at most."""
    for n in range(51):
        services.open_session(world.agent, started_at=NOON + n * MINUTE)
    for asked, most in ((None, 20), (1, 1), (49, 49), (50, 50), (51, 50), (10**12, 50), (2**70, 50)):
        page = tools.call("list_conversations", {"limit": asked})
        assert (len(page["conversations"]), page["limit"]) == (most, most)
        assert page["next_cursor"] is not None


def test_a_full_page_that_is_the_last_has_no_cursor(world: World, tools: Toolset):
    """tool-list"""
    for n in range(4):
        moved(world, NOON + n * MINUTE)
    assert tools.call("list_conversations", {"limit": 4})["next_cursor"] is None


def only(tools: Toolset) -> dict[str, Any]:
    """The one conversation that is listed."""
    [shown] = tools.call("list_conversations", {})["conversations"]
    return dict(shown)


def test_every_field_is_there(world: World, tools: Toolset):
    """tool-list: with an account, a title and messages."""
    session = services.open_session(world.agent, account=world.acme, title="Roses", started_at=NOON)
    services.add_message(session, "person", "hello", at=NOON + 30 * MINUTE)
    services.add_message(session, "agent", "hi", at=NOON + 31 * MINUTE)
    assert only(tools) == {
        "id": str(session.pk),
        "account_id": str(world.acme.pk),
        "quoted": {"title": "Roses", "account": "Acme"},
        "started_at": "2026-11-29T12:00:00-05:00",
        "last_moved_at": "2026-11-29T12:31:00-05:00",
        "message_count": 2,
        "link": f"https://hollowbrook.example/conversations/{session.pk}",
    }


def test_every_field_is_there_when_there_is_nothing_to_say(world: World, tools: Toolset):
    """tool-list: without an account, a title or messages."""
    session = services.open_session(world.agent, started_at=NOON)
    assert only(tools) == {
        "id": str(session.pk),
        "account_id": None,
        "quoted": {"title": "", "account": None},
        "started_at": "2026-11-29T12:00:00-05:00",
        "last_moved_at": "2026-11-29T12:00:00-05:00",
        "message_count": 0,
        "link": f"https://hollowbrook.example/conversations/{session.pk}",
    }


def test_every_field_is_there_when_there_are_no_conversations(tools: Toolset):
    """tool-list"""
    page = tools.call("list_conversations", {})
    assert page.pop("notice")
    assert page == {
        "kind": "conversation_list",
        "scope": "all_accounts",
        "time_zone": "America/New_York",
        "conversations": [],
        "limit": 20,
        "next_cursor": None,
        "newer_activity": False,
    }


def test_without_a_conversation_url_there_is_no_link(world: World, tools: Toolset, settings: Any):
    """tool-list: the field is there all the same."""
    services.open_session(world.agent)
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "CONVERSATION_URL": None}
    assert only(tools)["link"] is None


def test_an_account_with_a_strange_name_is_an_account(world: World, tools: Toolset):
    """tool-list, reach-account-exact: never written like the absent one."""
    accounts = {}
    for name in ("none", "null", "no_account", "0"):
        account = type(world.acme).objects.create(workspace=world.hollowbrook, name=name)
        services.open_session(world.agent, account=account)
        accounts[str(account.pk)] = name
    shown = tools.call("list_conversations", {})["conversations"]
    assert {one["account_id"]: one["quoted"]["account"] for one in shown} == accounts


def test_times_have_the_offset_of_their_own_day(world: World, tools: Toolset):
    """tool-list: summer and winter in one conversation."""
    moved(world, instant("2026-07-01T16:00"), instant("2026-12-01T17:00:00.000001"))
    shown = only(tools)
    assert shown["started_at"] == "2026-07-01T12:00:00-04:00"
    assert shown["last_moved_at"] == "2026-12-01T12:00:00.000001-05:00"


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_a_time_at_the_edge_of_the_calendar_hides_nothing(world: World, tools: Toolset, zone: str):
    """tool-list, tool-text-is-hostile: one strange imported time does not take the list away."""
    in_zone(world, zone)
    moments = [*map(instant, ("0001-01-01T00:00", "0001-01-01T02:00", "9999-12-31T23:59:59.999999")), NOON]
    expected = {str(moved(world, at).pk): at for at in moments}
    page = tools.call("list_conversations", {})
    started = {one["id"]: datetime.fromisoformat(one["started_at"]) for one in page["conversations"]}
    assert started == expected


@pytest.mark.parametrize("value", ["same_account", "all_accounts"])
def test_the_list_says_its_scope(world: World, value: str):
    """tool-unavailable, tool-list: a model does not take one account's conversations for everything."""
    world.allow(value)
    world.grant(world.mara)
    own = world.session(account=world.acme, at=NOON + 2 * MINUTE)
    others = [world.session(account=world.brightside, at=NOON + MINUTE), world.session(at=NOON)]
    page = world.tools(world.mara, account=world.acme).call("list_conversations", {})
    expected = keys(own) if value == "same_account" else keys(own, *others)
    assert ([one["id"] for one in page["conversations"]], page["scope"]) == (expected, value)


def test_only_this_agents_standing_conversations(world: World, tools: Toolset):
    """tool-list, reach-agent, reach-not-self, reach-not-deleted"""
    other = type(world.agent).objects.create(workspace=world.hollowbrook, name="Other")
    seen, deleted = world.session("a"), world.session("b")
    world.session("c", agent=other)
    services.delete_session(deleted)
    assert listed(tools) == keys(seen)


def test_names_are_cut_with_an_ellipsis(world: World, tools: Toolset):
    """tool-list, tool-caps: 200 characters at most, never through a grapheme cluster."""
    family = "👩\u200d👩\u200d👧\u200d👦"
    for title in ("x" * 200, "x" * 201, "y" * 198 + family):
        services.open_session(world.agent, title=title, started_at=NOON)
    titles = [one["quoted"]["title"] for one in tools.call("list_conversations", {})["conversations"]]
    assert sorted(titles) == sorted(["x" * 200, "x" * 199 + "…", "y" * 198 + "…"])


def test_an_unreadable_range_lists_nothing(tools: Toolset):
    """tool-list, tool-errors: never everything instead."""
    assert error(tools.call("list_conversations", {"after": "yesterday"}))["argument"] == "after"
