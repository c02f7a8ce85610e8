"""References: what a person hands to one turn, explicitly and for that turn alone."""

from history_access.door import Piece
from history_access.references.binding import bind_references
from history_access.references.block import ReferencesBlock, references_block
from history_access.references.bound import Reference, end_references, references_of, take_back
from history_access.references.errors import ReferencesError
from history_access.references.excerpts import attach_excerpt
from history_access.references.picking import (
    Desk,
    Offer,
    OfferPage,
    Preview,
    desk_for,
    desk_in,
    offerable_conversations,
    preview_conversation,
)

__all__ = [
    "Desk",
    "Offer",
    "OfferPage",
    "Piece",
    "Preview",
    "Reference",
    "ReferencesBlock",
    "ReferencesError",
    "attach_excerpt",
    "bind_references",
    "desk_for",
    "desk_in",
    "end_references",
    "offerable_conversations",
    "preview_conversation",
    "references_block",
    "references_of",
    "take_back",
]
