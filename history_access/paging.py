"""Cursors: opaque, signed, and good for nothing but the call that they came from (`tool-pages`)."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from django.core.signing import BadSignature, Signer

MAX_CURSOR = 500

Value = str | int | None


class CursorError(ValueError):
    """A cursor that was changed, made up, or belongs to another call."""


def write_cursor(place: Sequence[Value], scope: Sequence[Value]) -> str:
    """A cursor for `place`, good for calls of the same `scope`: tool, reader, filters, conversation."""
    return _signer(scope).sign_object(list(place))


def read_cursor(cursor: str, scope: Sequence[Value], kinds: Sequence[type[Value]]) -> list[Any]:
    """The place that a cursor stands for, a value of each of `kinds`.

    A CursorError unless it was written for this very scope, and in this shape: an upgrade may change it.
    """
    try:
        place = _signer(scope).unsign_object(cursor)
    except (BadSignature, ValueError):
        raise CursorError("is not a cursor of this call") from None
    if not isinstance(place, list) or [type(value) for value in place] != list(kinds):
        raise CursorError("is not a cursor of this call")
    return place


def _signer(scope: Sequence[Value]) -> Signer:
    digest = hashlib.sha256(json.dumps(list(scope)).encode()).hexdigest()
    return Signer(salt=f"history_access.paging.{digest}")
