"""`manage.py erase_person`: remove what names a person from the record."""

from argparse import ArgumentParser
from functools import partial
from typing import Any

from history_access.erasing import erase_person
from history_access.management.erasures import ErasureCommand


class Command(ErasureCommand):
    """Names go; the fact that something was read stays, and the seals still verify."""

    help = (
        "Remove what names a person from the record, and list the turns that had drawn on their "
        "conversations with the durable places that those turns wrote to."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Whom."""
        parser.add_argument("person", help="the person's key")
        parser.add_argument(
            "--account", action="append", default=[], help="the key of an account of theirs alone"
        )
        parser.add_argument(
            "--name",
            action="append",
            default=[],
            help="a further name of theirs, to be found in places and reasons",
        )
        super().add_arguments(parser)

    def handle(self, **options: Any) -> None:
        """Erase one person."""
        more = {"accounts": options["account"], "names": options["name"]}
        self.erase(partial(erase_person, options["person"], **more), options)
