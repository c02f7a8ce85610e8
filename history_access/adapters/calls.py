"""Calls as a model wrote them and a client handed them on, before anybody has looked at them."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Call(NamedTuple):
    """One call of a model; its arguments may still be anything."""

    id: Any
    name: Any
    arguments: Any


def part(whole: Any, name: str) -> Any:
    """A part of a message, which may be a client's object or a dict; None where it has none of that name."""
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)


def decoded(written: Any) -> Any:
    """The arguments in a JSON text; no text at all means none of them.

    What is no JSON object stays as it is: the toolset refuses it in its own words, and notes that
    (`tool-errors`).
    """
    if not isinstance(written, str):
        return {} if written is None else written
    try:
        found = json.loads(written) if written.strip() else {}
    except (ValueError, RecursionError):
        return written
    return found if isinstance(found, dict) else written
