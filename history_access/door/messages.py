"""Messages through the door: a page of one session, or chosen ones."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Case, F, IntegerField, Q, QuerySet, Subquery, TextField, Value, When, Window
from django.db.models.aggregates import Sum
from django.db.models.functions import Coalesce, Greatest, Least, RowNumber

from history_access.door.conversations import looked_up
from history_access.door.rows import LARGEST_NUMBER, Bounds, Caps, MessageRow, Piece
from history_access.models import AbstractMessage
from history_access.models.platform import compiled_basis, message_model, primary
from history_access.models.text import characters, piece
from history_access.reach import truth
from settings_catalog.compiled import Question, compiled, plain


def page(reach: Bounds, key: Any | None, *, start: int, offset: int, caps: Caps) -> list[MessageRow]:
    """The readable messages of a session in reach from number `start` on, one more than the page takes.

    A negative `start` counts from the end. `offset` is where the first message's text starts. A message
    beyond the caps comes without text: it begins the next page. [] for a session out of reach.
    """
    first = min(start, LARGEST_NUMBER) if start >= 0 else None
    back = None if first is not None else min(-start, LARGEST_NUMBER)
    found = _page(reach, looked_up(reach, key), first, offset, back=back, caps=caps)
    return [MessageRow(**row) for row in found]


@compiled(compiled_basis, literal=("back", "caps"))
def _page(
    reach: Bounds, key: Any, first: int | None, offset: int, *, back: int | None, caps: Caps
) -> Question:
    """From the message with the number `first`, else from the one that is `back` from the end."""
    messages = _messages_in_reach(reach, key)
    words, by_number = message_model().words(), F("number").asc()
    begins: Any = Value(0, output_field=IntegerField())
    if first is not None:
        begins = Case(When(number=first, then=offset), default=begins, output_field=IntegerField())
    left = Greatest(F("page_size") - F("page_offset"), Value(0))
    taken = Least(left, Value(caps.message_characters))
    fits = Q(page_running__lte=caps.page_characters, page_nth__lte=caps.messages)
    text = piece(words, F("page_offset"), caps.message_characters + 1)
    ordered = (
        messages.filter(number__gte=_first_number(messages, first, back))
        .annotate(page_size=characters(words), page_offset=begins)
        .annotate(page_running=Window(Sum(taken), order_by=by_number))
        .annotate(page_nth=Window(RowNumber(), order_by=by_number))
        .order_by("number")
    )
    shown = Case(When(fits, then=text), default=None, output_field=TextField())
    return ordered[: caps.messages + 1], _columns(shown)


def chosen(reach: Bounds, key: Any | None, pieces: Sequence[Piece], *, most: int) -> list[MessageRow]:
    """The chosen pieces of readable messages of a session in reach, at most `most` characters of each.

    In order of their numbers; a number that is not readable there is left out. [] for a session out of reach.
    """
    begins = Case(
        *(When(number=one.number, then=Value(one.start)) for one in pieces),
        default=Value(0),
        output_field=IntegerField(),
    )
    words = message_model().words()
    messages = _messages_in_reach(reach, looked_up(reach, key)).filter(number__in=[p.number for p in pieces])
    ordered = messages.annotate(page_size=characters(words), page_offset=begins).order_by("number")
    columns = _columns(piece(words, F("page_offset"), most))
    return [MessageRow(**row) for row in plain(ordered, columns)]


def ends(reach: Bounds, key: Any | None, *, each: int, most: int) -> list[MessageRow]:
    """The first and the last `each` readable messages of a session in reach, `most` characters of each.

    In order of their numbers, none twice. [] for a session out of reach.
    """
    found = _ends(reach, looked_up(reach, key), each=each, most=most)
    return [MessageRow(**row) for row in found]


@compiled(compiled_basis, literal=("each", "most"))
def _ends(reach: Bounds, key: Any, *, each: int, most: int) -> Question:
    messages, words = _messages_in_reach(reach, key), message_model().words()
    last = messages.order_by("-number").values("number")[each - 1 : each]
    first = messages.order_by("number").values("number")[each - 1 : each]
    at_an_end = Q(number__lte=Coalesce(Subquery(first), Value(LARGEST_NUMBER), output_field=IntegerField()))
    at_an_end |= Q(number__gte=Coalesce(Subquery(last), Value(0), output_field=IntegerField()))
    begins = Value(0, output_field=IntegerField())
    ordered = messages.filter(at_an_end).annotate(page_size=characters(words), page_offset=begins)
    return ordered.order_by("number")[: 2 * each], _columns(piece(words, 0, most))


def _columns(text: Any) -> dict[str, Any]:
    """The columns of a `MessageRow`, of messages that have `page_size` and `page_offset`."""
    return {
        "number": F("number"),
        "by_agent": truth(message_model().by_agent()),
        "created_at": F("created_at"),
        "text": text,
        "characters": F("page_size"),
        "offset": F("page_offset"),
        "tool_names": message_model().tool_names(),
    }


def _messages_in_reach(reach: Bounds, key: Any) -> "QuerySet[AbstractMessage]":
    """The readable messages of one session, where it is in reach: a condition looked at once a statement."""
    within = Subquery(reach.sessions().filter(pk=key).values("pk")[:1])
    model: Any = message_model()
    rows: QuerySet[AbstractMessage] = model._base_manager.using(primary()).filter(
        model.readable(), workspace_id=reach.workspace_id, session_id=within
    )
    return rows


def _first_number(messages: "QuerySet[AbstractMessage]", first: int | None, back: int | None) -> Any:
    if back is None:
        return first
    numbers = messages.order_by("-number").values("number")
    return Coalesce(Subquery(numbers[back - 1 : back]), Value(0), output_field=IntegerField())
