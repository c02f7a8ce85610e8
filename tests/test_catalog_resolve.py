"""catalog-resolve, catalog-closed, catalog-unknown-is-least, catalog-explains: which value holds, and why."""

import itertools
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from settings_catalog.catalog import get
from settings_catalog.models import SettingValue
from settings_catalog.places import Level, Place
from settings_catalog.resolver import combine, resolve, resolve_at, resolve_many
from tests.worlds import World

ORDER = ["calm", "breeze", "storm"]
UNKNOWN = "ALL"
STORED = [None, *ORDER, UNKNOWN]
AGENT = Place.agent(1, 2)
WORKSPACE, PLATFORM = AGENT.ladder[1:]


def least_first(value: str) -> int:
    """The rank that the contract gives a stored value: an unknown one counts as the least."""
    return ORDER.index(value) if value in ORDER else 0


def expected(agent: str | None, workspace: str | None, platform: str | None, *ceilings: str | None) -> str:
    """The contract's words, as a formula of its own."""
    asked = next((value for value in (agent, workspace, platform) if value is not None), "calm")
    return ORDER[min(least_first(value) for value in (asked, *ceilings) if value is not None)]


@pytest.mark.parametrize("agent", STORED)
@pytest.mark.parametrize("workspace_ceiling", STORED)
@pytest.mark.parametrize("platform_ceiling", STORED)
def test_catalog_resolve_over_the_whole_grid(agent, workspace_ceiling, platform_ceiling):
    """Each of value and ceiling, unset included: never above a ceiling, never above a lower value below."""
    for workspace, platform in itertools.product(STORED, repeat=2):
        rows = {
            AGENT: (agent, None),
            WORKSPACE: (workspace, workspace_ceiling),
            PLATFORM: (platform, platform_ceiling),
        }
        found = combine(get("weather"), AGENT, rows)
        wanted = expected(agent, workspace, platform, workspace_ceiling, platform_ceiling)
        assert found.value == wanted, (rows, str(found))
        lower = wanted != ORDER[least_first(found.asked)]
        assert (found.held_by is not None) == lower


def store(world: World, key: str, agent=(None, None), workspace=(None, None), platform=(None, None)) -> None:
    """Rows as they stand in the database, whether or not anybody could have written them."""
    places = {
        Place.of(agent=world.agent): agent,
        Place.of(workspace=world.hollowbrook): workspace,
        Place.platform(): platform,
    }
    for place, (value, ceiling) in places.items():
        if (value, ceiling) != (None, None):
            SettingValue.objects.create(entry=key, **place._asdict(), value=value, ceiling=ceiling)


SENTENCES = [
    (
        {},
        "none",
        "Nothing is asked for, which means none; the platform allows nothing above none.",
    ),
    (
        {"agent": ("all_accounts", None)},
        "none",
        "Asked for all_accounts on the agent; held at none, because the platform allows nothing above none.",
    ),
    (
        {"agent": ("all_accounts", None), "platform": (None, "all_accounts")},
        "all_accounts",
        "Asked for all_accounts on the agent; nothing holds it down.",
    ),
    (
        {
            "workspace": ("all_accounts", "same_account"),
            "platform": (None, "all_accounts"),
        },
        "same_account",
        "Asked for all_accounts on the workspace; held at same_account, because the workspace allows nothing "
        "above same_account.",
    ),
    (
        {"agent": ("all_accounts", None), "workspace": (None, "same_account"), "platform": (None, "none")},
        "none",
        "Asked for all_accounts on the agent; held at none, because the platform allows nothing above none.",
    ),
    (
        {
            "agent": ("none", None),
            "workspace": ("all_accounts", None),
            "platform": ("all_accounts", "all_accounts"),
        },
        "none",
        "Asked for none on the agent; nothing holds it down.",
    ),
    (
        {"agent": ("ALL", None), "platform": (None, "all_accounts")},
        "none",
        "Asked for ALL on the agent, which is unknown and counts as none; nothing holds it down.",
    ),
    (
        {"agent": ("same_account", None), "platform": (None, "retired")},
        "none",
        "Asked for same_account on the agent; held at none, because the platform has the unknown ceiling "
        "'retired', which counts as none.",
    ),
]


@pytest.mark.parametrize(("rows", "value", "sentence"), SENTENCES, ids=[s[2][:60] for s in SENTENCES])
def test_catalog_explains_in_one_sentence_and_one_statement(world, statements, rows, value, sentence):
    store(world, "history_access", **rows)
    with statements(1):
        found = resolve("history_access", world.agent)
    assert (found.value, str(found)) == (value, sentence)
    assert found.choice.value == value


@pytest.mark.parametrize("key", ["history_access", "conversation_references"])
def test_catalog_closed_until_an_operator_opens_it(world, key):
    most = get(key).values[-1]
    store(world, key, agent=(most, None), workspace=(most, most), platform=(most, None))
    assert resolve(key, world.agent).value == "none"
    SettingValue.objects.filter(entry=key, level=Level.PLATFORM).update(ceiling=most)
    assert resolve(key, world.agent).value == most


@pytest.mark.parametrize("stored", ["ALL", "", "retired", "None", "ALL_ACCOUNTS", " all_accounts"])
@pytest.mark.parametrize("column", ["value", "ceiling"])
def test_catalog_unknown_is_least_and_shown_as_a_fault(world, stored, column):
    row = {"value": "all_accounts", "ceiling": "all_accounts", column: stored}
    store(world, "history_access", workspace=(row["value"], row["ceiling"]), platform=(None, "all_accounts"))
    found = resolve("history_access", world.agent)
    assert found.value == "none"
    assert [repr(stored) in fault and column in fault for fault in found.faults] == [True]


NO_VALUES: list[Any] = [
    7,
    1.5,
    b"all_accounts",
    b"\xff",
    "all_accounts\0",
    "\0",
    "x" * 100,
    "x" * 10_000,
    "{}",
    "1",
]


@pytest.mark.parametrize("column", ["value", "ceiling"])
@pytest.mark.parametrize("stored", NO_VALUES, ids=lambda stored: ascii(stored)[:20])
def test_catalog_unknown_is_least_whatever_was_written_past_us(world, client, stored, column):
    """Bytes, NUL, a number, more than the column is long: the least choice, and pages that can be opened."""
    store(world, "history_access", agent=("all_accounts", None), platform=(None, "all_accounts"))
    level = "agent" if column == "value" else "platform"
    sql = f"UPDATE settings_catalog_settingvalue SET {column} = %s WHERE level = '{level}'"
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql, [stored])
    except DatabaseError:
        assert connection.vendor == "postgresql", "SQLite keeps anything"
        return
    found = resolve("history_access", world.agent)
    assert (found.value, len(found.faults)) == ("none", 1)
    client.force_login(world.operator)
    for page in (
        "",
        "catalog/",
        f"add/?entry=history_access&agent={world.agent.pk}",
        "add/?entry=history_access",
    ):
        assert client.get(f"/admin/settings_catalog/settingvalue/{page}").status_code == 200, page
    assert client.get(f"/admin/agent_platform/agent/{world.agent.pk}/change/").status_code == 200
    answer = client.get(f"/api/history/agents/{world.agent.pk}/history-access/")
    assert answer.json()["value"] == "none"


def test_catalog_unknown_is_least_at_a_place_that_is_no_text(world, client):
    """Keys of bytes are nobody's: the row counts nowhere, and is still shown."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL keeps text in a column of text")
    store(
        world, "history_access", workspace=("all_accounts", "all_accounts"), platform=(None, "all_accounts")
    )
    world.set("weather", workspace=world.hollowbrook, value="storm")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE settings_catalog_settingvalue SET workspace_id = CAST(workspace_id AS BLOB)")
    assert resolve("history_access", world.agent).value == "none"
    client.force_login(world.operator)
    assert client.get("/admin/settings_catalog/settingvalue/").status_code == 200


def test_catalog_explains_the_other_levels(world):
    store(world, "weather", agent=("calm", None), workspace=("storm", "breeze"), platform=("breeze", None))
    assert resolve("weather", world.agent).value == "calm"
    assert resolve("weather", workspace=world.hollowbrook).value == "breeze"
    assert resolve("weather").value == "breeze"
    assert [step.place.level for step in resolve("weather", world.agent).steps] == [
        Level.AGENT,
        Level.WORKSPACE,
        Level.PLATFORM,
    ]


@pytest.mark.parametrize(
    ("name", "asked", "value", "held"),
    [
        ("sheltered", "storm", "breeze", "the agent is sheltered"),
        ("sheltered", "breeze", "breeze", None),
        ("sheltered", "calm", "calm", None),
        ("wild", "calm", "calm", None),
        ("plain", "storm", "storm", None),
    ],
)
def test_catalog_explains_a_guard_that_can_only_lower(world, name, asked, value, held):
    world.agent.name = name
    world.agent.save()
    store(world, "guarded_weather", agent=(asked, None))
    found = resolve("guarded_weather", world.agent)
    assert found.value == value
    assert (found.held_by and found.held_by.reason) == held
    assert (held or "nothing holds it down") in str(found)


def test_catalog_explains_many_places_with_one_statement(world, statements):
    store(world, "weather", agent=("storm", None), workspace=(None, "breeze"))
    places = [Place.of(agent=world.agent), Place.of(workspace=world.hollowbrook), Place.platform()]
    with statements(1):
        found = resolve_many("weather", places)
    assert {place: found[place].value for place in places} == {
        place: resolve_at("weather", place).value for place in places
    }


def test_catalog_resolve_reads_no_other_workspace_and_no_other_agent(world):
    """An agent's row under another workspace's key is not its row; nor is another entry's."""
    other = Place.agent(workspace_id="another", agent_id=world.agent.pk)
    SettingValue.objects.create(entry="weather", **other._asdict(), value="storm")
    SettingValue.objects.create(entry="guarded_weather", **Place.platform()._asdict(), value="storm")
    assert resolve("weather", world.agent).value == "calm"
