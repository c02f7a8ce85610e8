"""What a person hands to their own turns: find it, look at it, hand it over, take it back.

Every question is of the person who asks. A turn that they did not send, and a conversation that they cannot
open, are answered like ones that do not exist.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import UserRateThrottle
from rest_framework.views import APIView

from history_access.api import serializers
from history_access.api.bodies import BoundedJSONParser, PlainJSONRenderer
from history_access.api.filters import ParameterError
from history_access.api.permissions import IsActivePerson, NamedRate
from history_access.api.problems import answer_problem
from history_access.api.schema import documented_request
from history_access.api.views import AlwaysJSON
from history_access.references import (
    Desk,
    Reference,
    attach_excerpt,
    bind_references,
    desk_for,
    desk_in,
    offerable_conversations,
    preview_conversation,
    references_of,
    take_back,
)
from history_access.references.picking import MOST_OFFERED, NothingToOfferError
from history_access.turns import NoTurnError, TurnFacts, turn_facts
from settings_catalog.keys import key_text

_NOTHING = "There is nothing here that you may hand over, or hand something to."
_USUAL = 20

_CONVERSATION = OpenApiParameter("conversation", str, description="The conversation of the turn to come.")
_AGENT = OpenApiParameter("agent", str, description="Its agent, where there is no conversation yet.")
_ACCOUNT = OpenApiParameter("account", str, description="The new conversation's account; left out, none.")
_DESK = [_CONVERSATION, _AGENT, _ACCOUNT]


class ReferencesThrottle(NamedRate, UserRateThrottle):
    """So many requests of one person; the host's rate for "history_access_references" says otherwise."""

    scope = "history_access_references"


class PersonView(APIView):
    """A view for the person who asks, about their own turns."""

    parser_classes = (BoundedJSONParser,)
    renderer_classes = (PlainJSONRenderer,)
    content_negotiation_class = AlwaysJSON
    permission_classes = (IsActivePerson,)
    throttle_classes = (ReferencesThrottle,)

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        """Problem details, whatever the host's other views answer."""
        return _answer

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """No copy of an answer is kept on the way."""
        response.headers.setdefault("Cache-Control", "private, no-store")
        return super().finalize_response(request, response, *args, **kwargs)


class TurnReferences(PersonView):
    """What was handed to a turn of one's own."""

    @documented_request("list_turn_references", serializers.HandedOverSerializer, keys=["turn"])
    def get(self, request: Request, turn: str) -> Response:
        """All of it, what has ended included."""
        _known(request.query_params, ())
        facts = _own_turn(request, turn)
        return _handed_over(references_of(facts.id, workspace=facts.workspace_id))

    @documented_request(
        "hand_over_conversations",
        serializers.HandedOverSerializer,
        keys=["turn"],
        request=serializers.SubmittedReferencesSerializer,
    )
    def post(self, request: Request, turn: str) -> Response:
        """Hand conversations over, all or none (`refs-per-turn`)."""
        given = _body(request, {"conversation_references", "submission_key"}, "conversation_references")
        facts = _own_turn(request, turn)
        submitted, key = given["conversation_references"], given.get("submission_key")
        return _handed_over(bind_references(facts.id, submitted, submission_key=key))


class TurnReference(PersonView):
    """One reference of a turn of one's own."""

    @documented_request("take_back_reference", None, keys=["turn", "reference"])
    def delete(self, request: Request, turn: str, reference: str) -> Response:
        """Take it back: the very next read by it is refused. The same answer when repeated."""
        _known(request.query_params, ())
        facts = _own_turn(request, turn)
        known = {str(one.id): one for one in references_of(facts.id, workspace=facts.workspace_id)}
        if reference not in known:
            raise NotFound(_NOTHING)
        take_back(facts.id, known[reference])
        return Response(status=status.HTTP_204_NO_CONTENT)


class TurnExcerpts(PersonView):
    """Excerpts for a turn of one's own."""

    @documented_request(
        "attach_excerpt",
        serializers.ReferenceSerializer,
        keys=["turn"],
        request=serializers.SubmittedExcerptSerializer,
    )
    def post(self, request: Request, turn: str) -> Response:
        """Copy chosen messages for the turn (`refs-two-kinds`)."""
        given = _body(request, {"conversation", "messages"}, "conversation", "messages")
        facts = _own_turn(request, turn)
        conversation = given["conversation"]
        if not isinstance(conversation, str):  # in Python it may be a key or a row
            raise ParameterError({"conversation": "must be text: a conversation's id, or its address"})
        return Response(_shown(attach_excerpt(facts.id, conversation, messages=given["messages"])))


class Offers(PersonView):
    """The conversations that one could hand over (`refs-discovery`)."""

    @documented_request(
        "list_offers",
        serializers.OfferPageSerializer,
        parameters=[
            *_DESK,
            OpenApiParameter("of_agent", str, description="Conversations with this agent instead."),
            OpenApiParameter("title", str, description="Only those with this in their titles."),
            OpenApiParameter(
                "limit", int, description=f"At most so many: {_USUAL}, or up to {MOST_OFFERED}."
            ),
            OpenApiParameter("cursor", str, description="Go on: the `next_cursor` of the page before."),
        ],
    )
    def get(self, request: Request) -> Response:
        """A page, newest first. It says of each what could be handed over, and grants nothing."""
        given = _known(request.query_params, {*_DESK_NAMES, "of_agent", "title", "limit", "cursor"})
        page = offerable_conversations(
            request.user,
            _desk(request, given),
            of_agent=given.get("of_agent"),
            title=given.get("title", ""),
            cursor=given.get("cursor"),
            limit=_limit(given.get("limit")),
        )
        return Response(serializers.OfferPageSerializer(asdict(page)).data)


class Offered(PersonView):
    """One conversation that one could hand over."""

    @documented_request(
        "preview_conversation", serializers.PreviewSerializer, keys=["offered"], parameters=_DESK
    )
    def get(self, request: Request, offered: str) -> Response:
        """Its first and last messages, each cut."""
        given = _known(request.query_params, _DESK_NAMES)
        preview = preview_conversation(request.user, _desk(request, given), offered)
        return Response(serializers.PreviewSerializer(asdict(preview)).data)


_DESK_NAMES = frozenset({"conversation", "agent", "account"})


def _own_turn(request: Request, text: str) -> TurnFacts:
    """The turn, if this person sent it; NotFound for every other one."""
    try:
        facts = turn_facts(text)
    except (NoTurnError, ValueError, OverflowError):
        raise NotFound(_NOTHING) from None
    if key_text(facts.id) != text or facts.trigger_id is not None or facts.sender_id != request.user.pk:
        raise NotFound(_NOTHING)
    return facts


def _desk(request: Request, given: Mapping[str, str]) -> Desk:
    """Where the turn will be sent from: in a conversation, or in a new one with an agent."""
    if ("conversation" in given) == ("agent" in given):
        raise ParameterError({"conversation": "is required, or else agent, and not both"})
    if "conversation" in given:
        if "account" in given:
            raise ParameterError({"account": "goes with agent: a conversation has its account already"})
        return desk_in(request.user, given["conversation"])
    return desk_for(request.user, given["agent"], account=given.get("account"))


def _limit(text: str | None) -> int:
    if text is None:
        return _USUAL
    if not (text.isascii() and text.isdigit() and len(text) < 3 and 1 <= int(text) <= MOST_OFFERED):  # noqa: PLR2004
        raise ParameterError({"limit": f"must be a whole number from 1 to {MOST_OFFERED}"})
    return int(text)


def _known(given: Any, known: Collection[str]) -> dict[str, str]:
    """The parameters; a ParameterError for one that is unknown, empty or given twice."""
    rules = {}
    for name in given:
        if name not in known:
            rules[name] = f"is not a parameter here; there are: {', '.join(sorted(known)) or 'none'}"
        elif len(given.getlist(name)) > 1 or not given[name] or "\0" in given[name]:
            rules[name] = "must be given once, not empty and without NUL"
    if rules:
        raise ParameterError(rules)
    return dict(given.items())


def _body(request: Request, known: Collection[str], *required: str) -> Mapping[str, Any]:
    """The JSON object that was sent; a ParameterError for an unknown or a missing field."""
    _known(request.query_params, ())
    given = request.data
    if not isinstance(given, Mapping):
        raise ParameterError({"body": "must be a JSON object"})
    rules = {str(name): f"is not a field here; there are: {', '.join(sorted(known))}" for name in given}
    rules = {name: rule for name, rule in rules.items() if name not in known}
    rules |= {name: "is required" for name in required if name not in given}
    if rules:
        raise ParameterError(rules)
    return given


def _handed_over(references: tuple[Reference, ...]) -> Response:
    return Response({"references": [_shown(one) for one in references]})


def _shown(reference: Reference) -> Any:
    return serializers.ReferenceSerializer(asdict(reference)).data


def _answer(error: Exception, context: dict[str, Any]) -> Response | None:
    if isinstance(error, NothingToOfferError):
        error = NotFound(_NOTHING)
    return answer_problem(error, context)
