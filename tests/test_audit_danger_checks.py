"""danger-warned: dangerous agents, and wrong settings about them, as system checks find them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import DatabaseError

from history_access import danger, danger_checks, entries
from history_access.agent_platform.models import Agent, Workspace
from history_access.reach import reach_of
from history_access.tools import toolset_for
from tests.audits import choose, may_write_files, statements, webhook
from tests.worlds import World

HISTORY = entries.HISTORY_ACCESS.key


@pytest.fixture
def chosen(settings: Any) -> Callable[..., None]:
    """Change what the platform says in HISTORY_ACCESS."""
    choose(settings)
    return partial(choose, settings)


def found(check_id: str = "history_access.W002") -> list[str]:
    return [message.msg for message in run_checks(databases=["default"]) if message.id == check_id]


def test_w002_names_a_dangerous_agent(world: World, chosen: Any) -> None:
    assert found() == []
    world.allow("all_accounts")
    webhook(world)
    (message,) = found()
    assert str(world.agent.pk) in message and str(world.hollowbrook.pk) in message
    assert "a stranger's words" in message
    may_write_files(world)
    assert len(found()) == 2
    chosen(DANGER="refuse")
    assert found() == []
    assert statements(lambda: danger_checks.check_danger(None, databases=["default"])) == 0


def test_w002_is_a_check_of_the_database_alone(world: World, chosen: Any) -> None:
    world.allow("all_accounts")
    webhook(world)
    assert not [message for message in run_checks() if message.id == "history_access.W002"]
    assert danger_checks.check_danger(None, databases=["elsewhere"]) == []


def test_w002_finds_what_a_workspace_and_the_platform_ask_for(world: World, chosen: Any) -> None:
    other = Workspace.objects.create(name="Elsewhere")
    agents = [Agent.objects.create(workspace=other, name=f"Agent {index}") for index in range(2)]
    for agent in (world.agent, *agents):
        webhook(world, agent)
    world.set(platform=True, ceiling="all_accounts")
    assert found() == []
    world.set(workspace=world.hollowbrook, value="all_accounts")
    assert len(found()) == 1
    world.set(platform=True, value="all_accounts", ceiling="all_accounts")
    assert len(found()) == 3


def test_w002_names_the_first_twenty_and_says_that_there_are_more(
    world: World, chosen: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(danger, "_AT_ONCE", 7)
    agents = Agent.objects.bulk_create(
        Agent(workspace=world.hollowbrook, name=f"Agent {index}") for index in range(20)
    )
    for agent in agents:
        webhook(world, agent)
    world.set(platform=True, value="all_accounts", ceiling="all_accounts")
    assert len(found()) == 20
    webhook(world)
    messages = found()
    assert len(messages) == 21
    assert "more dangerous agents than the 20" in messages[-1]


def test_w002_looks_at_so_many_agents_at_most(world: World, chosen: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(danger, "_AT_ONCE", 2)
    monkeypatch.setattr(danger, "MOST_LOOKED_AT", 4)
    agents = Agent.objects.bulk_create(
        Agent(workspace=world.hollowbrook, name=f"Agent {index}") for index in range(9)
    )
    world.set(platform=True, value="all_accounts", ceiling="all_accounts")
    webhook(world, agents[-1])
    assert found() == []
    assert statements(lambda: danger_checks.check_danger(None, databases=["default"])) < 30


def test_w002_keeps_quiet_before_the_tables_are_there(world: World, chosen: Any, monkeypatch: Any) -> None:
    def missing(*_: Any) -> Any:
        raise DatabaseError("no such table")

    monkeypatch.setattr(danger, "resolve_many", missing)
    world.allow("all_accounts")
    webhook(world)
    assert found() == []


SETTINGS = [
    ("history_access.E010", {"TRIGGER_MODEL": "nowhere.Nothing"}, "app_label.Model"),
    ("history_access.E010", {"TRIGGER_MODEL": "nonsense"}, "app_label.Model"),
    ("history_access.E010", {"TRIGGER_MODEL": "auth.Group"}, "agent_id"),
    ("history_access.E010", {"TRIGGER_MODEL": "agent_platform.Session"}, "webhooks()"),
    ("history_access.E011", {"SHARED_FILES_SETTING": ("no_such_setting", "write")}, "a registered setting"),
    ("history_access.E011", {"SHARED_FILES_SETTING": ("workspace_files", "append")}, "one of its values"),
    ("history_access.E011", {"SHARED_FILES_SETTING": "workspace_files"}, "write"),
    ("history_access.E011", {"SHARED_FILES_SETTING": ("workspace_files",)}, "write"),
    ("history_access.E011", {"SHARED_FILES_SETTING": 7}, "write"),
    ("history_access.E011", {"SHARED_FILES_SETTING": (HISTORY, "all_accounts")}, "a registered setting"),
    ("history_access.E012", {"DANGER": "Refuse"}, "'warn' or 'refuse'"),
]


@pytest.mark.parametrize(("check_id", "given", "hint"), SETTINGS, ids=[str(one[1]) for one in SETTINGS])
def test_a_wrong_setting_is_found(
    world: World, chosen: Any, check_id: str, given: dict[str, Any], hint: str
) -> None:
    """And W002 says nothing on top, nor fails on it."""
    world.allow("all_accounts")
    webhook(world)
    may_write_files(world)
    chosen(**given)
    messages = [
        message
        for message in run_checks(databases=["default"])
        if message.id.startswith("history_access.") and message.id != "history_access.W001"
    ]
    assert [message.id for message in messages] == [check_id]
    assert hint in (messages[0].hint or "")


def test_the_settings_are_sound(world: World, chosen: Any) -> None:
    for choice in ("warn", "refuse"):
        chosen(DANGER=choice)
        assert [m for m in run_checks(databases=["default"]) if m.id.startswith("history_access.")] == []


def test_without_these_settings_nothing_is_warned_of(world: World, settings: Any) -> None:
    ours = ("TRIGGER_MODEL", "SHARED_FILES_SETTING", "DANGER")
    kept = {name: said for name, said in settings.HISTORY_ACCESS.items() if name not in ours}
    settings.HISTORY_ACCESS = kept
    world.allow("all_accounts")
    webhook(world)
    may_write_files(world)
    assert found() == []
    assert reach_of(world.turn(world.mara)).setting.value == "all_accounts"
    assert toolset_for(world.turn(world.mara))
