"""catalog-change-log, catalog-who and catalog-fresh: one function writes, logs, and asks who may."""

import threading

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import IntegrityError, connection, transaction

from settings_catalog.catalog import CatalogError
from settings_catalog.changes import SettingError, SettingForbiddenError, set_at, set_value
from settings_catalog.keys import uuid7
from settings_catalog.models import SettingChange, SettingValue
from settings_catalog.places import Place
from settings_catalog.resolver import resolve
from tests.worlds import World

PLATFORM_RIGHT = "settings_catalog.change_platform_settings"


def place_of(world: World, level: str) -> dict:
    return {
        "platform": {"platform": True},
        "workspace": {"workspace": world.hollowbrook},
        "agent": {"agent": world.agent},
    }[level]


def test_catalog_change_log_keeps_who_when_where_what_and_why(world):
    set_value("weather", agent=world.agent, value="storm", by=world.operator, why="the season")
    set_value("weather", agent=world.agent, value="breeze", by=world.operator, why="it is over")
    set_value("weather", agent=world.agent, value=None, by=world.operator, why="as the others")
    log = SettingChange.objects.order_by("id")
    assert [(c.value_before, c.value_after, c.why) for c in log] == [
        (None, "storm", "the season"),
        ("storm", "breeze", "it is over"),
        ("breeze", None, "as the others"),
    ]
    assert {c.by_id for c in log} == {str(world.operator.pk)}
    assert {c.place for c in log} == {Place.of(agent=world.agent)}
    assert not SettingValue.objects.filter(entry="weather").exists()


def test_catalog_change_log_keeps_value_and_ceiling_apart(world):
    set_value("weather", workspace=world.hollowbrook, value="storm", by=world.operator, why="a")
    held = set_value("weather", workspace=world.hollowbrook, ceiling="breeze", by=world.operator, why="b")
    assert held.value == "breeze"
    row = SettingValue.objects.get(entry="weather")
    assert (row.value, row.ceiling) == ("storm", "breeze")
    change = SettingChange.objects.first()
    assert (change.value_before, change.value_after) == ("storm", "storm")
    assert (change.ceiling_before, change.ceiling_after) == (None, "breeze")


def test_catalog_change_log_takes_no_place_that_is_none(world):
    """Written past us, it could not be shown."""
    set_value("weather", platform=True, value="storm", by=world.operator, why="the season")
    change = SettingChange.objects.get()
    for given in ({"level": "galaxy"}, {"workspace_id": "1"}, {"level": "agent", "agent_id": "1"}):
        vars(change).update(
            {"id": uuid7(), "level": "platform", "workspace_id": None, "agent_id": None, **given}
        )
        with pytest.raises(IntegrityError, match="change_one_place"), transaction.atomic():
            change.save(force_insert=True)


def test_catalog_change_log_is_silent_where_nothing_changes(world):
    for _ in range(2):
        set_value("weather", platform=True, value="storm", by=world.operator, why="again")
    assert SettingChange.objects.count() == 1


def test_catalog_change_log_and_change_are_one_transaction(world, monkeypatch):
    def refuse(*args: object) -> None:
        raise IntegrityError("no log")

    monkeypatch.setattr("settings_catalog.changes._log", refuse)
    with pytest.raises(IntegrityError):
        set_value("weather", platform=True, value="storm", by=world.operator, why="unlogged")
    assert resolve("weather").value == "calm"


@pytest.mark.parametrize("write", ["update", "delete"])
def test_catalog_change_log_is_append_only(world, write):
    set_value("weather", platform=True, value="storm", by=world.operator, why="for ever")
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        changes = SettingChange.objects.all()
        changes.update(why="another") if write == "update" else changes._raw_delete(changes.db)
    assert SettingChange.objects.get().why == "for ever"


REFUSED = [
    ("value", {"value": "hurricane"}, "'hurricane' is not one of calm, breeze, storm"),
    ("value", {"value": ""}, "'' is not one of"),
    ("ceiling", {"ceiling": "Storm"}, "'Storm' is not one of"),
    ("value", {"value": 7}, "7 is not one of"),
    ("value", {"value": ["storm"]}, "['storm'] is not one of"),
    ("ceiling", {"ceiling": False}, "False is not one of"),
    ("by", {"value": "storm", "by": None}, "settings:write is missing"),
    ("why", {"value": "storm", "why": None}, "say why"),
    ("why", {"value": "storm", "why": "  "}, "say why"),
    ("why", {"value": "storm", "why": "x" * 1001}, "at most 1000"),
    ("why", {"value": "storm", "why": "a\0b"}, "plain text"),
    ("why", {"value": "storm", "why": "a\ud800b"}, "plain text"),
]


@pytest.mark.parametrize(("field", "given", "rule"), REFUSED)
def test_catalog_changes_refuse_bad_input_by_field_and_rule(world, field, given, rule):
    with pytest.raises(SettingError) as refusal:
        set_value("weather", **{"workspace": world.hollowbrook, "by": world.operator, "why": "w", **given})
    assert refusal.value.field == field
    assert rule in refusal.value.message
    assert not SettingValue.objects.filter(entry="weather").exists()


def test_catalog_changes_refuse_an_agents_ceiling_and_a_place_that_is_not_there(world):
    with pytest.raises(SettingError, match="an agent has no ceiling"):
        set_value("weather", agent=world.agent, ceiling="storm", by=world.operator, why="w")
    with pytest.raises(SettingError, match="one place"):
        set_value("weather", value="storm", by=world.operator, why="w")
    with pytest.raises(SettingError, match="no such agent"):
        set_at(
            "weather", Place.agent(world.hollowbrook.pk, "nobody"), value="storm", by=world.operator, why="w"
        )
    with pytest.raises(CatalogError):
        set_value("unheard_of", platform=True, value="x", by=world.operator, why="w")


def test_catalog_changes_refuse_an_agent_under_a_workspace_that_is_not_its_own(world):
    """Else the right for one workspace would write another one's agents."""
    from history_access.agent_platform.models import Workspace

    other = Workspace.objects.create(name="Other")
    clerk = world.person("clerk")
    world.grant(clerk, "settings:write").__class__.objects.create(
        workspace=other, person=clerk, permission="settings:write"
    )
    with pytest.raises(SettingError, match="no such agent"):
        set_at("weather", Place.agent(other.pk, world.agent.pk), value="storm", by=clerk, why="w")


def person(world: World, kind: str):
    """Somebody of each kind, with the rights that their name says."""
    somebody = world.person(kind, is_active=kind != "inactive operator")
    if kind in ("platform operator", "inactive operator"):
        app, _, codename = PLATFORM_RIGHT.partition(".")
        right = Permission.objects.get(content_type__app_label=app, codename=codename)
        somebody.user_permissions.add(right)
    if kind in ("workspace operator", "inactive operator"):
        world.grant(somebody, "settings:write")
    if kind == "agent operator":
        world.grant(somebody, "settings:write", agent=world.agent)
    if kind == "operator elsewhere":
        from history_access.agent_platform.models import Authority, Workspace

        elsewhere = Workspace.objects.create(name="Elsewhere")
        Authority.objects.create(workspace=elsewhere, person=somebody, permission="settings:write")
    if kind == "reader":
        world.grant(somebody, "sessions:read")
    return somebody


MAY = {
    "platform operator": {"platform"},
    "workspace operator": {"workspace", "agent"},
    "agent operator": set(),
    "operator elsewhere": set(),
    "reader": set(),
    "nobody": set(),
    "inactive operator": set(),
}


@pytest.mark.parametrize("level", ["platform", "workspace", "agent"])
@pytest.mark.parametrize("kind", MAY)
def test_catalog_who(world, kind, level):
    """Each right opens its own places alone, and a refusal names the right that is missing."""
    by = person(world, kind)
    missing = PLATFORM_RIGHT if level == "platform" else "settings:write"
    if level in MAY[kind]:
        assert set_value("weather", **place_of(world, level), value="storm", by=by, why="w").value == "storm"
        return
    with pytest.raises(SettingForbiddenError, match=missing) as refusal:
        set_value("weather", **place_of(world, level), value="storm", by=by, why="w")
    assert (refusal.value.field, refusal.value.permission) == ("by", missing)
    assert not SettingValue.objects.filter(entry="weather").exists()


def test_catalog_who_reads_the_right_afresh(world):
    """A user object remembers its permissions; a right that was taken away meanwhile does not count."""
    by = person(world, "platform operator")
    assert by.has_perm(PLATFORM_RIGHT)
    type(by).objects.get(pk=by.pk).user_permissions.clear()
    assert by.has_perm(PLATFORM_RIGHT), "the object still remembers it"
    with pytest.raises(SettingForbiddenError):
        set_value("weather", platform=True, value="storm", by=by, why="w")


@pytest.mark.parametrize("way", ["user", "group", "neither"])
def test_catalog_who_is_looked_up_on_the_primary_database(world, settings, way):
    """A replica may not know yet that the right was lost; reads of rights never go to one."""
    by, right = world.person("operations"), Permission.objects.get(codename="change_platform_settings")
    if way == "user":
        by.user_permissions.add(right)
    if way == "group":
        group = Group.objects.create(name="operators")
        group.permissions.add(right)
        by.groups.add(group)
    settings.DATABASE_ROUTERS = ["tests.routers.ReplicaForReads"]
    if way == "neither":
        with pytest.raises(SettingForbiddenError):
            set_value("weather", platform=True, value="storm", by=by, why="w")
    else:
        assert set_value("weather", platform=True, value="storm", by=by, why="w").value == "storm"


def test_catalog_fresh_a_change_holds_for_the_next_call_of_every_connection(open_world):
    """What another connection commits, the next resolution sees."""
    seen = [resolve("weather", open_world.agent).value]

    def change() -> None:
        try:
            open_world.set("weather", agent=open_world.agent, value="storm")
        finally:
            connection.close()

    other = threading.Thread(target=change)
    other.start()
    other.join()
    seen.append(resolve("weather", open_world.agent).value)
    assert seen == ["calm", "storm"]


def test_catalog_change_log_is_whole_when_two_write_at_once(open_world):
    """Two writers of one place: every change that was made is logged, each from what really stood before."""
    barrier = threading.Barrier(4)
    refused: list[SettingError] = []

    def change(value: str) -> None:
        try:
            barrier.wait()
            for _ in range(5):
                for asked in (value, None):
                    try:
                        open_world.set("weather", agent=open_world.agent, value=asked)
                    except SettingError as error:
                        refused.append(error)
        finally:
            connection.close()

    writers = [
        threading.Thread(target=change, args=(value,)) for value in ("storm", "breeze", "calm", "storm")
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    log = list(SettingChange.objects.filter(entry="weather").order_by("changed_at"))
    stored = SettingValue.objects.filter(entry="weather").first()
    before, after = [c.value_before for c in log], [c.value_after for c in log]
    assert sorted(map(str, [*before, stored and stored.value])) == sorted(map(str, [None, *after]))
    assert all("same moment" in error.message for error in refused)


@pytest.mark.parametrize("who", ["platform operator", "workspace operator"])
def test_catalog_changes_clear_what_a_place_that_is_gone_has_left_behind(world, who):
    """The platform's operator may; nobody else has a right for what is not there, and nobody may set it."""
    gone = Place.agent(world.hollowbrook.pk, "gone")
    SettingValue.objects.create(entry="weather", **gone._asdict(), value="storm")
    by = person(world, who)
    with pytest.raises(SettingError):
        set_at("weather", gone, value="calm", by=by, why="w")
    if who == "workspace operator":
        with pytest.raises(SettingForbiddenError, match=PLATFORM_RIGHT):
            set_at("weather", gone, value=None, ceiling=None, by=by, why="w")
    else:
        set_at("weather", gone, value=None, ceiling=None, by=by, why="it is gone")
        assert SettingChange.objects.get().value_before == "storm"
    assert SettingValue.objects.filter(entry="weather").exists() is (who == "workspace operator")
