"""The demo prints what is so: its counts are those of a plain script over the file of conversations."""

import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from zoneinfo import ZoneInfo

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from demo import claims, handing_over, refusals
from demo.claims import NotShownError
from demo.databases import DatabaseURLError, own_url, parsed
from demo.digest import written
from demo.loop import run_schedule
from demo.script import chosen_model
from demo.world import LOGINS, PASSWORD, World, build, open_history
from history_access.agent_platform import services
from history_access.agent_platform.models import Account
from history_access.models import TurnConversationRead
from history_access.tools.running import FAILED
from settings_catalog import changes
from settings_catalog.resolver import resolve

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
        folder.mkdir(exist_ok=True)
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
        printed, complaints = self.process.communicate(timeout=300)
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
    if ON_POSTGRESQL:  # two at once share the name of their database: one waits for the other
        yield "own", Run.start(folder / "own", DATABASE_URL=server_url())
        yield "again", Run.start(folder / "again", DATABASE_URL=server_url())
        return
    yield "own", Run.start(folder / "own")
    yield "again", Run.start(folder / "again")
    yield "no url", Run.start(folder / "no-url", DATABASE_URL="nonsense")
    yield "no server", Run.start(folder / "no-server", DATABASE_URL="postgresql://127.0.0.1:1/theirs")
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
    assert without_url(runs["again"].printed()) == without_url(own)
    if ON_POSTGRESQL:
        folder = runs["own"].database.parent.parent
        started_for_it = Run.start(folder / "started", "--postgres", DATABASE_URL="")
        assert started_for_it.printed().partition("\nNext\n")[0] == own.partition("\nNext\n")[0]


def without_url(printed: str) -> str:
    return re.sub("DATABASE_URL=.*", "", printed)


def test_says_where_its_database_is(runs: dict[str, Run], own: str):
    (url,) = re.findall(r"^Look around +export DATABASE_URL=(.*)$", own, flags=re.MULTILINE)
    found = parsed(shlex.split(url)[0])
    assert found["NAME"] == ("hollowbrook_demo" if ON_POSTGRESQL else str(runs["own"].database))


def test_fits_on_a_screen(own: str):
    lines = [line for line in own.splitlines() if "DATABASE_URL" not in line]
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 105


def test_says_nothing_of_this_machine(own: str):
    assert str(ROOT) not in own
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", without_url(own))


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
        with psycopg.connect(server_url()) as server:
            tables = server.execute("SELECT 1 FROM pg_tables WHERE tablename LIKE 'agent_platform%'")
            assert tables.fetchall() == []
    else:
        folder = runs["own"].database.parent
        assert {path.name for path in folder.iterdir()} == {"hollowbrook_demo.sqlite3"}


LACKS = [
    (
        {"CONVERSATIONS": "/nowhere/at-all.jsonl"},
        "CONVERSATIONS=/nowhere/at-all.jsonl: there is no such file.",
    ),
    (
        {"DEMO_MODEL": "nobody:nothing"},
        "DEMO_MODEL=nobody:nothing cannot be used. Unknown model: nobody:nothing",
    ),
]


@pytest.mark.parametrize(("environment", "complaint"), LACKS, ids=[one[1] for one in LACKS])
def test_says_in_a_sentence_what_it_lacks(monkeypatch: Any, environment: dict[str, str], complaint: str):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CommandError) as caught:  # before it has touched a database
        call_command("demo")
    assert str(caught.value) == complaint


@pytest.mark.skipif(ON_POSTGRESQL, reason="the same on both databases")
def test_says_on_one_line_that_the_url_is_none(runs: dict[str, Run]):
    printed, complaints, status = runs["no url"].ended()
    assert (printed, status) == ("", 1)
    assert re.fullmatch(r"DATABASE_URL is no URL of a database\. Write .*\n", complaints)


@pytest.mark.skipif(ON_POSTGRESQL, reason="the same on both databases")
def test_says_on_one_line_that_no_server_answers(runs: dict[str, Run]):
    printed, complaints, status = runs["no server"].ended()
    assert (printed, status) == ("", 1)
    assert complaints.startswith("CommandError: The demo could not use its database: ")
    assert "Connection refused" in complaints and complaints.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("/their/database.sqlite3", "is no URL"),
        ("postgresql://user:se@cret:x/theirs", "is no URL"),
        ("mysql://user:secret@host/theirs", "names neither"),
        ("sqlite://", "no database in it"),
        ("sqlite://:memory:", "no database in it"),
        ("postgresql://user:secret@host/", "no database in it"),
    ],
)
def test_a_wrong_url_of_a_database_is_refused_without_showing_it(url: str, fault: str):
    with pytest.raises(DatabaseURLError, match=f"^DATABASE_URL .*{fault}.*unset\\.$") as caught:
        parsed(url)
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("vendor", "given", "name", "shown"),
    [
        ("postgresql", "postgresql://u:se%40c@h:1/x?a=b", "own", "postgresql://u:PASSWORD@h:1/own?a=b"),
        ("postgresql", "postgresql://u@h/x", "own", "postgresql://u@h/own"),
        ("sqlite", "sqlite:////a%20b/x", "/a b/own.sqlite3", "sqlite:////a%20b/own.sqlite3"),
        ("sqlite", "sqlite:///x", "own.sqlite3", "sqlite:///own.sqlite3"),
        ("sqlite", "", "own.sqlite3", None),
    ],
)
def test_the_url_that_is_shown_has_no_password(
    monkeypatch: Any, vendor: str, given: str, name: str, shown: str | None
):
    monkeypatch.setenv("DATABASE_URL", given)
    monkeypatch.setattr(connection, "vendor", vendor)
    monkeypatch.setitem(connection.settings_dict, "NAME", name)
    assert own_url() == shown
    if shown is not None and "PASSWORD" not in shown:
        assert parsed(shown)["NAME"] == name


def test_a_run_that_fails_leaves_what_the_last_one_made(runs: dict[str, Run], own: str, tmp_path: Path):
    broken, folder = tmp_path / "broken.jsonl", runs["own"].database.parent
    broken.write_text((OWN / "digest.jsonl").read_text() + "{}\n")
    environment = {"DATABASE_URL": server_url()} if ON_POSTGRESQL else {}
    printed, complaints, status = Run.start(folder, CONVERSATIONS=str(broken), **environment).ended()
    assert (printed, status) == ("", 1)
    assert complaints.startswith("line 25: ") and "CommandError: Rejected lines: 1." in complaints
    assert databases_of_the_demo(folder) == ["hollowbrook_demo"]
    assert conversations_left(runs["own"]) == 24 + 9 + TURNS


TURNS = 8
"""The conversations that the demo itself holds."""


def databases_of_the_demo(folder: Path) -> list[str]:
    if not ON_POSTGRESQL:
        return [path.name.removesuffix(".sqlite3") for path in folder.iterdir()]
    with psycopg.connect(server_url()) as server:
        found = server.execute("SELECT datname FROM pg_database WHERE datname LIKE 'hollowbrook%'")
        return [name for (name,) in found.fetchall()]


def conversations_left(run: Run) -> int:
    counted = "SELECT count(*) FROM agent_platform_session"
    if ON_POSTGRESQL:
        url = urlsplit(server_url())._replace(path="/hollowbrook_demo")
        with psycopg.connect(urlunsplit(url)) as server:
            return server.execute(counted).fetchone()[0]
    with closing(sqlite3.connect(run.database)) as database:
        return database.execute(counted).fetchone()[0]


# Held against what happens: a run that does not show what it says fails.


@pytest.fixture
def inn(committed_db: None) -> World:
    """The inn, with one conversation for each agent and account, both agents open to all accounts."""
    inn = build("UTC")
    list(open_history(inn))
    for agent in (inn.digest, inn.front_desk):
        for name in ("Alder Films", "Quill Press"):
            account, _ = Account.objects.get_or_create(workspace=inn.workspace, name=name)
            session = services.open_session(
                agent, account=account, person=inn.innkeeper, started_at=YESTERDAY
            )
            services.add_message(session, "person", "Hello.", at=YESTERDAY)
    return inn


YESTERDAY = datetime(2026, 11, 1, 12, tzinfo=ZoneInfo("UTC"))
NOW = YESTERDAY + timedelta(hours=20)


@pytest.mark.rule("record-or-nothing")
def test_fails_where_a_read_cannot_be_recorded(inn: World):
    table = TurnConversationRead._meta.db_table
    with renamed(table):
        turn, reply = run_schedule(inn.schedule, model=chosen_model(), now=NOW)
        assert reply == f"No digest of Sunday 1 November 2026: {FAILED}"
        with pytest.raises(NotShownError, match="list_conversations of the schedule could not be read"):
            claims.expect_reads(turn)


@contextmanager
def renamed(table: str) -> Iterator[None]:
    """A table that is not there, within the block."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {table}_gone")
        try:
            yield
        finally:
            cursor.execute(f"ALTER TABLE {table}_gone RENAME TO {table}")


def test_fails_where_the_digest_is_not_of_the_whole_day(inn: World):
    turn, _ = run_schedule(inn.schedule, model=chosen_model(), now=NOW)
    claims.expect_reads(turn)
    claims.expect_whole_day(inn, turn, NOW)
    services.open_session(inn.digest, started_at=YESTERDAY)
    with pytest.raises(NotShownError, match="drew on 2 of the 3 conversations"):
        claims.expect_whole_day(inn, turn, NOW)


def test_fails_where_a_refusal_does_not_come(inn: World, monkeypatch: Any):
    parts = {
        "a turn of Alder Films was shown conversations of Quill Press": (
            "confine_front_desk",
            lambda: refusals.one_customer_only(inn, NOW),
        ),
        "a turn that may read nothing was given something of 2 conversations": (
            "revoke",
            lambda: refusals.without_the_right(inn, NOW, chosen_model()),
        ),
        "a call that is refused returned a conversation_list": (
            "hold_at",
            lambda: refusals.switched_off(inn, NOW, chosen_model()),
        ),
    }
    inn_allows_all_accounts(inn)
    for what, (act, part_of_the_demo) in parts.items():
        with monkeypatch.context() as patched, pytest.raises(NotShownError, match=what):
            patched.setattr(refusals, act, lambda *_, **__: None)  # nobody acts
            list(part_of_the_demo())


def test_fails_where_what_was_handed_over_cannot_be_read(inn: World, monkeypatch: Any):
    guest = get_user_model().objects.create_user("ravi")
    said = services.open_session(inn.front_desk, person=guest, started_at=YESTERDAY)
    services.add_message(said, "person", "A boat, please.", at=YESTERDAY)
    assert "  messages 1 to 1, by reference" in list(handing_over.handed_over(inn, NOW))
    monkeypatch.setattr(handing_over, "bind_references", lambda *_: None)
    with pytest.raises(NotShownError, match="handed over could not be read"):
        list(handing_over.handed_over(inn, NOW))


def inn_allows_all_accounts(inn: World) -> None:
    changes.set_value(
        "history_access", agent=inn.front_desk, value="all_accounts", by=inn.manager, why="To see it fail."
    )


# Looking around.


@pytest.fixture
def visited(db: None) -> World:
    return build("UTC")


def login(name: str) -> Client:
    client = Client()
    assert client.login(username=name, password=PASSWORD)
    return client


def test_the_start_page_leads_to_what_each_login_may_open(visited: World):
    page = unescape(Client().get("/").content.decode())
    links = re.findall(r'<li><a href="([^"]+)">[^<]*</a> \(([a-z, ]+)\)', page)
    assert len(links) == page.count("<li>") == 10
    assert all(name in page for name in LOGINS)
    for name in LOGINS:
        client = login(name)
        opened = {url for url, _ in links if client.get(url, follow=True).status_code == 200}
        assert opened == {url for url, names in links if name in names.split(", ")}


@pytest.mark.rule("catalog-who")
def test_the_manager_can_set_what_the_inns_agents_may_read(visited: World):
    url = f"/admin/settings_catalog/settingvalue/add/?entry=history_access&agent={visited.digest.pk}"
    asked = {"value": "all_accounts", "initial-value": "", "why": "For the digest."}
    assert {name: login(name).post(url, asked).status_code for name in ("auditor", "operator", "tove")} == {
        "auditor": 403,
        "operator": 403,
        "tove": 302,
    }
    assert resolve("history_access", visited.digest).asked == "all_accounts"


def test_a_digest_that_could_not_be_written_says_why():
    day = datetime(2026, 11, 1, tzinfo=ZoneInfo("UTC")).date()
    error = {"kind": "error", "error": {"code": "history_unavailable", "message": "Off.", "argument": None}}
    assert written(day, [error]) == "No digest of Sunday 1 November 2026: Off."
