"""Authorities that each answer wrongly in one way, for `tests.wrong_platforms`."""

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q, TextField
from django.db.models.functions import Cast

from history_access.agent_platform.authority import PlatformAuthority
from history_access.agent_platform.models import Authority
from history_access.authority import READ_SESSIONS, RUN_READS, WRITE_SETTINGS
from history_access.reach import NEVER

EVERYBODY = Q(pk__isnull=False)


class TooWide(PlatformAuthority):
    def holds(self, person_id, permission, workspace_id, agent_id):
        if permission == READ_SESSIONS:
            return EVERYBODY
        return super().holds(person_id, permission, workspace_id, agent_id)


class Looser(PlatformAuthority):
    """Goes by rows of Authority, without regard to one of their columns; not for `runs:read`."""

    forgotten: str

    def holds(self, person_id, permission, workspace_id, agent_id):
        if permission == RUN_READS:
            return super().holds(person_id, permission, workspace_id, agent_id)
        asked = {"person_id": person_id, "permission": permission, "workspace_id": workspace_id}
        scope = Q(agent__isnull=True) | Q(agent_id=agent_id)
        conditions = {name: Q(**{name: key}) for name, key in asked.items()} | {"agent_id": scope}
        del conditions[self.forgotten]
        return Exists(Authority.objects.filter(*conditions.values()))


class AnyAgent(Looser):
    forgotten = "agent_id"


class AnyWorkspace(Looser):
    forgotten = "workspace_id"


class AnyPermission(Looser):
    forgotten = "permission"


class AnyPerson(Looser):
    forgotten = "person_id"


class SwappedPermissions(PlatformAuthority):
    def holds(self, person_id, permission, workspace_id, agent_id):
        swapped = {READ_SESSIONS: WRITE_SETTINGS, WRITE_SETTINGS: READ_SESSIONS}
        return super().holds(person_id, swapped.get(permission, permission), workspace_id, agent_id)


def the_row_is_a_person() -> Exists:
    people = get_user_model().objects.annotate(key=Cast("pk", TextField()))
    return Exists(people.filter(key=Cast(OuterRef("pk"), TextField())))


class WideForARow(PlatformAuthority):
    def holds(self, person_id, permission, workspace_id, agent_id):
        return super().holds(person_id, permission, workspace_id, agent_id) | Q(the_row_is_a_person())


class WideForAQuery(PlatformAuthority):
    def holds(self, person_id, permission, workspace_id, agent_id):
        return super().holds(person_id, permission, workspace_id, agent_id) | ~Q(the_row_is_a_person())


class AnyWorkspaceOfMany(PlatformAuthority):
    def holds(self, person_id, permission, workspace_id, agent_id):
        if isinstance(workspace_id, OuterRef):
            return EVERYBODY
        return super().holds(person_id, permission, workspace_id, agent_id)


class AskedTooEarly(PlatformAuthority):
    """Looks at the right when it is asked for a condition."""

    def holds(self, person_id, permission, workspace_id, agent_id):
        answer = super().holds(person_id, permission, workspace_id, agent_id)
        if isinstance(workspace_id, OuterRef):
            return answer
        return EVERYBODY if get_user_model().objects.filter(answer).exists() else NEVER


class Cached(AskedTooEarly):
    answers: dict[Any, Any] = {}

    def holds(self, *asked):
        if asked not in self.answers:
            self.answers[asked] = super().holds(*asked)
        return self.answers[asked]


class Looks(PlatformAuthority):
    """Promises SQL that may be kept, and looks at who is asked about."""

    def holds(self, person_id, permission, workspace_id, agent_id):
        return (
            NEVER if person_id == "nobody" else super().holds(person_id, permission, workspace_id, agent_id)
        )


class InactiveToo(PlatformAuthority):
    active = EVERYBODY
