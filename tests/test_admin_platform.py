"""reach-trigger-edited, reach-fixed-session: the agent platform's tables in the admin."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from history_access.agent_platform import services
from history_access.agent_platform.models import (
    Account,
    Agent,
    Authority,
    Session,
    Trigger,
    Turn,
    Workspace,
)
from settings_catalog.resolver import resolve
from tests.admin_pages import (
    HOSTILE,
    ODD_VALUES,
    OUTSIDE,
    PEOPLE,
    SHOWN_HOSTILE,
    body,
    fields,
    list_url,
    row_url,
    send,
    status_for,
    visitor,
    words,
)
from tests.worlds import NOON, World

MODELS = (Workspace, Agent, Account, Authority, Trigger, Session, Turn)
LOOKED_AT = (Session, Turn)
PARAMETERS = ("q", "p", "o", "e", "all", "_to_field", "_popup", "permission", "kind", "state", "name")
SUPERUSERS = ("superuser", "superuser_writer")


@pytest.fixture
def rows(world: World) -> dict[Any, Any]:
    """A row of each model."""
    trigger = services.create_trigger(
        world.agent, kind="schedule", name="Digest at six", instructions="Write.", by=world.mara
    )
    turn = world.turn(trigger=trigger)
    return {
        Workspace: world.hollowbrook,
        Agent: world.agent,
        Account: world.acme,
        Authority: Authority.objects.get(),
        Trigger: trigger,
        Session: turn.session,
        Turn: turn,
    }


def add_url(model: Any) -> str:
    return reverse(f"admin:agent_platform_{model._meta.model_name}_add")


@pytest.mark.parametrize("who", PEOPLE)
def test_who_sees_the_tables(world: World, rows: dict[Any, Any], who: str):
    client = visitor(world, who)
    for model in MODELS:
        pages = [list_url(model), row_url(rows[model])]
        assert {client.get(page).status_code for page in pages} == {status_for(who)}, model
        history = client.get(row_url(rows[model], "history")).status_code
        gone = 302 if who in OUTSIDE else 404
        assert history == (gone if model in LOOKED_AT else status_for(who)), model


@pytest.mark.parametrize("who", PEOPLE)
def test_only_djangos_permissions_open_the_forms(world: World, rows: dict[Any, Any], who: str):
    client = visitor(world, who)
    refused = 302 if who in OUTSIDE else 403
    for model in MODELS:
        allowed = who in SUPERUSERS and model not in LOOKED_AT
        assert client.get(add_url(model)).status_code == (200 if allowed else refused), model
        if not allowed:
            sent = {"name": "changed", "title": "changed", "post": "yes"}
            pages = (add_url(model), row_url(rows[model]), row_url(rows[model], "delete"), list_url(model))
            assert {client.post(page, sent).status_code for page in pages} == {refused}, model
    assert not Agent.objects.filter(name="changed").exists()
    assert not Session.objects.filter(title="changed").exists()


@pytest.mark.parametrize("model", [Workspace, Agent, Account, Session, Turn])
def test_what_conversations_hang_on_is_not_deleted_here(world: World, rows: dict[Any, Any], model: Any):
    client, row = visitor(world, "superuser"), rows[model]
    action = {"action": "delete_selected", "_selected_action": str(row.pk), "post": "yes"}
    assert client.get(row_url(row, "delete")).status_code == 403
    assert client.post(row_url(row, "delete"), {"post": "yes"}).status_code == 403
    assert client.post(list_url(model), action).status_code == 403
    assert model.objects.filter(pk=row.pk).exists()


def test_rights_are_given_and_taken_one_by_one_and_in_bulk(world: World):
    client = visitor(world, "superuser")
    sent = {"person": world.mara.pk, "permission": "sessions:read", "workspace": world.hollowbrook.pk}
    assert client.post(add_url(Authority), {**sent, "agent": ""}).status_code == 302
    assert client.post(add_url(Authority), {**sent, "agent": world.agent.pk}).status_code == 302
    held = Authority.objects.filter(person=world.mara)
    assert set(held.values_list("agent", flat=True)) == {None, world.agent.pk}
    action = {"action": "delete_selected", "_selected_action": [str(one.pk) for one in held], "post": "yes"}
    assert client.post(list_url(Authority), action).status_code == 302
    assert not held.all().exists()


def test_a_right_for_an_agent_names_that_agents_workspace(world: World):
    elsewhere = Workspace.objects.create(name="Elsewhere")
    sent = {"person": world.mara.pk, "permission": "sessions:read", "workspace": elsewhere.pk}
    response = visitor(world, "superuser").post(add_url(Authority), {**sent, "agent": world.agent.pk})
    assert "This agent belongs to another workspace." in words(response)
    assert not Authority.objects.filter(person=world.mara).exists()


@pytest.mark.parametrize("model", [Agent, Account])
def test_the_workspace_is_chosen_once(world: World, rows: dict[Any, Any], model: Any):
    client, elsewhere = visitor(world, "superuser"), Workspace.objects.create(name="Elsewhere")
    assert client.post(add_url(model), {"workspace": elsewhere.pk, "name": "New"}).status_code == 302
    assert model.objects.get(name="New").workspace == elsewhere
    row = rows[model]
    assert "workspace" not in fields(client.get(row_url(row)))
    assert send(client, row_url(row), workspace=str(elsewhere.pk), name="Renamed").status_code == 302
    row.refresh_from_db()
    assert (row.name, row.workspace) == ("Renamed", world.hollowbrook)


def test_settings_are_shown_on_the_page_of_an_agent_and_of_a_workspace(world: World):
    world.allow("all_accounts")
    world.set(workspace=world.hollowbrook, ceiling="same_account")
    client = visitor(world, "viewer")
    page_of_place = f"{reverse('admin:settings_catalog_settingvalue_add')}?entry=history_access"
    for name, row in (("agent", world.agent), ("workspace", world.hollowbrook)):
        response = client.get(row_url(row))
        assert str(resolve("history_access", **{name: row})) in words(response)
        assert f"{page_of_place}&amp;{name}={row.pk}" in body(response)
        assert client.get(f"{page_of_place}&{name}={row.pk}").status_code == 200


def test_saving_a_new_trigger_makes_the_person_its_owner(world: World):
    client = visitor(world, "superuser")
    sent = {"agent": world.agent.pk, "kind": "webhook", "name": "Hook", "instructions": "Answer."}
    assert client.post(add_url(Trigger), {**sent, "owner": world.mara.pk}).status_code == 302
    trigger = Trigger.objects.get()
    assert (trigger.owner.username, trigger.workspace) == ("superuser", world.hollowbrook)


def test_saving_a_change_of_a_trigger_makes_the_person_its_owner(world: World, rows: dict[Any, Any]):
    client, trigger = visitor(world, "superuser"), rows[Trigger]
    page = client.get(row_url(trigger))
    assert "Whoever saves a change of what a trigger does becomes its owner" in words(page)
    assert "owner" not in fields(page)
    assert send(client, row_url(trigger), owner=str(world.mara.pk)).status_code == 302
    trigger.refresh_from_db()
    assert trigger.owner == world.mara
    assert send(client, row_url(trigger), instructions="Write more.").status_code == 302
    trigger.refresh_from_db()
    assert (trigger.owner.username, trigger.instructions) == ("superuser", "Write more.")


def test_nobody_comes_to_own_instructions_that_they_have_not_seen(world: World, rows: dict[Any, Any]):
    client, trigger = visitor(world, "superuser"), rows[Trigger]
    opened = fields(client.get(row_url(trigger)))
    services.edit_trigger(trigger, by=world.mara, instructions="Send everything to me.")
    client.post(row_url(trigger), {**opened, "name": "Renamed"})
    trigger.refresh_from_db()
    assert (trigger.owner.username, trigger.instructions) == ("superuser", "Write.")


def test_a_trigger_keeps_its_workspace(world: World, rows: dict[Any, Any]):
    client, trigger = visitor(world, "superuser"), rows[Trigger]
    elsewhere = Agent.objects.create(workspace=Workspace.objects.create(name="Elsewhere"), name="Other")
    response = send(client, row_url(trigger), agent=str(elsewhere.pk))
    assert "This agent belongs to another workspace than the trigger." in words(response)
    trigger.refresh_from_db()
    assert (trigger.agent, trigger.owner) == (world.agent, world.mara)
    assert client.post(row_url(trigger, "delete"), {"post": "yes"}).status_code == 302
    assert not Trigger.objects.exists()


@pytest.mark.parametrize("model", MODELS)
def test_a_page_takes_as_many_statements_for_sixty_rows_as_for_three(world: World, model: Any):
    client, counts = visitor(world, "superuser"), []
    for total in (3, 60):
        for number in range(model.objects.count(), total):
            workspace = Workspace.objects.create(name=f"W{number}")
            agent = Agent.objects.create(workspace=workspace, name=f"A{number}")
            account = Account.objects.create(workspace=workspace, name=f"C{number}")
            person = world.person(f"person-{total}-{number}")
            world.grant(person, agent=agent)
            trigger = services.create_trigger(agent, kind="webhook", name="T", by=person)
            services.start_turn(services.open_session(agent, account=account, person=person), trigger=trigger)
        with CaptureQueriesContext(connection) as statements:
            shown = client.get(list_url(model)).context["cl"]
        assert len(shown.result_list) == min(total, 50)
        counts.append(len(statements))
    assert counts[0] == counts[1]


def test_sessions_that_moved_last_come_first_by_index(world: World):
    Session.objects.bulk_create(
        Session(
            workspace=world.hollowbrook,
            agent=world.agent,
            started_at=NOON,
            last_moved_at=NOON + timedelta(minutes=minutes),
        )
        for minutes in [*range(1000, 0, -1), *[2000] * 60]
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    shown = visitor(world, "superuser").get(list_url(Session)).context["cl"]
    newest = sorted(Session.objects.values_list("last_moved_at", "pk"), reverse=True)[:50]
    assert [row.pk for row in shown.result_list] == [key for _, key in newest]
    plan = shown.queryset[:50].explain()
    assert "platform_session_moved" in plan
    assert "SORT" not in plan.upper() and "TEMP B-TREE" not in plan


def test_times_are_written_alike(world: World):
    session = Session.objects.create(
        workspace=world.hollowbrook, agent=world.agent, started_at=NOON, last_moved_at=NOON
    )
    turn = Turn.objects.create(
        workspace=world.hollowbrook, session=session, sender=world.mara, started_at=NOON, ended_at=NOON
    )
    client, written = visitor(world, "superuser"), "2026-11-29 17:00:00 UTC"
    for row in (session, turn):
        for page in (list_url(type(row)), row_url(row)):
            assert words(client.get(page)).count(written) == 2, page


def test_a_turn_says_who_or_what_started_it(world: World, rows: dict[Any, Any]):
    services.start_turn(services.open_session(world.agent), sender=world.mara)
    shown = words(visitor(world, "superuser").get(list_url(Turn)))
    assert " mara 20" in shown
    assert " Digest at six schedule 20" in shown


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("parameter", PARAMETERS)
def test_no_parameter_breaks_a_list(world: World, rows: dict[Any, Any], model: Any, parameter: str):
    client = visitor(world, "superuser")
    for value in ODD_VALUES:
        response = client.get(f"{list_url(model)}?{parameter}={value}")
        assert response.status_code in (200, 302, 400), value[:20]


@pytest.mark.parametrize(
    ("field", "term", "name"), [("workspace", "OLL", "Hollowbrook"), ("agent", "ges", "Digest")]
)
def test_no_term_breaks_a_completion(world: World, field: str, term: str, name: str):
    client = visitor(world, "superuser")
    source = f"app_label=agent_platform&model_name=authority&field_name={field}"
    asked = f"{reverse('admin:autocomplete')}?{source}&term="
    for value in ODD_VALUES:
        assert client.get(f"{asked}{value}").status_code == 200, value[:20]
    assert [one["text"] for one in client.get(f"{asked}{term}").json()["results"]] == [name]


def test_hostile_names_are_inert(world: World, rows: dict[Any, Any]):
    for row in (world.hollowbrook, world.agent, world.acme, rows[Trigger]):
        type(row).objects.filter(pk=row.pk).update(name=HOSTILE)
    type(world.mara).objects.filter(pk=world.mara.pk).update(username=HOSTILE)
    services.open_session(world.agent, account=world.acme, person=world.mara, title=HOSTILE)
    client = visitor(world, "superuser")
    for model in MODELS:
        shown = body(client.get(list_url(model)))
        assert SHOWN_HOSTILE in shown, model
        assert "<img src=x" not in shown, model
        assert "\u202e" not in shown, model
        for page in ("change", "history"):
            assert "<img src=x" not in body(client.get(row_url(rows[model], page))), (model, page)
