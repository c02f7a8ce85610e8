"""`manage.py export_reads`: what REST sends, as a file with a manifest, for its owner alone."""

import hashlib
import io
import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, ManagementUtility, call_command
from django.db import DatabaseError

from history_access import exporting, seals
from history_access.leaves import ERASED
from history_access.models import AuditQuery
from tests.audits import API, body, json_lines, many_rows, read_row, visitor, walked
from tests.worlds import World


def exported(folder: Path, form: str, **given: Any) -> tuple[bytes, dict[str, Any]]:
    """What the command writes: the file, and its manifest."""
    path = folder / f"reads.{form}"
    options = {f"filter_{name}": value for name, value in given.items()}
    call_command("export_reads", form=form, output=str(path), by="auditor 7", verbosity=0, **options)
    return path.read_bytes(), json.loads(Path(f"{path}.manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("form", exporting.FORMATS)
@pytest.mark.parametrize("asked", [{}, {"turn": "turn 1", "crossed": "true"}], ids=str)
def test_the_command_writes_what_rest_sends(
    tmp_path: Path, world: World, form: str, asked: dict[str, str]
) -> None:
    for index, account in enumerate((None, "", "acme", "=1")):
        read_row(world, turn_id=f"turn {index % 2}", session_account_id=account)
    auditor = visitor(world, "platform_auditor")
    written, manifest = exported(tmp_path, form, **asked)
    assert written == body(auditor.get(f"{API}/reads/export.{form}", asked))
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


@pytest.mark.parametrize("by", ["", "  ", "a" * 256, "a\0", "a\udfff", "a\nb", ERASED], ids=ascii)
def test_who_exports_is_named_by_a_key(tmp_path: Path, world: World, by: str) -> None:
    with pytest.raises(CommandError, match=r"^--by: "):
        call_command("export_reads", form="csv", output=str(tmp_path / "reads.csv"), by=by)
    assert not list(tmp_path.iterdir())
    assert not AuditQuery.objects.exists()


@pytest.fixture
def without_rest(monkeypatch: Any) -> None:
    """As if `django_filters` were not installed."""
    monkeypatch.delitem(sys.modules, "history_access.api.filters", raising=False)
    monkeypatch.setitem(sys.modules, "django_filters", None)


def test_without_the_extra_it_says_so(without_rest: None, capsys: Any) -> None:
    arguments = ["manage.py", "export_reads", "--format", "csv", "--output", "x", "--by", "7", "--turn", "t"]
    with pytest.raises(SystemExit) as ended:
        ManagementUtility(arguments).execute()
    printed, complaint = capsys.readouterr()
    assert (ended.value.code, printed) == (2, "")
    assert complaint.startswith("manage.py export_reads: error: it needs the extra `rest`")
    assert complaint.count("\n") == 1


def test_without_the_extra_a_call_says_so(without_rest: None) -> None:
    with pytest.raises(CommandError, match="needs the extra `rest`"):
        call_command("export_reads", form="csv", output="x", by="7")


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
