"""`manage.py import_conversations FILE --agent AGENT`: an agent's conversations from elsewhere."""

import os
import stat
import sys
import uuid
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import reset_queries, router
from django.db.models import Q
from tqdm import tqdm

from history_access.agent_platform.import_format import Line, RejectedError, conversation_of, lines_of
from history_access.agent_platform.imports import SeenIds, import_conversation
from history_access.agent_platform.models import Agent, Session
from history_access.agent_platform.services import storable

_INTERRUPTED = 130
_MOST_NAMED = 5


@dataclass
class Tally:
    """What became of the lines so far; `messages` are those of the imported conversations, all roles."""

    imported: int = 0
    there: int = 0
    rejected: int = 0
    messages: int = 0

    def __str__(self) -> str:
        return (
            f"imported {self.imported}, already there {self.there}, rejected {self.rejected}; "
            f"messages imported {self.messages}"
        )


class Command(BaseCommand):
    """Streams the file: each line is a transaction of its own, so a second run goes on where one ended."""

    help = (
        "Import an agent's conversations from JSON Lines, one conversation a line. What is there already "
        "is skipped, so an interrupted import can be run again; rejected lines are reported and passed over."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """The file, whose conversations they are, and whether there is a progress bar."""
        parser.add_argument("file", metavar="FILE", help="a file of JSON Lines, or - for standard input")
        parser.add_argument("--agent", required=True, help="the agent's UUID or name")
        parser.add_argument("--workspace", help="its workspace's UUID or name, where the name is ambiguous")
        parser.add_argument("--no-progress", action="store_true", help="show no progress bar")

    def handle(self, *, file: str, agent: str, workspace: str | None, **options: Any) -> None:
        """Import the file and say what became of it; a CommandError where a line was rejected."""
        importing, tally = find_agent(agent, workspace), Tally()
        shown = self.stderr.isatty() and not options["no_progress"] and options["verbosity"] > 0
        try:
            with (
                opened(file) as stream,
                progress(stream, shown=shown) as bar,
                closing(SeenIds()) as seen,
            ):
                for line in lines_of(stream):
                    self._take(line, importing, seen, tally)
                    bar.update(line.size)
        except KeyboardInterrupt:
            ended = f"Interrupted: {tally}. Run it again to go on."
            raise CommandError(ended, returncode=_INTERRUPTED) from None
        if options["verbosity"] > 0:
            self.stdout.write(str(tally))
        if tally.rejected:
            raise CommandError(f"Rejected lines: {tally.rejected}. Their numbers and reasons stand above.")

    def _take(self, line: Line, agent: Agent, seen: SeenIds, tally: Tally) -> None:
        """Import one line, or report why not."""
        if line.empty:
            return
        try:
            given = conversation_of(line)
            first = seen.first_line(given.id, line.number)
            if first != line.number:
                raise RejectedError(f"id: is the same as on line {first}")
            if import_conversation(agent, given):
                tally.imported += 1
                tally.messages += len(given.messages)
            else:
                tally.there += 1
        except RejectedError as error:
            tally.rejected += 1
            with tqdm.external_write_mode():
                self.stderr.write(f"line {line.number}: {error}")
        reset_queries()  # with DEBUG on, Django would keep the text of every statement


def find_agent(name: str, workspace: str | None = None) -> Agent:
    """The one agent of this UUID or name, in the workspace of that UUID or name where one is given.

    A CommandError where there is none, or more than one.
    """
    agents = Agent.objects.using(router.db_for_write(Session)).select_related("workspace")
    found = agents.filter(_called(name)).order_by("pk")
    if workspace is not None:
        found = found.filter(_called(workspace, "workspace__"))
    some = list(found[: _MOST_NAMED + 1])
    if len(some) == 1:
        return some[0]
    where = "" if workspace is None else f" in a workspace {workspace!r}"
    if not some:
        raise CommandError(f"--agent: there is no agent {name!r}{where}.")
    named = ", ".join(f"{agent.pk} (in {agent.workspace.name!r})" for agent in some[:_MOST_NAMED])
    raise CommandError(
        f"--agent: several agents are called {name!r}{where}: {named}"
        f"{' and more' if len(some) > _MOST_NAMED else ''}. Give the UUID, or --workspace."
    )


def _called(name: str, prefix: str = "") -> Q:
    """Whose name this is, or whose key."""
    called = Q(**{f"{prefix}name": storable(name)})
    try:
        return called | Q(**{f"{prefix}pk": uuid.UUID(name)})
    except ValueError:
        return called


def opened(file: str) -> AbstractContextManager[BinaryIO]:
    """The file, or standard input for "-", which stays open; a CommandError where it cannot be opened."""
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).open("rb")
    except (OSError, ValueError) as error:
        raise CommandError(f"{file}: {getattr(error, 'strerror', None) or error}") from None


def progress(stream: BinaryIO, *, shown: bool) -> "tqdm[Any]":
    """A progress bar on standard error: by bytes, with an end where the size of the stream is known."""
    return tqdm(total=size_of(stream), unit="B", unit_scale=True, desc="importing", disable=not shown)


def size_of(stream: BinaryIO) -> int | None:
    """How many bytes a file has; None for what is no file, such as a pipe."""
    try:
        status = os.fstat(stream.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
