"""Cursors: opaque, signed, and good for nothing but the call that they came from (`tool-pages`)."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from django.core.signing import BadSignature, Signer

from history_access.models.reads import KEY_LENGTH

_MOST_KEYS, _MOST_BYTES = 2, 6
"""A place names two keys at most; JSON takes six bytes at most for one of their characters."""

_REST = 200
"""What is left for the numbers of a place, and for the signature."""

MAX_CURSOR = _MOST_KEYS * _MOST_BYTES * KEY_LENGTH * 4 // 3 + _REST
"""No cursor is longer than this, whatever the platform's keys are."""

Value = str | int | None


class CursorError(ValueError):
    """A cursor that was changed, made up, or belongs to another call."""


def write_cursor(place: Sequence[Value], scope: Sequence[Value]) -> str:
    """A cursor for `place`, good for calls of the same `scope`: tool, reader, filters, conversation."""
    return _signer(scope).sign_object(list(place), serializer=_CompactJSON)


def read_cursor(cursor: str, scope: Sequence[Value], kinds: Sequence[type[Value]]) -> list[Any]:
    """The place that a cursor stands for, a value of each of `kinds`.

    A CursorError unless it was written for this very scope, and in this shape: an upgrade may change it.
    """
    try:
        place = _signer(scope).unsign_object(cursor, serializer=_CompactJSON)
    except (BadSignature, ValueError):
        raise CursorError("is not a cursor of this call") from None
    if not isinstance(place, list) or [type(value) for value in place] != list(kinds):
        raise CursorError("is not a cursor of this call")
    return place


class _CompactJSON:
    """JSON in UTF-8: a third of the length that escapes would take, for keys of other scripts."""

    def dumps(self, place: list[Value]) -> bytes:
        return json.dumps(place, ensure_ascii=False, separators=(",", ":")).encode()

    def loads(self, data: bytes) -> Any:
        return json.loads(data)


def _signer(scope: Sequence[Value]) -> Signer:
    digest = hashlib.sha256(json.dumps(list(scope)).encode()).hexdigest()
    return Signer(salt=f"history_access.paging.{digest}")
