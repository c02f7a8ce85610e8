"""The command: which agent, which stream, how much memory, and what somebody who watches is shown."""

import io
import json
import re
import sys
import tracemalloc
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import DEFAULT_DB_ALIAS, connections

from history_access.agent_platform import import_format
from history_access.agent_platform.models import Agent, Session, Workspace
from tests.import_files import Run, conversation, summary, write


@pytest.mark.parametrize("debug", [True, False])
def test_memory_stays_the_same_however_long_the_file_is(world, tmp_path, debug, monkeypatch):
    monkeypatch.setattr(connections[DEFAULT_DB_ALIAS], "force_debug_cursor", debug)
    file = tmp_path / "long.jsonl"
    with file.open("w") as lines:
        for number in range(100):
            text = f"{number:06}" * 16_000
            one = {"role": "person", "text": text, "at": "2026-11-29T14:30:00Z"}
            lines.write(json.dumps(conversation(str(number), messages=[one, one])) + "\n")
    tracemalloc.start()
    try:
        assert Run.of(str(file)).summary == summary(imported=100, messages=200)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert file.stat().st_size > 19_000_000
    assert peak < 6_000_000


def test_an_overlong_line_is_passed_over_without_being_held(tmp_path, monkeypatch):
    monkeypatch.setattr(import_format, "MOST_BYTES", 100_000)
    file = tmp_path / "long.jsonl"
    file.write_bytes(b"x" * 20_000_000 + b"\n" + b"y" * 100_000 + b"\n" + b"z" * 100_001)
    tracemalloc.start()
    try:
        with file.open("rb") as stream:
            lines = list(import_format.lines_of(stream))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [(line.number, line.size, line.content) for line in lines] == [
        (1, 20_000_001, None),
        (2, 100_001, b"y" * 100_000 + b"\n"),
        (3, 100_001, None),
    ]
    assert peak < 4_000_000


@pytest.mark.parametrize("by", ["name", "pk"])
@pytest.mark.parametrize("within", [None, "name", "pk"])
def test_the_agent_is_named_by_key_or_by_name_in_its_workspace(world, tmp_path, by, within):
    given = {"workspace": str(getattr(world.hollowbrook, within))} if within else {}
    assert not Run.of(write(tmp_path, conversation()), getattr(world.agent, by), **given).failed
    assert Session.objects.get().agent == world.agent


def test_an_agent_that_is_not_one_is_refused_by_name(world, tmp_path):
    elsewhere = Workspace.objects.create(name="Elsewhere")
    namesake = Agent.objects.create(workspace=elsewhere, name="Digest")
    file = write(tmp_path, conversation())
    for given, says in [
        ({"agent": "Digest"}, f"{world.agent.pk} (in 'Hollowbrook')"),
        ({"agent": "Digest"}, f"{namesake.pk} (in 'Elsewhere')"),
        ({"agent": "Digest", "workspace": "Nowhere"}, "no agent 'Digest' in a workspace 'Nowhere'"),
        ({"agent": str(world.agent.pk), "workspace": "Elsewhere"}, "no agent"),
        ({"agent": str(elsewhere.pk)}, "no agent"),
        ({"agent": "digest"}, "no agent 'digest'"),
        ({"agent": "\0\udcff"}, "no agent"),
    ]:
        with pytest.raises(CommandError, match=re.escape(says)):
            call_command("import_conversations", file, **given)
    assert not Session.objects.exists()
    assert not Run.of(file, workspace="Elsewhere").failed
    assert Session.objects.get().agent == namesake


@pytest.mark.parametrize("name", ["missing.jsonl", ".", "a\0b"])
def test_a_file_that_cannot_be_opened_is_refused_by_name(world, name):
    with pytest.raises(CommandError, match="^" + re.escape(name) + ": "):
        call_command("import_conversations", name, agent="Digest")


def test_standard_input_is_read_for_a_dash_and_stays_open(world, tmp_path, monkeypatch):
    piped = io.TextIOWrapper(io.BytesIO(Path(write(tmp_path, conversation())).read_bytes()))
    monkeypatch.setattr(sys, "stdin", piped)
    assert Run.of("-").summary == summary(imported=1, messages=6)
    assert not piped.closed


class Terminal(io.StringIO):
    """Standard error of somebody who watches."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stderr", "options", "shown", "said"),
    [
        (Terminal, {}, True, True),
        (Terminal, {"no_progress": True}, False, True),
        (Terminal, {"verbosity": 0}, False, False),
        (io.StringIO, {}, False, True),
    ],
)
def test_progress_is_shown_by_bytes_to_those_who_watch(
    world, tmp_path, monkeypatch, stderr, options, shown, said
):
    file, out = write(tmp_path, conversation()), io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr())
    call_command("import_conversations", file, agent="Digest", stdout=out, **options)
    assert ("100%" in sys.stderr.getvalue()) == shown
    assert (out.getvalue() != "") == said
