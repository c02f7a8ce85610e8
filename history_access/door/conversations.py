"""Sessions through the door: lists of them, and one of them."""

from datetime import datetime
from typing import Any

from django.db.models import Case, Count, F, IntegerField, OuterRef, Subquery, TextField, Value, When
from django.db.models.functions import Cast, Coalesce

from history_access.door.rows import NAME_CHARACTERS, Bounds, Position, SessionHead, SessionRow, Span
from history_access.models.keyset import beyond, up_to
from history_access.models.platform import (
    column,
    compiled_basis,
    kept,
    message_model,
    primary,
    session_model,
)
from history_access.models.reads import KEY_LENGTH
from history_access.models.text import characters, piece
from history_access.reach import truth
from settings_catalog.compiled import Question, compiled
from settings_catalog.keys import exact_key


def key_of(text: str) -> Any | None:
    """The session key that `text` is, in its one exact spelling; None for everything else."""
    return None if len(text) > KEY_LENGTH else exact_key(session_model()._meta.pk, text)


def account_key(text: str) -> Any:
    """The key of an account, as the platform's sessions keep it; a ValueError for what can be none."""
    fields: Any = session_model()._meta.concrete_fields
    key = exact_key(next(field for field in fields if field.attname == "account_id"), text)
    if key is None:
        raise ValueError("it is the key of no account")
    return key


def newest(reach: Bounds, span: Span, *, after: Position | None, most: int) -> list[SessionRow]:
    """The sessions in reach and span, newest first, at most `most`, after a position."""
    return [SessionRow(**row) for row in _newest(reach, span, after, most=most)]


@compiled(compiled_basis, literal=("most",))
def _newest(reach: Bounds, span: Span, after: Position | None, *, most: int) -> Question:
    sessions = reach.sessions().filter(span.condition)
    if after is not None:
        sessions = sessions.filter(beyond(session_model(), after.moved, after.key))
    return sessions.order_by("-last_moved_at", "-pk")[:most], row_columns()


def moved_since(reach: Bounds, span: Span, since: datetime, *, last: Position, most: int) -> list[Position]:
    """Where the sessions in reach and span stand, down to `last`, that moved at or after `since`.

    Newest first, at most `most`.
    """
    down_to = last if last.moved >= since else None
    return [Position(**row) for row in _moved_since(reach, span, since, down_to, most=most)]


@compiled(compiled_basis, literal=("most",))
def _moved_since(
    reach: Bounds, span: Span, since: datetime, down_to: Position | None, *, most: int
) -> Question:
    """One of the two is where it ends: of two lower bounds SQLite may walk down to the wrong one."""
    sessions = reach.sessions().filter(span.condition)
    if down_to is None:
        sessions = sessions.filter(last_moved_at__gte=since)
    else:
        sessions = sessions.filter(up_to(session_model(), down_to.moved, down_to.key))
    columns = {"moved": F("last_moved_at"), "key": F("pk")}
    return sessions.order_by("-last_moved_at", "-pk")[:most], columns


def head(
    reach: Bounds, key: Any | None, *, summary_from: int | None = None, most: int = 0
) -> SessionHead | None:
    """A session in reach, None for every other one (`reach-same-answer`).

    With `summary_from`, also at most `most` characters of its summary from that offset on.
    """
    found = _head(reach, looked_up(reach, key), summary_from, most=most)
    return SessionHead(**found[0]) if found else None


@compiled(compiled_basis, literal=("most",))
def _head(reach: Bounds, key: Any, summary_from: int | None, *, most: int) -> Question:
    columns = {"handed_over": truth(reach.handed_over()), **_head_columns(summary_from, most)}
    return reach.sessions().filter(pk=key), row_columns() | columns


def row_columns() -> dict[str, Any]:
    """The columns of a `SessionRow`."""
    sessions = session_model()
    return {
        "id": F("pk"),
        "account_id": F("account_id"),
        "person_id": F("person_id"),
        "title": piece(F("title"), 0, NAME_CHARACTERS + 1),
        "account_name": _name(sessions.account_name),
        "person_name": _name(sessions.person_name),
        "started_at": F("started_at"),
        "last_moved_at": F("last_moved_at"),
        "message_count": F("message_count"),
    }


def _head_columns(summary_from: int | None, most: int) -> dict[str, Any]:
    sessions, number = session_model(), IntegerField()
    wanted = summary_from is not None and kept(sessions, "summary")  # and with it how far it goes
    nothing = Value(None, output_field=TextField())
    begins: Any = Value(summary_from) if isinstance(summary_from, int) else summary_from
    return {
        "agent_name": _name(sessions.agent_name),
        "trimmed_before": column(sessions, "trimmed_before", 1, number),
        "summary": piece(F("summary"), begins, most) if wanted else nothing,
        "summary_characters": _summary_characters(),
        "summary_through": column(sessions, "summary_through", None, number),
        "messages_after": _messages_after() if wanted else Value(0, output_field=number),
    }


def _summary_characters() -> Any:
    """How long the summary is; None where there is none, or the platform keeps none."""
    if not kept(session_model(), "summary"):
        return Value(None, output_field=IntegerField())
    there = When(summary__isnull=False, then=characters(F("summary")))
    return Case(there, default=None, output_field=IntegerField())


def _messages_after() -> Any:
    """How many readable messages came after the summary; counted by the index of readable messages."""
    model: Any = message_model()
    after = model._base_manager.using(primary()).filter(
        model.readable(),
        workspace_id=OuterRef("workspace_id"),
        session_id=OuterRef("pk"),
        number__gt=OuterRef("summary_through"),
    )
    counted = after.order_by().values("session_id").annotate(after=Count("pk")).values("after")
    return Coalesce(Subquery(counted), Value(0), output_field=IntegerField())


def _name(path: str | None) -> Any:
    """A name as text: a platform may go by numbers."""
    text = Cast(F(path), TextField()) if path else Value(None, output_field=TextField())
    return piece(text, 0, NAME_CHARACTERS + 1) if path else text


def looked_up(reach: Bounds, key: Any | None) -> Any:
    """The key to look up. No key is looked up as the turn's own session, which is never in reach.

    So an id that cannot be one costs the statements that any other costs (`reach-same-answer`).
    """
    return reach.session_id if key is None else key
