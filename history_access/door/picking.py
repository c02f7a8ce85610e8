"""Sessions through the door for a person who picks what to hand over (`refs-discovery`)."""

from collections.abc import Sequence
from typing import Any

from django.db.models import F, Q, Value
from django.db.models.functions import StrIndex

from history_access.door.conversations import row_columns
from history_access.door.rows import Bounds, OfferedRow, Position, SessionRow
from history_access.models.keyset import beyond
from history_access.models.platform import compiled_basis, session_model
from history_access.models.text import Folded
from history_access.reach import PersonReach, truth
from settings_catalog.compiled import Question, compiled


def offered(
    reach: Bounds, line: PersonReach, *, title: str, after: Position | None, most: int
) -> list[OfferedRow]:
    """The sessions in reach whose title has `title` in it, newest first, at most `most`, after a position.

    Case and accents do not count, and nothing in `title` is a wildcard; "" is every title. `line` says by its
    account line which of them a turn may have.
    """
    return [OfferedRow(**row) for row in _offered(reach, line, title or None, after, most=most)]


@compiled(compiled_basis, literal=("most",))
def _offered(
    reach: Bounds, line: PersonReach, title: str | None, after: Position | None, *, most: int
) -> Question:
    sessions = reach.sessions()
    if title is not None:
        given: Any = Value(title) if isinstance(title, str) else title
        wanted = StrIndex(Folded(F("title")), Folded(given))
        sessions = sessions.annotate(title_found_at=wanted).filter(title_found_at__gt=0)
    if after is not None:
        sessions = sessions.filter(beyond(session_model(), after.moved, after.key))
    return sessions.order_by("-last_moved_at", "-pk")[:most], _offered_columns(line)


def offer_of(reach: Bounds, key: Any, line: PersonReach) -> OfferedRow | None:
    """One session in reach as `offered` gives it; None for every other one."""
    found = _offer_of(reach, key, line)
    return OfferedRow(**found[0]) if found else None


@compiled(compiled_basis)
def _offer_of(reach: Bounds, key: Any, line: PersonReach) -> Question:
    return reach.sessions().filter(pk=key), _offered_columns(line)


def _offered_columns(line: PersonReach) -> dict[str, Any]:
    return row_columns() | {"account_holds": truth(line.account())}


def among(reach: Bounds, keys: Sequence[Any], *, handed_over: bool = False) -> dict[Any, SessionRow]:
    """Those of these sessions that are in reach, by key, and (with `handed_over`) handed over."""
    return {row["id"]: SessionRow(**row) for row in _among(reach, tuple(keys), handed_over)}


@compiled(compiled_basis)
def _among(reach: Bounds, keys: Sequence[Any], handed_over: bool) -> Question:
    only = reach.handed_over() if handed_over else Q()
    return reach.sessions().filter(only, pk__in=keys), row_columns()
