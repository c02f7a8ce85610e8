"""Which history an agent may read, why, and what is dangerous about it (`catalog-explains`)."""

from typing import Any

from django.core.exceptions import ValidationError
from django.http.response import HttpResponseBase
from rest_framework.response import Response

from history_access import danger
from history_access.api import serializers
from history_access.api.problems import nothing_here
from history_access.api.schema import WORKSPACE, documented
from history_access.api.views import AuditView, Question
from history_access.audited import Row
from history_access.entries import HISTORY_ACCESS
from history_access.models import TurnConversationRead
from settings_catalog.conf import conf as catalog_conf
from settings_catalog.keys import key_text
from settings_catalog.places import Place
from settings_catalog.resolver import Resolution, resolve_at


@documented("agent_history_access", serializers.AgentAccessSerializer, keys=["agent"], parameters=[WORKSPACE])
class AgentAccess(AuditView):
    """The resolver's own answer for one agent, and warnings of what is dangerous (`danger-warned`)."""

    asked = "agents/{id}/history-access"
    queryset = TurnConversationRead.objects.none()
    serializer_class = serializers.AgentAccessSerializer

    def answer(self, question: Question) -> HttpResponseBase:
        """What holds, what was asked, what holds it down, and the warnings."""
        place = _place_of(question)
        resolution = resolve_at(HISTORY_ACCESS.key, place)
        dangers = danger.dangers_of({place: resolution})[place]
        return Response(self.get_serializer(_shown(resolution, dangers)).data)


def _place_of(question: Question) -> Place:
    """Where the agent's settings stand; NotFound for an agent of another workspace, or none."""
    model: Any = catalog_conf.agent_model
    try:
        agents = question.scope.of(model._base_manager.all()).filter(pk=question.keys["agent"])
        row = agents.values_list("workspace_id", "pk").first()
    except (ValueError, ValidationError):  # a key that is none of this platform's
        row = None
    if row is None or key_text(row[1]) != question.keys["agent"]:
        raise nothing_here()
    return Place.agent(*row)


def _shown(resolution: Resolution, dangers: danger.Dangers) -> Row:
    place, held = resolution.place, resolution.held_by
    return {
        "agent_id": place.agent_id,
        "workspace_id": place.workspace_id,
        "value": resolution.value,
        "asked": resolution.asked,
        "asked_at": resolution.asked_at and resolution.asked_at.value,
        "held_by": held and {"level": held.by and held.by.value, "value": held.value, "reason": held.reason},
        "steps": [
            {"level": step.place.level.value, "value": step.value, "ceiling": step.ceiling}
            for step in resolution.steps
        ],
        "faults": list(resolution.faults),
        "sentence": str(resolution),
        "warnings": [{"code": one.code, "warning": str(one.warning)} for one in dangers],
    }
