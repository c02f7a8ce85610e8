"""The commands around seals: what they say, where, with which exit status, and how they end."""

import io
import json
import os
import re
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.utils import timezone

from history_access.management.commands import prune_reads, seal_reads
from history_access.management.interrupts import Ending
from history_access.models import MaintenanceEvent, Seal, SealedRow, TurnConversationRead
from history_access.seals import export, seal
from history_access.testing import lift_guards
from tests.sealed_records import clock, execute, findings, write_reads

pytestmark = pytest.mark.django_db


def run(*command: str, **given: Any) -> tuple[str, str]:
    """What a command writes to standard output and to standard error."""
    out, err = io.StringIO(), io.StringIO()
    call_command(*command, stdout=out, stderr=err, **given)
    return out.getvalue(), err.getvalue()


def refused(*command: str, **given: Any) -> str:
    with pytest.raises(CommandError) as error:
        run(*command, **given)
    return str(error.value)


def tampered() -> str:
    """A sealed record of which one row was changed; that row's key."""
    write_reads(3)
    seal()
    lift_guards()
    row = TurnConversationRead.objects.order_by("pk")[0]
    TurnConversationRead.objects.filter(pk=row.pk).update(characters=row.characters + 1)
    return str(row.pk)


def test_seals_are_made_by_a_command() -> None:
    write_reads(5)
    assert run("seal_reads", "--size", "2") == ("sealed 5 rows in 3 seals\n", "")
    assert run("seal_reads") == ("sealed 0 rows in 0 seals\n", "")
    write_reads(1, seed=1)
    assert run("seal_reads") == ("sealed 1 row in 1 seal\n", "")
    assert run("seal_reads", verbosity=0) == ("", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        *((["--every", number], "--every: seconds are") for number in ("0", "nan", "inf", "86401")),
        (["--every", "often"], "Error: argument --every: invalid float value: 'often'"),
        (["--size", "0"], "--size: a seal takes"),
        (["--size", str(2**70)], "--size: a seal takes"),
    ],
)
def test_seals_are_not_made_with_bad_arguments(arguments: list[str], says: str) -> None:
    assert refused("seal_reads", *arguments).startswith(says)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_seals_are_made_until_a_signal_comes(number: signal.Signals) -> None:
    """It ends between two batches, and leaves Python's own handlers as they were."""
    before = signal.getsignal(number)
    write_reads(4)

    def stop() -> None:
        until = time.monotonic() + 20
        while signal.getsignal(number) is before and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(os.getpid(), number)

    stopping = threading.Thread(target=stop)
    stopping.start()
    started = time.monotonic()
    assert run("seal_reads", "--every", "60", "--size", "3") == ("", "")
    stopping.join()
    assert time.monotonic() - started < 30
    assert signal.getsignal(number) is before
    assert (SealedRow.objects.count(), findings()) == (4, [])


def test_seals_are_made_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick passes, with a whole one at first and now and then; a failing database does not end it."""
    passes: list[bool] = []

    def batches(*, size: int | None, quick: bool) -> list[Any]:
        passes.append(quick)
        if len(passes) == 2:
            raise OperationalError("gone")
        return []

    def slept(ending: Ending, seconds: float) -> None:
        ending.asked = len(passes) == 5
        if len(passes) == 3:
            clock[0] += seal_reads.WHOLE_PASS_EVERY

    clock = [0.0]
    monkeypatch.setattr(seal_reads, "seal_batches", batches)
    monkeypatch.setattr(seal_reads.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(Ending, "sleep", slept)
    monkeypatch.setattr(connection, "close", lambda: None)
    out, err = run("seal_reads", "--every", "7")
    assert passes == [False, True, True, False, True]
    assert (out, err) == ("", "The database failed, trying again in 7 s: gone\n")


def test_seals_say_how_far_they_came_when_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    write_reads(4)
    monkeypatch.setattr(Ending, "asked", True)
    with pytest.raises(CommandError, match="Interrupted: sealed 2 rows in 1 seal") as error:
        run("seal_reads", "--size", "2")
    assert error.value.returncode == 130


def test_seals_say_when_the_database_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def batches(**_: Any) -> Any:
        raise OperationalError("locked")

    monkeypatch.setattr(seal_reads, "seal_batches", batches)
    assert refused("seal_reads") == "The database failed, run it again to go on: locked"


def test_seals_run_in_another_thread_without_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    from history_access.management.interrupts import noted_interrupts

    seen: list[bool] = []

    def job() -> None:
        with noted_interrupts() as ending:
            seen.append(ending.asked)

    thread = threading.Thread(target=job)
    thread.start()
    thread.join()
    assert seen == [False]


def test_ending_ends_a_wait() -> None:
    ending, started = Ending(), time.monotonic()
    threading.Timer(0.05, lambda: setattr(ending, "asked", True)).start()
    ending.sleep(60)
    assert time.monotonic() - started < 10
    ending = Ending()
    ending.sleep(0.01)
    assert not ending.asked


def test_seals_are_verified_by_a_command() -> None:
    write_reads(3)
    seal()
    assert run("verify_reads") == ("", "checked 3 sealed rows; 0 wait for a seal\n")
    write_reads(1, seed=1)
    out, err = run("verify_reads")
    assert out == ""
    assert re.fullmatch(r"checked 3 sealed rows; 1 waits for a seal, the oldest for 0:00:\d\d\n", err)
    assert run("verify_reads", verbosity=0) == ("", "")


def test_seals_are_verified_with_findings_a_line_each() -> None:
    key = tampered()
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(CommandError, match=r"not what was sealed: 1 finding\.") as error:
        call_command("verify_reads", stdout=out, stderr=err)
    assert error.value.returncode == 1
    assert out.getvalue().splitlines() == [
        f"seal 1, row {key}: the row, or its leaf, was changed after it was sealed"
    ]
    assert err.getvalue().startswith("checked 3 sealed rows; 0 wait for a seal\n")


def test_seals_are_verified_with_a_word_of_clocks_that_were_set_back() -> None:
    """It is no finding, and yet somebody may want to know."""
    now = timezone.now()
    for hours in (0, 3):
        with clock(now - timedelta(hours=hours)):
            write_reads(1, timezone.now(), seed=hours)
            seal()
    _, err = run("verify_reads")
    assert f"set back before 1 seal (the last: 2 at {now - timedelta(hours=3):%Y-%m-%d %H:%M})" in err


@pytest.mark.parametrize("command", ["seal_reads", "verify_reads", "export_seal"])
def test_seals_say_that_there_are_no_tables_yet(committed_db: None, command: str) -> None:
    execute("ALTER TABLE history_access_seal RENAME TO elsewhere")
    try:
        assert "run `manage.py migrate`" in (said := refused(command))
        assert "\n" not in said
    finally:
        execute("ALTER TABLE elsewhere RENAME TO history_access_seal")


def test_seals_are_exported_and_verified_against(tmp_path: Path) -> None:
    write_reads(2)
    seal()
    file = tmp_path / "seal.json"
    assert run("export_seal", str(file)) == (
        f"wrote seal 1 to {file}; it proves the 2 rows sealed so far\n",
        "",
    )
    assert json.loads(file.read_text()) == json.loads(run("export_seal")[0]) == export()
    run("verify_reads", "--against", str(file))
    lift_guards()
    for model in (TurnConversationRead, SealedRow, Seal):
        model.objects.all().delete()
    run("verify_reads")
    assert "1 finding." in refused("verify_reads", "--against", str(file))


def test_seals_are_not_exported_over_an_older_one_or_nowhere(tmp_path: Path) -> None:
    assert "Run seal_reads" in refused("export_seal")
    write_reads(1)
    seal()
    (tmp_path / "seal.json").write_text("kept")
    assert "File exists" in refused("export_seal", str(tmp_path / "seal.json"))
    assert (tmp_path / "seal.json").read_text() == "kept"
    assert "No such file" in refused("export_seal", str(tmp_path / "no" / "seal.json"))
    assert "FILE" in refused("export_seal", "\0")


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"number": "1", "digest": ""}', "\udcff", "7", "{" * 99_999]
)
def test_seals_are_not_verified_against_what_is_none(tmp_path: Path, content: str) -> None:
    file = tmp_path / "seal.json"
    file.write_text(content, errors="surrogateescape")
    assert refused("verify_reads", "--against", str(file)).startswith(f"--against {file}: ")
    assert "No such file" in refused("verify_reads", "--against", str(tmp_path / "other"))


def test_seals_are_pruned_by_a_command() -> None:
    write_reads(2)
    seal()
    who = ("--by", "operator", "--why", "a year is over")
    assert run("prune_reads", "--through", "1", "--dry-run")[0] == (
        "To be removed: 2 reads of 1 seals. The seals stay.\n"
    )
    assert TurnConversationRead.objects.count() == 2
    out, _ = run("prune_reads", "--through", "1", *who, "--yes")
    assert out.splitlines() == [
        "To be removed: 2 reads of 1 seals. The seals stay.",
        "removed seals 1 to 1: 2 reads",
        "Removed by operator, because: a year is over. 2 reads of 1 seals. Sealed events say so.",
    ]
    assert (TurnConversationRead.objects.count(), MaintenanceEvent.objects.count()) == (0, 1)
    run("verify_reads")
    assert run("prune_reads", "--through", "1")[0].startswith("To be removed: 0 reads of 0 seals.")


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "left", "says"),
    [
        (io.StringIO("yes\n"), 2, "--yes: is needed"),
        (Terminal("no\n"), 2, "Nothing was removed"),
        (Terminal("yes\n"), 0, ""),
    ],
)
def test_seals_are_pruned_only_when_told_so(
    monkeypatch: pytest.MonkeyPatch, typed: io.StringIO, left: int, says: str
) -> None:
    write_reads(2)
    seal()
    monkeypatch.setattr(sys, "stdin", typed)
    arguments = ("prune_reads", "--through", "1", "--by", "operator", "--why", "a year is over")
    assert says in (refused(*arguments) if left else run(*arguments)[0])
    assert TurnConversationRead.objects.count() == left


def test_seals_are_pruned_with_arguments_named_as_they_were_given() -> None:
    key = tampered()
    assert refused("prune_reads", "--through", "7") == "--through: there is no seal 7"
    assert refused("prune_reads", "--keep-days", "0").startswith("--keep-days: ")
    assert refused("prune_reads", "--through", "1", "--yes").startswith("--by: ")
    assert refused("prune_reads", "--through", "1", "--yes", "--by", "7").startswith("--why: ")
    with pytest.raises(CommandError, match="one of the arguments --keep-days --through is required"):
        run("prune_reads", "--yes")
    assert key in refused("prune_reads", "--through", "1", "--yes", "--by", "7", "--why", "a year is over")


def test_seals_say_when_the_database_failed_while_pruning(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(**_: Any) -> Any:
        raise OperationalError("lock timeout")

    monkeypatch.setattr(prune_reads, "prune", failing)
    assert "run it again to go on: lock timeout" in refused("prune_reads", "--through", "1")


def test_seals_show_progress_to_somebody_who_watches() -> None:
    write_reads(2)
    for command in (
        ["seal_reads"],
        ["verify_reads"],
        ["prune_reads", "--through", "1", "--by", "7", "--why", "x", "--yes"],
    ):
        watched = Terminal()
        call_command(*command, stdout=io.StringIO(), stderr=watched)
