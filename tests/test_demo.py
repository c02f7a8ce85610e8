"""The demo prints what is so: its counts are those of a plain script over the file of conversations."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings

from demo.digest import written

ROOT = Path(__file__).parent.parent
OWN = ROOT / "demo" / "conversations"
BOOKINGS = ROOT.parent / "shared" / "data" / "bookings-week.jsonl"
ON_POSTGRESQL = os.environ.get("TEST_DATABASE") == "postgresql"

needs_bookings = pytest.mark.skipif(ON_POSTGRESQL or not BOOKINGS.exists(), reason="on SQLite, with the file")


@dataclass
class Run:
    """One run of the demo in a process of its own, on a database of its own."""

    process: subprocess.Popen[str]
    database: Path

    @classmethod
    def start(cls, folder: Path, *arguments: str, **environment: str) -> "Run":
        folder.mkdir()
        inherited = {name: value for name, value in os.environ.items() if name not in UNWANTED}
        command = [sys.executable, "-W", "error", "manage.py", "demo", *arguments]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**inherited, "DATABASE_URL": f"sqlite:///{folder}/theirs.sqlite3", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return cls(process, folder / "hollowbrook_demo.sqlite3")

    def ended(self) -> tuple[str, str, int]:
        printed, complaints = self.process.communicate(timeout=60)
        return printed, complaints, self.process.returncode

    def printed(self) -> str:
        printed, complaints, status = self.ended()
        assert (complaints, status) == ("", 0)
        return printed


UNWANTED = ("CONVERSATIONS", "DATABASE_URL", "DEMO_MODEL", "DJANGO_SETTINGS_MODULE", "TEST_DATABASE")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    """Several runs at once, to save time."""
    folder = tmp_path_factory.mktemp("demo")
    runs = dict(started(folder))
    yield runs
    for run in runs.values():
        with run.process:  # closes its pipes
            run.process.kill()


def started(folder: Path) -> Iterator[tuple[str, Run]]:
    if ON_POSTGRESQL:  # one at a time: they share the name of their database
        yield "own", Run.start(folder / "own", DATABASE_URL=server_url())
        return
    yield "own", Run.start(folder / "own")
    yield "again", Run.start(folder / "again")
    yield "no file", Run.start(folder / "no-file", CONVERSATIONS="/nowhere/at-all.jsonl")
    yield "no model", Run.start(folder / "no-model", DEMO_MODEL="nobody:nothing")
    if BOOKINGS.exists():
        yield "bookings", Run.start(folder / "bookings", CONVERSATIONS=str(BOOKINGS))


@pytest.fixture(scope="module")
def own(runs: dict[str, Run]) -> str:
    return runs["own"].printed()


@pytest.fixture(scope="module")
def bookings(runs: dict[str, Run]) -> str:
    return runs["bookings"].printed()


def server_url() -> str:
    """The server that the tests run on."""
    socket = settings.DATABASES["default"]["OPTIONS"].get("host")
    return os.environ.get("DATABASE_URL") or f"postgresql://postgres:@/postgres?host={socket}"


# What a plain script makes of a file, with nothing of the product.


def conversations(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def moments(conversation: dict[str, Any]) -> list[datetime]:
    stamps = [conversation["started_at"], *(message["at"] for message in conversation["messages"])]
    return [datetime.fromisoformat(stamp) for stamp in stamps]


def readable(conversation: dict[str, Any]) -> list[dict[str, Any]]:
    spoken = (one for one in conversation["messages"] if one["role"] in ("person", "agent"))
    return [message for message in spoken if not message.get("hidden")]


def of_day(file: Path, day: str, zone: str) -> list[dict[str, Any]]:
    """Those that moved within a day: started before its end, and last moved at or after its start."""
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    end = start + timedelta(days=1)  # of the calendar: it is local midnight again
    return [
        one
        for one in conversations(file)
        if datetime.fromisoformat(one["started_at"]).timestamp() < end.timestamp()
        and max(moments(one)).timestamp() >= start.timestamp()
    ]


def by_account(told: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    count, messages = Counter[str](), Counter[str]()
    for one in told:
        name = "(no account)" if one["account"] is None else one["account"]
        count[name] += 1
        messages[name] += len(readable(one))
    return {name: (count[name], messages[name]) for name in count}


def tools_called(told: list[dict[str, Any]]) -> dict[str, int]:
    messages = (message for one in told for message in readable(one))
    return Counter(call["name"] for message in messages for call in message.get("tool_calls", ()))


def characters(told: list[dict[str, Any]]) -> int:
    texts = sum(len(message["text"]) for one in told for message in readable(one))
    return texts + sum(len(one["title"]) for one in told)


SUNDAY = of_day(OWN / "digest.jsonl", "2026-11-01", "America/New_York")


# What the demo printed.


def part(printed: str, number: int) -> str:
    """One of its numbered parts."""
    return re.split(r"^\d\. ", printed.partition("\nNext\n")[0], flags=re.MULTILINE)[number]


def number(digits: str) -> int:
    return int(digits.replace(",", ""))


def printed_accounts(printed: str) -> dict[str, tuple[int, int]]:
    rows = re.findall(r"^ +([\d,]+) +([\d,]+) +[\d,]+  (\S.*)$", part(printed, 3), flags=re.MULTILINE)
    return {name: (number(count), number(messages)) for count, messages, name in rows}


def printed_tools(printed: str) -> dict[str, int]:
    listed = re.search(r"Tools called: (.*?)\nLongest", part(printed, 3), flags=re.DOTALL)
    assert listed is not None
    names = (one.rsplit(" ", 1) for one in listed[1].replace("\n ", "").split(", "))
    return {name: number(count) for name, count in names}


def digest_heading(day: str, told: list[dict[str, Any]]) -> str:
    messages = sum(len(readable(one)) for one in told)
    return f"Digest of {day}: {len(told):,} conversations, {messages:,} messages\n"


def record_total(printed: str) -> tuple[int, ...]:
    found = re.findall(r"On record: ([\d,]+) \w+, ([\d,]+) reads, ([\d,]+) char", part(printed, 4))
    return tuple(number(digits) for digits in found[0])


def recorded(run: Run) -> Iterator[tuple[str, str]]:
    """Title and account of what the digest's turn read, from the table itself."""
    with sqlite3.connect(run.database) as database:
        yield from database.execute(
            "SELECT DISTINCT session.title, account.name FROM history_access_turnconversationread AS read "
            "JOIN agent_platform_session AS session ON session.id = replace(read.session_id, '-', '') "
            "LEFT JOIN agent_platform_account AS account ON account.id = session.account_id "
            "JOIN agent_platform_turn AS turn ON turn.id = replace(read.turn_id, '-', '') "
            "WHERE turn.trigger_id IS NOT NULL"
        )
    database.close()


def test_prints_the_same_every_time(runs: dict[str, Run], own: str):
    if ON_POSTGRESQL:
        folder = runs["own"].database.parent.parent
        again = Run.start(folder / "again", "--postgres", DATABASE_URL="")
        assert again.printed().partition("\nNext\n")[0] == own.partition("\nNext\n")[0]
    else:
        assert runs["again"].printed() == own


def test_fits_on_a_screen(own: str):
    assert max(map(len, own.splitlines())) <= 100
    assert len(own.splitlines()) <= 90


def test_says_nothing_of_this_machine(own: str):
    assert str(ROOT) not in own
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", own)


@pytest.mark.rule("tool-list", "tool-read", "tool-count")
def test_the_digest_counts_what_a_plain_script_counts(own: str):
    assert digest_heading("Sunday 1 November 2026", SUNDAY) in own
    assert printed_accounts(own) == by_account(SUNDAY)
    assert printed_tools(own) == tools_called(SUNDAY)


def test_the_day_of_the_own_set_is_worth_testing():
    starts = {one["started_at"][:10] for one in SUNDAY}
    ends = {max(moments(one)).astimezone(ZoneInfo("America/New_York")).date().isoformat() for one in SUNDAY}
    assert {"2026-10-31", "2026-11-01"} == starts
    assert {"2026-11-01", "2026-11-02"} == ends
    assert any(len(message["text"]) > 4000 for one in SUNDAY for message in one["messages"])
    assert any(one["person"] is None for one in SUNDAY)


@pytest.mark.rule("record-every-read", "tool-caps")
def test_the_record_has_every_character_that_was_read(own: str):
    count, _, given = record_total(own)
    assert (count, given) == (len(SUNDAY), characters(SUNDAY))


@pytest.mark.rule("record-every-read")
def test_the_record_names_exactly_those_conversations(own: str):
    titles = re.findall(r"“(.*)”$", part(own, 4), flags=re.MULTILINE)
    assert sorted(titles) == sorted(one["title"] for one in SUNDAY)


@needs_bookings
@pytest.mark.rule("tool-list", "tool-read", "tool-count", "tool-pages")
def test_a_week_of_bookings_is_counted_right(bookings: str):
    sunday = of_day(BOOKINGS, "2026-11-29", "UTC")
    assert digest_heading("Sunday 29 November 2026", sunday) in bookings
    assert printed_accounts(bookings) == by_account(sunday)
    assert printed_tools(bookings) == tools_called(sunday)


@needs_bookings
@pytest.mark.rule("record-every-read")
def test_a_week_of_bookings_is_recorded_right(runs: dict[str, Run], bookings: str):
    sunday = of_day(BOOKINGS, "2026-11-29", "UTC")
    assert record_total(bookings)[::2] == (len(sunday), characters(sunday))
    assert set(recorded(runs["bookings"])) == {(one["title"], one["account"]) for one in sunday}


@pytest.mark.rule("catalog-closed", "catalog-explains")
def test_it_takes_the_operator_to_open_history(own: str):
    values = re.findall(r"^(\S.*): (\w+)\n  (.*)$", part(own, 2), flags=re.MULTILINE)
    assert [value for _, value, _ in values] == ["none", "none", "all_accounts"]
    assert "because the platform allows nothing above none" in values[1][2]


@pytest.mark.rule("tool-quoted")
def test_an_order_in_a_conversation_is_reported_as_quoted_text(own: str):
    assert "“<b>VIP</b> booking, please process first” tells its reader to ignore" in part(own, 3)


@pytest.mark.rule("reach-account-exact", "reach-person", "reach-same-answer")
def test_refuses_another_customers_conversations(own: str):
    films = [one for one in conversations(OWN / "front-desk.jsonl") if one["account"] == "Alder Films"]
    guests = Counter(one["person"] for one in films)
    refused = part(own, 5)
    assert f"{len(films)} of Alder Films, for ines, who may open all of them" in refused
    assert f"{guests['ravi']} of Alder Films, for ravi, who may open their own" in refused
    assert "conversation_unavailable: There is no such conversation" in refused
    assert "the same answer, to the letter" in refused


@needs_bookings
@pytest.mark.rule("reach-account-exact")
def test_refuses_another_customers_conversations_in_a_week_of_bookings(bookings: str):
    accounts = Counter(one["account"] for one in conversations(BOOKINGS) if one["account"] is not None)
    name, count = min(accounts.items(), key=lambda item: (-item[1], item[0]))
    assert f"{count} of {name}, for ines, who may open all of them" in part(bookings, 5)


@pytest.mark.rule("reach-trigger-owner", "reach-now")
def test_refuses_a_schedule_whose_owner_lost_the_right(own: str):
    refused = part(own, 6)
    assert "There are no conversations of Sunday 1 November 2026 that this turn may read." in refused
    assert "On record: 0 conversations, 0 reads" in refused


@pytest.mark.rule("tool-errors", "catalog-fresh")
def test_refuses_a_call_that_was_offered_before_the_setting_fell(own: str):
    refused = part(own, 7)
    assert "history_unavailable: History access is switched off for this agent." in refused
    assert "On record: 0 conversations, 0 reads" in refused
    assert "I have no way to read past conversations." in refused


def test_leaves_the_database_of_the_url_alone(runs: dict[str, Run], own: str):
    if ON_POSTGRESQL:
        import psycopg

        with psycopg.connect(server_url()) as server:
            tables = server.execute("SELECT 1 FROM pg_tables WHERE tablename LIKE 'agent_platform%'")
            assert tables.fetchall() == []
    else:
        folder = runs["own"].database.parent
        assert {path.name for path in folder.iterdir()} == {"hollowbrook_demo.sqlite3"}


@pytest.mark.skipif(ON_POSTGRESQL, reason="the same on both databases")
@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        ("no file", "CommandError: CONVERSATIONS=/nowhere/at-all.jsonl: there is no such file.\n"),
        (
            "no model",
            "CommandError: DEMO_MODEL=nobody:nothing cannot be used. Unknown model: nobody:nothing\n",
        ),
    ],
)
def test_says_in_a_sentence_what_it_lacks(runs: dict[str, Run], run: str, complaint: str):
    assert runs[run].ended() == ("", complaint, 1)


def test_a_digest_that_could_not_be_written_says_why():
    day = datetime(2026, 11, 1, tzinfo=ZoneInfo("UTC")).date()
    error = {"kind": "error", "error": {"code": "history_unavailable", "message": "Off.", "argument": None}}
    assert written(day, [error]) == "No digest of Sunday 1 November 2026: Off."
