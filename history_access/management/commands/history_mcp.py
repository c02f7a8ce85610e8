"""`manage.py history_mcp`: the tools of one turn over MCP, on standard input and output."""

import os
import signal
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from history_access.adapters.turn_tokens import TokenError, turn_of
from history_access.management.failures import reason

TOKEN_VARIABLE = "HISTORY_ACCESS_TURN_TOKEN"  # noqa: S105
"""The variable of the environment that holds the token: an argument would stand in the list of processes."""


class Command(BaseCommand):
    """A client starts it with a token in its environment, and ends it by closing its input."""

    help = (
        "Serve the tools of one turn over MCP, on standard input and output, until the input ends. The turn "
        f"is named by the token in the environment's {TOKEN_VARIABLE}. Needs the extra `mcp`."
    )

    def handle(self, **options: Any) -> None:
        """Serve; a CommandError without the extra, and without a token that holds."""
        try:
            from history_access.adapters.mcp import serve_stdio
        except ImportError as error:
            raise CommandError(str(error)) from None
        token = os.environ.pop(TOKEN_VARIABLE, "")  # no process that is started from here needs it
        try:
            turn_of(token)
        except TokenError as error:
            raise CommandError(f"{TOKEN_VARIABLE}: {error}") from None
        except DatabaseError as error:
            raise CommandError(f"The database failed: {reason(error)}") from error
        # By Python's own handler it would end with the next line only, for which a thread waits.
        before = signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            serve_stdio(token)
        finally:
            signal.signal(signal.SIGINT, before)
