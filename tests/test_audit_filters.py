"""Cases 3, 11, 29: every filter leaves exactly its rows, and nothing that is misspelt means everything."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from history_access.leaves import ERASED
from history_access.models import AuditQuery, TurnConversationRead
from tests.audits import API, broken, read_row, refusal_row, results, routes, visitor, walked
from tests.worlds import NOON, World

READS = f"{API}/reads/"
ODD_NAMES = ("none", "null", "", "0", "acme", "Acme", "caf\u00e9", "cafe\u0301", " acme", "a" * 255)
ACCOUNTS = (None, *ODD_NAMES)


@pytest.fixture
def auditor(world: World) -> Client:
    return visitor(world, "platform_auditor")


@pytest.fixture
def rows(world: World) -> list[TurnConversationRead]:
    """Every pair of accounts, odd ones and the absent one included, under everything else in turn."""
    others = itertools.cycle(
        itertools.product(("history", "reference"), ("title", "messages", "summary", "excerpt"), range(3))
    )
    made = []
    for index, ((own, seen), (how, what, third)) in enumerate(
        zip(itertools.product(ACCOUNTS, ACCOUNTS), others, strict=False)
    ):
        made.append(
            read_row(
                world,
                workspace_id=("w", "v", "0")[third],
                agent_id=f"agent {index % 5}",
                turn_id=f"turn {index % 7}",
                turn_account_id=own,
                reader_id=str(index % 4),
                trigger_id=(None, "", "trigger")[third],
                session_id=f"session {index % 6}",
                session_account_id=seen,
                session_person_id=(None, "0", "")[index % 3],
                setting=("none", "same_account", "all_accounts")[index % 3],
                how=how,
                what=what,
                read_at=NOON + timedelta(hours=index),
            )
        )
    return made[::-1]


Condition = Callable[[TurnConversationRead], bool]


def equal(column: str, value: Any) -> Condition:
    return lambda row: getattr(row, column) == value


KEYS = {
    "workspace": ("workspace_id", "0"),
    "agent": ("agent_id", "agent 3"),
    "reader": ("reader_id", "0"),
    "trigger": ("trigger_id", "trigger"),
    "turn": ("turn_id", "turn 5"),
    "conversation": ("session_id", "session 2"),
    "person": ("session_person_id", "0"),
    "how": ("how", "reference"),
    "what": ("what", "summary"),
    "setting": ("setting", "all_accounts"),
}
ABSENT = {
    "account": "session_account_id",
    "turn_account": "turn_account_id",
    "person": "session_person_id",
}
CASES: list[tuple[dict[str, str], Condition]] = [
    ({}, lambda row: True),
    *(({name: value}, equal(column, value)) for name, (column, value) in KEYS.items()),
    *(
        ({name: value}, equal(column, value))
        for name, column in (("account", "session_account_id"), ("turn_account", "turn_account_id"))
        for value in ODD_NAMES
        if value
    ),
    *(
        (
            {f"{name}_absent": said},
            lambda row, column=column, said=said: (getattr(row, column) is None) == (said == "true"),
        )
        for name, column in ABSENT.items()
        for said in ("true", "false")
    ),
    ({"crossed": "true"}, lambda row: row.session_account_id != row.turn_account_id),
    ({"crossed": "false"}, lambda row: row.session_account_id == row.turn_account_id),
    ({"after": "2026-12-01T04:00:00Z"}, lambda row: row.read_at >= datetime(2026, 12, 1, 4, tzinfo=UTC)),
    ({"after": "2026-12-01T04:00:00-05:00"}, lambda row: row.read_at >= datetime(2026, 12, 1, 9, tzinfo=UTC)),
    ({"after": "2026-12-01"}, lambda row: row.read_at >= datetime(2026, 12, 1, tzinfo=UTC)),
    ({"before": "2026-12-01T04:00:00Z"}, lambda row: row.read_at < datetime(2026, 12, 1, 4, tzinfo=UTC)),
    ({"before": "2026-12-01"}, lambda row: row.read_at < datetime(2026, 12, 2, tzinfo=UTC)),
    ({"before": "0001-01-01T00:00:00Z"}, lambda row: False),
    ({"after": "9999-12-31T23:59:59.999999Z"}, lambda row: False),
    (
        {"after": "2026-11-30", "before": "2026-11-30"},
        lambda row: row.read_at.astimezone(UTC).date() == datetime(2026, 11, 30, tzinfo=UTC).date(),
    ),
    ({"after": "2026-12-02", "before": "2026-12-01"}, lambda row: False),
    (
        {"crossed": "true", "turn_account_absent": "true", "how": "history"},
        lambda row: (
            row.turn_account_id is None and row.session_account_id is not None and row.how == "history"
        ),
    ),
    ({"account": "acme", "account_absent": "true"}, lambda row: False),
    ({"turn": "unknown"}, lambda row: False),
]


@pytest.mark.parametrize(("asked", "kept"), CASES, ids=[str(case[0])[:60] for case in CASES])
def test_a_filter_leaves_exactly_its_rows(
    auditor: Client, rows: list[TurnConversationRead], asked: dict[str, str], kept: Condition
) -> None:
    wanted = [str(row.pk) for row in rows if kept(row)]
    assert [row["id"] for row in walked(auditor, READS, limit=60, **asked)] == wanted


def test_every_filter_is_tried() -> None:
    from history_access.api.filters import ReadFilters

    assert set(ReadFilters.base_filters) == {name for asked, _kept in CASES for name in asked}


def test_an_absent_account_is_null_and_every_other_one_is_its_key(
    auditor: Client, rows: list[TurnConversationRead]
) -> None:
    shown = {row["id"]: row for row in walked(auditor, READS, limit=200)}
    assert len(shown) == len(rows)
    for row in rows:
        one = shown[str(row.pk)]
        assert one["turn_account_id"] == row.turn_account_id
        assert one["conversation_account_id"] == row.session_account_id
        assert one["crossed_account"] is (row.turn_account_id != row.session_account_id)


def test_whether_two_erased_accounts_were_one_is_not_known(world: World, auditor: Client) -> None:
    read_row(world, turn_account_id=ERASED, session_account_id=ERASED)
    one_left = read_row(world, turn_account_id="acme", session_account_id=ERASED)
    assert [row["crossed_account"] for row in results(auditor, READS)] == [True, None]
    assert [row["id"] for row in results(auditor, READS, crossed="true")] == [str(one_left.pk)]
    assert results(auditor, READS, crossed="false") == []


REFUSALS = {
    "agent": "agent_id",
    "turn": "turn_id",
    "reader": "reader_id",
    "trigger": "trigger_id",
    "tool": "tool",
    "code": "code",
    "workspace": "workspace_id",
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_filter_of_refusals_leaves_exactly_its_rows(world: World, auditor: Client, name: str) -> None:
    refusal_row(world, **{REFUSALS[name]: "this"})
    refusal_row(world)
    found = results(auditor, f"{API}/refusals/", **{name: "this"})
    assert [row[REFUSALS[name]] for row in found] == ["this"]


def test_refusals_are_found_by_time(world: World, auditor: Client) -> None:
    late = refusal_row(world, refused_at=NOON + timedelta(days=3))
    early = refusal_row(world, reader_id=None, argument=None)
    assert [row["id"] for row in results(auditor, f"{API}/refusals/", after="2026-12-01")] == [str(late.pk)]
    (found,) = results(auditor, f"{API}/refusals/", before="2026-12-01")
    assert found["id"] == str(early.pk)
    assert found["reader_id"] is None and found["reader_name"] is None and found["argument"] is None


ALL_FILTERS = (
    *("workspace", "agent", "account", "account_absent", "person", "person_absent", "turn_account"),
    *("turn_account_absent", "reader", "trigger", "turn", "conversation", "how", "what", "setting"),
    *("crossed", "after", "before", "limit", "cursor"),
)


@pytest.mark.parametrize("name", ALL_FILTERS)
def test_a_parameter_that_is_empty_or_given_twice_is_refused_by_name(auditor: Client, name: str) -> None:
    assert broken(auditor, READS, f"{name}=") == {name: "must not be empty; leave it out"}
    assert broken(auditor, READS, f"{name}=1&{name}=1") == {name: "must be given once"}


@pytest.mark.parametrize("name", ["acount", "Agent", "agent_id", "account__isnull", "format", "page", "or"])
def test_an_unknown_parameter_is_refused_and_the_known_ones_are_named(auditor: Client, name: str) -> None:
    rule = broken(auditor, READS, f"{name}=A")[name]
    assert "is not known here" in rule
    assert all(known in rule for known in ALL_FILTERS)


KEY_PARAMETERS = [
    *("workspace", "agent", "account", "person", "turn_account", "reader", "trigger", "turn", "conversation")
]


@pytest.mark.parametrize("name", KEY_PARAMETERS)
@pytest.mark.parametrize("value", ["%00", "a%00b", "x" * 256, "x" * 10_000])
def test_what_can_be_no_key_is_refused(auditor: Client, name: str, value: str) -> None:
    assert "1 to 255 characters" in broken(auditor, READS, f"{name}={value}")[name]


@pytest.mark.parametrize(
    "value", ["%ED%A0%80", "%FF", "'", "%22", "%25", "{}", "a".ljust(255, "b"), "\u202e"]
)
@pytest.mark.parametrize("name", KEY_PARAMETERS)
def test_an_odd_key_finds_nothing(world: World, auditor: Client, name: str, value: str) -> None:
    read_row(world)
    response = auditor.get(f"{READS}?{name}={value}")
    assert (response.status_code, response.json()["results"]) == (200, [])


@pytest.mark.parametrize("value", ["\ud800", "a\udfff", "\0", "", "x" * 256])
def test_a_lone_surrogate_can_be_no_key(value: str) -> None:
    """No address can hold one; the options of a command can."""
    from django.core.exceptions import ValidationError

    from history_access.api.filters import checked_key

    with pytest.raises(ValidationError):
        checked_key(value)


BAD_MOMENTS = (
    *("2026-11-29T14:30:00", "2026-11-29T14:30", "2026-11-29 14:30:00+01:00", "2026-11-29T14:30:00+01:00"),
    *("yesterday", "2026-02-30", "2026-11-29T25:00:00Z", "0000-01-01", "10000-01-01", "1764435600", "%00"),
    *("0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00", "9" * 10_000, "2026-11-29Z", "%ED%A0%80"),
)


@pytest.mark.parametrize("name", ["after", "before"])
@pytest.mark.parametrize("value", BAD_MOMENTS, ids=lambda value: value[:40])
def test_a_time_without_its_offset_or_out_of_the_calendar_is_refused(
    auditor: Client, name: str, value: str
) -> None:
    """A + that is not written %2B is a space, and so no offset."""
    assert "a time with an offset" in broken(auditor, READS, f"{name}={value}")[name]


def test_the_last_day_of_the_calendar_has_no_day_after_it(auditor: Client) -> None:
    assert "before" in broken(auditor, READS, "before=9999-12-31")
    assert results(auditor, READS, after="9999-12-31") == []


@pytest.mark.parametrize("name", ["crossed", "account_absent", "turn_account_absent", "person_absent"])
@pytest.mark.parametrize("value", ["maybe", "True", "1", "yes", "null", "none", "x" * 10_000])
def test_what_is_neither_true_nor_false_is_refused(auditor: Client, name: str, value: str) -> None:
    assert broken(auditor, READS, f"{name}={value}") == {name: "must be one of true, false"}


@pytest.mark.parametrize("name", ["how", "what", "setting"])
@pytest.mark.parametrize("value", ["all", "HISTORY", "null", "%00", "x" * 10_000])
def test_an_unknown_choice_is_refused_and_the_known_ones_are_named(
    auditor: Client, name: str, value: str
) -> None:
    assert broken(auditor, READS, f"{name}={value}")[name].startswith("must be one of ")


@pytest.mark.parametrize(
    "value", ["0", "-1", "201", "1.5", "true", "1e2", "%D9%A1", "9" * 10_000, "+5", "0x10"]
)
def test_a_limit_beyond_a_page_is_refused(auditor: Client, value: str) -> None:
    assert broken(auditor, READS, f"limit={value}") == {"limit": "must be a whole number from 1 to 200"}


def test_every_parameter_that_is_wrong_is_named_at_once(auditor: Client) -> None:
    found = broken(auditor, READS, "acount=A&how=x&after=now&limit=0&turn=&agent=a&agent=b")
    assert set(found) == {"acount", "how", "after", "limit", "turn", "agent"}
    assert not AuditQuery.objects.exists()


def test_no_route_takes_a_parameter_of_another(world: World, auditor: Client) -> None:
    for name, url in routes(world, read_row(world)).items():
        assert "nonsense" in broken(auditor, url, "nonsense=1")
        if name in ("read", "agent-access", "export-csv", "export-jsonl"):
            assert set(broken(auditor, url, "limit=5&cursor=x")) == {"limit", "cursor"}
        if name in ("turn-conversations", "conversation-turns", "seals", "read", "agent-access"):
            assert set(broken(auditor, url, "agent=5&after=2026-11-29")) == {"agent", "after"}
