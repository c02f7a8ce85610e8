"""The one door to sessions and messages: whatever reads them does it here, within a reach (`reach-one-door`).

Each function runs one statement in which the rights and the text stand together (`reach-now`), and takes
from the database only what is returned.
"""

from history_access.door.conversations import account_key, head, key_of, looked_up, moved_since, newest
from history_access.door.messages import chosen, ends, page
from history_access.door.picking import among, offer_of, offered
from history_access.door.rows import (
    LARGEST_NUMBER,
    NAME_CHARACTERS,
    Bounds,
    Caps,
    MessageRow,
    OfferedRow,
    Piece,
    Position,
    SessionHead,
    SessionRow,
    Span,
)

__all__ = [
    "LARGEST_NUMBER",
    "NAME_CHARACTERS",
    "Bounds",
    "Caps",
    "MessageRow",
    "OfferedRow",
    "Piece",
    "Position",
    "SessionHead",
    "SessionRow",
    "Span",
    "account_key",
    "among",
    "chosen",
    "ends",
    "head",
    "key_of",
    "looked_up",
    "moved_since",
    "newest",
    "offer_of",
    "offered",
    "page",
]
