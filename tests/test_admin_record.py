"""record-every-read, case 36: reads in the admin: keys, counts and names, to look at only."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from history_access.leaves import ERASED
from history_access.models import RecordedName, TurnConversationRead
from settings_catalog.admin import lists
from tests.admin_pages import (
    HOSTILE,
    ODD_VALUES,
    OUTSIDE,
    PEOPLE,
    SHOWN_HOSTILE,
    body,
    read_row,
    row_url,
    visitor,
    words,
)
from tests.worlds import World, listed, pages

LIST = "admin:history_access_turnconversationread_changelist"
FILTERS = ("workspace", "days", "crossed", "account_absent", "turn_account_absent", "how", "what", "setting")


def found(client: Client, query: str) -> list[str]:
    """The turns of the reads that the list leaves."""
    response = client.get(f"{reverse(LIST)}?{query}")
    assert response.status_code == 200, query
    return [row.turn_id for row in response.context["cl"].result_list]


@pytest.fixture
def client_who_sees(world: World) -> Client:
    return visitor(world, "superuser")


@pytest.mark.parametrize("who", PEOPLE)
def test_nobody_adds_changes_deletes_or_acts(world: World, who: str):
    client, row = visitor(world, who), read_row()
    add = reverse("admin:history_access_turnconversationread_add")
    action = {"action": "delete_selected", "_selected_action": str(row.pk), "post": "yes"}
    answers = [
        client.get(add),
        client.post(add, {"turn_id": "invented"}),
        client.get(row_url(row, "delete")),
        client.post(row_url(row, "delete"), {"post": "yes"}),
        client.post(row_url(row), {"turn_id": "changed"}),
        client.post(reverse(LIST), action),
        client.post(reverse(LIST)),
    ]
    refused = 302 if who in OUTSIDE else 403
    assert [answer.status_code for answer in answers] == [refused] * len(answers)
    assert list(TurnConversationRead.objects.values_list("turn_id", flat=True)) == ["t"]


def test_there_is_no_history_of_a_row_that_never_changes(client_who_sees: Client):
    row = read_row()
    assert "historylink" not in body(client_who_sees.get(row_url(row)))
    assert client_who_sees.get(row_url(row, "history")).status_code == 404


def test_names_are_not_in_the_admin_by_themselves(client_who_sees: Client):
    assert client_who_sees.get("/admin/history_access/recordedname/").status_code == 404


def test_a_real_read_is_shown_with_the_names_recorded_beside_it(world: World, client_who_sees: Client):
    world.allow("all_accounts")
    session = world.session("hello", "hi", "bye", person=world.mara, account=world.acme)
    pages(world.tools(world.mara), session.pk)
    read = TurnConversationRead.objects.get()
    shown = words(client_who_sees.get(reverse(LIST)))
    accounts = "conversation's: Acme turn's: no account crossed: Yes"
    assert f"Digest as mara messages 1–3 of {session.pk} {accounts} history: All of this agent's" in shown
    detail = words(client_who_sees.get(row_url(read)))
    for label, value in (
        ("Workspace:", "Hollowbrook"),
        ("Read as:", "mara"),
        ("Turn:", read.turn_id),
        ("Conversation:", session.pk),
        ("Conversation's account:", "Acme"),
        ("Turn's account:", "no account"),
        ("Agent:", world.agent.pk),
    ):
        assert f"{label} {value}" in detail


def test_erased_names_leave_the_key(world: World, client_who_sees: Client):
    world.allow("same_account")
    world.session("hello", person=world.mara)
    listed(world.tools(world.mara))
    RecordedName.objects.filter(kind="person").delete()
    assert f"Digest as {world.mara.pk} title of" in words(client_who_sees.get(reverse(LIST)))


def test_the_newest_of_several_names_is_shown_and_only_its_own_workspaces(client_who_sees: Client):
    read_row()
    for workspace, name in (("w", "Old"), ("w", "New"), ("elsewhere", "Foreign")):
        RecordedName.objects.create(workspace_id=workspace, kind="agent", key="a", name=name)
    assert "New as 7 title of s" in words(client_who_sees.get(reverse(LIST)))


def test_accounts_with_the_names_of_nothing_are_accounts(client_who_sees: Client):
    for name in ("none", "–", "no account", ""):
        read_row(turn_account_id=name, session_account_id=None)
    shown = body(client_who_sees.get(reverse(LIST)))
    assert shown.count("<em>no account</em>") == 4
    assert words(client_who_sees.get(reverse(LIST))).count(" crossed: Yes history:") == 4


@pytest.mark.parametrize(
    ("account", "turn_account", "crossed"),
    [
        (ERASED, ERASED, "unknown: both accounts were erased"),
        (ERASED, None, "Yes"),
        (None, ERASED, "Yes"),
        (ERASED, "acme", "Yes"),
        ("acme", "acme", "No"),
    ],
)
def test_crossed_says_what_rest_says(
    client_who_sees: Client, account: str | None, turn_account: str | None, crossed: str
):
    read = read_row(session_account_id=account, turn_account_id=turn_account)
    rest = client_who_sees.get(f"/api/history/reads/{read.pk}/").json()["crossed_account"]
    assert rest is {"Yes": True, "No": False}.get(crossed)
    assert f"crossed: {crossed} history:" in words(client_who_sees.get(reverse(LIST)))
    assert f"Crossed account: {crossed} " in words(client_who_sees.get(row_url(read)))


def test_summaries_titles_and_excerpts_say_what_they_are(client_who_sees: Client):
    read_row(what="summary", last_number=40)
    read_row(what="summary")
    read_row(what="excerpt", how="reference", setting="retired")
    shown = words(client_who_sees.get(reverse(LIST)))
    assert "summary through message 40 of s" in shown
    assert "as 7 summary of s" in shown
    assert "excerpt of s conversation's: acme turn's: acme crossed: No reference: “retired”, unknown" in shown


def test_filters_leave_exactly_what_they_name(client_who_sees: Client):
    ago = timezone.now() - timedelta(days=2)
    read_row(turn_id="plain")
    read_row(turn_id="crossed", session_account_id="other", setting="all_accounts", what="messages")
    read_row(turn_id="turn_absent", turn_account_id=None, read_at=ago)
    read_row(turn_id="session_absent", session_account_id=None, how="reference", what="excerpt")
    read_row(turn_id="both_absent", turn_account_id=None, session_account_id=None, what="summary")
    every = {"plain", "crossed", "turn_absent", "session_absent", "both_absent"}
    crossed = {"crossed", "turn_absent", "session_absent"}
    for query, turns in {
        "": every,
        "crossed=true": crossed,
        "crossed=false": every - crossed,
        "turn_account_absent=true": {"turn_absent", "both_absent"},
        "account_absent=true": {"session_absent", "both_absent"},
        "account_absent=true&turn_account_absent=true": {"both_absent"},
        "account_absent=false&turn_account_absent=false": {"plain", "crossed"},
        "workspace=w": every,
        "workspace=elsewhere": set(),
        "days=1": every - {"turn_absent"},
        "days=7": every,
        "how=reference": {"session_absent"},
        "what=summary": {"both_absent"},
        "setting=all_accounts": {"crossed"},
        "setting=all_accounts&crossed=false": set(),
        "crossed=maybe": set(),
        "setting=none": set(),
        "days=-1": set(),
    }.items():
        assert set(found(client_who_sees, query)) == turns, query


def test_a_misspelt_filter_is_refused(client_who_sees: Client):
    for query in (
        "acount=A",
        "session_id=s",
        "turn_account_id__isnull=1",
        "reader_id__startswith=7",
        "crosed=yes",
    ):
        assert client_who_sees.get(f"{reverse(LIST)}?{query}").status_code == 400, query


def test_search_takes_whole_keys_alone(client_who_sees: Client):
    read_row(turn_id="one", session_id="two", agent_id="three", reader_id="four", turn_account_id="five")
    read_row(turn_id="other", trigger_id="six")
    RecordedName.objects.create(workspace_id="w", kind="agent", key="three", name="Digest")
    for key in ("one", "two", "three", "four", "five", " one "):
        assert found(client_who_sees, f"q={key}") == ["one"], key
    assert found(client_who_sees, "q=acme") == ["other", "one"]
    assert found(client_who_sees, "q=six") == ["other"]
    for key in ("on", "ONE", "Digest", "o%25", "one+two"):
        assert found(client_who_sees, f"q={key}") == [], key


SHARED = ["p", "o", "e", "all", "_to_field", "_popup", "read_at__year"]


@pytest.mark.parametrize("parameter", ["q", *FILTERS, *SHARED])
def test_no_parameter_breaks_the_list(client_who_sees: Client, parameter: str):
    read_row()
    for value in ODD_VALUES:
        response = client_who_sees.get(f"{reverse(LIST)}?{parameter}={value}")
        assert response.status_code in (200, 302, 400, 404), value[:20]


@pytest.mark.parametrize(
    "key", ["%00", "1", "%7B01a22e56-4865-76a2-b542-020b32c00e72%7D", "x" * 10_000, "%ED%A0%80"]
)
def test_no_key_breaks_a_page(client_who_sees: Client, key: str):
    for page, status in (("change", 302), ("history", 404), ("delete", 403)):
        assert client_who_sees.get(f"{reverse(LIST)}{key}/{page}/").status_code == status, page


def test_a_page_takes_as_many_statements_for_sixty_rows_as_for_three(client_who_sees: Client):
    counts = []
    for total in (3, 60):
        for number in range(TurnConversationRead.objects.count(), total):
            row = read_row(workspace_id=f"w{number}", agent_id=f"a{number}", reader_id=str(number))
            RecordedName.objects.create(
                workspace_id=row.workspace_id, kind="agent", key=row.agent_id, name="n"
            )
        with CaptureQueriesContext(connection) as statements:
            assert len(client_who_sees.get(reverse(LIST)).context["cl"].result_list) == min(total, 50)
        counts.append(len(statements))
        (names,) = (one["sql"] for one in statements if "recordedname" in one["sql"])
        assert '"workspace_id" IN (' in names
    assert counts[0] == counts[1]


def test_the_table_is_never_counted_whole(client_who_sees: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lists, "MOST_ROWS", 60)
    for number in range(70):
        read_row(turn_id=str(number))
    with CaptureQueriesContext(connection) as statements:
        response = client_who_sees.get(f"{reverse(LIST)}?p=2")
    assert [row.turn_id for row in response.context["cl"].result_list] == [str(n) for n in range(19, 9, -1)]
    assert "Only the newest 60 are shown" in words(response)
    about = [one["sql"] for one in statements if "turnconversationread" in one["sql"]]
    assert len(about) == 4  # the page and its count, and what waits for a seal: the oldest, and a count
    assert all(" LIMIT " in statement for statement in about)
    assert found(client_who_sees, "q=3") == ["3"]


def test_hostile_names_are_inert(world: World, client_who_sees: Client):
    world.agent.name = world.acme.name = world.mara.username = HOSTILE
    for row in (world.agent, world.acme, world.mara):
        row.save()
    world.allow("same_account")
    world.session("hello", person=world.mara, account=world.acme, title=HOSTILE)
    listed(world.tools(world.mara, account=world.acme))
    for page in (reverse(LIST), row_url(TurnConversationRead.objects.get())):
        shown = body(client_who_sees.get(page))
        assert shown.count(SHOWN_HOSTILE) >= 4, page
        assert "<img src=x" not in shown, page
        assert "\u202e" not in shown, page
