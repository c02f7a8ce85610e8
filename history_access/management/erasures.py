"""What `erase_person` and `erase_conversations` share: a summary first, a question, a written report."""

from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from tqdm import tqdm

from history_access.erasing import Erasure
from history_access.management.asking import ask
from history_access.management.interrupts import INTERRUPTED, noted_interrupts
from history_access.seals import OpenTransactionError

Erase = Callable[..., Erasure]

_OPTIONS = {"by": "--by", "why": "--why", "names": "--name", "accounts": "--account"}


class _InterruptedError(Exception):
    """Somebody wants the command to end; what was committed stays."""


class ErasureCommand(BaseCommand):
    """A command that erases after it has said what, and been told yes."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Who erases, why, and how careful to be."""
        parser.add_argument("--by", required=True, help="the key of whoever erases; it stands in the record")
        parser.add_argument("--why", required=True, help="why; it stands in the record, so name nobody")
        parser.add_argument("--dry-run", action="store_true", help="only say what would be erased")
        parser.add_argument("--yes", action="store_true", help="do not ask")
        parser.add_argument("--report", type=Path, help="add the report to this file too")
        parser.add_argument("--no-progress", action="store_true", help="show no progress bar")

    def erase(self, erase: Erase, options: dict[str, Any]) -> None:
        """Say what would go, ask, do it, and report; a CommandError where it stops before the end."""
        given = {"by": options["by"], "why": options["why"]}
        try:
            planned = erase(dry_run=True, **given)
            self._tell(planned, "To be removed", options["report"])
            if options["dry_run"]:
                return
            if not options["yes"]:
                ask("Erase?", "Nothing was erased.")
            self._tell(self._shown(erase, planned, given, options), "Removed", options["report"])
        except ValueError as error:
            argument, _, rule = str(error).partition(": ")
            raise CommandError(f"{_OPTIONS.get(argument, argument)}: {rule}") from None
        except OpenTransactionError as error:
            raise CommandError(str(error)) from None
        except _InterruptedError:
            told = "Interrupted: what was removed stays so. Run it again to go on."
            raise CommandError(told, returncode=INTERRUPTED) from None
        except DatabaseError as error:
            raise CommandError(f"The database failed, run it again to go on: {error}") from error

    def _shown(
        self, erase: Erase, planned: Erasure, given: dict[str, Any], options: dict[str, Any]
    ) -> Erasure:
        """Erase with a progress bar; who ends the command ends it between two steps."""
        shown = self.stderr.isatty() and not options["no_progress"] and options["verbosity"] > 0
        bar = tqdm(total=planned.values, desc="erasing", unit=" values", disable=not shown)
        with noted_interrupts() as ending, bar:

            def progress(values: int) -> None:
                bar.update(values)
                if ending.asked:
                    raise _InterruptedError

            return erase(progress=progress, **given)

    def _tell(self, erasure: Erasure, verb: str, report: Path | None) -> None:
        """Whom to follow up is in the report before anything goes, since it could not be told afterwards."""
        text = "\n".join(_lines(erasure, verb))
        self.stdout.write(text)
        if report is not None:
            try:
                with report.open("a", encoding="utf-8") as file:
                    file.write(text + "\n")
            except OSError as error:
                raise CommandError(f"--report {report}: {error.strerror}") from None


def _lines(erasure: Erasure, verb: str) -> Iterator[str]:
    yield (
        f"{verb}: {_counted(erasure.names, 'name')} and {_counted(erasure.values, 'key or mention')}. "
        f"{_counted(len(erasure.follow_ups), 'turn')} had drawn on what is erased."
    )
    if erasure.excerpts:
        yield f"{verb} too: the words of {_counted(erasure.excerpts, 'excerpt')} that people handed over."
    if erasure.left:
        yield "More was written meanwhile than was removed: run it again."
    for one in erasure.follow_ups:
        drawn = _counted(len(one.conversations), "conversation")
        yield f"turn {one.turn_id} of agent {one.agent_id}: {drawn}"
        yield from (f"  wrote to {place}" for place in one.places)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun.replace(' or ', 's or ')}s"
