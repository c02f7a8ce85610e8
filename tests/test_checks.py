"""Each system check: its id, its hint, and the fault that it finds, with the sound project beside it."""

from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connections, models
from django.test.utils import isolate_apps

from history_access import checks
from history_access.agent_platform.authority import PlatformAuthority
from history_access.conf import KNOWN
from history_access.models import AbstractSession
from settings_catalog.conf import KNOWN as CATALOG_KNOWN

PREFIXES = ("history_access.", "settings_catalog.")


def found(**given: Any) -> list[Any]:
    return [message for message in run_checks(**given) if message.id.startswith(PREFIXES)]


def test_a_sound_project_has_no_findings(db: None) -> None:
    assert found(databases=["default"]) == []


def history(**changes: Any) -> dict[str, Any]:
    from django.conf import settings

    kept = {name: value for name, value in settings.HISTORY_ACCESS.items() if name not in changes}
    return {"HISTORY_ACCESS": kept | {name: value for name, value in changes.items() if value is not None}}


class NoAuthority:
    """Loads, and answers nothing."""


class BrokenAuthority:
    """Cannot be made."""

    def __init__(self) -> None:
        raise RuntimeError("no directory to ask")


HERE = __name__
SETTINGS: list[tuple[str, dict[str, Any] | Any, str, str]] = [
    (
        "settings_catalog.E001",
        {"SETTINGS_CATALOG_WORKSPACE_MODEL": "nowhere.Nothing"},
        "WORKSPACE_MODEL is 'nowhere.Nothing', which names no model",
        "app_label.Model",
    ),
    (
        "settings_catalog.E001",
        {"SETTINGS_CATALOG_AGENT_MODEL": "nonsense"},
        "AGENT_MODEL is 'nonsense', which names no model",
        "app_label.Model",
    ),
    (
        "settings_catalog.E002",
        {"SETTINGS_CATALOG_AGENT_MODEL": "auth.Group"},
        "auth.Group has no workspace_id",
        "foreign key",
    ),
    (
        "settings_catalog.E003",
        {"SETTINGS_CATALOG_AUTHORITY": "no.such.Thing"},
        "AUTHORITY is 'no.such.Thing', which cannot be loaded: ",
        "SettingsAuthority",
    ),
    (
        "settings_catalog.E003",
        {"SETTINGS_CATALOG_AUTHORITY": f"{HERE}.NoAuthority"},
        f"AUTHORITY is '{HERE}.NoAuthority', which is no SettingsAuthority",
        "SettingsAuthority",
    ),
    (
        "history_access.E001",
        lambda: history(SESSION_MODELS="x.Y"),
        "unknown key 'SESSION_MODELS'",
        "Did you mean SESSION_MODEL?",
    ),
    (
        "history_access.E002",
        lambda: history(CONVERSATION_URL="https://chat.example/"),
        "['CONVERSATION_URL'] is 'https://chat.example/', which is no address with {id}",
        "https://chat.example/conversations/{id}",
    ),
    (
        "settings_catalog.E005",
        {"SETTINGS_CATALOG_AUTHORTY": "x.Y"},
        "SETTINGS_CATALOG_AUTHORTY is no setting",
        "Did you mean SETTINGS_CATALOG_AUTHORITY?",
    ),
    ("settings_catalog.E005", {"SETTINGS_CATALOG_Q": 1}, "SETTINGS_CATALOG_Q is no setting", "Known are"),
    (
        "settings_catalog.W001",
        {"SETTINGS_CATALOG_AUTHORITY": None},
        "nobody may change the settings of workspaces and agents",
        "settings_catalog.authority.SettingsAuthority",
    ),
    ("history_access.E001", {"HISTORY_ACCESS": None}, "HISTORY_ACCESS is None", "SESSION_MODEL"),
    ("history_access.E001", {"HISTORY_ACCESS": [1]}, "HISTORY_ACCESS is [1]", "SESSION_MODEL"),
    ("history_access.E013", {"USE_TZ": False}, "USE_TZ is off", "USE_TZ = True"),
    ("history_access.E014", lambda: history(NAMING_KEYS="person"), "NAMING_KEYS", "'person'"),
    (
        "history_access.E003",
        lambda: history(SESSION_MODEL=None),
        "['SESSION_MODEL'] is not set",
        "app_label.Model",
    ),
    (
        "history_access.E003",
        lambda: history(TURN_MODEL="nowhere.Turn"),
        "['TURN_MODEL'] is 'nowhere.Turn', which names no model",
        "app_label.Model",
    ),
    (
        "history_access.E003",
        lambda: history(MESSAGE_MODEL="auth.Group"),
        "['MESSAGE_MODEL'] is 'auth.Group', which is no AbstractMessage",
        "Subclass",
    ),
    ("history_access.E007", lambda: history(AUTHORITY=None), "['AUTHORITY'] is not set", "subclass"),
    (
        "history_access.E007",
        lambda: history(AUTHORITY="no.such.Thing"),
        "['AUTHORITY'] is 'no.such.Thing', which cannot be loaded",
        "subclass",
    ),
    (
        "history_access.E007",
        lambda: history(AUTHORITY=f"{HERE}.BrokenAuthority"),
        "no directory to ask",
        "subclass",
    ),
    ("history_access.E007", lambda: history(AUTHORITY=f"{HERE}.NoAuthority"), "is no Authority", "subclass"),
]


@pytest.mark.parametrize(
    ("check_id", "changed", "says", "hint"), SETTINGS, ids=[f"{s[0]}-{s[2]}" for s in SETTINGS]
)
def test_a_wrong_setting_is_found(settings: Any, check_id: str, changed: Any, says: str, hint: str) -> None:
    for name, value in (changed() if callable(changed) else changed).items():
        setattr(settings, name, value)
    messages = [message for message in found() if message.id == check_id]
    assert any(says in message.msg for message in messages), messages
    assert all(hint in message.hint for message in messages)


ANYTHING = [7, "nonsense", "no.such.thing", b"x", [], [1], {}, {"a": 1}, (), ({},), ([], []), NoAuthority]
OPTIONAL = {
    "CONVERSATION_URL",
    "TRIGGER_MODEL",
    "SHARED_FILES_SETTING",
    "NAMING_KEYS",
    "DANGER",
    "REFERENCE_URLS",
}
NONE_OF_THEM = ([], {}, ())
"""What `NAMING_KEYS` may be, and nothing else."""


@pytest.mark.parametrize("value", [None, *ANYTHING], ids=repr)
@pytest.mark.parametrize("key", sorted(KNOWN))
def test_no_value_of_a_key_crashes_the_checks(settings: Any, world: Any, key: str, value: Any) -> None:
    """Whatever stands there: a finding that names the key, with an id and a hint."""
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, key: value}
    messages = found(databases=["default"])
    sound = (key in OPTIONAL and value is None and key not in {"NAMING_KEYS", "DANGER"}) or (
        key == "NAMING_KEYS" and value in NONE_OF_THEM
    )
    assert sound == (messages == []), messages
    assert sound or any(key in message.msg for message in messages), messages
    assert all(message.hint for message in messages)


@pytest.mark.parametrize("value", [None, *ANYTHING], ids=repr)
@pytest.mark.parametrize("name", ["HISTORY_ACCESS", *sorted(CATALOG_KNOWN)])
def test_no_value_of_a_setting_crashes_the_checks(settings: Any, world: Any, name: str, value: Any) -> None:
    setattr(settings, name, value)
    messages = found(databases=["default"])
    assert messages
    assert value == {} or any(name in message.msg for message in messages), messages
    assert all(message.hint for message in messages)


def test_keys_of_any_kind_are_unknown_keys(settings: Any) -> None:
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, 7: 1, ("a",): 2, None: 3}
    assert [message.id for message in found()] == ["history_access.E001"] * 3


def test_without_an_authority_nobody_may_change_settings(settings: Any, world: Any) -> None:
    from settings_catalog.changes import SettingForbiddenError

    del settings.SETTINGS_CATALOG_AUTHORITY
    assert [message.id for message in found()] == ["settings_catalog.W001"]
    with pytest.raises(SettingForbiddenError):
        world.set("weather", agent=world.agent, value="storm")


def thread_model(**fields: Any) -> type[models.Model]:
    """A platform's own session model, with the columns that it happens to have."""
    attributes = {"__module__": HERE, "Meta": type("Meta", (), {"app_label": "tests"}), **fields}
    return type("Thread", (AbstractSession,), attributes)


COLUMNS = ("workspace_id", "agent_id", "account_id", "person_id")
PATHS = {
    "workspace_name": None,
    "time_zone": None,
    "agent_name": None,
    "account_name": None,
    "person_name": None,
}


def own_session(monkeypatch: Any, **fields: Any) -> list[Any]:
    """The findings about a session model of the platform's own."""
    from history_access.checks import models as checks

    model = thread_model(**{**PATHS, **fields})
    monkeypatch.setitem(checks._MODELS, "SESSION_MODEL", (lambda: model, AbstractSession))
    monkeypatch.setattr(checks, "session_model", lambda: model)
    return checks.check_models(None)


def plain_columns(*missing: str) -> dict[str, Any]:
    return {name: models.IntegerField(null=True) for name in COLUMNS if name not in missing}


@pytest.mark.parametrize("column", COLUMNS)
@isolate_apps()
def test_a_missing_column_is_found(monkeypatch: Any, column: str) -> None:
    messages = [m for m in own_session(monkeypatch, **plain_columns(column)) if m.id == "history_access.E004"]
    assert [message.msg for message in messages] == [f"tests.Thread has no {column}."]
    assert column.removesuffix("_id") in messages[0].hint


@isolate_apps()
def test_a_message_of_other_sessions_is_found(monkeypatch: Any) -> None:
    """The platform's messages point to the agent platform's sessions, not to its own."""
    messages = own_session(monkeypatch, **plain_columns())
    assert {message.id for message in messages} == {"history_access.E005"}
    assert all("ForeignKey" in message.hint for message in messages)


@pytest.mark.parametrize("name", PATHS)
@isolate_apps()
def test_a_path_that_leads_nowhere_is_found(monkeypatch: Any, name: str) -> None:
    messages = own_session(monkeypatch, **plain_columns(), **{name: "customer__label"})
    (wrong,) = [message for message in messages if message.id == "history_access.E006"]
    assert f"{name} is 'customer__label'" in wrong.msg
    assert name in wrong.hint


@pytest.mark.parametrize("column", ["title", "started_at", "last_moved_at", "message_count"])
@isolate_apps()
def test_a_column_that_is_always_read_cannot_be_left_out(monkeypatch: Any, column: str) -> None:
    messages = own_session(monkeypatch, **plain_columns(), **{column: None})
    (wrong,) = [message for message in messages if message.id == "history_access.E004"]
    assert wrong.msg == f"tests.Thread has no {column}." and column in wrong.hint


@pytest.mark.parametrize("column", ["trimmed_before", "summary", "summary_through"])
@isolate_apps()
def test_a_column_that_a_platform_may_do_without_can(monkeypatch: Any, column: str) -> None:
    messages = own_session(monkeypatch, **plain_columns(), **{column: None})
    assert {message.id for message in messages} == {"history_access.E005"}  # not its fault


@pytest.mark.parametrize("column", ["title", "status", None])
@isolate_apps()
def test_what_a_model_says_of_columns_that_it_lacks_is_found(monkeypatch: Any, column: str | None) -> None:
    """Left as we say it too: without `deleted_at`, `not_deleted()` is the platform's to say."""
    said = {"not_deleted": classmethod(lambda cls: models.Q(**{column: "x"}))} if column else {}
    messages = own_session(monkeypatch, **plain_columns(), deleted_at=None, **said)
    wrong = [message for message in messages if message.id == "history_access.E016"]
    assert len(wrong) == (column != "title")
    assert all("not_deleted()" in one.msg and "not_deleted()" in one.hint for one in wrong)


class ActiveByNothing(PlatformAuthority):
    active = models.Q(employed=True)


def test_an_authority_that_asks_people_for_a_column_they_lack_is_found(settings: Any) -> None:
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "AUTHORITY": f"{__name__}.ActiveByNothing"}
    settings.SETTINGS_CATALOG_AUTHORITY = f"{__name__}.ActiveByNothing"
    messages = found()
    assert {message.id for message in messages} == {"history_access.E007", "settings_catalog.E003"}
    assert all("employed" in message.msg and "`active`" in message.hint for message in messages)


def test_sessions_and_record_in_two_databases_are_found(settings: Any) -> None:
    assert checks.check_one_database(None) == []
    settings.DATABASE_ROUTERS = ["tests.routers.RecordElsewhere"]
    (wrong,) = checks.check_one_database(None)
    assert wrong.id == "history_access.E009"
    assert "'default'" in wrong.msg and "'elsewhere'" in wrong.msg


@pytest.mark.parametrize(
    ("mode", "ids"),
    [
        ("IMMEDIATE", []),
        ("immediate", []),
        ("EXCLUSIVE", []),
        ("DEFERRED", ["history_access.W001"]),
        (None, ["history_access.W001"]),
    ],
)
def test_sqlite_without_immediate_transactions_is_found(
    sqlite: Any, monkeypatch: Any, mode: str | None, ids: list[str]
) -> None:
    monkeypatch.setitem(sqlite.settings_dict["OPTIONS"], "transaction_mode", mode)
    messages = checks.check_sqlite(None, databases=["default"])
    assert [message.id for message in messages] == ids
    assert all("IMMEDIATE" in message.hint for message in messages)


@pytest.mark.parametrize(("milliseconds", "ids"), [(5000, []), (4999, ["history_access.W004"])])
def test_sqlite_that_hardly_waits_for_its_turn_is_found(
    sqlite: Any, milliseconds: int, ids: list[str]
) -> None:
    """By what the connection says: as a pragma it may have been set in another place than the option."""
    (before,) = asked("PRAGMA busy_timeout")
    asked(f"PRAGMA busy_timeout = {milliseconds}")
    try:
        messages = checks.check_sqlite(None, databases=["default"])
    finally:
        asked(f"PRAGMA busy_timeout = {before}")
    assert [message.id for message in messages] == ids
    assert all(f"waits {milliseconds} ms" in one.msg and '"timeout": 20' in one.hint for one in messages)


@pytest.mark.parametrize("databases", [None, ["elsewhere"]])
def test_databases_are_left_alone_that_nobody_names_or_that_hold_nothing_of_ours(
    settings: Any, databases: Any
) -> None:
    """No connection "elsewhere" is there: it is not so much as looked up."""
    assert checks.check_sqlite(None, databases=databases) == []
    assert checks.check_postgresql(None, databases=databases) == []


def asked(statement: str) -> Any:
    with connections["default"].cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone() if cursor.description else None


def only(vendor: str, request: Any, fixture: str) -> Any:
    """The connection, where it is to this kind of database, once `fixture` has prepared it."""
    if connections["default"].vendor != vendor:
        pytest.skip(f"it is about {vendor}")
    request.getfixturevalue(fixture)
    return connections["default"]


@pytest.fixture
def sqlite(request: Any) -> Any:
    return only("sqlite", request, "db")


@pytest.fixture
def postgresql(request: Any) -> Any:
    return only("postgresql", request, "db")


@pytest.mark.parametrize(
    ("name", "good", "wrong", "check_id"),
    [
        ("synchronous_commit", "local", "off", "history_access.W005"),
        ("session_replication_role", "origin", "replica", "history_access.E023"),
    ],
)
def test_what_postgresql_must_not_do_on_our_connections_is_found(
    postgresql: Any, name: str, good: str, wrong: str, check_id: str
) -> None:
    asked(f"SET LOCAL {name} = {good}")
    assert found(databases=["default"]) == []
    asked(f"SET LOCAL {name} = {wrong}")
    (message,) = found(databases=["default"])
    assert message.id == check_id
    assert f"has {name} = {wrong}, set by session" in message.msg and name in message.hint


@pytest.mark.skipif(connections["default"].vendor != "postgresql", reason="it is about PostgreSQL")
@pytest.mark.parametrize(
    ("where", "how", "says", "hint"),
    [
        ("the role", "ALTER ROLE {role} SET", "set for the role", "ALTER ROLE the role RESET"),
        ("the database", "ALTER DATABASE {name} SET", "set for the database", "ALTER DATABASE"),
        ("both", "ALTER ROLE {role} IN DATABASE {name} SET", "for the role in this", "IN DATABASE"),
        ("the options", None, "by the connection's options", '["OPTIONS"]'),
    ],
)
def test_commits_that_do_not_wait_are_found_wherever_that_is_said(
    committed_db: None, where: str, how: str | None, says: str, hint: str
) -> None:
    """As a new connection finds it; each is taken back afterwards.

    The role is one of this test's own: everybody else's connections are those of the server's one.
    """
    connection = connections["default"]
    name, quote = connection.settings_dict["NAME"], connection.ops.quote_name
    quoted = {"name": quote(name), "role": quote(f"{name}_forgetful")}
    kept = dict(connection.settings_dict)
    given = kept["OPTIONS"]
    asked(f"CREATE ROLE {quoted['role']} SUPERUSER LOGIN")
    try:
        if how is None:
            connection.settings_dict["OPTIONS"] = {**given, "options": "-c synchronous_commit=off"}
        else:
            asked(f"{how.format(**quoted)} synchronous_commit = off")
        connection.close()
        if how is not None and "{role}" in how:
            connection.settings_dict["USER"] = f"{name}_forgetful"
        (message,) = checks.check_postgresql(None, databases=["default"])
        assert (
            message.id == "history_access.W005"
            and says in message.msg
            and "synchronous_commit" in message.hint
        )
        assert hint.replace("the role", "<the role>") in message.hint
    finally:
        connection.close()
        connection.settings_dict.update(kept)
        if how is not None:
            asked(f"{how.format(**quoted).removesuffix('SET')} RESET synchronous_commit")
        asked(f"DROP ROLE {quoted['role']}")
        connection.close()
    assert checks.check_postgresql(None, databases=["default"]) == []


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_a_server_that_may_lose_what_it_wrote_is_found(postgresql: Any, name: str) -> None:
    """No connection can switch either off: the row is judged as this server shows it, and as it would be."""
    from history_access.checks.database import judged

    row = asked(f"SELECT name, setting, source FROM pg_settings WHERE name = '{name}'")
    assert list(judged("default", *row)) == []
    (message,) = judged("default", name, "off", "configuration file")
    assert message.id == "history_access.W006"
    assert f"{name} = off, set in the server's configuration" in message.msg
    assert f"Set {name} = on in postgresql.conf" in message.hint


@pytest.mark.skipif(connections["default"].vendor != "postgresql", reason="SQLite has no functions")
def test_a_guard_whose_own_function_was_replaced_is_found(db: None) -> None:
    """By the whole of it: this one has the words of a refusal, and refuses nothing."""
    guards = apps.get_app_config("agent_platform").guards()
    guard = next(one for one in guards if "$$" in str(one.statement("postgresql")))
    body = "BEGIN RETURN NEW; /* RAISE EXCEPTION */ END"
    asked(f'CREATE OR REPLACE FUNCTION "{guard.name}"() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$')
    (wrong,) = found(databases=["default"])
    assert wrong.id == "history_access.E008" and f"guard {guard.name} on" in wrong.msg


def test_a_missing_guard_s_hint_is_the_command_that_mends_it(committed_db: None) -> None:
    """The error itself keeps a plain `migrate` from running."""
    table = "history_access_turnconversationread"
    name, connection = f"{table}_no_update", connections["default"]
    asked(f'DROP TRIGGER "{name}"' + (f' ON "{table}"' if connection.vendor == "postgresql" else ""))
    (wrong,) = found(databases=["default"])
    assert wrong.id == "history_access.E008" and "`manage.py migrate --skip-checks`" in wrong.hint
    with pytest.raises(SystemCheckError, match=name):
        call_command("migrate", skip_checks=False, verbosity=0)
    call_command("migrate", skip_checks=True, verbosity=0)
    assert found(databases=["default"]) == []


def test_a_database_without_any_table_yet_has_no_findings(request: Any, tmp_path: Path) -> None:
    """`migrate` runs the checks before it makes the tables."""
    connection = connections["default"]
    if connection.vendor == "postgresql":
        request.getfixturevalue("db")
        asked("DROP SCHEMA public CASCADE")
        asked("CREATE SCHEMA public")
        assert found(databases=["default"]) == []
        return
    given = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = tmp_path / "new.sqlite3"
    try:
        with request.getfixturevalue("django_db_blocker").unblock():
            assert found(databases=["default"]) == []
            assert connection.introspection.table_names() == []
            connection.close()
    finally:
        connection.settings_dict["NAME"] = given
