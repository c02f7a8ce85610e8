"""Keys as this project stores them: its own sort by time, everybody else's are kept as text."""

import re
import secrets
import struct
import uuid
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connections, router
from uuid_utils.compat import uuid7 as _uuid7

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def uuid7() -> uuid.UUID:
    """A new key that sorts by time, so that inserts stay at the end of an index.

    Within a process each is greater than the one before, even after the clock was set back.
    """
    return _uuid7()


def uuid7_at(moment: datetime) -> uuid.UUID:
    """A new version 7 key of this moment, whatever keys were made before; sorts to the microsecond."""
    return uuids7_at(moment, 1)[0]


def uuids7_at(moment: datetime, number: int) -> list[uuid.UUID]:
    """Several such keys of one moment, in their order."""
    milliseconds, microseconds = divmod((moment - _EPOCH) // timedelta(microseconds=1), 1000)
    # 48 bits of milliseconds, the version, 12 bits of the fraction, the variant, 62 random bits.
    high = (milliseconds << 16 | 7 << 12 | microseconds * 4096 // 1000) << 64 | 2 << 62
    drawn = struct.unpack(f"{number}Q", secrets.token_bytes(8 * number))
    return [uuid.UUID(int=high | low) for low in sorted(one >> 2 for one in drawn)]


def key_text(key: object) -> str:
    """The one text form of a platform's key; an integer 7 is "7", a UUID has its hyphens."""
    return _uuid_text(key) if type(key) is uuid.UUID else str(key)


@lru_cache(maxsize=4_096)
def _uuid_text(key: uuid.UUID) -> str:
    """The same, looked up: one call writes each of its keys several times, which takes Python a while."""
    return str(key)


def exact_key(field: Any, text: str) -> Any | None:
    """The key that `text` is for a field, in its one exact spelling; None for everything else.

    "{…}" or upper case for a UUID, "007" for 7, numbers that the column cannot hold and text that no database
    takes are nobody's keys. `field` is a platform's primary key, or a column of its keys.
    """
    try:
        key = field.to_python(text)
        known = key is not None and key_text(key) == text and text.isprintable()
    except (ValidationError, ValueError, OverflowError):
        return None
    return key if known and _fits(field, key) else None


def _fits(field: Any, key: Any) -> bool:
    """Whether an integer is one that the column can hold.

    Of any other Django asks the database nothing, which tells it from an unknown one, or fails over it.
    """
    if not isinstance(key, int):
        return True
    column = field
    while column.remote_field is not None:
        column = column.target_field
    operations = connections[router.db_for_write(field.model)].ops
    least, most = operations.integer_field_range(column.get_internal_type())
    return bool(least <= key <= most)


def is_storable(text: str) -> bool:
    """Whether both databases can keep a text, and be asked for it: no NUL, no lone surrogate."""
    return _UNSTORABLE.search(text) is None


def stored_text(stored: object) -> str | None:
    """What a column of text holds, as text: SQLite keeps bytes there, too, for who writes past Django."""
    return stored if stored is None or isinstance(stored, str) else repr(stored)


def optional_key_text(key: object | None) -> str | None:
    """Like `key_text`, with the absent key kept absent: 0 and "" are keys, None is none."""
    return None if key is None else key_text(key)
