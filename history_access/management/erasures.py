"""What `erase_person` and `erase_conversations` share: a summary first, a question, a written report."""

from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from history_access.erasing import Erasure

Erase = Callable[..., Erasure]


class ErasureCommand(BaseCommand):
    """A command that erases after it has said what, and been told yes."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Who erases, why, and how careful to be."""
        parser.add_argument("--by", required=True, help="the key of whoever erases; it stands in the record")
        parser.add_argument("--why", required=True, help="why; it stands in the record, so name nobody")
        parser.add_argument("--dry-run", action="store_true", help="only say what would be erased")
        parser.add_argument("--yes", action="store_true", help="do not ask")
        parser.add_argument("--report", type=Path, help="write the report to this file too")

    def erase(self, erase: Erase, subject: Any, options: dict[str, Any]) -> None:
        """Say what would go, ask, do it, and report; a CommandError where an argument is at fault."""
        given = {"by": options["by"], "why": options["why"]}
        try:
            self._tell(erase(subject, dry_run=True, **given), "would remove", None)
            if options["dry_run"]:
                return
            self._ask(options["yes"])
            self._tell(erase(subject, **given), "removed", options["report"])
        except ValueError as error:
            raise CommandError(str(error)) from None

    def _ask(self, yes: bool) -> None:
        if not yes and input("Erase? It cannot be undone. [yes/no] ").strip() != "yes":
            raise CommandError("Nothing was erased.")

    def _tell(self, erasure: Erasure, verb: str, report: Path | None) -> None:
        text = "\n".join(_lines(erasure, verb))
        self.stdout.write(text)
        if report is not None:
            report.write_text(text + "\n", encoding="utf-8")


def _lines(erasure: Erasure, verb: str) -> Iterator[str]:
    yield (
        f"{verb} {_counted(erasure.names, 'name')} and {_counted(erasure.values, 'key')} from the record; "
        f"{_counted(len(erasure.follow_ups), 'turn')} had drawn on what is erased"
    )
    for one in erasure.follow_ups:
        drawn = _counted(len(one.conversations), "conversation")
        yield f"turn {one.turn_id} of agent {one.agent_id}: {drawn}"
        yield from (f"  wrote to {place}" for place in one.places)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
