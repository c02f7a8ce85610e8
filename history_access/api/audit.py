"""What auditors ask of the record: reads, both ways, refused calls, seals, and exports of it all."""

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from asgiref.sync import sync_to_async
from django.core.handlers.wsgi import WSGIRequest
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.plumbing import append_meta
from rest_framework.request import Request
from rest_framework.response import Response

from history_access import audited, exporting, seals
from history_access.api import serializers
from history_access.api.filters import NoFilters, ReadFilters, RefusalFilters
from history_access.api.pages import KeyPages, Order
from history_access.api.problems import nothing_here
from history_access.api.schema import FILE, WORKSPACE, documented
from history_access.api.views import AuditList, AuditView, Question
from history_access.auditors import Scope, audits_everywhere
from history_access.models import Refusal, Seal, TurnConversationRead, TurnReference

_BY_KEY = Order(columns=("pk",), read=(UUID,))


@documented("list_reads", serializers.AuditedReadSerializer(many=True))
class Reads(AuditList):
    """Which turn was given what of which conversation, newest first."""

    asked = "reads"
    queryset = TurnConversationRead.objects.none()
    serializer_class = serializers.AuditedReadSerializer
    filterset_class = ReadFilters
    order = _BY_KEY

    def rows(self, keys: Mapping[str, str]) -> "QuerySet[Any, Any]":
        """Every read."""
        return audited.reads()

    def shown(self, rows: list[Any]) -> list[audited.Row]:
        """With the names recorded beside them."""
        return audited.shown_reads(rows)


@documented("read_details", serializers.AuditedReadSerializer, keys=["read"], parameters=[WORKSPACE])
class OneRead(AuditView):
    """One read."""

    asked = "reads/{id}"
    queryset = TurnConversationRead.objects.none()
    serializer_class = serializers.AuditedReadSerializer

    def checked_key(self, text: str) -> str:
        """A key as the record writes it: other spellings are no keys."""
        try:
            if str(UUID(text)) == text:
                return text
        except ValueError:
            pass
        raise nothing_here()

    def answer(self, question: Question) -> HttpResponseBase:
        """The read, with the names recorded beside it."""
        found = list(question.of(audited.reads()).filter(pk=question.keys["read"]))
        if not found:
            raise nothing_here()
        return Response(self.get_serializer(audited.shown_reads(found)[0]).data)


@documented(
    "conversations_of_turn", serializers.DrawnConversationSerializer(many=True), keys=["turn"], filters=True
)
class ConversationsOfTurn(AuditList):
    """Which conversations a reply drew on, in the order in which it first did. No rows: it drew on none."""

    asked = "turns/{id}/conversations"
    queryset = TurnConversationRead.objects.none()
    serializer_class = serializers.DrawnConversationSerializer
    order = Order(
        columns=("first_read_at", "session_id"), read=(datetime.fromisoformat, str), newest_first=False
    )

    def rows(self, keys: Mapping[str, str]) -> "QuerySet[Any, Any]":
        """One row a conversation."""
        return audited.conversations_of(keys["turn"])

    def shown(self, rows: list[Any]) -> list[audited.Row]:
        """With the names recorded beside them."""
        return audited.shown_conversations(rows)


@documented(
    "references_of_turn", serializers.HandedReferenceSerializer(many=True), keys=["turn"], filters=True
)
class ReferencesOfTurn(AuditList):
    """What people handed to a turn: what, by whom, when, and when it ended; newest first."""

    asked = "turns/{id}/references"
    queryset = TurnReference.objects.none()
    serializer_class = serializers.HandedReferenceSerializer
    order = _BY_KEY

    def rows(self, keys: Mapping[str, str]) -> "QuerySet[Any, Any]":
        """One row a reference."""
        return TurnReference.objects.filter(turn_id=keys["turn"])

    def shown(self, rows: list[Any]) -> list[audited.Row]:
        """With the names recorded beside them."""
        return audited.shown_references(rows)


@documented(
    "turns_of_conversation", serializers.DrawingTurnSerializer(many=True), keys=["conversation"], filters=True
)
class TurnsOfConversation(AuditList):
    """Which replies drew on a conversation, those that did so last first. No rows: none did."""

    asked = "conversations/{id}/turns"
    queryset = TurnConversationRead.objects.none()
    serializer_class = serializers.DrawingTurnSerializer
    # By the first read of each turn, which stays; a turn whose owner changed meanwhile has two rows.
    order = Order(columns=("first_read_at", "turn_id", "reader_id"), read=(datetime.fromisoformat, str, str))

    def rows(self, keys: Mapping[str, str]) -> "QuerySet[Any, Any]":
        """One row a turn."""
        return audited.turns_of(keys["conversation"])

    def shown(self, rows: list[Any]) -> list[audited.Row]:
        """With the names recorded beside them."""
        return audited.shown_turns(rows)


@documented("list_refusals", serializers.AuditedRefusalSerializer(many=True))
class Refusals(AuditList):
    """Calls of the tools that were refused, newest first: which, never what was asked for."""

    asked = "refusals"
    queryset = Refusal.objects.none()
    serializer_class = serializers.AuditedRefusalSerializer
    filterset_class = RefusalFilters
    order = _BY_KEY

    def rows(self, keys: Mapping[str, str]) -> "QuerySet[Any, Any]":
        """Every refusal."""
        return Refusal.objects.all()

    def shown(self, rows: list[Any]) -> list[audited.Row]:
        """With the names recorded beside them."""
        return audited.shown_refusals(rows)


class SealPages(KeyPages):
    """Pages of seals, each with what waits for one."""

    def get_paginated_response(self, data: Any) -> Response:
        """The page, and how many rows wait and for how long."""
        waiting, response = seals.waiting(), super().get_paginated_response(data)
        oldest = waiting.oldest and waiting.oldest.total_seconds()
        response.data = {"waiting": {"rows": waiting.rows, "oldest_seconds": oldest}, **response.data}
        return response

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """What the page looks like."""
        whole = super().get_paginated_response_schema(schema)
        rows = {"type": "integer", "description": f"Counted up to {seals.MOST_COUNTED}."}
        oldest = append_meta({"type": "number"}, {"nullable": True})
        properties = {"rows": rows, "oldest_seconds": oldest}
        waiting = {"type": "object", "required": list(properties), "properties": properties}
        return {
            **whole,
            "required": ["waiting", *whole["required"]],
            "properties": {"waiting": waiting, **whole["properties"]},
        }


@documented("list_seals", serializers.AuditedSealSerializer(many=True))
class Seals(AuditList):
    """The seals over the whole record, newest first: for those who may audit every workspace."""

    asked = "seals"
    queryset = Seal.objects.none()
    serializer_class = serializers.AuditedSealSerializer
    filterset_class = NoFilters
    pagination_class = SealPages
    order = Order(columns=("number",), read=(int,))

    def scope_of(self, person_id: Any, workspace: str | None) -> Scope:
        """A seal covers every workspace, so one workspace's right is not enough."""
        if not audits_everywhere(person_id):
            raise nothing_here()
        return Scope(person_id=person_id, workspace=None, everywhere=True)

    def rows(self, keys: Mapping[str, str]) -> "QuerySet[Any, Any]":
        """Every seal."""
        return Seal.objects.all()

    def shown(self, rows: list[Any]) -> list[audited.Row]:
        """As they are."""
        return audited.shown_seals(rows)


class _Export(AuditView):
    """The rows of the list under the same filters, all of them, as a file that is sent while it is made."""

    form: ClassVar[exporting.Format]
    queryset = TurnConversationRead.objects.none()
    filterset_class = ReadFilters

    def answer(self, question: Question) -> HttpResponseBase:
        """The file; if the right is lost meanwhile it breaks off, and the client sees that it did."""
        reads = question.of(audited.reads())
        pieces = exporting.export(reads, self.form, may_go_on=question.scope.still_holds)
        return StreamingHttpResponse(
            _sent(self.request, (piece for piece, _rows in pieces)),
            content_type=self.form.media_type,
            headers={"Content-Disposition": f'attachment; filename="reads.{self.form.name}"'},
        )


@documented("export_reads_csv", FILE, media_type="text/csv", filters=True)
class ExportCSV(_Export):
    """All reads under the same filters as in the list, for spreadsheets."""

    asked = "reads/export.csv"
    form = exporting.CSV


@documented("export_reads_jsonl", FILE, media_type=exporting.JSON_LINES.media_type, filters=True)
class ExportJSONLines(_Export):
    """All reads under the same filters as in the list, one JSON object a line."""

    asked = "reads/export.jsonl"
    form = exporting.JSON_LINES


def _sent(request: Request, pieces: Iterator[bytes]) -> Iterator[bytes] | AsyncIterator[bytes]:
    """The pieces as the server takes them: an asynchronous one would gather plain ones in memory first."""
    return pieces if isinstance(request._request, WSGIRequest) else _one_by_one(pieces)


async def _one_by_one(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    one_more = sync_to_async(lambda: next(pieces, None))
    while (piece := await one_more()) is not None:
        yield piece
