"""record-append-only: the database refuses to change or remove what was recorded, whoever asks."""

from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction

from history_access.models import TurnConversationRead
from history_access.testing import lift_guards, put_back_guards
from history_access.tools import toolset_for
from settings_catalog.guards import missing
from tests.worlds import World, pages

READS = "history_access_turnconversationread"


@pytest.fixture
def read(world: World) -> TurnConversationRead:
    return one_read(world)


def one_read(world: World) -> TurnConversationRead:
    world.allow("all_accounts")
    session = world.session("hello", person=world.mara)
    pages(toolset_for(world.turn(world.mara)), session.pk)
    return TurnConversationRead.objects.get()


def execute(sql: str, *parameters: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)


def save(row: TurnConversationRead) -> None:
    row.characters = 0
    row.save()


ATTEMPTS = {
    "save": save,
    "delete": lambda row: row.delete(),
    "update": lambda row: TurnConversationRead.objects.update(characters=0),
    "bulk update": lambda row: TurnConversationRead.objects.bulk_update([row], ["how"]),
    "queryset delete": lambda row: TurnConversationRead.objects.all().delete(),
    "raw update": lambda row: execute(f"UPDATE {READS} SET reader_id = 'x'"),
    "raw delete": lambda row: execute(f"DELETE FROM {READS}"),
    "update to the same": lambda row: execute(f"UPDATE {READS} SET reader_id = reader_id"),
}
NOT_ID = ", ".join(
    field.column for field in TurnConversationRead._meta.concrete_fields if field.column != "id"
)
ON_SQLITE = {
    "replace": lambda row: execute(f"INSERT OR REPLACE INTO {READS} SELECT * FROM {READS}"),
    "replace into": lambda row: execute(f"REPLACE INTO {READS} SELECT * FROM {READS}"),
    "replace by rowid": lambda row: execute(
        f"INSERT OR REPLACE INTO {READS} (rowid, {NOT_ID}, id) SELECT rowid, {NOT_ID}, 'another' FROM {READS}"
    ),
    "update or replace": lambda row: execute(f"UPDATE OR REPLACE {READS} SET characters = 0"),
}
ON_POSTGRESQL = {
    "truncate": lambda row: execute(f"TRUNCATE {READS}"),
    "truncate cascade": lambda row: execute(f"TRUNCATE {READS} CASCADE"),
    "upsert": lambda row: TurnConversationRead.objects.bulk_create(
        [row], update_conflicts=True, unique_fields=["id"], update_fields=["characters"]
    ),
}
ONE_DATABASE = ON_POSTGRESQL if connection.vendor == "postgresql" else ON_SQLITE


@pytest.mark.parametrize("attempt", [*ATTEMPTS, *ONE_DATABASE])
def test_record_append_only(read: TurnConversationRead, attempt: str) -> None:
    before = list(TurnConversationRead.objects.values())
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        {**ATTEMPTS, **ONE_DATABASE}[attempt](read)
    assert list(TurnConversationRead.objects.values()) == before


def test_record_append_only_still_takes_new_rows(read: TurnConversationRead) -> None:
    read.pk = None
    read.id = TurnConversationRead._meta.pk.get_default()
    read.save(force_insert=True)
    assert TurnConversationRead.objects.count() == 2


def missing_guards() -> list[str]:
    return [error.id for error in run_checks(databases=["default"]) if error.id.endswith(("E004", "E008"))]


def test_record_append_only_a_check_reports_each_missing_guard(read: TurnConversationRead) -> None:
    assert missing_guards() == []
    on = f' ON "{READS}"' if connection.vendor == "postgresql" else ""
    execute(f'DROP TRIGGER "{READS}_no_update"{on}')
    (error,) = [error for error in run_checks(databases=["default"]) if error.id == "history_access.E008"]
    assert f"{READS}_no_update" in error.msg
    assert "migrate" in error.hint
    put_back_guards()
    assert missing_guards() == []


def test_record_append_only_a_check_reports_a_disabled_guard(read: TurnConversationRead) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite cannot switch a trigger off")
    execute(f'ALTER TABLE "{READS}" DISABLE TRIGGER "{READS}_no_delete"')
    assert missing_guards() == ["history_access.E008"]


def test_record_append_only_guards_can_be_lifted_by_a_test_suite(read: TurnConversationRead) -> None:
    lift_guards()
    assert "history_access.E008" in missing_guards()
    TurnConversationRead.objects.all().delete()
    put_back_guards()
    assert missing_guards() == []


def test_record_append_only_survives_a_later_migration(open_world: World) -> None:
    """SQLite rebuilds the table for an AlterField and drops its triggers; migrate puts them back."""
    from django.apps import apps

    from settings_catalog.guards import GuardedConfig

    one_read(open_world)
    field = TurnConversationRead._meta.get_field("reader_id")
    wider = models.CharField(max_length=300)
    wider.set_attributes_from_name("reader_id")
    wider.model = TurnConversationRead
    with connection.schema_editor() as editor:
        editor.alter_field(TurnConversationRead, field, wider)
    try:
        config = apps.get_app_config("history_access")
        assert isinstance(config, GuardedConfig)
        if connection.vendor == "sqlite":
            assert missing(connection, config.guards()), (
                "SQLite would have kept them: the test proves nothing"
            )
        call_command("migrate", verbosity=0)
        assert missing(connection, config.guards()) == []
        for attempt in ATTEMPTS.values():
            with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
                attempt(TurnConversationRead.objects.get())
    finally:
        with connection.schema_editor() as editor:
            editor.alter_field(TurnConversationRead, wider, field)


def test_record_append_only_a_guard_of_another_form_is_missing_and_replaced(
    read: TurnConversationRead,
) -> None:
    """A trigger of that name that refuses nothing, as an earlier release or a hand may leave it."""
    on = f' ON "{READS}"' if connection.vendor == "postgresql" else ""
    execute(f'DROP TRIGGER "{READS}_no_delete"{on}')
    if connection.vendor == "postgresql":
        execute("CREATE FUNCTION let_pass() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$")
        trigger = f'CREATE TRIGGER "{READS}_no_delete" BEFORE DELETE ON "{READS}"'
        execute(f"{trigger} FOR EACH ROW EXECUTE FUNCTION let_pass()")
    else:
        execute(f'CREATE TRIGGER "{READS}_no_delete" BEFORE DELETE ON "{READS}" WHEN 0 BEGIN SELECT 1; END')
    assert missing_guards() == ["history_access.E008"]
    put_back_guards()
    assert missing_guards() == []
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        read.delete()


@pytest.mark.parametrize("name", ["settings_catalog_refuse", "history_access_turnreference_fixed"])
def test_record_append_only_a_function_that_refuses_nothing_is_found(
    read: TurnConversationRead, name: str
) -> None:
    """That of all guards, and that of a guard with a condition."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite's triggers have no functions")
    execute(
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$"
    )
    assert "history_access.E008" in missing_guards()
    put_back_guards()
    assert missing_guards() == []
