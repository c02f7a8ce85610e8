"""danger-warned: two dangerous combinations, as a warning, as a refusal, in REST and in system checks."""

from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import DatabaseError, connection
from django.db.models import Q
from django.test import Client
from django.test.utils import CaptureQueriesContext

from history_access import danger, danger_checks, entries
from history_access.agent_platform import services
from history_access.agent_platform.models import Agent, Trigger, Workspace
from history_access.reach import reach_of
from history_access.tools import toolset_for
from settings_catalog.models import SettingValue
from settings_catalog.places import Level
from settings_catalog.resolver import Resolution, resolve
from tests.audits import API, visitor
from tests.worlds import World, error, listed

HISTORY = entries.HISTORY_ACCESS.key
FILES = ("workspace_files", "write")


@pytest.fixture
def chosen(settings: Any) -> Any:
    """Change what the platform says in HISTORY_ACCESS."""

    def choose(**given: Any) -> None:
        settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, **given}

    choose(TRIGGER_MODEL="agent_platform.Trigger", SHARED_FILES_SETTING=FILES)
    return choose


def webhook(world: World, agent: Agent | None = None, kind: str = "webhook") -> Trigger:
    return services.create_trigger(agent or world.agent, kind=kind, name="Bookings", by=world.mara)


def may_write_files(world: World, agent: Agent | None = None, value: str = "write") -> None:
    world.set("workspace_files", agent=agent or world.agent, value=value)


def codes(agent: Agent) -> list[str]:
    held = resolve(HISTORY, agent)
    return [one.code for one in danger.dangers_of({held.place: held})[held.place]]


GRID = [
    (
        value,
        hook,
        files,
        [code for code, is_there in (("webhook", hook), ("shared_files", files)) if is_there],
    )
    for value in entries.HISTORY_ACCESS.values
    for hook in (False, True)
    for files in (False, True)
]


@pytest.mark.parametrize(("value", "hook", "files", "expected"), GRID)
def test_all_accounts_is_dangerous_with_a_webhook_or_with_shared_files(
    world: World, chosen: Any, value: str, hook: bool, files: bool, expected: list[str]
) -> None:
    world.allow(value)
    webhook(world, kind="webhook" if hook else "schedule")
    may_write_files(world, value="write" if files else "read")
    assert codes(world.agent) == (expected if value == "all_accounts" else [])


@pytest.mark.parametrize(("value", "hook", "files", "expected"), GRID)
def test_a_platform_that_refuses_holds_it_at_same_account_and_says_why(
    world: World, chosen: Any, value: str, hook: bool, files: bool, expected: list[str]
) -> None:
    chosen(DANGER="refuse")
    world.allow(value)
    webhook(world, kind="webhook" if hook else "schedule")
    may_write_files(world, value="write" if files else "read")
    held = resolve(HISTORY, world.agent)
    if value != "all_accounts" or not expected:
        assert (held.value, held.held_by) == (value, None)
        return
    assert (held.asked, held.value) == ("all_accounts", "same_account")
    assert held.held_by is not None and held.held_by.by is None
    assert held.held_by.reason == ", and ".join(
        str({"webhook": danger.WEBHOOK, "shared_files": danger.SHARED_FILES}[code].refusal)
        for code in expected
    )
    assert "held at same_account, because the platform refuses all accounts" in str(held)
    assert codes(world.agent) == []


def test_the_danger_of_another_agent_is_not_this_ones(world: World, chosen: Any) -> None:
    other = Agent.objects.create(workspace=world.hollowbrook, name="Other")
    world.allow("all_accounts")
    webhook(world, other)
    may_write_files(world, other)
    assert codes(world.agent) == []


def test_a_refusal_holds_for_the_next_call_of_a_running_turn(world: World, chosen: Any) -> None:
    """reach-now: the turn was offered everything, then somebody makes a webhook."""
    chosen(DANGER="refuse")
    world.allow("all_accounts")
    own = world.session("hello", person=world.mara)
    world.session("hello", person=world.mara, account=world.acme)
    tools = world.tools(world.mara)
    assert len(listed(tools)) == 2
    hook = webhook(world)
    assert listed(tools) == [str(own.pk)]
    hook.delete()
    assert len(listed(tools)) == 2


def test_a_webhook_that_is_made_during_a_call_refuses_the_call(
    open_world: World, chosen: Any, monkeypatch: Any
) -> None:
    """The setting is looked at again at the end, the guard with it (`reach-now`)."""
    from history_access import record

    chosen(DANGER="refuse")
    open_world.allow("all_accounts")
    open_world.session("hello", person=open_world.mara)
    tools, write = open_world.tools(open_world.mara), record._write

    def meanwhile(*given: Any) -> None:
        write(*given)
        webhook(open_world)

    monkeypatch.setattr(record, "_write", meanwhile)
    assert error(tools.call("list_conversations", {}))["code"] == "history_unavailable"


@pytest.mark.parametrize("unknown", ["Refuse", "", "off", None])
def test_an_unknown_choice_refuses(world: World, chosen: Any, unknown: Any) -> None:
    chosen(DANGER=unknown)
    world.allow("all_accounts")
    webhook(world)
    assert resolve(HISTORY, world.agent).value == "same_account"


def statements(job: Any) -> int:
    with CaptureQueriesContext(connection) as captured:
        job()
    return len(captured)


@pytest.mark.parametrize(
    ("choice", "value", "number"),
    [
        ("warn", "all_accounts", 1),
        ("refuse", "same_account", 1),
        ("refuse", "none", 1),
        ("refuse", "all_accounts", 4),
    ],
)
def test_catalog_resolve_takes_more_than_one_statement_only_where_it_might_refuse(
    world: World, chosen: Any, choice: str, value: str, number: int
) -> None:
    """Three more at most: the agent, its webhooks, and its right to write shared files."""
    chosen(DANGER=choice)
    world.allow(value)
    webhook(world)
    assert statements(lambda: resolve(HISTORY, world.agent)) == number
    assert statements(lambda: resolve(HISTORY, workspace=world.hollowbrook)) == 1


def test_what_the_platform_does_not_name_is_not_asked_for(world: World, chosen: Any) -> None:
    chosen(DANGER="refuse", TRIGGER_MODEL=None, SHARED_FILES_SETTING=None)
    world.allow("all_accounts")
    webhook(world)
    may_write_files(world)
    assert statements(lambda: resolve(HISTORY, world.agent)) == 2
    assert resolve(HISTORY, world.agent).value == "all_accounts"
    assert codes(world.agent) == []


def test_a_trigger_model_may_say_itself_what_its_webhooks_are(
    world: World, chosen: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(Trigger, "webhooks", classmethod(lambda cls: Q(name="From outside")), raising=False)
    world.allow("all_accounts")
    hook = webhook(world)
    assert codes(world.agent) == []
    Trigger.objects.filter(pk=hook.pk).update(name="From outside")
    assert codes(world.agent) == ["webhook"]


@pytest.mark.parametrize("key", ["nobody", "7", "", "019adf00-0000-7000-8000-000000000000", "\0"])
def test_the_guard_of_an_agent_that_is_not_there_holds_nothing(world: World, chosen: Any, key: str) -> None:
    """Nothing reads as an agent that there is not; the key of one must not break the settings' pages."""
    chosen(DANGER="refuse")
    assert danger.guard(key, "all_accounts") is None


def test_the_guard_stands_on_the_registered_entry_alone() -> None:
    from settings_catalog.catalog import get

    assert get(HISTORY).guard is danger.guard
    assert get(HISTORY) == entries.HISTORY_ACCESS


# In REST.


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


# In system checks.


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
    assert statements(found) < 40


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
