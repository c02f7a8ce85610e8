"""`manage.py erase_conversations`: note that conversations were erased, and whom to follow up."""

from argparse import ArgumentParser
from functools import partial
from typing import Any

from history_access.erasing import erase_conversations
from history_access.management.erasures import ErasureCommand


class Command(ErasureCommand):
    """The record holds none of their words; deleting the conversations themselves is the platform's."""

    help = (
        "Note in the record that conversations were erased, and list the turns that had drawn on them with "
        "the durable places that those turns wrote to. Deleting the conversations is the platform's own."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which ones."""
        parser.add_argument("conversations", nargs="+", help="the keys of the conversations")
        super().add_arguments(parser)

    def handle(self, **options: Any) -> None:
        """Erase some conversations."""
        self.erase(partial(erase_conversations, options["conversations"]), options)
