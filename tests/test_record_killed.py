"""record-or-nothing, record-sealed: whatever kills a process that reads or seals, and whenever it does."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from tests.worlds import World

TEXT = "a table for nine"
NEEDED = ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")


@pytest.fixture
def left(open_world: World) -> Callable[[str], list[dict[str, Any]]]:
    """What is left of an act after each step at which it was killed (see `tests.killing`)."""
    open_world.allow("all_accounts")
    session = open_world.session(TEXT, person=open_world.mara)
    turn = open_world.turn(open_world.mara)
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    database = json.dumps({name: connection.settings_dict[name] for name in NEEDED}, default=str)

    def run(act: str) -> list[dict[str, Any]]:
        command = [sys.executable, "-W", "error", "-m", "tests.killing", act, database]
        ran = subprocess.run(
            [*command, str(turn.pk), str(session.pk)],
            env=environment | {"DJANGO_SETTINGS_MODULE": "tests.settings", "TEST_DATABASE": "sqlite"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    return run


def test_record_or_nothing_of_a_reader_that_is_killed(left: Callable[[str], list[dict[str, Any]]]) -> None:
    """No text without its row; a row without its text is one that was killed between commit and return."""
    *killed, last = left("read")
    assert (last["killed"], last["given"], last["rows"]) == (False, TEXT, 1)
    assert len(killed) >= 12
    assert {(one["killed"], one["given"]) for one in killed} == {(True, "")}
    assert [one["rows"] for one in killed] == [0] * (len(killed) - 1) + [1]
    assert all(one["findings"] == [] for one in (*killed, last))
    assert last["whole"]


def test_seals_are_whole_after_a_sealer_is_killed(left: Callable[[str], list[dict[str, Any]]]) -> None:
    """What it left is no finding, and the next one misses nothing and repeats nothing."""
    *killed, last = left("seal")
    assert (last["killed"], last["given"], last["waiting"]) == (False, "2", 0)
    assert len(killed) >= 20
    assert {(one["killed"], one["given"]) for one in killed} == {(True, "")}
    waiting = [one["waiting"] for one in killed]
    assert waiting == sorted(waiting, reverse=True)
    assert set(waiting) == {2, 1, 0}
    assert all(one["findings"] == [] for one in (*killed, last))
    assert last["whole"]
