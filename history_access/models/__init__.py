"""The record's own tables, and the abstract models that a platform subclasses."""

from history_access.models.conversations import AbstractMessage, AbstractSession, AbstractTurn, Role
from history_access.models.reads import How, Named, RecordedName, TurnConversationRead, What
from history_access.models.references import ExcerptText, ReferenceKind, ReferenceSubmission, TurnReference
from history_access.models.refusals import AuditQuery, Refusal, WrittenPlace
from history_access.models.seals import (
    ErasedValue,
    EventKind,
    MaintenanceEvent,
    Seal,
    SealedKind,
    SealedRow,
)

__all__ = [
    "AbstractMessage",
    "AbstractSession",
    "AbstractTurn",
    "AuditQuery",
    "ErasedValue",
    "EventKind",
    "ExcerptText",
    "How",
    "MaintenanceEvent",
    "Named",
    "RecordedName",
    "ReferenceKind",
    "ReferenceSubmission",
    "Refusal",
    "Role",
    "Seal",
    "SealedKind",
    "SealedRow",
    "TurnConversationRead",
    "TurnReference",
    "What",
    "WrittenPlace",
]
