"""danger-warned: two combinations are dangerous; the platform is warned of them, or refuses them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.db.models import Q

from history_access import danger, entries
from history_access.agent_platform.models import Agent, Trigger
from settings_catalog.models import SettingValue
from settings_catalog.places import Place
from settings_catalog.resolver import resolve, resolve_many
from tests.audits import choose, may_write_files, statements, webhook
from tests.worlds import World, error, listed

HISTORY = entries.HISTORY_ACCESS.key


@pytest.fixture
def chosen(settings: Any) -> Callable[..., None]:
    """Change what the platform says in HISTORY_ACCESS."""
    choose(settings)
    return partial(choose, settings)


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


@pytest.mark.parametrize("value", entries.HISTORY_ACCESS.values)
def test_danger_warned_on_the_agents_page(world: World, chosen: Any, client: Any, value: str) -> None:
    """The operator sees it where the agent is, and nothing where there is none (danger-warned)."""
    world.allow(value)
    webhook(world, kind="webhook")
    client.force_login(world.operator)
    page = client.get(f"/admin/agent_platform/agent/{world.agent.pk}/change/").content.decode()
    assert ("A webhook starts this agent" in page) is (value == "all_accounts")


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
    tools, write = open_world.tools(open_world.mara), record._record

    def meanwhile(*given: Any) -> Any:
        webhook(open_world)
        return write(*given)

    monkeypatch.setattr(record, "_record", meanwhile)
    assert error(tools.call("list_conversations", {}))["code"] == "history_unavailable"


@pytest.mark.parametrize("unknown", ["Refuse", "", "off", None])
def test_an_unknown_choice_refuses(world: World, chosen: Any, unknown: Any) -> None:
    chosen(DANGER=unknown)
    world.allow("all_accounts")
    webhook(world)
    assert resolve(HISTORY, world.agent).value == "same_account"


@pytest.mark.parametrize(
    ("choice", "value", "number"),
    [
        ("warn", "all_accounts", 1),
        ("refuse", "same_account", 1),
        ("refuse", "none", 1),
        ("refuse", "all_accounts", 3),
    ],
)
def test_catalog_resolve_takes_more_than_one_statement_only_where_it_might_refuse(
    world: World, chosen: Any, choice: str, value: str, number: int
) -> None:
    """Two more at most: its webhooks, and its right to write shared files."""
    chosen(DANGER=choice)
    world.allow(value)
    webhook(world)
    assert statements(lambda: resolve(HISTORY, world.agent)) == number
    assert statements(lambda: resolve(HISTORY, workspace=world.hollowbrook)) == 1


@pytest.mark.parametrize("number", [3, 60])
def test_a_refusal_for_many_agents_takes_the_statements_that_it_takes_for_one(
    world: World, chosen: Any, number: int
) -> None:
    """catalog-explains: the ladder, the webhooks and the shared files, for however many agents."""
    chosen(DANGER="refuse")
    world.allow("all_accounts")
    world.set(platform=True, value="all_accounts")
    agents = [world.agent, *_agents(world, number - 1)]
    for agent in agents[::3]:
        webhook(world, agent)
    may_write_files(world, agents[1])
    places = [Place.of(agent=agent) for agent in agents]
    assert statements(lambda: resolve_many(HISTORY, places)) == 3
    found = resolve_many(HISTORY, places)
    assert [found[place] for place in places] == [
        replace(resolve(HISTORY, agent), changes=None) for agent in agents
    ]
    lowered = [index for index, place in enumerate(places) if found[place].value == "same_account"]
    assert lowered == sorted({1, *range(0, number, 3)})


def _agents(world: World, number: int) -> list[Agent]:
    return Agent.objects.bulk_create(
        Agent(workspace=world.hollowbrook, name=f"Agent {index}") for index in range(number)
    )


@pytest.mark.parametrize("number", [3, 60])
def test_danger_warned_in_a_list_of_settings_takes_no_statement_for_each_agent(
    world: World, chosen: Any, client: Any, number: int
) -> None:
    chosen(DANGER="refuse")
    world.set(platform=True, ceiling="all_accounts")
    for agent in _agents(world, number):
        SettingValue.objects.create(entry=HISTORY, **Place.of(agent=agent)._asdict(), value="all_accounts")
    client.force_login(world.operator)
    assert statements(lambda: client.get("/admin/settings_catalog/settingvalue/")) == 12


def test_what_the_platform_does_not_name_is_not_asked_for(world: World, chosen: Any) -> None:
    chosen(DANGER="refuse", TRIGGER_MODEL=None, SHARED_FILES_SETTING=None)
    world.allow("all_accounts")
    webhook(world)
    may_write_files(world)
    assert statements(lambda: resolve(HISTORY, world.agent)) == 1
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
    assert danger.guard({Place.agent(world.hollowbrook.pk, key): "all_accounts"}) == {}


def test_the_guard_stands_on_the_registered_entry_alone() -> None:
    from settings_catalog.catalog import get

    assert get(HISTORY).guard is danger.guard
    assert replace(get(HISTORY), guard=None).choices == entries.HISTORY_ACCESS.choices
    assert entries.HISTORY_ACCESS.guard is None
