"""Sessions through the door for a person who picks what to hand over (`refs-discovery`)."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import F, Q, Value
from django.db.models.functions import StrIndex

from history_access.door.conversations import row_columns
from history_access.door.rows import Bounds, OfferedRow, Position, SessionRow
from history_access.models.keyset import beyond
from history_access.models.platform import one_row, rows, session_model
from history_access.models.text import Folded
from history_access.reach import truth


def offered(reach: Bounds, account: Q, *, title: str, after: Position | None, most: int) -> list[OfferedRow]:
    """The sessions in reach whose title has `title` in it, newest first, at most `most`, after a position.

    Case and accents do not count, and nothing in `title` is a wildcard; "" is every title. `account` is the
    condition that the account line lets a turn have it.
    """
    sessions = reach.sessions()
    if title:
        wanted = StrIndex(Folded(F("title")), Folded(Value(title)))
        sessions = sessions.annotate(title_found_at=wanted).filter(title_found_at__gt=0)
    if after is not None:
        sessions = sessions.filter(beyond(session_model(), after.moved, after.key))
    ordered = sessions.order_by("-last_moved_at", "-pk")[:most]
    columns = row_columns() | {"account_holds": truth(account)}
    return [OfferedRow(**row) for row in rows(ordered, columns)]


def offer_of(reach: Bounds, key: Any, account: Q) -> OfferedRow | None:
    """One session in reach as `offered` gives it; None for every other one."""
    columns = row_columns() | {"account_holds": truth(account)}
    row = one_row(reach.sessions().filter(pk=key), columns)
    return None if row is None else OfferedRow(**row)


def among(reach: Bounds, keys: Sequence[Any], *, only: Q | None = None) -> dict[Any, SessionRow]:
    """Those of these sessions that are in reach, by key, and (with `only`) for which a condition holds."""
    sessions = reach.sessions().filter(Q() if only is None else only, pk__in=keys)
    found: Iterable[dict[str, Any]] = rows(sessions, row_columns())
    return {row["id"]: SessionRow(**row) for row in found}
