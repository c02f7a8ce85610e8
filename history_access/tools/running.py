"""Runs one call of a tool, and turns whatever stands in its way into a `ToolError`."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import Error

from history_access.models import AbstractTurn
from history_access.record import Fetch, HistoryUnavailableError, recorded
from history_access.refusals import note_refusal
from history_access.tools.arguments import Arguments
from history_access.tools.errors import ToolError, history_unavailable

logger = logging.getLogger("history_access")

FAILED = "History could not be read and recorded; nothing was read."

Result = TypeVar("Result")


@contextmanager
def noting_refusals(turn: AbstractTurn | Any, model: type[Arguments]) -> Iterator[None]:
    """Keep for auditors that a call of a tool was refused, and let the ToolError pass (`record-refusals`).

    The name of an argument that the tool does not have is the model's own words: it is not kept.
    """
    try:
        yield
    except ToolError as error:
        argument = error.argument if error.argument in model.model_fields else None
        note_refusal(turn, tool=model.tool, code=error.code.value, argument=argument)
        raise


def run(turn: AbstractTurn | Any, fetch: "Fetch[Result]") -> Result:
    """The recorded result of `fetch`; a ToolError `history_unavailable` where there can be none.

    A NoTurnError, and whatever the platform's own authority raises, pass through.
    """
    try:
        return recorded(turn, fetch)
    except HistoryUnavailableError as error:
        raise history_unavailable(str(error)) from None
    except Error:
        logger.exception("The database refused a read of history; nothing was given.")
        raise history_unavailable(FAILED) from None
