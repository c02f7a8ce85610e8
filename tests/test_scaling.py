"""record-append-only, record-sealed: what `scale_history` writes keeps all that the record promises, and the
tools work on it as before. It is run on PostgreSQL.
"""

import re
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from history_access.agent_platform.models import Message, Session, Turn
from history_access.erasing import erase_person
from history_access.models import RecordedName, TurnConversationRead
from history_access.pruning import prune
from history_access.seals import seal
from history_access.tools import toolset_for
from history_access.verifying import verify
from settings_catalog.guards import GuardedConfig, missing
from settings_catalog.keys import uuid7, uuid7_at
from tests.sealed_records import write_reads
from tests.worlds import NOON, World, listed, read

READS = TurnConversationRead._meta.db_table


@pytest.fixture
def scaled(empty_database: None) -> World:
    """A world with a record of some months, in a database of its own."""
    if connection.vendor != "postgresql":
        pytest.skip("partitions and Citus are PostgreSQL's")
    call_command("migrate", verbosity=0)
    world = World.create()
    world.allow("all_accounts")
    world.grant(world.mara)
    for nth in range(3):
        world.session("hello", f"answer {nth}", person=world.operator, account=world.acme)
    write_reads(12)
    return world


def written(*asked: str, **options: Any) -> list[str]:
    out = StringIO()
    call_command("scale_history", *asked, stdout=out, **options)
    return out.getvalue().splitlines()


def run(statements: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("\n".join(statements))


def partitions() -> dict[str, int]:
    """How many reads each partition has."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", [READS]
        )
        names = [name for (name,) in cursor.fetchall()]
        found = {}
        for name in names:
            cursor.execute(f"SELECT count(*) FROM {name}")
            found[name.removeprefix(f"{READS}_")] = cursor.fetchone()[0]
        return found


def at(moment: datetime) -> TurnConversationRead:
    """A read of a moment still to come."""
    [row] = write_reads(1, moment=moment)
    return row


def works(world: World) -> int:
    """List and read, and say how many reads that recorded: each title, and the messages."""
    before = TurnConversationRead.objects.count()
    toolset = toolset_for(world.turn(world.mara))
    told = Session.objects.filter(title="")
    keys = [key for key in listed(toolset, limit=2) if told.filter(pk=key).exists()]
    assert len(keys) == 3
    assert read(toolset, keys[0])["messages"]
    recorded = TurnConversationRead.objects.count() - before
    return recorded - (Session.objects.count() - 1 - len(keys))


def guards_stand() -> bool:
    configs = [config for config in apps.get_app_configs() if isinstance(config, GuardedConfig)]
    return not [guard for config in configs for guard in missing(connection, config.guards())]


def test_a_record_by_month_keeps_what_it_promises(scaled: World) -> None:
    """Every row goes where its month is; sealing, erasing and pruning go on; nothing can be changed."""
    before = TurnConversationRead.objects.count()
    assert before == 12
    seal()
    run(written("partitions", "--months", "2"))
    assert partitions() == {"before": 12, **dict.fromkeys(_months(2), 0), "later": 0}
    assert works(scaled) == 4
    seal()
    assert not list(verify())
    assert guards_stand()
    now = datetime.now(UTC)
    next_month = (now.replace(day=1) + timedelta(days=40)).replace(day=3)
    at(next_month)
    at(now + timedelta(days=400))
    assert partitions() == {"before": 16, **dict(zip(_months(2), (1, 0), strict=True)), "later": 1}
    for table in (READS, f"{READS}_before", f"{READS}_later"):
        for change in ("UPDATE {} SET characters = 1", "DELETE FROM {}", "TRUNCATE {}"):
            with pytest.raises(IntegrityError, match="append-only"):
                run([change.format(table)])


def test_erasing_and_pruning_go_on_in_a_record_by_month(scaled: World) -> None:
    seal()
    run(written("partitions", "--months", "1"))
    assert works(scaled) == 4
    seal()
    erase_person(str(scaled.mara.pk), by="7", why="asked for it")
    assert not RecordedName.objects.filter(kind="person", key=str(scaled.mara.pk)).exists()
    prune(through=1, by="7", why="old")
    assert TurnConversationRead.objects.count() == 4
    seal()
    assert not list(verify())
    assert guards_stand()
    assert works(scaled) == 4


def test_further_months_are_added_to_a_record_by_month(scaled: World) -> None:
    """The command sees that the table is one already, and writes the months alone."""
    run(written("partitions", "--months", "1"))
    [month] = _months(1)
    again = written("partitions", "--months", "2")
    assert not [one for one in again if "RENAME" in one or "LOCK" in one or "_later" in one]
    run([one for one in again if month not in one])
    assert set(partitions()) == {"before", *_months(2), "later"}
    assert guards_stand()


def test_a_look_at_the_record_goes_to_one_partition(scaled: World) -> None:
    """Which reads a reply drew on is asked by index in each; a range of keys in those that it lies in."""
    run(written("partitions", "--months", "3"))
    with connection.cursor() as cursor:
        bound = uuid7_at(datetime.now(UTC) + timedelta(days=75))
        cursor.execute(f"EXPLAIN SELECT * FROM {READS} WHERE id > %s", [bound])
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "_before" not in plan
    assert "_later" in plan


CITUS = """
CREATE OR REPLACE FUNCTION create_reference_table(name text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  PERFORM name::regclass; END $$;
CREATE OR REPLACE FUNCTION create_distributed_table(name text, by text, colocate_with text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  IF EXISTS (SELECT FROM pg_index i WHERE indrelid = name::regclass AND indisunique AND NOT (
    SELECT attnum FROM pg_attribute WHERE attrelid = indrelid AND attname = by) = ANY (indkey::int2[])) THEN
    RAISE EXCEPTION '% has a unique index without %', name, by; END IF;
  IF EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND name::regclass = conrelid) THEN
    RAISE EXCEPTION '% has foreign keys', name; END IF;
  IF EXISTS (SELECT FROM pg_trigger
    WHERE tgrelid = name::regclass AND NOT tgisinternal AND tgtype & 32 > 0) THEN
    RAISE EXCEPTION '% has a trigger of TRUNCATE', name; END IF;
  IF colocate_with IS NOT NULL AND (
    SELECT atttypid FROM pg_attribute WHERE attrelid = name::regclass AND attname = by
  ) NOT IN (SELECT atttypid FROM pg_attribute WHERE attrelid = colocate_with::regclass) THEN
    RAISE EXCEPTION '% cannot stand beside %', name, colocate_with; END IF;
END $$;
"""
"""What Citus asks of a table before it distributes it, as its manual says, where there is no Citus."""


def test_what_is_written_for_citus_is_what_citus_asks_of_tables(scaled: World) -> None:
    """The workspace is in every key; the tools then run the same statements with the same results."""
    statements = written("citus")
    run([CITUS])
    with pytest.raises(DatabaseError, match=r"without (workspace_)?id|foreign keys"):
        run([one for one in statements if "create_distributed_table" in one])
    asked = toolset_for(scaled.turn(scaled.mara))
    with CaptureQueriesContext(connection) as before:
        first = asked.call("list_conversations", {"limit": 2})
    run([one for one in statements if not re.match(r"CREATE EXTENSION|SET citus", one)])
    distributed = {re.findall(r"'\"(\w+)\"'", one)[0] for one in statements if "create_distributed" in one}
    assert {READS, Session._meta.db_table, Turn._meta.db_table} <= distributed
    assert not {one for one in distributed if "seal" in one or "settings_catalog" in one or "account" in one}
    with CaptureQueriesContext(connection) as after:
        assert asked.call("list_conversations", {"limit": 2}) == first
    assert len(after) == len(before)
    assert works(scaled) == 4
    seal()
    assert not list(verify())
    for change in ("UPDATE {} SET characters = 1", "DELETE FROM {}"):
        with pytest.raises(IntegrityError, match="append-only"):
            run([change.format(READS)])


def test_citus_keeps_rows_of_two_workspaces_apart(scaled: World) -> None:
    """A foreign key goes with the workspace: a message of one cannot stand in a conversation of another."""
    statements = [one for one in written("citus") if not re.match(r"CREATE EXTENSION|SET citus", one)]
    run([CITUS, *statements])
    other = type(scaled.hollowbrook).objects.create(name="Elsewhere")
    session = Session.objects.exclude(messages=None)[0]
    kept = Message(workspace=scaled.hollowbrook, session=session, number=90, role="person", created_at=NOON)
    kept.save(force_insert=True)
    kept.pk, kept.number, kept.workspace = uuid7(), 91, other
    with pytest.raises(IntegrityError, match="foreign key"):
        kept.save(force_insert=True)


@pytest.mark.parametrize("months", ["0", "121", "-3"])
def test_an_unlikely_number_of_months_is_refused(db: None, months: str) -> None:
    wanted = "1 to 120 months" if connection.vendor == "postgresql" else "this is for PostgreSQL"
    with pytest.raises(CommandError, match=wanted):
        written("partitions", "--months", months)


def _months(number: int) -> list[str]:
    found, day = [], datetime.now(UTC).date().replace(day=1)
    for _ in range(number):
        day = (day + timedelta(days=40)).replace(day=1)
        found.append(f"{day:%Y_%m}")
    return found
