"""Reading: what is in reach, what is read of parts, and what the record says of it."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from history_access.erasing import erase_person
from history_access.models import RecordedName, TurnConversationRead
from history_access.models.text import PartsText, ToolNames
from history_access.record import conversations_drawn_on, drawn_on, turns_drawing_on
from history_access.seals import seal
from history_access.tools import toolset_for
from settings_catalog import changes
from tests.second_platform.conftest import TABLES
from tests.second_platform.desk import NOON, Desk, text
from tests.second_platform.models import Entry, Firm, Member, RoleRight, Rule, Run, Staff, Team, Thread

CALL = {"type": "call", "name": "look_up", "arguments": {"type": "text", "text": "secret"}}
IMAGE = {"type": "image", "name": "photo.png", "url": "https://desk.example/1.png"}


def listed(tools: Any) -> list[int]:
    page = tools.call("list_conversations", {"limit": 50})
    assert page["kind"] == "conversation_list", page
    return [int(one["id"]) for one in page["conversations"]]


def page_of(tools: Any, thread: Any, **asked: Any) -> Any:
    page = tools.call("read_conversation", {"conversation_id": str(getattr(thread, "pk", thread)), **asked})
    assert page["kind"] == "quoted_conversation", page
    return page


def words(page: Any) -> list[Any]:
    return [one["quoted"]["text"] for one in page["messages"]]


def test_checks_are_clean_and_no_migration_is_missing(db: None) -> None:
    call_command("check", databases=["default"], fail_level="WARNING")
    call_command("makemigrations", "settings_catalog", "history_access", check=True, verbosity=0)


def test_a_column_of_the_desk_that_has_another_name_is_found(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE desk_threads RENAME COLUMN digest TO gist")
    (wrong,) = run_checks(databases=["default"])
    assert wrong.id == "history_access.E017"
    assert wrong.msg == "desk_threads has no column digest, which desk.Thread.summary reads."
    assert "no field names: gist." in wrong.hint


def test_migrate_makes_our_tables_and_leaves_the_desk_s_as_they_were(db: None) -> None:
    sql = TABLES.read_text(encoding="utf-8")
    desk = set(re.findall(r"CREATE (?:TABLE|VIEW) (\w+)", sql))
    with connection.cursor() as cursor:
        found = set(connection.introspection.table_names(cursor, include_views=True))
        for table in desk:
            declared = re.search(rf"CREATE TABLE {table} \((.*?)\);\n", sql, re.DOTALL)
            columns = [one.name for one in connection.introspection.get_table_description(cursor, table)]
            if declared:
                named = re.findall(
                    r"(?:^|,)\s*([a-z_]+) (?:integer|text|boolean|jsonb|timestamptz)", declared[1]
                )
                assert columns == named
    ours = {name for name in found - desk if name.startswith(("history_access_", "settings_catalog_"))}
    assert {name.partition("_")[0] for name in found - desk - ours} == {"auth", "django"}
    assert desk <= found and "history_access_turnconversationread" in ours


def test_record_every_read_keeps_integer_keys_as_text(desk: Desk) -> None:
    desk.allow()
    old = desk.thread("hello", "there", person=desk.nils, account=desk.ferry, title="Tickets")
    run = desk.run(desk.nils, account=desk.mill)
    tools = toolset_for(run)
    assert listed(tools) == [old.pk]
    page = page_of(tools, old)
    assert page["conversation"] == {
        "id": str(old.pk),
        "account_id": str(desk.ferry.pk),
        "quoted": {"title": "Tickets", "account": "The ferry"},
        "started_at": "2026-11-29T12:00:00+01:00",
        "last_moved_at": "2026-11-29T12:00:00+01:00",
        "message_count": 2,
        "link": f"https://desk.example/threads/{old.pk}",
    }
    assert [(one["speaker"], one["quoted"]["name"]) for one in page["messages"]] == [
        ("person", "Nils Berg"),
        ("agent", "Otter"),
    ]
    title, messages = TurnConversationRead.objects.order_by("id")
    keys = ("workspace_id", "agent_id", "turn_id", "turn_account_id", "reader_id", "session_id")
    wanted = (desk.firm.pk, desk.otter.pk, run.pk, desk.mill.pk, desk.nils.pk, old.pk)
    for row in (title, messages):
        assert [getattr(row, name) for name in keys] == [str(key) for key in wanted]
        assert (row.session_account_id, row.session_person_id) == (str(desk.ferry.pk), str(desk.nils.pk))
    assert (title.what, messages.what, messages.first_number, messages.last_number) == (
        "title",
        "messages",
        1,
        2,
    )
    assert set(RecordedName.objects.values_list("kind", "name")) >= {
        ("workspace", "Fjord & Co."),
        ("agent", "Otter"),
        ("account", "The ferry"),
        ("person", "Nils Berg"),
    }
    label = drawn_on(run)
    assert (label.accounts, label.other_account) == ({str(desk.ferry.pk)}, True)
    assert (label.people, label.other_person, label.webhook) == ({str(desk.nils.pk)}, False, False)
    assert [one["session_id"] for one in conversations_drawn_on(run)] == [str(old.pk)]
    assert [one["turn_id"] for one in turns_drawing_on(old)] == [str(run.pk)]


def test_reach_person_own_threads_and_everybody_s_by_a_team_s_right(desk: Desk) -> None:
    """Of the firm's team or of this bot's, now: not of another bot's, another firm's, or one left since."""
    desk.allow()
    other = desk.staff("other")
    own, theirs, nobody_s = (desk.thread("a", person=one) for one in (desk.nils, other, None))
    bots_team, another_s = (
        Team.objects.create(team_no=desk.key(), firm=desk.firm, bot=bot)
        for bot in (desk.otter, desk.bot("Seal"))
    )
    elsewhere = Team.objects.create(
        team_no=desk.key(), firm=Firm.objects.create(firm_no=desk.key(), label="x", zone="UTC")
    )
    tools = desk.tools(desk.nils)
    assert listed(tools) == [own.pk]
    for team, reads in ((another_s, False), (elsewhere, False), (bots_team, True), (desk.team, True)):
        member = desk.member(desk.nils, team, "lead")
        found = set(listed(tools)) - {run.session_id for run in Run.objects.all()}
        assert found == ({own.pk, theirs.pk, nobody_s.pk} if reads else {own.pk}), team.pk
        Member.objects.filter(pk=member.pk).delete()
    assert listed(tools) == [own.pk]


@pytest.mark.parametrize("value", ["same_account", "all_accounts"])
def test_reach_account_exact(desk: Desk, value: str) -> None:
    desk.allow(value)
    threads = {
        one: desk.thread("a", person=desk.nils, account=one).pk for one in (None, desk.ferry, desk.mill)
    }
    for account, own in threads.items():
        tools = desk.tools(desk.nils, account=account)
        wanted = {own} if value == "same_account" else set(threads.values())
        assert wanted <= set(listed(tools))
        assert (set(threads.values()) & set(listed(tools))) == wanted


OUT_OF_REACH = {
    "deleted by its status": lambda desk: desk.thread("a", person=desk.nils, status="deleted").pk,
    "with another bot": lambda desk: desk.thread("a", person=desk.nils, bot=desk.bot("Seal")).pk,
    "somebody else's": lambda desk: desk.thread("a", person=desk.ingrid).pk,
    "nobody's": lambda desk: desk.thread("a").pk,
    "of another client": lambda desk: desk.thread("a", person=desk.nils, account=desk.ferry).pk,
    "of another firm": lambda desk: (
        desk.thread(
            "a",
            person=desk.nils,
            bot=desk.bot("x", Firm.objects.create(firm_no=desk.key(), label="x", zone="UTC")),
        ).pk
    ),
}


def answer(tools: Any, key: object) -> tuple[Any, int]:
    """What a call for a key is answered, and with how many statements."""
    with CaptureQueriesContext(
        connection,
    ) as seen:
        found = tools.call("read_conversation", {"conversation_id": str(key)})
    return found, len(seen)


@pytest.mark.parametrize("kind", OUT_OF_REACH)
def test_reach_same_answer_and_reach_not_deleted(desk: Desk, kind: str) -> None:
    desk.allow("same_account")
    own = desk.thread("a", person=desk.nils)
    key = OUT_OF_REACH[kind](desk)
    run = desk.run(desk.nils)
    tools = toolset_for(run)
    assert listed(tools) == [own.pk]
    found, unknown, itself = answer(tools, key), answer(tools, 987654), answer(tools, run.session_id)
    assert found == unknown == itself
    assert found[0]["error"]["code"] == "conversation_unavailable"


ODD = ["0{}", "+{}", "{} ", " {}", "{}.0", "-{}", "{}_0", "٧", "１", "", "x", "1e3", str(2**31), str(2**40)]
ODD += [str(2**63 - 1), str(2**63), str(2**70), str(-(2**31)), str(-(2**70)), "9" * 300, "\0", "{}\n", "0x7"]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_reach_same_answer_whatever_an_integer_key_looks_like(desk: Desk, odd: str) -> None:
    desk.allow()
    own = desk.thread("a", person=desk.nils)
    tools = desk.tools(desk.nils)
    assert page_of(tools, own)["messages"]
    found, unknown = answer(tools, odd.format(own.pk)), answer(tools, 987654)
    assert found == unknown
    assert unknown[0]["error"]["code"] == "conversation_unavailable"


def test_reach_trigger_owner_is_whoever_owns_the_rule_now(desk: Desk) -> None:
    desk.allow()
    nils_s, ingrid_s = desk.thread("a", person=desk.nils), desk.thread("b", person=desk.ingrid)
    rule = desk.rule(desk.nils)
    run = desk.run(trigger=rule)
    tools = toolset_for(run)
    assert listed(tools) == [nils_s.pk]
    assert TurnConversationRead.objects.get().trigger_id == str(rule.pk)
    Rule.objects.filter(pk=rule.pk).update(owner=desk.ingrid)
    assert listed(tools) == [ingrid_s.pk]
    Rule.objects.filter(pk=rule.pk).update(owner=None)
    assert tools.call("list_conversations", {})["error"]["code"] == "history_unavailable"
    assert not drawn_on(run).webhook
    Rule.objects.filter(pk=rule.pk).update(hooked=True)
    assert drawn_on(run).webhook


@pytest.mark.parametrize("lost", ["person", "run", "thread", "right"])
def test_reach_now_over_columns_of_state(desk: Desk, lost: str) -> None:
    desk.allow()
    lead = desk.staff("lead", "lead")
    old = desk.thread("a", person=desk.nils)
    run = desk.run(lead)
    tools = toolset_for(run)
    assert page_of(tools, old)
    if lost == "person":
        Staff.objects.filter(pk=lead.pk).update(state="left")
    elif lost == "run":
        Run.objects.filter(pk=run.pk).update(state="done")
    elif lost == "thread":
        Thread.objects.filter(pk=run.session_id).update(status="deleted")
    else:
        RoleRight.objects.filter(role="lead", name="see every thread").delete()
    assert answer(tools, old.pk)[0]["kind"] == "error"
    assert lost == "right" or not toolset_for(run)


def test_tool_count_is_what_is_read_of_parts(desk: Desk) -> None:
    """Texts are joined, calls named, and images, results, notes and what is internal left out."""
    desk.allow()
    entries = [
        "hello",
        [text("one"), IMAGE, text("two"), CALL, text("")],
        [IMAGE],
        [CALL, {"type": "call"}, {"type": "call", "name": 7}],
        [],
        None,
        {"type": "text", "text": "no list"},
        "one string",
        [7, None, "text", ["text"], {"text": "no type"}, {"type": "text"}, {"type": "text", "text": 7}],
    ]
    old = desk.thread(*entries, person=desk.nils)
    Entry.objects.filter(session=old, number=6).update(parts=None)
    Entry.objects.filter(session=old, number=8).update(parts='one "string"')
    desk.entry(old, 20, "a result", "tool")
    desk.entry(old, 21, "a note", "note")
    desk.entry(old, 22, "a draft", "assistant", internal=True)
    page = page_of(desk.tools(desk.nils), old)
    shown = {one["number"]: (one["quoted"]["text"], one["quoted"]["tool_calls"]) for one in page["messages"]}
    nothing = (None, [])
    assert shown == {
        1: ("hello", []),
        2: ("one\ntwo\n", ["look_up"]),
        3: nothing,
        4: (None, ["look_up"]),
        8: ('one "string"', []),
        **dict.fromkeys((5, 6, 7, 9), nothing),
    }
    assert len(shown) == page["conversation"]["message_count"]


def test_tool_read_names_calls_wherever_their_names_stand(desk: Desk) -> None:
    calls = [{"function": {"name": name}} for name in ("one", 2, "three hundred")] + [
        {"function": "x"},
        IMAGE,
    ]
    old = desk.thread(calls)
    names = ToolNames("parts", path=("function", "name"), most=2, length=5)
    assert Entry.objects.filter(session=old).values_list(names, flat=True).get() == ["one", "three"]
    other = PartsText("parts", kind=None, key="url", separator=" '%s' ")
    Entry.objects.filter(session=old).update(parts=[IMAGE, IMAGE])
    wanted = f"{IMAGE['url']} '%s' {IMAGE['url']}"
    assert Entry.objects.filter(session=old).values_list(other, flat=True).get() == wanted


@pytest.mark.parametrize("word", ["", "a'b", "a}b", 'a"b', "a b", "a,b", "é"])
def test_a_key_that_could_be_sql_is_refused(word: str) -> None:
    for given in ({"key": word}, {"kind": word}):
        with pytest.raises(ValueError, match=r"is no (name of a key|kind)"):
            PartsText("parts", **given)


def test_a_key_is_none_that_could_be_a_place_in_a_list(desk: Desk) -> None:
    """PostgreSQL would take it for one, and SQLite for a key."""
    for path in (("0",), ("function", "0"), ("-1",)):
        with pytest.raises(ValueError, match="no digit first"):
            ToolNames("parts", most=2, length=5, path=path)


def test_a_kind_is_a_text_never_a_number_or_a_truth_that_looks_like_it(desk: Desk) -> None:
    old = desk.thread([{"type": kind, "text": f"{kind!r}"} for kind in (5, True, None, ["5"], "5", "true")])
    for kind, wanted in (("5", "'5'"), ("true", "'true'"), ("null", "")):
        found = Entry.objects.filter(session=old).values_list(PartsText("parts", kind=kind), flat=True)
        assert found.get() == wanted


def test_tool_caps_and_tool_pages_over_parts(desk: Desk) -> None:
    """The parts of a message count as one text; every character is reached, and pages equal the original."""
    desk.allow()
    long = [text("a" * 3000), text("é" * 3000), text("z" * 3000)]
    old = desk.thread(long, *["b" * 3900] * 6, *["x"] * 60, person=desk.nils)
    tools, found, asked = desk.tools(desk.nils), dict[int, str](), {}
    while True:
        page = page_of(tools, old, **asked)
        assert len(page["messages"]) <= 50 and sum(len(one) for one in words(page)) <= 20_000
        for message in page["messages"]:
            found[message["number"]] = message["quoted"]["text"]
            while message["truncated"]:
                [message] = page_of(tools, old, cursor=message["truncated"]["continue"])["messages"]
                found[message["number"]] += message["quoted"]["text"]
        if page["next_cursor"] is None:
            break
        asked = {"cursor": page["next_cursor"]}
    assert found[1] == "\n".join(one["text"] for one in long)
    assert list(found) == list(range(1, 68)) and found[67] == "x"
    assert words(page_of(tools, old, start=-2)) == ["x", "x"]


def test_tool_text_is_hostile_in_parts(desk: Desk) -> None:
    """What JSON can write and no text can hold is replaced on SQLite; PostgreSQL refuses to keep it."""
    desk.allow()
    old = desk.thread([text("x\ufffdy\ufffdz😀"), text("%s ok")], person=desk.nils)
    if connection.vendor == "sqlite":
        odd = r'[{"type": "text", "text": "x\u0000y\ud800z\ud83d\ude00"}, {"type": "text", "text": "%s ok"}]'
        with connection.cursor() as cursor:
            cursor.execute("UPDATE desk_entries SET parts = %s WHERE thread_no = %s", [odd, old.pk])
    assert words(page_of(desk.tools(desk.nils), old)) == ["x\ufffdy\ufffdz😀\n%s ok"]


def test_tool_summary_and_what_is_trimmed(desk: Desk) -> None:
    desk.allow()
    given = {"summary": "They met.", "summary_through": 2, "trimmed_before": 2}
    old = desk.thread("a", "b", "c", "d", person=desk.nils, **given)
    Entry.objects.filter(session=old, number=1).delete()
    tools = desk.tools(desk.nils)
    page = page_of(tools, old, view="summary")
    assert (page["summary"]["quoted"]["text"], page["summary"]["messages_after"]) == ("They met.", 2)
    page = page_of(tools, old)
    assert page["unavailable"] == {"first": 1, "last": 1, "why": "trimmed"} and words(page) == ["b", "c", "d"]
    assert page_of(tools, desk.thread("a", person=desk.nils), view="summary")["summary"] is None


def test_tool_list_goes_on_over_integer_keys_that_tie(desk: Desk) -> None:
    desk.allow()
    made = [desk.thread("a", person=desk.nils, title=None).pk for _ in range(5)]
    made += [desk.thread("a", person=desk.nils, moved=NOON + timedelta(minutes=1)).pk]
    tools, found, cursor = desk.tools(desk.nils, moved=NOON), list[int](), None
    for _ in range(3):
        page = tools.call("list_conversations", {"limit": 2, **({"cursor": cursor} if cursor else {})})
        found += [int(one["id"]) for one in page["conversations"]]
        cursor = page["next_cursor"]
    assert cursor is None and found == [made[-1], *reversed(made[:-1])]


def test_catalog_who_asks_the_desk_s_roles_and_who_has_left(desk: Desk) -> None:
    head = desk.staff("head", "head")
    asked = {"agent": desk.otter, "value": "same_account", "why": "w"}
    changes.set_value("history_access", by=head, **asked)
    for person in (desk.nils, Staff.objects.filter(pk=head.pk)):
        if not isinstance(person, Staff):
            person.update(state="left")
            person = head
        with pytest.raises(changes.SettingForbiddenError):
            changes.set_value("history_access", by=person, **asked)
    Staff.objects.filter(pk=desk.ingrid.pk).update(state="left")
    with pytest.raises(changes.SettingForbiddenError) as caught:
        changes.set_value("history_access", platform=True, ceiling="none", by=desk.ingrid, why="w")
    assert caught.value.permission == "settings_catalog.change_platform_settings"


def test_record_erasure_and_record_sealed(desk: Desk) -> None:
    """A person by an integer key: names go, the fact stays, the seals verify; "07" is nobody."""
    desk.allow()
    old = desk.thread("a", person=desk.nils)
    page_of(desk.tools(desk.staff("lead", "lead")), old)
    assert seal() == 1
    with pytest.raises(ValueError, match="nothing is known"):
        erase_person(f"0{desk.nils.pk}", by="1", why="asked")
    assert erase_person(desk.nils, by=str(desk.ingrid.pk), why="asked").names == 1
    assert not RecordedName.objects.filter(kind="person", key=str(desk.nils.pk)).exists()
    assert TurnConversationRead.objects.get().session_person_id == str(desk.nils.pk)
    call_command("verify_reads", verbosity=0)
