"""A line that is not imported is reported with its number and its rule, and stops no other."""

import json

import pytest
from django.contrib.auth import get_user_model

from history_access.agent_platform import import_format
from history_access.agent_platform.models import Account, Session
from tests.import_files import ABSENT, Run, altered, conversation, nested, stored, summary, write

TIME_RULE = "must be a time with an offset, like 2026-11-29T14:30:00+00:00"
ROLES = "must be 'person', 'agent', 'tool' or 'system'"


REJECTED = [
    ("title", ABSENT, "title: is required"),
    ("titel", "x", "titel: is not a field of the format"),
    ("a\x1b[2J\n", 1, r"'a\x1b[2J\n': is not a field of the format"),
    ("t\u00eftle", 1, r"'t\xeftle': is not a field of the format"),
    ("x" * 99, 1, f"'{'x' * 64}': is not a field of the format"),
    ("title", None, "title: must be text"),
    ("id", 7, "id: must be text"),
    ("id", "", "id: must not be empty"),
    ("id", "a\0", "id: must be valid Unicode, without NUL"),
    ("id", "\ud800", "id: must be valid Unicode, without NUL"),
    ("person", "", "person: must not be empty"),
    ("person", "a\0", "person: must be valid Unicode, without NUL"),
    ("person", "\udfff", "person: must be valid Unicode, without NUL"),
    ("person", "x" * 151, "person: must have at most 150 characters"),
    ("person", "\ufdfa" * 9, "person: must have at most 150 characters"),
    ("account", 0, "account: must be text"),
    ("account", ABSENT, "account: is required"),
    ("account", "a\0", "account: must be valid Unicode, without NUL"),
    ("account", "\ud800", "account: must be valid Unicode, without NUL"),
    ("account", "x" * 201, "account: must have at most 200 characters"),
    ("started_at", "yesterday", f"started_at: {TIME_RULE}"),
    ("started_at", 1764426600, f"started_at: {TIME_RULE}"),
    ("messages", {}, "messages: must be a list"),
    ("messages.1", "hello", "messages[1]: must be an object"),
    ("messages.1.role", "user", f"messages[1].role: {ROLES}"),
    ("messages.1.text", ["a"], "messages[1].text: must be text"),
    ("messages.1.hidden", 1, "messages[1].hidden: must be true or false"),
    ("messages.1.name", "Mara", "messages[1].name: belongs to messages of tools alone"),
    ("messages.1.reasoning", "", "messages[1].reasoning: is not a field of the format"),
    ("messages.1.\ud800", "", "messages[1]: must be valid Unicode, without NUL"),
    ("messages.3.at", "2026-11-29T14:30:00", f"messages[3].at: {TIME_RULE}"),
    ("messages.3.at", "2026-11-29", f"messages[3].at: {TIME_RULE}"),
    ("messages.3.at", "0001-01-01T00:00:00+14:00", "messages[3].at: must lie between the years 2 and 9998"),
    ("messages.3.at", "9999-12-31T23:59:59-12:00", "messages[3].at: must lie between the years 2 and 9998"),
    ("messages.2.tool_calls", "Book", "messages[2].tool_calls: must be a list"),
    ("messages.2.tool_calls.0.arguments", ABSENT, "messages[2].tool_calls[0].arguments: is required"),
    ("messages.2.tool_calls.0.name", 1, "messages[2].tool_calls[0].name: must be text"),
    (
        "messages.2.tool_calls.0.arguments",
        nested(101),
        "messages[2].tool_calls[0].arguments: must be nested at most 100 deep",
    ),
]


@pytest.mark.parametrize(("path", "value", "reason"), REJECTED)
def test_a_field_at_fault_is_reported_with_its_line_and_rule_and_stops_no_other(
    world, tmp_path, path, value, reason
):
    run = Run.of(write(tmp_path, conversation("before"), altered(path, value), conversation("after")))
    assert run.reports == [f"line 2: {reason}"]
    assert (run.summary, run.failed) == (summary(imported=2, rejected=1, messages=12), True)
    assert Session.objects.count() == 2


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"id": ', "is not JSON at character 9: Expecting value"),
        (b"[1]", "must be an object"),
        (b'{"id": "two", "titel": ""}', "titel: is not a field of the format"),
        (b'{"id": "\xff"}', "is not UTF-8 at byte 9"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"id": NaN}', "holds a number that is not finite, or has too many digits"),
        (b'{"id": 1e999}', "holds a number that is not finite, or has too many digits"),
        (b'{"id": ' + b"1" * 5000 + b"}", "holds a number that is not finite, or has too many digits"),
        (b'"' + b"x" * 199_999 + b'"', "is longer than 200,000 bytes"),
        (b'"' + b"x" * 9_000_000 + b'"', "is longer than 200,000 bytes"),
        (b'"' + b"x" * 199_998 + b'"', "must be an object"),
    ],
    ids=range(11),
)
def test_a_line_that_is_no_conversation_is_reported_with_its_rule_and_stops_no_other(
    world, tmp_path, monkeypatch, raw, reason
):
    monkeypatch.setattr(import_format, "MOST_BYTES", 200_000)
    run = Run.of(
        write(tmp_path, b"\xef\xbb\xbf" + json.dumps(conversation()).encode(), raw, conversation("after"))
    )
    assert run.reports == [f"line 2: {reason}"]
    assert (run.summary, run.failed) == (summary(imported=2, rejected=1, messages=12), True)


def test_an_account_name_that_two_accounts_have_is_rejected(world, tmp_path):
    Account.objects.create(workspace=world.hollowbrook, name="Acme")
    run = Run.of(write(tmp_path, conversation(account="Acme")))
    assert run.reports == ["line 1: account: several accounts of the workspace have this name"]
    assert not Session.objects.exists()
    assert not get_user_model().objects.filter(username="guest").exists()


def test_an_id_that_comes_again_in_the_file_is_reported_with_its_first_line(world, tmp_path):
    run = Run.of(
        write(tmp_path, conversation(), conversation("two"), conversation(title="Other"), conversation())
    )
    assert run.reports == [
        "line 3: id: is the same as on line 1",
        "line 4: id: is the same as on line 1",
    ]
    assert run.summary == summary(imported=2, rejected=2, messages=12)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("title", "Other", "title"),
        ("person", None, "person"),
        ("person", "somebody", "person"),
        ("account", None, "account"),
        ("account", "calder", "account"),
        ("started_at", "2026-11-29T14:30:00+01:00", "started_at"),
        ("messages.0.role", "agent", "messages[0]"),
        ("messages.1.text", "A table", "messages[1]"),
        ("messages.2.tool_calls.0.arguments", {"day": "Monday"}, "messages[2]"),
        ("messages.3.at", "2026-11-29T14:30:03.000001Z", "messages[3]"),
        ("messages.4.hidden", True, "messages[4]"),
        ("messages", [*conversation()["messages"]] * 2, "messages[6]"),
    ],
)
def test_an_id_with_other_content_is_reported_and_changes_nothing(world, tmp_path, path, value, field):
    Run.of(write(tmp_path, conversation()))
    before, people = stored(), get_user_model().objects.count()
    run = Run.of(write(tmp_path, altered(path, value)))
    assert run.reports == [f"line 1: {field}: differs from what is there already under this id"]
    assert (run.summary, run.failed) == (summary(rejected=1), True)
    assert (stored(), get_user_model().objects.count()) == (before, people)


def test_a_rejected_line_is_reported_though_nothing_else_is(world, tmp_path):
    assert Run.of(write(tmp_path, []), verbosity=0) == Run("", ["line 1: must be an object"], failed=True)
