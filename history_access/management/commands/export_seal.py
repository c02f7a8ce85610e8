"""`manage.py export_seal [FILE]`: the newest seal as JSON, to be kept where nobody can change it."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from history_access.management.failures import reason
from history_access.management.wording import counted
from history_access.seals import export


class Command(BaseCommand):
    """An older export is never written over: it may be the one that proves something."""

    help = (
        "Write the newest seal as JSON. Kept elsewhere, it lets `verify_reads --against` find a record that "
        "was cut off or rewritten."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to."""
        parser.add_argument("file", metavar="FILE", nargs="?", help="a new file (default: standard output)")

    def handle(self, *, file: str | None, **options: Any) -> None:
        """Write it; a CommandError where nothing is sealed, or the file cannot be made."""
        try:
            exported = export()
        except LookupError as error:
            raise CommandError(f"There is nothing to export: {error.args[0]}. Run seal_reads.") from None
        except DatabaseError as error:
            raise CommandError(f"The database failed: {reason(error)}") from error
        text = json.dumps(exported, indent=2)
        if file is None:
            self.stdout.write(text)
            return
        try:
            with Path(file).open("x", encoding="utf-8") as stream:
                stream.write(f"{text}\n")
        except (OSError, ValueError) as error:
            raise CommandError(f"FILE {file}: {getattr(error, 'strerror', None) or error}") from None
        if options["verbosity"] > 0:
            rows = counted(exported["rows_so_far"], "row")
            self.stdout.write(
                f"wrote seal {exported['number']} to {file}; it proves the {rows} sealed so far"
            )
