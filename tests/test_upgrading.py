"""record-outlives, record-append-only, catalog-change-log: what upgrading, going back and uninstalling do.

Each test has an empty database of its own, since the tables of the others' stay where they are.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import IntegrityError, connection, models
from django.db.migrations import AddField, CreateModel, Migration
from django.utils import timezone

from history_access.models import Refusal, TurnConversationRead, TurnReference
from history_access.seals import seal
from history_access.verifying import verify
from settings_catalog.guards import GuardedConfig, missing
from settings_catalog.models import SettingChange
from settings_catalog.removal import CONFIRMATION, RemovalRefusedError
from tests.sealed_records import write_reads

ROOT = Path(__file__).resolve().parent.parent
READS = "history_access_turnconversationread"
CHANGES = "settings_catalog_settingchange"
OURS = ("history_access", "settings_catalog", "agent_platform")


pytestmark = pytest.mark.usefixtures("empty_database")


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def migrate(*command: str) -> None:
    call_command("migrate", *command, verbosity=0)


def migrate_ours() -> None:
    """Without what others need: the tables of people, and so on."""
    migrate("history_access")
    migrate("settings_catalog")


def found(sql: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return {name for names in cursor.fetchall() for name in names if name.startswith(OURS)}


def of_ours() -> set[str]:
    """Whatever bears a name of ours: tables, indexes, sequences, triggers, functions, applied migrations."""
    if connection.vendor == "sqlite":
        catalogs = found("SELECT name, tbl_name FROM sqlite_master") | found(
            "SELECT name FROM sqlite_sequence"
        )
    else:
        catalogs = {
            name
            for column, catalog in {
                "relname": "pg_class",
                "tgname": "pg_trigger",
                "proname": "pg_proc",
                "conname": "pg_constraint",
                "typname": "pg_type",
            }.items()
            for name in found(f"SELECT {column} FROM {catalog}")
        }
    return catalogs | found("SELECT app FROM django_migrations")


def a_change() -> SettingChange:
    return SettingChange.objects.create(
        entry="history_access", level="platform", changed_at=timezone.now(), by_id="7", why="a pilot"
    )


def guarded() -> bool:
    """Whether every guard stands, and the first of them refuses."""
    configs = [config for config in apps.get_app_configs() if isinstance(config, GuardedConfig)]
    for table, column in ((READS, "reader_id"), (CHANGES, "by_id")):
        with pytest.raises(IntegrityError, match="append-only"):
            execute(f"UPDATE {table} SET {column} = 'x'")
    return not [guard for config in configs for guard in missing(connection, config.guards())]


def test_the_tables_come_go_and_come_again_with_their_guards() -> None:
    """Forwards, back to nothing and forwards, with the tables of an agent platform too."""
    migrate_ours()
    migrate("agent_platform")
    assert READS in of_ours()
    for label in OURS:
        migrate(label, "zero")
    assert of_ours() == set()
    migrate_ours()
    write_reads(1)
    a_change()
    assert guarded()


def test_a_later_migration_may_change_a_guarded_column() -> None:
    """On PostgreSQL no trigger's condition names a column, or it could be neither altered nor dropped."""
    migrate_ours()
    field = TurnReference._meta.get_field("person_id")
    wider = models.CharField(max_length=300)
    wider.set_attributes_from_name("person_id")
    wider.model = TurnReference
    with connection.schema_editor() as editor:
        editor.alter_field(TurnReference, field, wider)
    migrate_ours()
    write_reads(1)
    a_change()
    assert guarded()


def test_going_back_is_refused_while_there_is_a_record(monkeypatch: Any) -> None:
    """Even where it is confirmed, but for the other app; and nothing is done by halves."""
    migrate_ours()
    write_reads(3)
    seal()
    a_change()
    before = of_ours()
    lost = {
        "history_access": "3 reads of conversations, 1 seal, 3 sealed rows",
        "settings_catalog": "1 change",
    }
    for label, other in (("history_access", "settings_catalog"), ("settings_catalog", "history_access")):
        monkeypatch.setenv(CONFIRMATION, other)
        with pytest.raises(RemovalRefusedError) as refused:
            migrate(label, "zero")
        assert f"{label} keeps {lost[label]}" in str(refused.value)
        assert f"{CONFIRMATION}={label}" in str(refused.value)
    assert (TurnConversationRead.objects.count(), SettingChange.objects.count()) == (3, 1)
    assert of_ours() == before
    assert guarded()
    assert list(verify()) == []


def test_going_back_is_done_where_it_is_confirmed(monkeypatch: Any) -> None:
    migrate_ours()
    write_reads(3)
    seal()
    a_change()
    for label in ("history_access", "settings_catalog"):
        monkeypatch.setenv(CONFIRMATION, label)
        migrate(label, "zero")
    assert of_ours() == set()


def later(*operations: Any) -> Migration:
    migration = Migration("0999_later", "history_access")
    migration.operations = list(operations)
    return migration


MORE = models.TextField(default="")
PLANS = {
    "a column of the record": (
        later(AddField("TurnConversationRead", "more", MORE)),
        True,
        "2 reads of conversations",
    ),
    "a table of the record": (later(CreateModel("Refusal", [])), True, "1 refused call"),
    "what is not kept": (later(AddField("Another", "more", MORE)), True, None),
    "another app's": (Migration("0001_initial", "crm"), True, None),
    "forwards": (later(AddField("TurnConversationRead", "more", MORE)), False, None),
}


def test_going_back_a_version_is_refused_where_it_would_drop_what_is_kept() -> None:
    """Before the first migration of the whole plan is undone, whichever it is."""
    migrate_ours()
    write_reads(2)
    Refusal.objects.create(
        workspace_id="7", agent_id="7", turn_id="7", tool="t", code="c", refused_at=timezone.now()
    )
    config = apps.get_app_config("history_access")
    refused = {}
    for name, (migration, undone, _) in PLANS.items():
        plan = [(Migration("0002_platform", "crm"), True), (migration, undone)]
        try:
            models.signals.pre_migrate.send(config, using="default", plan=plan)
        except RemovalRefusedError as error:
            refused[name] = re.findall("keeps (.*?), which", str(error))
    assert refused == {name: [lost] for name, (*_, lost) in PLANS.items() if lost}


WITHOUT = """
SECRET_KEY = "s" * 50
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes"]
DATABASES = {"default": %r}
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
"""
(FOR_THE_RECORD,) = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/upgrading.md").read_text(encoding="utf-8"), re.DOTALL
)


def manage(folder: Path, settings: str, *command: str) -> str:
    """What a command says in a project with these settings; it has to end well."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "django", *command],
        cwd=folder,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": settings, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_record_is_guarded_and_proved_where_the_apps_are_taken_out(tmp_path: Path) -> None:
    """The tables stay: no migrate of the rest touches them, raw SQL is refused, and later they verify."""
    migrate_ours()
    migrate("agent_platform")  # and with it the tables of permissions
    write_reads(3)
    a_change()
    seal()
    call_command("export_seal", str(tmp_path / "seal.json"))
    kept = of_ours()
    named = ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")
    database = {name: connection.settings_dict[name] for name in named}
    (tmp_path / "without.py").write_text(WITHOUT % database)
    (tmp_path / "for_the_record.py").write_text(FOR_THE_RECORD.replace("crm.settings", "without"))
    connection.close()
    manage(tmp_path, "without", "migrate", "--verbosity=0")
    manage(tmp_path, "without", "remove_stale_contenttypes", "--include-stale-apps", "--no-input")
    assert of_ours() == kept
    assert guarded()
    assert not ContentType.objects.filter(app_label__in=OURS).exists()
    assert not Permission.objects.filter(codename__in=("audit_reads", "change_platform_settings")).exists()
    connection.close()
    verify_reads = ("verify_reads", "--against", str(tmp_path / "seal.json"))
    assert "checked 3 sealed rows" in manage(tmp_path, "for_the_record", *verify_reads)
