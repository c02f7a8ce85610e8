"""What was handed to a turn, and its end: taken back by a person, or over with the turn."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from history_access.locks import alone
from history_access.models import AbstractTurn, ReferenceKind, TurnReference
from history_access.models.platform import primary
from history_access.turns import TurnFacts, ended_at, turn_facts
from settings_catalog.keys import key_text

MOST_REFERENCES = 3
"""How many references a turn may have at once, of both kinds together (`refs-per-turn`)."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """That something was handed to a turn: what, by whom and when, without its title (keys as text).

    `ended_at` is when it was taken back or the turn ended; None while it lasts.
    """

    id: uuid.UUID
    kind: ReferenceKind
    conversation_id: str
    person_id: str
    bound_at: datetime
    ended_at: datetime | None


def references_of(turn: AbstractTurn | Any, *, workspace: Any = None) -> tuple[Reference, ...]:
    """Everything that was handed to a turn, in order, what has ended included.

    Takes a turn or its key, also long after the turn is gone; `workspace` (or its key) narrows the query to
    one shard.
    """
    key = getattr(turn, "pk", turn)
    if key is None:
        raise ValueError("name a turn")
    rows = TurnReference.objects.using(primary()).filter(turn_id=key_text(key)).order_by("id")
    whose = getattr(turn, "workspace_id", None) if workspace is None else getattr(workspace, "pk", workspace)
    if whose is not None:
        rows = rows.filter(workspace_id=key_text(whose))
    found = tuple(rows)
    over = (
        ended_at(key, getattr(turn, "workspace_id", None))
        if any(row.ended_at is None for row in found)
        else None
    )
    return tuple(shown(row, over) for row in found)


def take_back(turn: AbstractTurn | Any, reference: Reference | uuid.UUID | str) -> bool:
    """Take a reference back: the very next read by it is refused. Whether it lasted until now.

    Takes the reference or its id. Where the turn had ended, the reference had ended with it, and that is what
    is noted. What the turn was already given it keeps, and so does the record. A NoTurnError where there is
    no such turn.
    """
    facts = turn_facts(turn)
    key = reference.id if isinstance(reference, Reference) else _uuid(reference)
    over = None if facts.live else ended_at(facts.id, facts.workspace_id)
    taken = key is not None and _lasting(facts).filter(pk=key).update(ended_at=over or timezone.now())
    return facts.live and bool(taken)


def end_references(turns: Iterable[AbstractTurn | Any], *, at: datetime | None = None) -> None:
    """Note that turns ended, and with them what was handed to them; takes turns or their keys.

    For a platform's own code that ends turns. Reading stops with the turn whether or not it calls this: what
    is kept here is when.
    """
    keys = [key_text(getattr(turn, "pk", turn)) for turn in turns]
    rows = TurnReference.objects.using(primary()).filter(turn_id__in=keys, ended_at__isnull=True)
    rows.update(ended_at=at or timezone.now())


def shown(row: TurnReference, over: datetime | None = None) -> Reference:
    """A row as it is told; `over` is when its turn ended, where that is known."""
    return Reference(
        id=row.pk,
        kind=ReferenceKind(row.kind),
        conversation_id=row.session_id,
        person_id=row.person_id,
        bound_at=row.bound_at,
        ended_at=row.ended_at or over,
    )


def locked(turn: TurnFacts) -> "QuerySet[TurnReference]":
    """The references of a turn, while nobody else hands it any; inside a transaction."""
    alone(primary(), "history_access.references", key_text(turn.workspace_id), key_text(turn.id))
    return of_turn(turn)


def of_turn(turn: TurnFacts) -> "QuerySet[TurnReference]":
    """The references of a turn in the order in which they were handed over."""
    rows = TurnReference.objects.using(primary()).order_by("id")
    return rows.filter(workspace_id=key_text(turn.workspace_id), turn_id=key_text(turn.id))


def _lasting(turn: TurnFacts) -> "QuerySet[TurnReference]":
    return of_turn(turn).filter(ended_at__isnull=True).order_by()


def _uuid(text: uuid.UUID | str) -> uuid.UUID | None:
    if isinstance(text, uuid.UUID):
        return text
    try:
        key = uuid.UUID(text)
    except (ValueError, AttributeError, TypeError):
        return None
    return key if str(key) == text else None
