"""Pages by one unique column: exact over one moment, while rows are written, and never counted."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from history_access import seals
from history_access.models import Seal, TurnConversationRead
from tests.audits import (
    API,
    LISTS,
    broken,
    in_workspace,
    many_rows,
    read_row,
    recorded_name,
    refusal_row,
    results,
    routes,
    visitor,
    walked,
)
from tests.worlds import NOON, World

READS = f"{API}/reads/"


@pytest.fixture
def auditor(world: World) -> Client:
    return visitor(world, "platform_auditor")


@pytest.mark.parametrize("limit", [43, 200])
def test_1500_rows_of_one_moment_come_once_each(world: World, auditor: Client, limit: int) -> None:
    """Pages of an order that is not unique loop here: 1,500 rows came back as 5,000."""
    made = many_rows(world, 1500)
    found = [row["id"] for row in walked(auditor, READS, limit=limit)]
    assert found == sorted((str(row.pk) for row in made), reverse=True)


def test_a_page_has_fifty_rows_where_nobody_says(world: World, auditor: Client) -> None:
    many_rows(world, 120)
    assert len(results(auditor, READS)) == 50
    assert len(results(auditor, READS, limit=200)) == 120


@pytest.mark.parametrize("number", [10, 11, 20])
def test_the_last_page_says_that_it_is_the_last(world: World, auditor: Client, number: int) -> None:
    many_rows(world, number)
    first = auditor.get(READS, {"limit": 10}).json()
    assert (first["next"] is None) == (number == 10)
    if first["next"]:
        second = auditor.get(first["next"]).json()
        assert second["next"] is None
        assert len(second["results"]) == number - 10


def test_rows_that_are_written_meanwhile_neither_repeat_nor_push_out_any(
    world: World, auditor: Client
) -> None:
    before = {str(row.pk) for row in many_rows(world, 25)}
    seen, following = [], f"{READS}?limit=4"
    while following:
        page = auditor.get(following).json()
        seen += [row["id"] for row in page["results"]]
        following = page["next"]
        many_rows(world, 5)
    assert len(seen) == len(set(seen))
    assert set(seen) == before


def totals(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["reads"], row["characters"], row["first_read_at"], row["last_read_at"]


def test_record_both_ways(world: World, auditor: Client) -> None:
    """Which conversations a reply drew on, and which replies drew on a conversation."""
    later = NOON + timedelta(hours=1)
    read_row(world, turn_id="one", session_id="a", characters=5)
    read_row(world, turn_id="one", session_id="a", characters=7, read_at=later)
    read_row(world, turn_id="one", session_id="b", session_account_id=None, read_at=later)
    read_row(world, turn_id="two", session_id="a", reader_id="8", read_at=later)
    recorded_name(world, "account", "acme", "Acme")
    recorded_name(world, "person", "8", "Eight")
    noon, one = "2026-11-29T17:00:00.000000Z", "2026-11-29T18:00:00.000000Z"
    drawn = results(auditor, f"{API}/turns/one/conversations/")
    assert [(row["conversation_id"], *totals(row)) for row in drawn] == [
        ("a", 2, 12, noon, one),
        ("b", 1, 5, one, one),
    ]
    assert [(row["conversation_account_id"], row["conversation_account_name"]) for row in drawn] == [
        ("acme", "Acme"),
        (None, None),
    ]
    drawing = results(auditor, f"{API}/conversations/a/turns/")
    assert [(row["turn_id"], row["reader_name"], *totals(row)) for row in drawing] == [
        ("two", "Eight", 1, 5, one, one),
        ("one", None, 2, 12, noon, one),
    ]
    assert results(auditor, f"{API}/turns/three/conversations/") == []


def test_both_ways_come_in_exact_pages_too(world: World, auditor: Client) -> None:
    """Many of one moment, others apart; a turn that reads as another person half way is two rows."""
    for index in range(40):
        at = NOON + timedelta(microseconds=index // 20)
        read_row(world, turn_id="t", session_id=f"session {index}", read_at=at)
        read_row(world, turn_id=f"turn {index}", session_id="s", read_at=at)
    read_row(world, turn_id="turn 7", session_id="s", reader_id="another")
    for limit in (3, 200):
        drawn = walked(auditor, f"{API}/turns/t/conversations/", limit=limit)
        assert len({row["conversation_id"] for row in drawn}) == len(drawn) == 40
        assert [row["first_read_at"] for row in drawn] == sorted(row["first_read_at"] for row in drawn)
        drawing = walked(auditor, f"{API}/conversations/s/turns/", limit=limit)
        assert len({(row["turn_id"], row["reader_id"]) for row in drawing}) == len(drawing) == 41
        moments = [row["first_read_at"] for row in drawing]
        assert moments == sorted(moments, reverse=True)


def test_a_turn_that_reads_on_while_it_is_paged_stays_where_it_was(world: World, auditor: Client) -> None:
    for index in range(6):
        read_row(world, turn_id=f"turn {index}", read_at=NOON + timedelta(minutes=index))
    first = auditor.get(f"{API}/conversations/s/turns/", {"limit": 3}).json()
    read_row(world, turn_id="turn 0", read_at=NOON + timedelta(hours=1))
    second = auditor.get(first["next"]).json()
    found = [row["turn_id"] for row in first["results"] + second["results"]]
    assert found == [f"turn {index}" for index in reversed(range(6))]


def test_refusals_and_seals_come_in_pages(world: World, auditor: Client) -> None:
    refused = [str(refusal_row(world).pk) for _ in range(9)]
    assert [row["id"] for row in walked(auditor, f"{API}/refusals/", limit=2)] == refused[::-1]
    for _ in range(5):
        many_rows(world, 2)
        Seal.objects.create(
            number=Seal.objects.count() + 1,
            kind="read",
            sealed_at=NOON,
            rows=2,
            root="r",
            previous="p",
            digest="d",
        )
    numbers = [row["number"] for row in walked(auditor, f"{API}/seals/", limit=2)]
    assert numbers == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("rows", [0, 3])
def test_seals_say_how_many_rows_wait_and_for_how_long(world: World, auditor: Client, rows: int) -> None:
    if rows:
        many_rows(world, rows)
    answer = auditor.get(f"{API}/seals/").json()
    assert answer["waiting"]["rows"] == seals.waiting().rows == rows
    oldest = answer["waiting"]["oldest_seconds"]
    assert (oldest is None) == (rows == 0)
    assert oldest is None or 0 <= oldest < 600
    assert answer["results"] == [] and answer["next"] is None


CURSORS = ("x", "%00", "%FF", "a:b", "." * 600, "x" * 10_000, "eyJhIjoxfQ:sig", "WyIxIl0")


@pytest.mark.parametrize("cursor", CURSORS, ids=lambda cursor: cursor[:20])
@pytest.mark.parametrize("name", LISTS)
def test_a_cursor_that_was_made_up_is_refused(world: World, auditor: Client, name: str, cursor: str) -> None:
    url = routes(world, read_row(world))[name]
    assert "this very question" in broken(auditor, url, f"cursor={cursor}")["cursor"]


def test_a_cursor_of_another_question_is_refused(world: World, auditor: Client) -> None:
    many_rows(world, 9)
    refusal_row(world), refusal_row(world)
    cursor = (
        auditor.get(READS, {"limit": 2, "turn": "t"}).json()["next"].partition("cursor=")[2].partition("&")[0]
    )
    assert cursor
    for url, query in (
        (READS, ""),
        (READS, "&turn=u"),
        (READS, "&turn=t&agent=a"),
        (f"{API}/turns/t/conversations/", ""),
        (f"{API}/refusals/", "&turn=t"),
    ):
        assert set(broken(auditor, url, f"cursor={cursor}{query}")) == {"cursor"}
    assert auditor.get(f"{READS}?cursor={cursor}&turn=t&limit=3").status_code == 200


def test_a_cursor_opens_nothing_to_somebody_else(world: World, auditor: Client) -> None:
    many_rows(world, 9)
    workspace = str(world.hollowbrook.pk)
    following = auditor.get(READS, {"limit": 2, "workspace": workspace}).json()["next"]
    assert visitor(world, "workspace_auditor").get(following).status_code == 200
    assert visitor(world, "auditor_elsewhere").get(following).status_code == 404


STATEMENTS = {"platform_auditor": 9, "workspace_auditor": 10}


@pytest.mark.parametrize("number", [3, 150])
@pytest.mark.parametrize("who", STATEMENTS)
def test_a_list_takes_the_same_statements_whatever_there_is(world: World, who: str, number: int) -> None:
    """Session, user, the person again twice, two of has_perm, (the right), the log, rows and names."""
    for index, row in enumerate(many_rows(world, 3)):
        for column, kind in (("agent_id", "agent"), ("reader_id", "person")):
            recorded_name(world, kind, getattr(row, column), f"Name {index}")
    TurnConversationRead.objects.bulk_create(
        TurnConversationRead(
            workspace_id=row.workspace_id,
            agent_id=f"agent {index}",
            turn_id="t",
            reader_id=str(index),
            session_id=f"session {index}",
            setting="all_accounts",
            how="history",
            what="title",
            characters=1,
            read_at=NOON,
        )
        for index in range(number - 3)
    )
    client, url = visitor(world, who), in_workspace(world, READS)
    with CaptureQueriesContext(connection) as captured:
        found = results(client, f"{url}&limit=200")
    assert len(found) == number
    ran = [
        query["sql"] for query in captured if not query["sql"].startswith(("SAVEPOINT", "RELEASE", "BEGIN"))
    ]
    assert len(ran) == STATEMENTS[who], ran
    assert not [sql for sql in ran if "COUNT(" in sql]


@pytest.mark.parametrize("name", ["turn-conversations", "conversation-turns", "refusals"])
def test_the_other_lists_take_the_same_statements_too(world: World, auditor: Client, name: str) -> None:
    counts = set()
    for _ in range(2):
        for index in range(60):
            read_row(world, session_id=f"session {index}")
            read_row(world, turn_id=f"turn {index}")
            refusal_row(world)
        with CaptureQueriesContext(connection) as captured:
            results(auditor, routes(world, read_row(world))[name], limit=200)
        counts.add(len(captured))
    assert len(counts) == 1


def test_names_are_the_newest_of_their_workspace_and_null_once_erased(world: World, auditor: Client) -> None:
    from history_access.models import RecordedName

    row = read_row(world, trigger_id="daily", session_person_id="7")
    for kind, key, name in (
        ("workspace", row.workspace_id, "Hollowbrook"),
        ("agent", row.agent_id, "Old"),
        ("agent", row.agent_id, "New"),
        ("account", "acme", "Acme"),
        ("person", "7", "mara"),
        ("trigger", "daily", "Daily"),
        ("trigger", "7", "Foreign kind"),
    ):
        recorded_name(world, kind, key, name)
    RecordedName.objects.create(workspace_id="elsewhere", kind="agent", key=row.agent_id, name="Foreign")
    (shown,) = results(auditor, READS)
    named = {name: value for name, value in shown.items() if name.endswith("_name")}
    assert named == {
        "workspace_name": "Hollowbrook",
        "agent_name": "New",
        "turn_account_name": "Acme",
        "reader_name": "mara",
        "trigger_name": "Daily",
        "conversation_account_name": "Acme",
        "conversation_person_name": "mara",
    }
    assert auditor.get(f"{READS}{row.pk}/").json() == shown
    RecordedName.objects.all().delete()
    (shown,) = results(auditor, READS)
    assert {value for name, value in shown.items() if name.endswith("_name")} == {None}
    assert shown["reader_id"] == "7"
