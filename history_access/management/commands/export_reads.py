"""`manage.py export_reads --output FILE`: the record as a file, with a manifest beside it."""

import argparse
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import reset_queries, router
from django.http import QueryDict
from django.utils import timezone
from tqdm import tqdm

from history_access import audited, exporting, seals
from history_access.leaves import ERASED
from history_access.models import TurnConversationRead
from history_access.models.reads import KEY_LENGTH
from history_access.queries import NotLoggedError, log_query

if TYPE_CHECKING:
    from history_access.api.filters import ReadFilters

_OWNER_ALONE = 0o600


class Command(BaseCommand):
    """Whoever may run commands on the machine may read the whole database: nobody's rights are asked."""

    help = (
        "Export which turns read what, newest first, under the filters of the list in REST. Beside FILE it "
        "writes FILE.manifest.json: rows, filters, the file's SHA-256 and the newest seal. Needs the extra "
        "`rest`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """The form, the file, who exports, and the filters by their names in REST."""
        names = _filter_names(parser)
        parser.add_argument("--format", required=True, choices=sorted(exporting.FORMATS), dest="form")
        parser.add_argument("--output", required=True, metavar="FILE", help="a file that is not there yet")
        parser.add_argument("--by", required=True, help="who exports, for the log: a key, not a name")
        parser.add_argument("--no-progress", action="store_true", help="show no progress bar")
        for name, help_text in names.items():
            option = f"--{name.replace('_', '-')}"
            parser.add_argument(option, dest=f"filter_{name}", metavar="VALUE", help=help_text)

    def handle(self, *, form: str, output: str, by: str, **options: Any) -> None:
        """Write both files; a CommandError for a wrong filter or key, a file that is there, or no log."""
        _check_by(by)
        given = {
            name.removeprefix("filter_"): value
            for name, value in options.items()
            if name.startswith("filter_") and value is not None
        }
        filters = _checked(given)
        reads = audited.reads().using(router.db_for_write(TurnConversationRead))
        shown = self.stderr.isatty() and not options["no_progress"] and options["verbosity"] > 0
        with (
            _created(output) as file,
            _created(f"{output}.manifest.json") as beside,
            tqdm(unit=" reads", desc="exporting", disable=not shown) as bar,
        ):
            _log(by, form, given)
            written = _write(file, filters.filter_queryset(reads), exporting.FORMATS[form], bar)
            manifest = {
                "file": Path(output).name,
                "format": form,
                **written,
                "filters": given,
                "newest_seal": _newest_seal(),
                "exported_at": audited.moment(timezone.now()),
                "exported_by": by,
            }
            beside.write(json.dumps(manifest, indent=2).encode() + b"\n")
        if options["verbosity"] > 0:
            self.stdout.write(f"exported {written['rows']} reads to {output}")


def _filter_names(parser: argparse.ArgumentParser) -> dict[str, str]:
    """The filters of the list in REST, each with its help; an error of the parser without the extra."""
    try:
        from history_access.api.filters import ReadFilters
    except ModuleNotFoundError as error:
        parser.usage = argparse.SUPPRESS  # it could not be complete
        parser.error(f"it needs the extra `rest` (history-access[rest]): {error}")
    return {name: one.extra["help_text"] for name, one in ReadFilters.base_filters.items()}


def _check_by(by: str) -> None:
    """The log of what auditors asked keeps a key: not nothing, not too much, and no mark of an erasure."""
    if not by.strip() or len(by) > KEY_LENGTH or not by.isprintable():
        raise CommandError(f"--by: say who exports, by key, in 1 to {KEY_LENGTH} printable characters")
    if by == ERASED:
        raise CommandError(f"--by: {ERASED!r} is what an erasure leaves behind")


def _checked(given: dict[str, str]) -> "ReadFilters":
    from history_access.api.filters import ParameterError, ReadFilters, checked

    parameters = QueryDict(mutable=True)
    parameters.update(given)
    try:
        return checked(ReadFilters, parameters, {})
    except ParameterError as error:
        broken = "; ".join(f"--{name.replace('_', '-')} {rule}" for name, rule in error.rules.items())
        raise CommandError(broken) from None


def _log(by: str, form: str, given: dict[str, str]) -> None:
    try:
        log_query(by, f"export_reads {form}", given)
    except NotLoggedError as error:
        raise CommandError(f"Nothing is exported, since {error}.") from error


@contextmanager
def _created(path: str) -> Iterator[BinaryIO]:
    """A new file for its owner alone, which goes again where the block fails.

    A CommandError where there is one already, or none can be made.
    """
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ALONE)
    except (OSError, ValueError) as error:
        raise CommandError(f"--output {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        with os.fdopen(number, "wb") as file:
            yield file
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise


def _write(file: BinaryIO, reads: Any, form: exporting.Format, bar: "tqdm[Any]") -> dict[str, Any]:
    """Write the rows, and say how many there are and what the file's digest is."""
    digest, total = hashlib.sha256(), 0
    for piece, rows in exporting.export(reads, form):
        file.write(piece)
        digest.update(piece)
        total += rows
        bar.update(rows)
        reset_queries()  # with DEBUG on, Django would keep the text of every statement
    return {"rows": total, "sha256": digest.hexdigest()}


def _newest_seal() -> dict[str, Any] | None:
    """The newest seal, to be kept with the file; None where nothing has been sealed."""
    try:
        return seals.export()
    except LookupError:
        return None
