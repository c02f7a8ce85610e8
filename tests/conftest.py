"""Fixtures: a small world on the agent platform, and a database that is emptied after a test that commits."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import TransactionTestCase

from settings_catalog import compiled
from tests.emptying import empty
from tests.worlds import World

collect_ignore = ["second_platform"]
"""A project of its own, which `test_second_platform` runs: its models are none of this one's."""

TOGETHER = {
    "tests/test_demo.py": "demo",  # its runs are started once
    "tests/test_adapter_calls.py": "frameworks",  # which take seconds to import
    "tests/test_adapter_http.py": "frameworks",
    "tests/test_adapter_imports.py": "frameworks",
}
"""Which files' tests stay together in one process, where several run."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One test at a time to whoever is free, but for those that belong together."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return TOGETHER.get(nodeid.partition("::")[0], nodeid)

    return Scheduling(config, log)


def pytest_collection_finish() -> None:
    """What was imported stays: the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def world(db: None) -> World:
    """Hollowbrook with its people, agents and settings, inside the test's own transaction."""
    return World.create()


@pytest.fixture
def open_world(committed_db: None) -> World:
    """The same world, committed: for tests with several connections or real transactions."""
    return World.create()


@pytest.fixture
def committed_db(transactional_db: None) -> None:
    """A database without a surrounding transaction; it is emptied when the test ends."""


@pytest.fixture(autouse=True, scope="session")
def quickly_emptied() -> Iterator[None]:
    """Where a test's database is flushed, it is emptied in less time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TransactionTestCase, "_fixture_teardown", empty)
        yield


@pytest.fixture(autouse=True)
def compiled_anew(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test patches, SQL that was kept does not know of; nor may what it keeps outlive the patch."""
    patched = {"monkeypatch", "settings"} & set(request.fixturenames)
    if patched:
        compiled.forget()
    yield
    if patched:
        compiled.forget()


@pytest.fixture
def statements(django_assert_num_queries: Any) -> Any:
    """Assert how many statements a block runs, transaction control included."""
    return django_assert_num_queries


@pytest.fixture
def empty_database(django_db_setup: None, django_db_blocker: Any, tmp_path: Path) -> Iterator[None]:
    """This process uses an empty database for the length of a test, which migrates it."""
    given = connection.settings_dict["NAME"]
    with django_db_blocker.unblock():
        if connection.vendor == "sqlite":
            empty = str(tmp_path / "empty.sqlite3")
        else:
            empty = f"{given}_empty"
            _execute(f'CREATE DATABASE "{empty}" TEMPLATE template0')
        _turn_to(empty)
        try:
            yield
        finally:
            _turn_to(given)
            if connection.vendor == "postgresql":
                _execute(f'DROP DATABASE "{empty}" WITH (FORCE)')
            connection.close()


def _turn_to(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name
    ContentType.objects.clear_cache()


def _execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
