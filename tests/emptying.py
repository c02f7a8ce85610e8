"""Emptying the database after a test that committed: what it wrote goes, what `migrate` made stays.

Django's flush empties every table, and then makes permissions, content types and guards anew.
"""

from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.test import TransactionTestCase

from history_access.testing import put_back_guards
from history_access.testing.guards import all_guards
from settings_catalog.guards import lifted

MADE_BY_MIGRATE = frozenset({"auth_permission", "django_content_type"})


def empty(case: TransactionTestCase | None = None, using: str = DEFAULT_DB_ALIAS) -> None:
    """Delete the rows of a database, in place of the flush of a `case`; the guards stand afterwards."""
    connection = connections[using]
    put_back_guards(using)  # those that the test lifted
    with transaction.atomic(using=using), connection.cursor() as cursor:
        tables = filled(connection)
        with lifted(connection, (guard for guard in all_guards() if guard.table in tables)):
            for table in tables:
                cursor.execute(f'DELETE FROM "{table}"')
            connection.check_constraints()  # now: a guard cannot be put back while foreign keys wait


def filled(connection: Any) -> list[str]:
    """The tables that have rows of tests, by one statement."""
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    one = "SELECT '{0}' WHERE EXISTS (SELECT 1 FROM \"{0}\")"
    asked = " UNION ALL ".join(one.format(table) for table in tables if table not in MADE_BY_MIGRATE)
    with connection.cursor() as cursor:
        cursor.execute(asked)
        return [table for (table,) in cursor.fetchall()]
