"""The admin of the record: to look at only, without any words of a conversation."""

from history_access.admin.queries import AuditQueryAdmin
from history_access.admin.reads import TurnConversationReadAdmin
from history_access.admin.refusals import RefusalAdmin
from history_access.admin.seals import MaintenanceEventAdmin, SealAdmin

__all__ = [
    "AuditQueryAdmin",
    "MaintenanceEventAdmin",
    "RefusalAdmin",
    "SealAdmin",
    "TurnConversationReadAdmin",
]
