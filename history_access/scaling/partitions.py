"""SQL that partitions the record by month on PostgreSQL.

A read's key is of version 7 and sorts by its time, to the microsecond at which it was made. So the partitions
are ranges of keys: the primary key stays what it is, and nothing else changes for the product.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from history_access.models import TurnConversationRead
from settings_catalog.guards import Guard, marked

_LATER = "later"


def partitions(connection: BaseDatabaseWrapper, guards: tuple[Guard, ...], *, months: int) -> Iterator[str]:
    """The statements: those that turn the table into a partitioned one, or where it is one, the next months.

    `guards` are those of the record's table. There is a partition for each of the next `months`, and one for
    whatever comes after them, so that no read is ever refused.
    """
    table = TurnConversationRead._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute("SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)", [_quoted(table)])
        [kind] = cursor.fetchone()
    first = _following(datetime.now(UTC).date().replace(day=1))
    yield "BEGIN;"
    if kind != "p":
        yield from _converted(connection, table, guards, until=first)
    month = first
    for _ in range(months):
        yield from _partition(table, f"{month:%Y_%m}", guards, _between(month))
        month = _following(month)
    if kind != "p":
        yield from _partition(table, _LATER, guards, "DEFAULT")
    yield "COMMIT;"


def _converted(
    connection: BaseDatabaseWrapper, table: str, guards: tuple[Guard, ...], *, until: date
) -> Iterator[str]:
    """The table as it stands becomes the first partition; no row is copied."""
    before = f"{table}_before"
    yield f"LOCK TABLE {_quoted(table)} IN ACCESS EXCLUSIVE MODE;"
    for guard in guards:
        yield f"DROP TRIGGER IF EXISTS {_quoted(guard.name)} ON {_quoted(table)};"
    yield f"ALTER TABLE {_quoted(table)} RENAME TO {_quoted(before)};"
    indexes = _indexes(connection, table)
    for nth, (name, _) in enumerate(indexes):
        yield f"ALTER INDEX {_quoted(name)} RENAME TO {_quoted(f'{table}_before_{nth}')};"
    yield (
        f"CREATE TABLE {_quoted(table)} (LIKE {_quoted(before)} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) "
        "PARTITION BY RANGE (id);"
    )
    yield f"ALTER TABLE {_quoted(table)} ADD PRIMARY KEY (id);"
    for _, definition in indexes:
        if definition:
            yield f"{definition};"
    beyond = f"CHECK (id < '{_key(until)}')"
    yield f"ALTER TABLE {_quoted(before)} ADD CONSTRAINT {_quoted(f'{table}_before_month')} {beyond};"
    yield (
        f"ALTER TABLE {_quoted(table)} ATTACH PARTITION {_quoted(before)} "
        f"FOR VALUES FROM (MINVALUE) TO ('{_key(until)}');"
    )
    for guard in guards:
        yield from marked(guard, table)
        if guard.event == "TRUNCATE":
            yield from marked(guard, before)


def _partition(table: str, name: str, guards: tuple[Guard, ...], values: str) -> Iterator[str]:
    """One partition. Guards of rows come with the table's own; those of TRUNCATE do not."""
    partition = f"{table}_{name}"
    yield f"CREATE TABLE {_quoted(partition)} PARTITION OF {_quoted(table)} {values};"
    for guard in guards:
        if guard.event == "TRUNCATE":
            yield from marked(guard, partition)


def _indexes(connection: BaseDatabaseWrapper, table: str) -> list[tuple[str, str]]:
    """Each index by name, with what makes it; "" for that of the primary key, which is made with it."""
    query = (
        "SELECT c.relname, CASE WHEN i.indisprimary THEN '' ELSE pg_get_indexdef(i.indexrelid) END "
        "FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "WHERE i.indrelid = to_regclass(%s) ORDER BY c.relname"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, [_quoted(table)])
        return [(name, definition) for name, definition in cursor.fetchall()]


def _between(month: date) -> str:
    return f"FOR VALUES FROM ('{_key(month)}') TO ('{_key(_following(month))}')"


def _key(day: date) -> str:
    """The least key of a day, in UTC: its milliseconds, and nothing after them."""
    milliseconds = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
    digits = f"{milliseconds:012x}"
    return f"{digits[:8]}-{digits[8:]}-0000-0000-000000000000"


def _following(month: date) -> date:
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def _quoted(name: Any) -> str:
    return '"' + str(name).replace('"', '""') + '"'
