"""Case 35, and exports: the same rows as the list, for the same people, and nothing that computes."""

import asyncio
import csv
import io
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext

from history_access import audited, exporting
from history_access.agent_platform.models import Authority
from history_access.models import TurnConversationRead
from tests.audits import (
    API,
    body,
    broken,
    in_workspace,
    json_lines,
    many_rows,
    read_row,
    recorded_name,
    visitor,
    walked,
)
from tests.worlds import World

CSV, JSON_LINES = f"{API}/reads/export.csv", f"{API}/reads/export.jsonl"


@pytest.fixture
def auditor(world: World) -> Client:
    return visitor(world, "platform_auditor")


def csv_rows(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.decode("utf-8-sig"), newline="")))


@pytest.fixture
def rows(world: World) -> list[TurnConversationRead]:
    accounts = (None, "", "none", "null", "0", "acme")
    recorded_name(world, "account", "acme", 'Acmé, "Inc";\r\nline')
    return [
        read_row(
            world, turn_account_id=own, session_account_id=seen, turn_id=f"turn {index % 3}", trigger_id=own
        )
        for index, own in enumerate(accounts)
        for seen in accounts
    ]


@pytest.mark.parametrize("chunk", [1, 7, 12, 36, 500])
@pytest.mark.parametrize(
    "asked", [{}, {"turn": "turn 1"}, {"crossed": "true"}, {"turn": "none of them"}], ids=str
)
def test_an_export_has_the_rows_of_the_list(
    auditor: Client, rows: list[Any], monkeypatch: Any, asked: dict[str, str], chunk: int
) -> None:
    monkeypatch.setattr(exporting, "CHUNK", chunk)
    listed = walked(auditor, f"{API}/reads/", **asked)
    assert json_lines(body(auditor.get(JSON_LINES, asked))) == listed
    assert csv_rows(body(auditor.get(CSV, asked))) == [as_csv(row) for row in listed]


def as_csv(row: dict[str, Any]) -> dict[str, str]:
    whole = {
        **row,
        "turn_account_absent": row["turn_account_id"] is None,
        "conversation_account_absent": row["conversation_account_id"] is None,
    }
    plain = {name: "" if value is None else str(value) for name, value in whole.items()}
    return {
        name: plain[name].lower() if isinstance(whole[name], bool) else plain[name]
        for name in exporting.COLUMNS
    }


def test_csv_is_as_rfc_4180_says_with_a_mark_for_spreadsheets(auditor: Client, rows: list[Any]) -> None:
    response = auditor.get(CSV)
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"] == 'attachment; filename="reads.csv"'
    text = body(response).decode("utf-8")
    assert text.startswith('\ufeff"id","read_at",')
    assert text.endswith("\r\n")
    assert '"Acmé, ""Inc"";\r\nline"' in text
    parsed = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert {len(row) for row in parsed} == {len(exporting.COLUMNS)}
    assert len(parsed) == len(rows) + 1


def test_json_lines_are_one_object_a_line_whatever_counts_as_a_line_break(
    world: World, auditor: Client
) -> None:
    recorded_name(world, "account", "acme", "a\u2028b\u0085c\nd\x1ee\U0001f600")
    read_row(world)
    response = auditor.get(JSON_LINES)
    assert response["Content-Type"] == "application/jsonl"
    assert response["Content-Disposition"] == 'attachment; filename="reads.jsonl"'
    (row,) = json_lines(body(response))
    assert row["turn_account_name"] == "a\u2028b\u0085c\nd\x1ee\U0001f600"


def test_an_export_without_rows_is_a_whole_file(world: World, auditor: Client) -> None:
    assert body(auditor.get(JSON_LINES)) == b""
    assert csv_rows(body(auditor.get(CSV))) == []
    assert body(auditor.get(CSV)).count(b"\r\n") == 1


FORMULAS = (
    *('=HYPERLINK("http://evil.example","x")', "+1+1", "-2", "@SUM(A1)", "\tx", "\rx", "\nx", "\t=1", "\r=1"),
    *(" =1", "   @x", "\u00a0=1", "\u3000=1", "\u200b=1", "\ufeff=1", "\u202e=1", "\x1f=1"),
    *("＝1", "＋1", "－1", "＠x", " ＝1", "﹦1", "﹢1", "﹣1", "﹫x", "−1", "⁼1", "=cmd|' /C calc'!A0"),
)
PLAIN = ("", "Acme", "a=1", "'=1", "1-2", "me@example.org", "–dash", "  Acme", "#1", "0", "≠", "\u200bAcme")


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_text(text: str) -> None:
    assert exporting.inert(text) == f"'{text}"


@pytest.mark.parametrize("text", PLAIN)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert exporting.inert(text) == text


@pytest.mark.parametrize("kind", ["workspace", "agent", "account", "person", "trigger"])
def test_no_column_of_a_csv_computes(world: World, auditor: Client, kind: str) -> None:
    evil = "=1+cmd|'x'!A0"
    keys = (
        "turn_id",
        "turn_account_id",
        "reader_id",
        "trigger_id",
        "session_id",
        "session_account_id",
        "agent_id",
    )
    row = read_row(world, setting=evil, session_person_id=evil, **dict.fromkeys(keys, evil))
    recorded_name(world, kind, row.workspace_id if kind == "workspace" else evil, evil)
    text = body(auditor.get(CSV)).decode("utf-8-sig")
    (shown,) = csv.reader(io.StringIO(text.partition("\r\n")[2], newline=""))
    assert sum(cell == f"'{evil}" for cell in shown) >= 10
    assert not [cell for cell in shown if cell.startswith(("=", "+", "-", "@"))]


def test_exports_take_short_statements_and_constant_memory(world: World, monkeypatch: Any) -> None:
    """Two statements a chunk, rows and names; what one chunk held is gone with the next."""
    monkeypatch.setattr(exporting, "CHUNK", 100)
    many_rows(world, 3000)
    pieces = exporting.export(audited.reads(), exporting.JSON_LINES)
    with CaptureQueriesContext(connection) as captured:
        assert sum(rows for _piece, rows in pieces) == 3000
    assert len(captured) == 2 * 30 + 1
    assert not [query for query in captured if "OFFSET" in query["sql"] or "COUNT(" in query["sql"]]
    assert peak_of(exporting.export(audited.reads(), exporting.CSV)) < 3_000_000


def peak_of(pieces: Iterator[Any]) -> int:
    next(pieces)
    tracemalloc.start()
    try:
        for _piece in pieces:
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_an_export_is_sent_while_it_is_made(world: World, auditor: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(exporting, "CHUNK", 10)
    many_rows(world, 30)
    with CaptureQueriesContext(connection) as captured:
        response = auditor.get(JSON_LINES)
        before = len(captured)
        pieces = iter(response.streaming_content)
        assert next(pieces) == b""
        next(pieces)
        first = len(captured) - before
    assert response.streaming
    assert 0 < first < 8


@pytest.mark.parametrize("who", ["platform_auditor", "workspace_auditor"])
def test_an_export_breaks_off_where_the_right_is_lost(world: World, monkeypatch: Any, who: str) -> None:
    """Never a file that ends early and looks whole."""
    monkeypatch.setattr(exporting, "CHUNK", 10)
    many_rows(world, 30)
    pieces = iter(visitor(world, who).get(in_workspace(world, JSON_LINES)).streaming_content)
    next(pieces)
    assert len(json_lines(next(pieces))) == 10
    type(world.mara).objects.get(username=who).user_permissions.clear()
    Authority.objects.filter(permission="reads:audit").delete()
    with pytest.raises(exporting.RightLostError):
        next(pieces)


def test_an_asynchronous_server_sends_it_piece_by_piece_too(open_world: World, monkeypatch: Any) -> None:
    """Django would gather a plain iterator in memory there, and warn."""
    monkeypatch.setattr(exporting, "CHUNK", 10)
    made = many_rows(open_world, 30)
    person = type(open_world.mara).objects.get(pk=open_world.operator.pk)

    async def gathered() -> list[bytes]:
        client = AsyncClient()
        await client.aforce_login(person)
        response = await client.get(JSON_LINES)
        pieces = [piece async for piece in response.streaming_content]
        await sync_to_async(connections.close_all)()  # that of the thread that ran the view
        return pieces

    pieces = asyncio.run(gathered())
    assert len(pieces) == 4
    assert {row["id"] for row in json_lines(b"".join(pieces))} == {str(row.pk) for row in made}


def test_no_page_parameter_cuts_an_export(auditor: Client) -> None:
    assert set(broken(auditor, CSV, "limit=5")) == {"limit"}
