"""The record's own tables, and the abstract models that a platform subclasses."""

from history_access.models.conversations import AbstractMessage, AbstractSession, AbstractTurn, Role
from history_access.models.reads import How, Named, RecordedName, TurnConversationRead, What

__all__ = [
    "AbstractMessage",
    "AbstractSession",
    "AbstractTurn",
    "How",
    "Named",
    "RecordedName",
    "Role",
    "TurnConversationRead",
    "What",
]
