"""Case 35, and exports: the same rows as the list, for the same people, and nothing that computes."""

import asyncio
import csv
import hashlib
import io
import json
import stat
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, connections
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext

from history_access import audited, exporting, seals
from history_access.agent_platform.models import Authority
from history_access.models import AuditQuery, TurnConversationRead
from tests.audits import (
    API,
    body,
    broken,
    in_workspace,
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


def json_lines(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.decode("ascii").splitlines()]


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


# The command.


def exported(folder: Path, form: str, **given: Any) -> tuple[bytes, dict[str, Any]]:
    """What the command writes: the file, and its manifest."""
    path = folder / f"reads.{form}"
    options = {f"filter_{name}": value for name, value in given.items()}
    call_command("export_reads", form=form, output=str(path), by="auditor 7", verbosity=0, **options)
    return path.read_bytes(), json.loads(Path(f"{path}.manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("form", "url"), [("csv", CSV), ("jsonl", JSON_LINES)])
@pytest.mark.parametrize("asked", [{}, {"turn": "turn 1", "crossed": "true"}], ids=str)
def test_the_command_writes_what_rest_sends(
    tmp_path: Path, auditor: Client, rows: list[Any], form: str, url: str, asked: dict[str, str]
) -> None:
    written, manifest = exported(tmp_path, form, **asked)
    sent = body(auditor.get(url, asked))
    assert written == sent
    assert manifest == {
        "file": f"reads.{form}",
        "format": form,
        "rows": len(walked(auditor, f"{API}/reads/", **asked)),
        "sha256": hashlib.sha256(written).hexdigest(),
        "filters": asked,
        "newest_seal": None,
        "exported_at": manifest["exported_at"],
        "exported_by": "auditor 7",
    }
    logged = AuditQuery.objects.order_by("id").first()
    assert (logged.by_id, logged.asked, logged.filters) == ("auditor 7", f"export_reads {form}", asked)


def test_the_manifest_names_the_newest_seal(tmp_path: Path, open_world: World) -> None:
    many_rows(open_world, 3)
    seals.seal()
    _file, manifest = exported(tmp_path, "jsonl")
    newest = seals.export()
    assert manifest["newest_seal"] == newest
    assert newest["number"] >= 1 and len(newest["digest"]) == 64


def test_the_files_are_for_their_owner_alone_and_never_written_over(tmp_path: Path, world: World) -> None:
    exported(tmp_path, "csv")
    for name in ("reads.csv", "reads.csv.manifest.json"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    with pytest.raises(CommandError, match="File exists"):
        exported(tmp_path, "csv")
    (tmp_path / "reads.csv").unlink()
    with pytest.raises(CommandError, match=r"manifest\.json: File exists"):
        exported(tmp_path, "csv")
    assert not (tmp_path / "reads.csv").exists()


@pytest.mark.parametrize("path", ["no/such/folder/reads.csv", "", "x\0y"])
def test_a_file_that_cannot_be_made_is_named(world: World, path: str) -> None:
    with pytest.raises(CommandError, match="--output"):
        call_command("export_reads", form="csv", output=path, by="7")


def test_wrong_filters_are_named_as_options(tmp_path: Path, world: World) -> None:
    given = {"turn_account": "a\udfff", "how": "x", "after": "", "person": "\0"}
    with pytest.raises(CommandError) as caught:
        exported(tmp_path, "csv", **given)
    assert all(f"--{name.replace('_', '-')} must" in str(caught.value) for name in given)
    assert not list(tmp_path.iterdir())
    assert not AuditQuery.objects.exists()


def test_the_options_are_the_filters_of_the_list(tmp_path: Path, world: World, capsys: Any) -> None:
    read_row(world, turn_account_id=None)
    read_row(world)
    path = tmp_path / "reads.jsonl"
    arguments = ["--format", "jsonl", "--output", str(path), "--by", "7", "--turn-account-absent", "true"]
    call_command("export_reads", *arguments)
    assert len(json_lines(path.read_bytes())) == 1
    assert f"exported 1 reads to {path}" in capsys.readouterr().out


def test_nothing_is_exported_where_it_cannot_be_logged(
    tmp_path: Path, world: World, monkeypatch: Any
) -> None:
    def broken_log(*_: Any, **__: Any) -> None:
        raise DatabaseError("no room")

    monkeypatch.setattr(AuditQuery, "save", broken_log)
    with pytest.raises(CommandError, match="could not be logged"):
        exported(tmp_path, "csv")
    assert not list(tmp_path.iterdir())


def test_an_export_that_fails_leaves_no_file(tmp_path: Path, world: World, monkeypatch: Any) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr(exporting, "shown_reads", fails)
    read_row(world)
    with pytest.raises(DatabaseError):
        exported(tmp_path, "csv")
    assert not list(tmp_path.iterdir())


class Terminal(io.StringIO):
    """Standard error where somebody looks at it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("more", "shown"), [({}, True), ({"no_progress": True}, False), ({"verbosity": 0}, False)]
)
def test_progress_is_shown_where_somebody_looks(
    tmp_path: Path, world: World, monkeypatch: Any, more: dict[str, Any], shown: bool
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    many_rows(world, 3)
    path = str(tmp_path / "reads.csv")
    call_command("export_reads", form="csv", output=path, by="7", stderr=terminal, **more)
    assert ("3 reads" in terminal.getvalue()) == shown


def test_progress_is_not_shown_where_nobody_looks(tmp_path: Path, world: World, capsys: Any) -> None:
    many_rows(world, 3)
    exported(tmp_path, "csv")
    assert capsys.readouterr() == ("", "")
