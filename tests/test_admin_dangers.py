"""danger-warned: whoever changes a setting sees what is dangerous about it, before it is saved and after."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from history_access import danger
from history_access.agent_platform import services
from history_access.agent_platform.models import Agent, Workspace
from settings_catalog.models import SettingValue
from tests.admin_pages import PLACES, body, place_url, row_url, send, visitor, words
from tests.audits import choose, may_write_files, webhook
from tests.worlds import World

WHY = "the auditors asked for it"
CHOSEN = 'class="dangerous"'


@pytest.fixture
def chosen(settings: Any) -> Callable[..., None]:
    """Change what the platform says in HISTORY_ACCESS."""
    choose(settings)
    return partial(choose, settings)


@pytest.fixture
def client(world: World, chosen: Any) -> Client:
    return visitor(world, "superuser_writer")


def on_choices(page: Any) -> dict[str, str]:
    """What stands beside each choice of the form's value, by the value."""
    radios = page.context["form"].fields["value"].choices
    return {value: label for value, label in radios if value}


@pytest.mark.parametrize("place", PLACES)
def test_a_choice_that_a_webhook_makes_dangerous_says_so_before_it_is_saved(
    world: World, client: Client, place: str
):
    url = place_url(world, place)
    assert CHOSEN not in body(client.get(url))
    webhook(world, kind="schedule")
    assert CHOSEN not in body(client.get(url))
    webhook(world)
    page = client.get(url)
    beside = on_choices(page)
    assert [value for value in beside if CHOSEN in beside[value]] == ["all_accounts"]
    # At a place with a ceiling it is said beside that too: a raised ceiling lets what is asked for hold.
    assert words(page).count(str(danger.WEBHOOK.choice)) == (1 if place == "agent" else 2)


@pytest.mark.parametrize("place", ["workspace", "agent"])
def test_webhooks_of_others_do_not_warn(world: World, client: Client, place: str):
    other = Agent.objects.create(workspace=Workspace.objects.create(name="Elsewhere"), name="Other")
    services.create_trigger(other, kind="webhook", name="Hook", by=world.mara)
    assert CHOSEN not in body(client.get(place_url(world, place)))
    assert CHOSEN in body(client.get(place_url(world, "platform")))


def test_what_was_saved_is_warned_of_where_it_holds(world: World, client: Client):
    world.allow("same_account")
    world.set(platform=True, ceiling="all_accounts")
    webhook(world)
    url = place_url(world, "agent")
    answer = send(client, url, value="all_accounts", why=WHY)
    assert answer.status_code == 302
    page = client.get(answer["Location"])
    # In the message, in what holds here, and beside the choice.
    assert words(page).count(str(danger.WEBHOOK.warning)) == 3
    assert words(client.get(url)).count(str(danger.WEBHOOK.warning)) == 2
    assert words(client.get(row_url(world.agent))).count(str(danger.WEBHOOK.warning)) == 1
    page = client.get(send(client, url, value="same_account", why=WHY)["Location"])
    assert str(danger.WEBHOOK.warning) not in words(page)


@pytest.mark.parametrize("entry", ["history_access", "workspace_files"])
@pytest.mark.parametrize("place", PLACES)
def test_either_side_of_the_shared_files_warns_of_the_other(
    world: World, client: Client, place: str, entry: str
):
    url, value = place_url(world, place, entry), "all_accounts" if entry == "history_access" else "write"
    assert CHOSEN not in body(client.get(url))
    if entry == "history_access":
        may_write_files(world)
    else:
        world.allow("all_accounts")
    beside = on_choices(client.get(url))
    assert [one for one in beside if CHOSEN in beside[one]] == [value]
    assert str(danger.SHARED_FILES.choice) in words(client.get(url)).replace("&#x27;", "'")


def test_lower_values_and_other_settings_are_not_dangerous(world: World, client: Client):
    webhook(world)
    world.allow("same_account")
    may_write_files(world, value="read")
    for entry in ("conversation_references", "workspace_files", "agent_files"):
        assert CHOSEN not in body(client.get(place_url(world, "agent", entry))), entry


def test_where_the_platform_refuses_a_danger_the_choice_says_that(world: World, client: Client, chosen: Any):
    chosen(DANGER="refuse")
    webhook(world)
    world.set(platform=True, ceiling="all_accounts")
    refused = str(danger.WEBHOOK.refusal)
    beside = on_choices(client.get(place_url(world, "agent")))
    assert refused[0].upper() + refused[1:] in beside["all_accounts"]
    page = client.get(send(client, place_url(world, "agent"), value="all_accounts", why=WHY)["Location"])
    assert f"held at same_account, because {refused}" in words(page)


def test_without_triggers_and_shared_files_nothing_is_warned_of(world: World, client: Client, chosen: Any):
    webhook(world)
    may_write_files(world)
    chosen(TRIGGER_MODEL=None, SHARED_FILES_SETTING=None)
    for place in PLACES:
        assert CHOSEN not in body(client.get(place_url(world, place))), place


def test_a_place_whose_key_is_none_warns_of_nothing(world: World, client: Client):
    webhook(world)
    row = SettingValue.objects.create(
        entry="history_access", level="workspace", workspace_id="no-key-at-all", value="none"
    )
    page = client.get(row_url(row))
    assert page.status_code == 200
    assert CHOSEN not in body(page)


def test_warnings_take_as_many_statements_for_sixty_agents_as_for_three(world: World, client: Client):
    counts = []
    for total in (3, 60):
        for number in range(Agent.objects.count(), total):
            agent = Agent.objects.create(workspace=world.hollowbrook, name=f"A{number}")
            webhook(world, agent)
            may_write_files(world, agent)
        with CaptureQueriesContext(connection) as statements:
            client.get(place_url(world, "workspace"))
        counts.append(len(statements))
    assert counts[0] == counts[1]
