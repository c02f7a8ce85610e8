"""`manage.py verify_reads [--against FILE]`: whether the record is still what was sealed."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, reset_queries
from django.db.models import Sum
from tqdm import tqdm

from history_access.management.failures import reason
from history_access.management.wording import counted
from history_access.models import Seal
from history_access.models.platform import primary
from history_access.seals import MOST_COUNTED, taken_back, waiting
from history_access.verifying import verify

_MOST_TOLD = 5


class Command(BaseCommand):
    """Findings go to standard output, one a line; everything else goes to standard error."""

    help = (
        "Check every sealed row, seal and erasure of the record. Each finding is a line on standard output; "
        "the exit status is 1 where there is one. With --against, a cut-off end and a record that was "
        "sealed anew are found too."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """A seal that was kept elsewhere, and whether there is a progress bar."""
        parser.add_argument("--against", metavar="FILE", help="a seal that export_seal wrote")
        parser.add_argument("--no-progress", action="store_true", help="show no progress bar")

    def handle(self, *, against: str | None, **options: Any) -> None:
        """Write each finding as it is found; a CommandError where there is one."""
        exported = None if against is None else exported_seal(against)
        try:
            self._verify(exported, options)
        except DatabaseError as error:
            raise CommandError(f"The database failed: {reason(error)}") from error

    def _verify(self, exported: dict[str, Any] | None, options: dict[str, Any]) -> None:
        shown = self.stderr.isatty() and not options["no_progress"] and options["verbosity"] > 0
        found, total = 0, sealed_rows()
        with tqdm(total=total, desc="verifying", unit=" rows", disable=not shown) as bar:
            for finding in verify(exported, bar.update):
                found += 1
                with tqdm.external_write_mode():
                    self.stdout.write(str(finding))
                reset_queries()
        if options["verbosity"] > 0:
            self.stderr.write(f"checked {counted(total, 'sealed row')}; {told_waiting()}")
            self._tell_of_the_clock()
        if found:
            raise CommandError(f"The record is not what was sealed: {counted(found, 'finding')}.")

    def _tell_of_the_clock(self) -> None:
        """No finding: a clock may be set back. But whoever seals old rows by hand has to pretend that."""
        seals = taken_back(primary())
        if some := list(seals.order_by("-number")[:_MOST_TOLD]):
            told = ", ".join(f"{one.number} at {one.sealed_at:%Y-%m-%d %H:%M}" for one in reversed(some))
            self.stderr.write(
                f"the clock had been set back before {counted(seals.count(), 'seal')} (the last: {told}); "
                "rows may bear an older date there"
            )


def told_waiting() -> str:
    """How many rows wait for a seal, and how long the oldest has, in words."""
    now = waiting()
    many = " or more" if now.rows == MOST_COUNTED else ""
    oldest = (
        "" if now.oldest is None else f", the oldest for {timedelta(seconds=int(now.oldest.total_seconds()))}"
    )
    return f"{now.rows}{many} {'waits' if now.rows == 1 else 'wait'} for a seal{oldest}"


def sealed_rows() -> int:
    """How many rows all seals hold, pruned ones included."""
    return Seal.objects.using(primary()).aggregate(rows=Sum("rows"))["rows"] or 0


def exported_seal(file: str) -> dict[str, Any]:
    """The seal in a file; a CommandError where it holds none."""
    try:
        exported = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"--against {file}: {getattr(error, 'strerror', None) or error}") from None
    wanted = {"number": int, "digest": str}
    if not isinstance(exported, dict) or not all(
        type(exported.get(name)) is kind for name, kind in wanted.items()
    ):
        raise CommandError(f"--against {file}: is no exported seal; it has no number and digest")
    return exported
