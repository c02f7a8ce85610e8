"""catalog-explains, danger-warned: which history an agent may read and why, in REST."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.test import Client

from history_access import entries
from history_access.agent_platform.models import Agent
from settings_catalog.models import SettingValue
from settings_catalog.places import Level
from settings_catalog.resolver import Resolution, resolve
from tests.audits import API, choose, may_write_files, visitor, webhook
from tests.worlds import World

HISTORY = entries.HISTORY_ACCESS.key


@pytest.fixture
def chosen(settings: Any) -> Callable[..., None]:
    """Change what the platform says in HISTORY_ACCESS."""
    choose(settings)
    return partial(choose, settings)


def access(client: Client, agent: Agent) -> dict[str, Any]:
    answer = client.get(f"{API}/agents/{agent.pk}/history-access/")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def shown_as(held: Resolution, found: dict[str, Any]) -> None:
    """What REST says is what the resolver says, and nothing that REST made up."""
    assert found["sentence"] == str(held)
    assert (found["value"], found["asked"], found["faults"]) == (held.value, held.asked, list(held.faults))
    assert [(step["value"], step["ceiling"]) for step in found["steps"]] == [
        (step.value, step.ceiling) for step in held.steps
    ]


def test_rest_shows_the_resolution_of_an_agent(world: World, chosen: Any) -> None:
    client = visitor(world, "platform_auditor")
    found = access(client, world.agent)
    shown_as(resolve(HISTORY, world.agent), found)
    assert (found["value"], found["asked_at"], found["warnings"]) == ("none", None, [])
    assert (found["agent_id"], found["workspace_id"]) == (str(world.agent.pk), str(world.hollowbrook.pk))
    world.allow("all_accounts")
    world.set(workspace=world.hollowbrook, ceiling="same_account")
    found = access(client, world.agent)
    shown_as(resolve(HISTORY, world.agent), found)
    assert found["held_by"] == {
        "level": "workspace",
        "value": "same_account",
        "reason": "the workspace allows nothing above same_account",
    }
    assert [step["level"] for step in found["steps"]] == ["agent", "workspace", "platform"]


def test_rest_shows_a_stored_value_that_is_unknown(world: World, chosen: Any) -> None:
    world.set(platform=True, ceiling="all_accounts")
    SettingValue.objects.create(
        entry=HISTORY,
        level=Level.AGENT,
        workspace_id=str(world.hollowbrook.pk),
        agent_id=str(world.agent.pk),
        value="ALL",
    )
    found = access(visitor(world, "platform_auditor"), world.agent)
    shown_as(resolve(HISTORY, world.agent), found)
    assert found["value"] == "none" and len(found["faults"]) == 1


def test_rest_warns_and_after_a_refusal_says_why(world: World, chosen: Any) -> None:
    client = visitor(world, "platform_auditor")
    world.allow("all_accounts")
    webhook(world)
    may_write_files(world)
    found = access(client, world.agent)
    assert found["value"] == "all_accounts"
    assert [one["code"] for one in found["warnings"]] == ["webhook", "shared_files"]
    assert all(one["warning"].endswith(".") for one in found["warnings"])
    chosen(DANGER="refuse")
    found = access(client, world.agent)
    assert (found["value"], found["warnings"]) == ("same_account", [])
    assert found["held_by"]["level"] is None
    assert found["held_by"]["reason"].startswith("the platform refuses all accounts to an agent that")
