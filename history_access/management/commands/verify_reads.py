"""`manage.py verify_reads [--against FILE]`: whether the record is still what was sealed."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import reset_queries
from django.db.models import Sum
from tqdm import tqdm

from history_access.models import Seal
from history_access.models.platform import primary
from history_access.seals import waiting
from history_access.verifying import verify


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
        shown = self.stderr.isatty() and not options["no_progress"] and options["verbosity"] > 0
        found, total = 0, sealed_rows()
        with tqdm(total=total, desc="verifying", unit=" rows", disable=not shown) as bar:
            for finding in verify(exported, bar.update):
                found += 1
                with tqdm.external_write_mode():
                    self.stdout.write(str(finding))
                reset_queries()
        if options["verbosity"] > 0:
            self.stderr.write(f"checked {total} sealed rows; {self._waiting()}")
        if found:
            raise CommandError(f"The record is not what was sealed: findings {found}.")

    def _waiting(self) -> str:
        now = waiting()
        return f"{now.rows} wait for a seal" + (f", the oldest for {now.oldest}" if now.oldest else "")


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
