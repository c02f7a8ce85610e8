"""The product behind a pool: psycopg's own, and PgBouncer, which gives each transaction another connection.

PgBouncer is Debian's package; without it, those tests are skipped.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection

from history_access.models import TurnConversationRead
from history_access.seals import seal
from history_access.tools import toolset_for
from history_access.verifying import verify
from tests.worlds import World, listed, read

CLIENTS, CALLS = 4, 15

POOLER = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listens}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
query_wait_timeout = 10
server_connect_timeout = 3
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
"""


@pytest.fixture(params=["psycopg's pool", "PgBouncer"])
def pooled(request: pytest.FixtureRequest, open_world: World) -> Iterator[World]:
    """A world with some conversations, and every connection through a pool."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no pools")
    open_world.allow("all_accounts")
    open_world.grant(open_world.mara)
    for nth in range(7):
        open_world.session("hello", f"answer {nth}", person=open_world.operator)
    kept = dict(connection.settings_dict)
    connection.close()
    if request.param == "PgBouncer":
        with pgbouncer() as address:
            connection.settings_dict.update(address)
            yield open_world
            connection.close()
            connection.settings_dict.update(kept)
    else:
        pytest.importorskip("psycopg_pool", reason="psycopg's pool is not installed")
        connection.settings_dict["OPTIONS"] = {**kept["OPTIONS"], "pool": {"min_size": 1, "max_size": 2}}
        yield open_world
        connection.close_pool()
        connection.settings_dict.update(kept)


class pgbouncer:  # noqa: N801 (it is used like a function)
    """A PgBouncer in transaction mode in front of the tests' database."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="history-access-pgbouncer-"))
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    def __enter__(self) -> dict[str, Any]:
        program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
        if program is None:
            pytest.skip("PgBouncer is not installed (Debian's package pgbouncer)")
        given = connection.get_connection_params()
        config = POOLER.format(
            host=given.get("host") or "localhost",
            port=given.get("port") or 5432,
            user=given.get("user") or "postgres",
            listens=self.port,
            folder=self.folder,
        )
        (self.folder / "pgbouncer.ini").write_text(config, encoding="utf-8")
        self.folder.chmod(0o777)
        sockets = Path(str(given.get("host")))
        owner = sockets.owner() if sockets.is_dir() else "nobody"
        as_whom = ["-u", owner] if os.geteuid() == 0 else []  # it refuses to run as root
        command = [program, "-q", *as_whom, str(self.folder / "pgbouncer.ini")]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        return {"HOST": "127.0.0.1", "PORT": str(self.port), "DISABLE_SERVER_SIDE_CURSORS": True}

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def until_it_answers() -> None:
    for _ in range(50):
        try:
            connection.ensure_connection()
        except OperationalError:
            time.sleep(0.1)
        else:
            return
    connection.ensure_connection()


def test_clients_share_few_connections_and_get_what_they_may(pooled: World) -> None:
    """Everything that a call sets goes with its transaction: the next one finds nothing of it."""
    until_it_answers()
    turn = pooled.turn(pooled.mara)
    expected = listed(toolset_for(turn))
    assert len(expected) == 7
    failed: list[str] = []

    def client() -> None:
        try:
            toolset = toolset_for(turn)
            for _ in range(CALLS):
                assert listed(toolset, limit=5) == expected
                assert len(read(toolset, expected[0])["messages"]) == 2
        except Exception as error:
            failed.append(repr(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failed == []
    assert TurnConversationRead.objects.count() == 7 + CLIENTS * CALLS * (7 + 1)
    assert seal() == TurnConversationRead.objects.count()
    assert not list(verify())
    with connection.cursor() as cursor:
        cursor.execute("SHOW enable_sort")
        assert cursor.fetchone() == ("on",)
