"""catalog-ordered and catalog-ladder: settings are declared once, and the database keeps one row a place."""

import dataclasses

import pytest
from django.db import IntegrityError, transaction

from settings_catalog import catalog
from settings_catalog.catalog import Catalog, CatalogError, Choice, Entry
from settings_catalog.models import SettingValue
from settings_catalog.places import Level, Place

LOW, HIGH = Choice("low", "Low", "Little."), Choice("high", "High", "Much.")


def entry(**given) -> Entry:
    declared = {
        "key": "speed",
        "title": "Speed",
        "help": "How fast.",
        "choices": (LOW, HIGH),
        "default": "low",
        "starting_ceiling": None,
    }
    return Entry(**{**declared, **given})


def test_catalog_ordered_ranks_least_first():
    declared = entry()
    assert (declared.least, declared.values) == ("low", ("low", "high"))
    assert [declared.rank(value) for value in ("low", "high", "unknown")] == [0, 1, 0]
    assert declared.choice("unknown") is LOW


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        ({"choices": ()}, "at least one choice"),
        ({"choices": (LOW, LOW)}, "named twice"),
        ({"default": "middle"}, "default 'middle'"),
        ({"starting_ceiling": "middle"}, "starting_ceiling 'middle'"),
    ],
)
def test_catalog_ordered_refuses_a_wrong_declaration(fault, word):
    with pytest.raises(CatalogError, match=word):
        entry(**fault)


def test_catalog_ordered_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry().default = "high"


def test_catalog_ordered_registers_once_and_only_while_starting(monkeypatch):
    declared = Catalog()
    with pytest.raises(CatalogError, match=r"AppConfig\.ready"):
        declared.register(entry())
    monkeypatch.setattr("settings_catalog.catalog.apps.ready", False)
    assert declared.register(entry()) == declared.get("speed")
    assert "speed" in declared
    with pytest.raises(CatalogError, match="registered already"):
        declared.register(entry(title="Another"))
    assert [one.title for one in declared] == ["Speed"]


def test_catalog_ordered_has_both_entries_of_history_access():
    keys = [one.key for one in catalog.catalog]
    assert keys.index("history_access") < keys.index("conversation_references")
    with pytest.raises(CatalogError, match="no setting"):
        catalog.get("unheard_of")


PLACES = [Place.platform(), Place.workspace("w"), Place.agent("w", "a")]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.level.value)
def test_catalog_ladder_keeps_one_row_a_place(db, place):
    SettingValue.objects.create(entry="speed", **place._asdict(), value="low")
    SettingValue.objects.create(entry="weather", **place._asdict(), value="calm")
    with pytest.raises(IntegrityError), transaction.atomic():
        SettingValue.objects.create(entry="speed", **place._asdict(), value="high")


@pytest.mark.parametrize(
    "row",
    [
        {"level": Level.PLATFORM, "workspace_id": "w", "value": "low"},
        {"level": Level.PLATFORM, "agent_id": "a", "value": "low"},
        {"level": Level.WORKSPACE, "value": "low"},
        {"level": Level.WORKSPACE, "workspace_id": "w", "agent_id": "a", "value": "low"},
        {"level": Level.AGENT, "agent_id": "a", "value": "low"},
        {"level": Level.AGENT, "workspace_id": "w", "value": "low"},
        {"level": Level.AGENT, "workspace_id": "w", "agent_id": "a", "ceiling": "low"},
        {"level": "galaxy", "value": "low"},
        {"level": Level.PLATFORM},
    ],
)
def test_catalog_ladder_refuses_a_row_that_stands_nowhere(db, row):
    with pytest.raises(IntegrityError), transaction.atomic():
        SettingValue.objects.create(entry="speed", **row)


def test_catalog_ladder_names_exactly_one_place():
    with pytest.raises(ValueError, match="one place"):
        Place.of()
    with pytest.raises(ValueError, match="one place"):
        Place.of(agent=object(), platform=True)
