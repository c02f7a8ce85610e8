"""The tables are there before anything of Django's is; then a small desk stands in them."""

from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connections
from django.db.models.signals import pre_migrate

from tests.second_platform.desk import Desk

TABLES = Path(__file__).with_name("tables.sql")


def make_tables(sender: Any, using: str, **kwargs: Any) -> None:
    """Plain SQL, once, before the first migration of the project that it is in."""
    connection = connections[using]
    with connection.cursor() as cursor:
        if "desk_firms" not in connection.introspection.table_names(cursor):
            for statement in TABLES.read_text(encoding="utf-8").rstrip().removesuffix(";").split(";\n"):
                cursor.execute(statement)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    pre_migrate.connect(make_tables, sender=apps.get_app_config("desk"))


@pytest.fixture
def desk(db: None) -> Desk:
    return Desk()
