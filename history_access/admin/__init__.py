"""The admin of the record: to look at only, without any words of a conversation."""

from history_access.admin.reads import TurnConversationReadAdmin

__all__ = ["TurnConversationReadAdmin"]
