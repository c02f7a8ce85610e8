"""The admin of the agent platform's tables. Nobody sees a word of a conversation here."""

from history_access.agent_platform.admin.businesses import (
    AccountAdmin,
    AgentAdmin,
    AuthorityAdmin,
    WorkspaceAdmin,
)
from history_access.agent_platform.admin.conversations import SessionAdmin, TurnAdmin
from history_access.agent_platform.admin.triggers import TriggerAdmin

__all__ = [
    "AccountAdmin",
    "AgentAdmin",
    "AuthorityAdmin",
    "SessionAdmin",
    "TriggerAdmin",
    "TurnAdmin",
    "WorkspaceAdmin",
]
