"""The tests say which database they ran on: another one never passes for PostgreSQL."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.databases import given_postgresql

ROOT = Path(__file__).parent.parent
FAULTS = [
    ("sqlite:///x.sqlite3", "names no PostgreSQL"),
    ("mysql://h/x", "names neither PostgreSQL nor SQLite"),
    ("nonsense", "is no URL"),
    ("postgresql://user:secret@127.0.0.1:1/x", "does not answer: .*refused"),
]


@pytest.mark.parametrize(("url", "fault"), FAULTS, ids=[fault for _, fault in FAULTS])
def test_what_is_no_postgresql_is_refused_in_a_sentence(monkeypatch: Any, url: str, fault: str) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(pytest.UsageError, match=fault) as caught:
        given_postgresql()
    assert "\n" not in str(caught.value) and "secret" not in str(caught.value)


def test_without_a_url_none_is_given(monkeypatch: Any) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert given_postgresql() is None


def test_nothing_is_tested_where_the_url_is_no_postgresql() -> None:
    environment = {**os.environ, "DATABASE_URL": "sqlite:///x.sqlite3"}
    command = [sys.executable, "-W", "error", "-m", "tests.run", "tests/test_tool_smoke.py"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("NOTHING WAS TESTED. DATABASE_URL names no PostgreSQL.")
