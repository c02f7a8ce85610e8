"""catalog-explains, case 29: what the admin's lists of settings show, find, and survive."""

from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from history_access.agent_platform.models import Agent, Workspace
from settings_catalog.catalog import catalog
from settings_catalog.models import SettingChange, SettingValue
from settings_catalog.resolver import resolve
from tests.admin_pages import (
    HOSTILE,
    ODD_VALUES,
    SHOWN_HOSTILE,
    body,
    list_url,
    place_url,
    row_url,
    send,
    settings_everywhere,
    staff,
    visitor,
    words,
)
from tests.worlds import World

WHY = "the auditors asked for it"


@pytest.fixture
def rows(world: World) -> dict[str, SettingValue]:
    """A row at each place."""
    return settings_everywhere(world)


def test_the_catalog_shows_every_setting_in_its_own_words(world: World):
    world.set(platform=True, value="all_accounts", ceiling="same_account")
    shown = words(visitor(world, "viewer").get(reverse("admin:settings_catalog_settingvalue_catalog")))
    for entry in catalog:
        assert f"{entry.title} {entry.help} {entry.key}" in shown
        for choice in entry.choices:
            assert f"{choice.label} {choice.allows} {choice.value}" in shown
    assert "No access Nothing. none Default. Starting ceiling of the platform." in shown
    assert str(resolve("history_access")) in shown


def test_the_list_shows_labels_and_what_holds_each_row(world: World, rows: dict[str, SettingValue]):
    shown = words(visitor(world, "viewer").get(list_url(SettingValue)))
    everything, this = "All of this agent's conversations", "This account's conversations"
    assert f"History access the agent Digest of Hollowbrook {everything} – {this}" in shown
    assert f"History access the workspace Hollowbrook {everything} {this} {this}" in shown
    assert f"History access the whole platform {this} {everything} {this}" in shown
    assert str(resolve("history_access", world.agent)) in shown
    assert "held at same_account, because the workspace allows nothing above same_account." in shown


def test_every_page_of_a_setting_leads_back_to_the_settings(world: World, rows: dict[str, SettingValue]):
    client = visitor(world, "superuser_writer")
    catalog_page = reverse("admin:settings_catalog_settingvalue_catalog")
    for page in (
        catalog_page,
        place_url(world, "agent"),
        row_url(rows["agent"]),
        place_url(world, "agent", "x"),
    ):
        response = client.get(page)
        crumbs = body(response).split('class="breadcrumbs"')[1].split("</nav>")[0]
        assert f'<a href="{list_url(SettingValue)}">Settings</a>' in crumbs, page
        assert str(response.context["title"]) in crumbs, page


def test_faults_are_shown_to_operators(world: World):
    SettingValue.objects.create(entry="history_access", level="platform", value="ALL", ceiling="")
    SettingValue.objects.create(entry="retired", level="platform", value="x")
    client = visitor(world, "superuser")
    for page in (list_url(SettingValue), place_url(world, "agent"), row_url(world.agent)):
        shown = words(client.get(page))
        for kind, stored in (("value", "'ALL'"), ("ceiling", "''")):
            fault = f"The {kind} {stored} on the platform is not one of history_access's choices"
            assert fault in shown, page
    assert "no setting of this key is registered" in words(client.get(list_url(SettingValue)))
    row = SettingValue.objects.get(entry="retired")
    assert "cannot be changed here" in words(client.get(row_url(row)))


def test_a_row_whose_place_is_gone_is_shown_and_cannot_be_changed(world: World):
    for key in ("no-key-at-all", "01a22e56-4865-76a2-b542-020b32c00e72"):
        row = SettingValue.objects.create(
            entry="history_access", level="workspace", workspace_id=key, value="none"
        )
        client = visitor(world, "superuser_writer")
        assert f"the workspace {key} (gone)" in words(client.get(list_url(SettingValue)))
        assert "you lack the permission settings:write" in words(client.get(row_url(row)))
        assert client.post(row_url(row), {"why": WHY, "value": ""}).status_code == 403


@pytest.mark.parametrize(
    "query",
    [
        "entry=no_such",
        "entry=history_access&workspace=%00",
        "entry=history_access&agent=%7B01a22e56-4865-76a2-b542-020b32c00e72%7D",
        "entry=history_access&agent=" + "9" * 5000,
        "entry=history_access&workspace=%ED%A0%80",
        "entry=%00",
        "entry",
    ],
)
def test_a_place_that_is_none_is_asked_for_again(world: World, query: str):
    response = visitor(world, "superuser_writer").get(
        f"{reverse('admin:settings_catalog_settingvalue_add')}?{query}"
    )
    assert response.status_code == 200
    assert response.context["form"].errors


def test_one_place_at_a_time(world: World):
    url = f"{place_url(world, 'agent')}&workspace={world.hollowbrook.pk}"
    response = visitor(world, "superuser_writer").get(url)
    assert response.context["form"].errors == {"workspace": ["Name a workspace or an agent, not both."]}


def test_the_log_names_who_still_exists(world: World):
    left = world.person("left", is_superuser=True)
    world.grant(left, "settings:write")
    world.operator = left
    world.set(agent=world.agent, value="same_account")
    key = left.pk
    client = visitor(world, "viewer")
    assert "left Asks for: – → This account's conversations a test" in words(
        client.get(list_url(SettingChange))
    )
    left.delete()
    shown = words(client.get(list_url(SettingChange)))
    assert f"{key} (gone) Asks for: – → This account's conversations a test" in shown


def test_lists_are_searched_by_names_and_by_keys(world: World, rows: dict[str, SettingValue]):
    client, other = visitor(world, "viewer"), Agent.objects.create(workspace=world.hollowbrook, name="Other")
    world.set(agent=other, value="none")
    for term, found in (("dige", 1), ("HOLLOW", 3), (str(other.pk), 1), ("nobody", 0), ("", 4)):
        shown = client.get(list_url(SettingValue), {"q": term}).context["cl"]
        assert len(shown.result_list) == found, term
    log = client.get(list_url(SettingChange), {"q": str(other.pk)}).context["cl"]
    assert [row.agent_id for row in log.result_list] == [str(other.pk)]


def test_a_platform_whose_own_admin_takes_any_term_is_not_asked_for_an_odd_one(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    class AnyTerm(admin.ModelAdmin):
        search_fields = ("name",)

    monkeypatch.setitem(admin.site._registry, Agent, AnyTerm(Agent, admin.site))
    world.set(agent=world.agent, value="none")
    client = visitor(world, "viewer")
    assert client.get(list_url(SettingValue), {"q": "digest"}).context["cl"].result_count == 1
    for value in ODD_VALUES:
        assert client.get(f"{list_url(SettingValue)}?q={value}").status_code == 200, value[:20]


def test_names_are_searched_where_their_own_admin_shows_them(
    world: World, rows: dict[str, SettingValue], monkeypatch: pytest.MonkeyPatch
):
    client, url = Client(), list_url(SettingValue)
    client.force_login(staff(world, "settings_viewer", "view_settingvalue"))
    for term, found in (("digest", 0), (str(world.agent.pk), 1), ("%20", 3)):
        assert client.get(f"{url}?q={term}").context["cl"].result_count == found, term
    monkeypatch.delitem(admin.site._registry, Agent)
    assert visitor(world, "viewer").get(f"{url}?q=digest").context["cl"].result_count == 0


@pytest.mark.parametrize("key", ["%00", "1", "x" * 10_000, "01a22e56-4865-76a2-b542-020b32c00e72"])
def test_no_key_breaks_a_page(world: World, key: str):
    client = visitor(world, "superuser_writer")
    for page in ("change", "history"):
        response = client.get(f"{list_url(SettingValue)}{key}/{page}/")
        assert (response.status_code, response["Location"]) == (302, list_url(SettingValue)), page


def test_filters_leave_what_they_name_and_nothing_for_what_they_do_not(world: World, rows: dict[str, Any]):
    client = visitor(world, "viewer")
    world.set("conversation_references", platform=True, ceiling="excerpts")
    for query, found in (
        ("entry=conversation_references", 1),
        ("entry=history_access&level=agent", 1),
        ("level=platform", 2),
        ("level=Platform", 0),
        ("entry=no_such", 0),
    ):
        for model in (SettingValue, SettingChange):
            assert client.get(f"{list_url(model)}?{query}").context["cl"].result_count == found, query
    assert client.get(f"{list_url(SettingValue)}?levle=agent").status_code == 400


@pytest.mark.parametrize("model", [SettingValue, SettingChange])
def test_a_page_takes_as_many_statements_for_sixty_rows_as_for_three(world: World, model: Any):
    client = visitor(world, "viewer")
    counts = []
    for total in (3, 60):
        for number in range(SettingValue.objects.count(), total):
            workspace = world.hollowbrook if number % 2 else Workspace.objects.create(name=f"W{number}")
            agent = Agent.objects.create(workspace=workspace, name=f"A{number}")
            row = {"level": "agent", "workspace_id": workspace.pk, "agent_id": agent.pk}
            entry = "conversation_references" if number % 3 else "history_access"
            SettingValue.objects.create(entry=entry, value="none", **row)
            SettingChange.objects.create(
                entry=entry, by_id=str(world.mara.pk), changed_at="2026-11-30T00:00Z", why="w", **row
            )
        with CaptureQueriesContext(connection) as statements:
            shown = client.get(list_url(model)).context["cl"]
        assert len(shown.result_list) == min(total, 50)
        counts.append(len(statements))
    assert counts[0] == counts[1]


OWN = ("q", "entry", "level")


@pytest.mark.parametrize("model", [SettingValue, SettingChange])
@pytest.mark.parametrize(
    "parameter",
    [*OWN, "p", "o", "e", "all", "_to_field", "_popup", "why", "value__startswith"],
)
def test_no_parameter_breaks_a_list(world: World, rows: dict[str, Any], model: Any, parameter: str):
    client = visitor(world, "superuser_writer")
    for value in ODD_VALUES:
        response = client.get(f"{list_url(model)}?{parameter}={value}")
        assert response.status_code in (200, 302, 400), value[:20]


def test_hostile_names_are_inert(world: World):
    world.agent.name = world.hollowbrook.name = HOSTILE
    world.agent.save()
    world.hollowbrook.save()
    world.operator.username = HOSTILE
    world.operator.save()
    world.set(agent=world.agent, value="none")
    row, change = SettingValue.objects.get(), SettingChange.objects.get()
    client = visitor(world, "viewer")
    for page in (list_url(SettingValue), row_url(row), list_url(SettingChange), row_url(change)):
        shown = body(client.get(page))
        assert SHOWN_HOSTILE in shown, page
        assert "<img src=x" not in shown, page
        assert "\u202e" not in shown, page


def test_a_hostile_reason_is_inert(world: World):
    client = visitor(world, "superuser")
    send(client, place_url(world, "platform"), value="same_account", why=HOSTILE)
    for page in (list_url(SettingChange), row_url(SettingChange.objects.get())):
        shown = body(client.get(page))
        assert "&lt;img src=x" in shown, page
        assert "<img src=x" not in shown, page
