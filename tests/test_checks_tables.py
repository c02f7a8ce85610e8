"""Checks of the tables under a platform's models: what lacks, what is of another type, what has no index.

Over a ledger of conversations that the tests create: integer keys, plain columns, messages in parts.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.db import connection, models
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from history_access.models import AbstractMessage, AbstractSession, AbstractTurn
from history_access.models.text import PartsText, ToolNames

MOMENT = "timestamp with time zone"
COLUMNS = {
    "ledger_threads": {
        "thread_no": "integer PRIMARY KEY",
        "firm_no": "integer",
        "bot_no": "integer",
        "client_no": "integer",
        "staff_no": "integer",
        "subject": "text",
        "opened": MOMENT,
        "moved": MOMENT,
        "entries": "integer",
        "status": "text",
    },
    "ledger_entries": {
        "entry_no": "integer PRIMARY KEY",
        "firm_no": "integer",
        "thread_no": "integer",
        "place": "integer",
        "kind": "text",
        "parts": "jsonb",
        "notes": "json",
        "written": MOMENT,
    },
    "ledger_runs": {
        "run_no": "integer PRIMARY KEY",
        "firm_no": "integer",
        "thread_no": "integer",
        "staff_no": "integer",
        "rule_no": "integer",
        "running": "boolean",
    },
}
NEWEST = "CREATE INDEX ledger_newest ON ledger_threads (bot_no, moved DESC, thread_no DESC)"
NUMBER = "CREATE INDEX ledger_number ON ledger_entries (thread_no, place)"
SESSION = "CREATE INDEX ledger_session ON ledger_runs (thread_no)"


def over(table: str) -> dict[str, Any]:
    meta = type("Meta", (), {"app_label": "tests", "managed": False, "db_table": table})
    return {"__module__": __name__, "Meta": meta}


class Ledger:
    """The platform of these tests, as its tables and its models happen to be."""

    def __init__(self, settings: Any) -> None:
        whole = models.IntegerField
        thread = type(
            "LedgerThread",
            (AbstractSession,),
            {
                **over("ledger_threads"),
                "thread_no": whole(primary_key=True),
                "workspace_id": whole(db_column="firm_no"),
                "agent_id": whole(db_column="bot_no"),
                "account_id": whole(db_column="client_no", null=True),
                "person_id": whole(db_column="staff_no", null=True),
                "title": models.TextField(db_column="subject"),
                "started_at": models.DateTimeField(db_column="opened"),
                "last_moved_at": models.DateTimeField(db_column="moved"),
                "message_count": whole(db_column="entries"),
                "status": models.TextField(),
                "not_deleted": classmethod(lambda cls: ~Q(status="deleted")),
                **dict.fromkeys(("trimmed_before", "summary", "summary_through", "deleted_at")),
                **dict.fromkeys(("workspace_name", "time_zone", "agent_name", "account_name", "person_name")),
            },
        )
        of_thread: dict[str, Any] = {"db_column": "thread_no", "db_constraint": False}
        self.entry = {
            **over("ledger_entries"),
            "entry_no": whole(primary_key=True),
            "workspace_id": whole(db_column="firm_no"),
            "session": models.ForeignKey(thread, models.DO_NOTHING, **of_thread),
            "number": whole(db_column="place"),
            "role": models.TextField(db_column="kind"),
            "parts": models.JSONField(),
            "notes": models.JSONField(),
            "created_at": models.DateTimeField(db_column="written"),
            **dict.fromkeys(("hidden", "text", "tool_calls")),
            "readable": classmethod(lambda cls: Q(role__in=("user", "bot"))),
            "by_agent": classmethod(lambda cls: Q(role="bot")),
            "words": classmethod(lambda cls: PartsText("parts")),
            "tool_names": classmethod(lambda cls: ToolNames("parts", most=51, length=101)),
        }
        run = {
            **over("ledger_runs"),
            "run_no": whole(primary_key=True),
            "workspace_id": whole(db_column="firm_no"),
            "session": models.ForeignKey(thread, models.DO_NOTHING, related_name="+", **of_thread),
            "sender_id": whole(db_column="staff_no", null=True),
            "trigger_id": whole(db_column="rule_no", null=True),
            "running": models.BooleanField(),
            "live": classmethod(lambda cls: Q(running=True)),
            "started_by_webhook": classmethod(lambda cls: Q(trigger_id__isnull=False)),
            **dict.fromkeys(("started_at", "ended_at", "trigger_owner", "trigger_name")),
        }
        type("LedgerRun", (AbstractTurn,), run)
        settings.HISTORY_ACCESS = {
            **settings.HISTORY_ACCESS,
            "SESSION_MODEL": "tests.LedgerThread",
            "MESSAGE_MODEL": "tests.LedgerEntry",
            "TURN_MODEL": "tests.LedgerRun",
            "TRIGGER_MODEL": None,
        }

    def found(self, *but: str, declared: Any = None, **types: str | None) -> list[Any]:
        """The findings over tables in which a column has another type, or (None) is not there.

        `but` are the statements after the tables; without any, the indexes that are wanted. `declared` are
        fields of the entries' model.
        """
        type("LedgerEntry", (AbstractMessage,), {**self.entry, **(declared or {})})
        for table, columns in COLUMNS.items():
            kept = {name: types.get(f"{table[7:]}__{name}", kind) for name, kind in columns.items()}
            listed = ", ".join(f"{name} {kind}" for name, kind in kept.items() if kind is not None)
            self.run(f"CREATE TABLE {table} ({listed})")
        for statement in but or (NEWEST, NUMBER, SESSION):
            self.run(statement)
        return [one for one in run_checks(databases=["default"]) if one.id.startswith("history_access")]

    @staticmethod
    def run(statement: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)


@pytest.fixture
def ledger(db: None, settings: Any) -> Iterator[Ledger]:
    before = set(apps.all_models["tests"])
    try:
        yield Ledger(settings)
    finally:
        for name in set(apps.all_models["tests"]) - before:
            del apps.all_models["tests"][name]
        apps.clear_cache()


def test_tables_that_hold_what_their_models_declare_have_no_findings(ledger: Ledger) -> None:
    assert ledger.found() == []


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ("threads__moved", "ledger_threads has no column moved, which tests.LedgerThread.last_moved_at"),
        ("entries__notes", "ledger_entries has no column notes, which tests.LedgerEntry.notes"),
        ("runs__staff_no", "ledger_runs has no column staff_no, which tests.LedgerRun.sender_id"),
    ],
)
def test_a_column_that_is_not_in_the_table_is_found(ledger: Ledger, column: str, says: str) -> None:
    messages = ledger.found(NUMBER, SESSION, **{column: None})
    (wrong,) = [message for message in messages if message.id == "history_access.E017"]
    assert wrong.msg == f"{says} reads."
    assert "db_column" in wrong.hint


def test_a_column_of_another_name_is_found_with_the_names_that_there_are(ledger: Ledger) -> None:
    rename = "ALTER TABLE ledger_threads RENAME COLUMN subject TO heading"
    (wrong,) = ledger.found(NEWEST, NUMBER, SESSION, rename)
    assert wrong.id == "history_access.E017" and "subject" in wrong.msg
    assert "no field names: heading." in wrong.hint


def test_a_table_that_is_not_there_is_found_once(ledger: Ledger) -> None:
    (wrong,) = ledger.found(NEWEST, NUMBER, "DROP TABLE ledger_runs")
    assert wrong.id == "history_access.E017"
    assert wrong.msg == "tests.LedgerRun stands over ledger_runs, and there is no such table or view."


VIEW = "CREATE VIEW ledger_threads AS SELECT {} FROM ledger_threads_below"
BELOW = ("DROP INDEX ledger_newest", "ALTER TABLE ledger_threads RENAME TO ledger_threads_below")


@pytest.mark.parametrize(("columns", "says"), [("*", None), ("thread_no, firm_no", "no column bot_no")])
def test_a_view_is_looked_at_like_a_table_but_for_indexes(
    ledger: Ledger, columns: str, says: str | None
) -> None:
    messages = ledger.found(NEWEST, NUMBER, SESSION, *BELOW, VIEW.format(columns))
    assert bool(messages) == bool(says)
    assert says is None or says in messages[0].msg


POSTGRESQL, SQLITE = "postgresql", "sqlite"
WRONG = [
    ("threads__moved", "text", "moved of ledger_threads is text", None),
    ("threads__moved", "date", "is date", None),
    ("threads__moved", "timestamp without time zone", "without time zone", POSTGRESQL),
    ("threads__entries", "text", "LedgerThread.message_count takes it for integer", None),
    ("threads__subject", "integer", "LedgerThread.title takes it for text", None),
    ("threads__client_no", "text", "client_no of ledger_threads is text", None),
    ("entries__place", "text", "LedgerEntry.number takes it for integer", None),
    ("entries__place", "numeric", "is numeric", None),
    ("entries__thread_no", "text", "LedgerEntry.session takes it for integer", None),
    ("entries__parts", "json", "parts of ledger_entries is json,", POSTGRESQL),
    ("entries__parts", "integer", "is integer", None),
    ("runs__running", "text", "running of ledger_runs is text", None),
]


@pytest.mark.parametrize(("column", "kind", "says", "vendor"), WRONG, ids=[f"{w[0]} {w[1]}" for w in WRONG])
def test_a_column_of_another_type_is_found(
    ledger: Ledger, column: str, kind: str, says: str, vendor: str | None
) -> None:
    messages = ledger.found(**{column: kind})
    if vendor not in (None, connection.vendor):  # the one type, or that SQLite keeps the same
        assert messages == []
        return
    (wrong,) = messages
    assert wrong.id == "history_access.E018" and says in wrong.msg
    name = column.partition("__")[2]
    how = f'ALTER COLUMN "{name}" TYPE' if connection.vendor == POSTGRESQL else f'anew, with "{name}" '
    assert how in wrong.hint


def test_the_hint_on_a_time_without_a_zone_and_on_json_is_sql_that_mends_them(ledger: Ledger) -> None:
    if connection.vendor != POSTGRESQL:
        pytest.skip("SQLite cannot change a column's type")
    wrong = ledger.found(threads__moved="timestamp without time zone", entries__parts="json")
    assert len(wrong) == 2
    for message in wrong:
        ledger.run(message.hint.partition(";")[0])
    assert [one for one in run_checks(databases=["default"]) if one.id.startswith("history_access")] == []


ALIKE = [
    ("threads__moved", "timestamptz(3)"),
    ("threads__entries", "bigint"),
    ("threads__thread_no", "bigint PRIMARY KEY"),
    ("threads__subject", "varchar(300)"),
    ("entries__place", "smallint"),
    ("entries__notes", "text"),
]


@pytest.mark.parametrize(("column", "kind"), ALIKE)
def test_a_type_that_can_stand_for_the_declared_one_is_no_finding(
    ledger: Ledger, column: str, kind: str
) -> None:
    """`notes` is nothing that is read: its type is the platform's own affair."""
    assert ledger.found(**{column: kind}) == []


@pytest.mark.parametrize(
    ("name", "field", "wanted"),
    [
        ("number", models.TextField(db_column="place"), "PositiveIntegerField"),
        ("created_at", models.TextField(db_column="written"), "DateTimeField"),
        ("created_at", models.DateField(db_column="written"), "DateTimeField"),
    ],
)
def test_a_field_that_is_no_number_or_no_time_is_found_without_a_database(
    ledger: Ledger, name: str, field: Any, wanted: str
) -> None:
    ledger.found(declared={name: field})
    (wrong,) = [one for one in run_checks() if one.id.startswith("history_access")]
    assert wrong.id == "history_access.E018"
    assert f"tests.LedgerEntry.{name} is a {type(field).__name__}, which is no {wanted}" in wrong.msg
    assert wanted in wrong.hint


def test_keys_that_are_compared_and_of_two_types_are_found(ledger: Ledger) -> None:
    """As each model declares its own, each is right by itself."""
    text = {"workspace_id": models.TextField(db_column="firm_no")}
    (wrong,) = ledger.found(declared=text, entries__firm_no="text")
    assert wrong.id == "history_access.E019"
    assert "workspaces are integer in ledger_threads.firm_no and text in ledger_entries.firm_no" in wrong.msg
    assert "Let both be integer" in wrong.hint


def warned(messages: list[Any]) -> list[str]:
    assert {message.id for message in messages} <= {"history_access.W003"}, messages
    return [message.obj._meta.db_table for message in messages]


@pytest.mark.parametrize(
    ("there", "table"),
    [((NUMBER, SESSION), "threads"), ((NEWEST, SESSION), "entries"), ((NEWEST, NUMBER), "runs")],
)
def test_a_missing_index_is_found_and_its_hint_is_sql_that_mends_it(
    ledger: Ledger, there: tuple[str, ...], table: str
) -> None:
    (slow,) = messages = ledger.found(*there)
    assert warned(messages) == [f"ledger_{table}"]
    ledger.run(slow.hint.replace("CONCURRENTLY ", ""))  # which no transaction may run
    assert [one for one in run_checks(databases=["default"]) if one.id.startswith("history_access")] == []


ON_THREADS = "CREATE INDEX other ON ledger_threads"
SERVING = [
    f"{ON_THREADS} (bot_no, moved)",
    f"{ON_THREADS} (firm_no, bot_no, moved DESC)",
    f"{ON_THREADS} (bot_no, firm_no, moved, thread_no, status)",
    f"{ON_THREADS} (bot_no, moved DESC) WHERE status <> 'deleted'",
]
NOT_SERVING = [
    f"{ON_THREADS} (bot_no)",
    f"{ON_THREADS} (moved, bot_no)",
    f"{ON_THREADS} (firm_no, moved)",
    f"{ON_THREADS} (bot_no, client_no, moved)",
    f"{ON_THREADS} (bot_no, thread_no, moved)",
    f"{ON_THREADS} (bot_no, moved) WHERE client_no IS NULL",
    f"{ON_THREADS} (bot_no, (moved || ''))",
]
ON_POSTGRESQL = [
    f"{ON_THREADS} (bot_no, moved DESC NULLS LAST)",
    f"{ON_THREADS} (bot_no) INCLUDE (moved)",
    f"{ON_THREADS} USING brin (bot_no, moved)",
]
if connection.vendor == POSTGRESQL:
    NOT_SERVING = [*NOT_SERVING[:-1], *ON_POSTGRESQL]


@pytest.mark.parametrize("index", SERVING)
def test_an_index_of_another_form_that_serves_is_enough(ledger: Ledger, index: str) -> None:
    assert warned(ledger.found(index, NUMBER, SESSION)) == []


@pytest.mark.parametrize("index", NOT_SERVING)
def test_an_index_that_does_not_serve_is_not_enough(ledger: Ledger, index: str) -> None:
    assert warned(ledger.found(index, NUMBER, SESSION)) == ["ledger_threads"]


@pytest.mark.parametrize(
    ("index", "serves"),
    [
        ("UNIQUE INDEX other ON ledger_entries (thread_no, place)", True),
        ("INDEX other ON ledger_entries (firm_no, thread_no, place)", True),
        ("INDEX other ON ledger_entries (thread_no, place) WHERE kind IN ('user', 'bot')", True),
        ("INDEX other ON ledger_entries (thread_no, place) WHERE place > 5 AND parts IS NULL", False),
        ("INDEX other ON ledger_entries (place, thread_no)", False),
        ("INDEX other ON ledger_entries (thread_no, written)", False),
    ],
)
def test_the_index_for_reading_leads_with_the_conversation_and_the_number(
    ledger: Ledger, index: str, serves: bool
) -> None:
    expected = [] if serves else ["ledger_entries"]
    assert warned(ledger.found(NEWEST, f"CREATE {index}", SESSION)) == expected


@pytest.mark.skipif(connection.vendor != POSTGRESQL, reason="SQLite has one kind of index")
def test_a_hash_is_enough_for_what_is_looked_up_and_not_ordered(ledger: Ledger) -> None:
    assert warned(ledger.found(NEWEST, NUMBER, SESSION.replace("(", "USING hash ("))) == []


def test_a_platform_without_webhooks_needs_no_index_of_its_turns(ledger: Ledger) -> None:
    run = apps.get_model("tests.LedgerRun")
    run.started_by_webhook = classmethod(lambda cls: None)
    assert warned(ledger.found(NEWEST, NUMBER)) == []


def test_tables_are_not_looked_at_while_a_migration_waits(ledger: Ledger) -> None:
    """It may be the one that mends them, and an error would keep `migrate` from running it."""
    assert {one.id for one in ledger.found(NUMBER, threads__entries="text", threads__subject=None)}
    ledger.run("DELETE FROM django_migrations WHERE app = 'history_access'")
    assert [one for one in run_checks(databases=["default"]) if one.id.startswith("history_access")] == []


def test_looking_at_sound_tables_takes_few_statements(ledger: Ledger) -> None:
    from history_access.checks import check_indexes, check_tables

    ledger.found()
    with CaptureQueriesContext(connection) as statements:
        assert check_tables(None, databases=["default"]) == []
        assert check_indexes(None, databases=["default"]) == []
    assert len(statements) <= (3 if connection.vendor == POSTGRESQL else 15)
    with CaptureQueriesContext(connection) as statements:
        assert check_tables(None) == check_indexes(None, databases=["elsewhere"]) == []
    assert len(statements) == 0
