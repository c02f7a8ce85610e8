"""Who may open what: by the roles that people have in the teams of a firm, or of one of its bots."""

from django.db.models import Exists, Q

from history_access.authority import Authority
from tests.second_platform.models import Member, RoleRight

RIGHTS = {
    "sessions:read": "see every thread",
    "settings:write": "set up bots",
    "reads:audit": "audit",
    "runs:read": "answer",
}


class DeskAuthority(Authority):
    active = Q(state="here")
    compiled_once = True

    def holds(self, person_id, permission, workspace_id, agent_id):
        roles = RoleRight.objects.filter(name=RIGHTS[permission]).values("role")
        of_all = Q(team__bot__isnull=True)
        scope = of_all if agent_id is None else of_all | Q(team__bot_id=agent_id)
        members = Member.objects.filter(scope, staff_id=person_id, team__firm_id=workspace_id)
        return Exists(members.filter(role__in=roles))
