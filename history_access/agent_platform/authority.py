"""The answers of the agent platform, from its own table of authorities."""

from typing import Any

from django.db.models import Exists, Q

from history_access.agent_platform import models
from history_access.authority import RUN_READS, Condition
from history_access.authority import Authority as AuthorityPort
from history_access.models.platform import primary


class PlatformAuthority(AuthorityPort):
    """A right for the whole workspace counts for each of its agents; a right for one agent, for that one.

    Everybody who is active may hand over what they can open themselves (`runs:read`).
    """

    compiled_once = True

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any | None) -> Condition:
        """A row of Authority, for the workspace or for this very agent."""
        if permission == RUN_READS:
            return Q(pk__isnull=False)
        scope = Q(agent__isnull=True)
        if agent_id is not None:
            scope |= Q(agent_id=agent_id)
        rows = models.Authority._base_manager.using(primary())
        return Exists(
            rows.filter(scope, person_id=person_id, workspace_id=workspace_id, permission=permission)
        )
