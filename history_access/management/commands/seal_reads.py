"""`manage.py seal_reads [--every SECONDS]`: seal the reads that wait (`record-sealed`)."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connections, reset_queries
from tqdm import tqdm

from history_access.management.interrupts import INTERRUPTED, Ending, noted_interrupts
from history_access.models.platform import primary
from history_access.seals import OpenTransactionError, seal_batches

WHOLE_PASS_EVERY = 600.0
"""Seconds between two passes that look for rows of any age; those in between look at new ones."""


class Command(BaseCommand):
    """Each batch is a transaction of its own, so it can be ended, killed and run again at any time."""

    help = (
        "Seal the reads that wait, once or again and again. It never keeps readers waiting, and several may "
        "run at once. SIGTERM and SIGINT end it between two batches."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """How often, and how many rows go into a seal."""
        parser.add_argument("--every", type=float, metavar="SECONDS", help="go on until interrupted")
        parser.add_argument("--size", type=int, metavar="ROWS", help="rows in a seal, at most")

    def handle(self, *, every: float | None, size: int | None, **options: Any) -> None:
        """Seal once and say how much, or until interrupted."""
        if every is not None and not 0 < every < float("inf"):
            raise CommandError("--every: seconds are more than 0")
        if size is not None and size < 1:
            raise CommandError("--size: a seal takes at least 1 row")
        try:
            with noted_interrupts() as ending:
                if every is None:
                    self._once(size, ending, shown=options["verbosity"] > 0)
                else:
                    self._again(every, size, ending)
        except OpenTransactionError as error:
            raise CommandError(str(error)) from None

    def _once(self, size: int | None, ending: Ending, *, shown: bool) -> None:
        try:
            seals, rows = self._pass(size, ending, quick=False, shown=shown and self.stderr.isatty())
        except DatabaseError as error:
            raise CommandError(f"The database failed, run it again to go on: {error}") from error
        told = f"sealed {rows} rows in {seals} seals"
        if ending.asked:
            raise CommandError(f"Interrupted: {told}. Run it again to go on.", returncode=INTERRUPTED)
        if shown:
            self.stdout.write(told)

    def _again(self, every: float, size: int | None, ending: Ending) -> None:
        """A database that is away for a while does not end it."""
        whole_pass_at = time.monotonic()
        while not ending.asked:
            quick = time.monotonic() < whole_pass_at
            try:
                self._pass(size, ending, quick=quick)
                if not quick:
                    whole_pass_at = time.monotonic() + WHOLE_PASS_EVERY
            except DatabaseError as error:
                self.stderr.write(f"The database failed, trying again in {every:g} s: {error}")
                connections[primary()].close()
            reset_queries()  # with DEBUG on, Django would keep the text of every statement
            ending.sleep(every)

    def _pass(self, size: int | None, ending: Ending, *, quick: bool, shown: bool = False) -> tuple[int, int]:
        """The seals and rows of one pass over what waits."""
        seals = rows = 0
        with tqdm(desc="sealing", unit=" rows", disable=not shown) as bar:
            for made in seal_batches(size=size, quick=quick):
                seals, rows = seals + 1, rows + made.rows
                bar.update(made.rows)
                reset_queries()
                if ending.asked:
                    break
        return seals, rows
