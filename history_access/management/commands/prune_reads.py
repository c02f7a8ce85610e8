"""`manage.py prune_reads`: remove the oldest reads in whole sealed batches, and record that."""

from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from tqdm import tqdm

from history_access.management.asking import ask
from history_access.pruning import Pruned, PruneError, prune
from history_access.seals import OpenTransactionError


class Command(BaseCommand):
    """Each group of neighbouring seals is a transaction of its own, so what was removed stays removed."""

    help = (
        "Remove the oldest reads, in whole sealed batches. The seals stay, so that the rest still verifies, "
        "and a sealed event says what was removed, by whom and why."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Which reads, who and why, and whether really."""
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--keep-days", type=int, metavar="N", help="what was sealed longer ago is removed")
        which.add_argument("--through", type=int, metavar="SEAL", help="this seal and all before it")
        parser.add_argument("--by", default="", help="whose decision it is: a key, not a name")
        parser.add_argument("--why", default="", help="the reason, as auditors will read it")
        parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and stop")
        parser.add_argument("--yes", action="store_true", help="do not ask")
        parser.add_argument("--no-progress", action="store_true", help="show no progress bar")

    def handle(
        self, *, keep_days: int | None, through: int | None, by: str, why: str, **options: Any
    ) -> None:
        """Say what it comes to, ask, remove, and report; a CommandError where it stops before the end."""
        which = {"keep_days": keep_days, "through": through}
        planned = self._prune(by="", why="", dry_run=True, **which)
        self.stdout.write(f"To be removed: {_sum(planned)}. The seals stay.")
        if options["dry_run"] or not planned:
            return
        if not options["yes"]:
            ask("Remove them?", "Nothing was removed.")
        shown = self.stderr.isatty() and not options["no_progress"] and options["verbosity"] > 0
        removed: list[Pruned] = []
        total = sum(one.rows for one in planned)
        with tqdm(total=total, desc="pruning", unit=" reads", disable=not shown) as bar:

            def progress(one: Pruned) -> None:
                removed.append(one)
                bar.update(one.rows)

            try:
                self._prune(by=by, why=why, progress=progress, **which)
            finally:
                if removed:
                    self._report(removed, by, why)

    def _prune(self, **given: Any) -> list[Pruned]:
        try:
            return prune(**given)
        except ValueError as error:
            argument, _, rule = str(error).partition(": ")
            raise CommandError(f"--{argument.replace('_', '-')}: {rule}") from None
        except (PruneError, OpenTransactionError) as error:
            raise CommandError(str(error)) from None
        except DatabaseError as error:
            raise CommandError(f"The database failed, run it again to go on: {error}") from error

    def _report(self, removed: list[Pruned], by: str, why: str) -> None:
        """What was done, to be kept; the same stands in the sealed events."""
        for one in removed:
            self.stdout.write(f"removed seals {one.first} to {one.last}: {one.rows} reads")
        self.stdout.write(f"Removed by {by}, because: {why}. {_sum(removed)}. Sealed events say so.")


def _sum(groups: Iterable[Pruned]) -> str:
    groups = list(groups)
    seals = sum(one.last - one.first + 1 for one in groups)
    return f"{sum(one.rows for one in groups)} reads of {seals} seals"
