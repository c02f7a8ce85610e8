"""A line of a file becomes one session, exactly: its people, accounts, times, words and counts."""

import json
import uuid
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from history_access.agent_platform import services
from history_access.agent_platform.models import Account, Agent, Message, Session, Workspace
from tests.import_files import CALL, Run, conversation, nested, summary, write
from tests.worlds import listed, pages

BOOKINGS = Path(__file__).parents[2] / "shared" / "data" / "bookings-week.jsonl"


def test_a_line_becomes_one_session_with_its_messages_counts_and_times(world, tmp_path):
    run = Run.of(write(tmp_path, conversation(), b"", b"  \r", conversation("two", messages=[])))
    assert run == Run(summary(imported=2, messages=6), [], failed=False)
    session = Session.objects.get(pk=uuid.uuid5(world.agent.pk, "one"))
    assert (session.workspace, session.agent, session.title) == (
        world.hollowbrook,
        world.agent,
        "A table for two",
    )
    assert (session.person.username, session.account.name) == ("guest", "Calder")
    assert not session.person.has_usable_password()
    assert session.started_at == datetime.fromisoformat("2026-11-29T14:30:00Z")
    assert session.last_moved_at == datetime.fromisoformat("2026-11-29T14:30:04Z")
    assert session.message_count == session.messages.filter(Message.readable()).count() == 3
    numbers = session.messages.order_by("number").values_list("number", "role", "text", "tool_calls")
    assert list(numbers)[2:4] == [(3, "agent", "", [CALL]), (4, "tool", "[]", [])]
    empty = Session.objects.get(pk=uuid.uuid5(world.agent.pk, "two"))
    assert (empty.message_count, empty.last_moved_at) == (0, empty.started_at)


@pytest.mark.parametrize("role", ["person", "agent", "tool", "system"])
@pytest.mark.parametrize("hidden", [True, False])
def test_the_count_of_an_import_is_what_reading_would_count(world, tmp_path, role, hidden):
    entry = {"role": role, "text": "x", "at": "2026-11-29T14:30:00Z", "hidden": hidden}
    Run.of(write(tmp_path, conversation(messages=[entry])))
    session = Session.objects.get()
    assert session.message_count == session.messages.filter(Message.readable()).count()


def test_text_that_no_database_keeps_is_cleaned(world, tmp_path):
    call = {"name": "a\0", "arguments": {"k\ud800": ["v\0", 1e300, -0.0, True, None, nested(90)]}}
    entry = {"role": "agent", "text": "a\0b\ud83dc", "at": "2026-11-29T14:30:00Z", "tool_calls": [call]}
    file = write(tmp_path, conversation(title="\0" + "t" * 400, messages=[entry]))
    assert Run.of(file).reports == []
    message = Message.objects.select_related("session").get()
    assert (message.text, message.session.title) == ("a\ufffdb\ufffdc", "\ufffd" + "t" * 299)
    assert message.tool_calls[0]["name"] == "a\ufffd"
    assert message.tool_calls[0]["arguments"]["k\ufffd"][0] == "v\ufffd"
    assert Run.of(file).summary == summary(there=1)


def test_tool_calls_are_cleaned_alike_where_a_message_is_added(world):
    session = world.session("hello")
    calls = [{"name": "a\0", "arguments": ({"k\ud800": "v\0"}, 1)}]
    services.add_message(session, "agent", tool_calls=calls)
    message = session.messages.get(number=2)
    assert message.tool_calls == [{"name": "a\ufffd", "arguments": [{"k\ufffd": "v\ufffd"}, 1]}]


def test_an_imported_conversation_is_read_as_it_was_counted(world, tmp_path):
    Run.of(write(tmp_path, conversation(), conversation("long", messages=generated(90)["messages"])))
    world.grant(world.mara)
    world.allow("all_accounts")
    tools = world.tools(world.mara)
    for session in Session.objects.filter(pk__in=listed(tools)):
        numbers = [one["number"] for page in pages(tools, session.pk) for one in page["messages"]]
        readable = session.messages.filter(Message.readable()).order_by("number")
        assert numbers == list(readable.values_list("number", flat=True))
        assert len(numbers) == session.message_count


def test_accounts_are_matched_to_the_letter_and_the_absent_one_is_none_of_them(world, tmp_path):
    names = ["Acme", "acme", "Ame\u0301lie", "Am\u00e9lie", "none", "null", "", "0", None]
    other = Workspace.objects.create(name="Elsewhere")
    Account.objects.create(workspace=other, name="none")
    lines = [conversation(f"{turn} {name!r}", account=name) for name in names for turn in (1, 2)]
    assert Run.of(write(tmp_path, *lines)).failed is False
    counts = Counter(Session.objects.values_list("account__name", flat=True))
    assert counts == dict.fromkeys(names, 2)
    assert Session.objects.filter(account=world.acme).count() == 2
    assert not Session.objects.filter(account__workspace=other).exists()


def test_people_are_matched_by_username_as_signing_in_spells_it(world, tmp_path):
    names = ["mara", "Mara", "Zoe\u0308", "Zo\u00eb", None]
    assert not Run.of(write(tmp_path, *(conversation(repr(name), person=name) for name in names))).failed
    counts = Counter(Session.objects.values_list("person__username", flat=True))
    assert counts == {"mara": 1, "Mara": 1, "Zo\u00eb": 2, None: 1}
    assert Session.objects.filter(person=world.mara).count() == 1


def test_one_id_is_another_conversation_for_another_agent(world, tmp_path):
    file = write(tmp_path, conversation())
    other = Agent.objects.create(workspace=world.hollowbrook, name="Other")
    assert Run.of(file).summary == Run.of(file, other.pk).summary == summary(imported=1, messages=6)
    assert Session.objects.filter(agent=other).count() == 1


def test_counts_are_those_of_a_plain_script_over_the_same_lines(world, tmp_path):
    lines = [generated(number) for number in range(40)]
    assert Run.of(write(tmp_path, *lines)).reports == []
    assert imported_counts() == plain_counts(lines)


@pytest.mark.skipif(not BOOKINGS.exists(), reason="the week of bookings is not here")
def test_a_real_week_of_bookings_is_imported_exactly(world):
    lines = [json.loads(line) for line in BOOKINGS.read_text().splitlines()]
    assert Run.of(str(BOOKINGS)) == Run(summary(imported=400, messages=9310), [], failed=False)
    assert imported_counts() == plain_counts(lines)
    assert Run.of(str(BOOKINGS)) == Run(summary(there=400), [], failed=False)


def generated(number: int) -> dict[str, Any]:
    """A conversation whose length, people, account and order of times differ with its number."""
    entries = [
        {
            "role": ("person", "agent", "tool", "system")[(number + index) % 4],
            "text": f"{number} {index}",
            "at": f"2026-11-29T{(number * index) % 24:02}:00:00+0{number % 9}:00",
            "hidden": (number * index) % 5 == 0,
        }
        for index in range(number)
    ]
    account = (None, "Calder", "none")[number % 3]
    return conversation(str(number), person=f"guest{number % 7}", account=account, messages=entries)


def plain_counts(lines: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    counts: Counter[tuple[Any, ...]] = Counter()
    for line in lines:
        readable = 0
        for message in line["messages"]:
            if message["role"] in ("person", "agent") and not message.get("hidden"):
                readable += 1
        times = [datetime.fromisoformat(message["at"]) for message in line["messages"]]
        times.append(datetime.fromisoformat(line["started_at"]))
        counts[line["title"], line["person"], line["account"], max(times), readable] += 1
        counts["messages"] += len(line["messages"])
    return counts


def imported_counts() -> Counter[tuple[Any, ...]]:
    sessions = Session.objects.values_list(
        "title", "person__username", "account__name", "last_moved_at", "message_count"
    )
    return Counter([*sessions, *["messages"] * Message.objects.count()])
