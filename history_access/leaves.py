"""What a sealed row is hashed to: salted SHA-256 leaves, and the Merkle root over them (`record-sealed`).

A leaf commits to each value that may have to be erased by a salt of its own. Erasing keeps the commitment
and forgets that salt: the leaf still holds, and nobody can guess the value from it (`record-erasure`).
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import Model

from history_access.models import MaintenanceEvent, SealedKind, TurnConversationRead

ERASED = "(erased)"
"""What stands in a column whose value was erased."""

SEALED_MODELS: dict[SealedKind, type[Model]] = {
    SealedKind.READ: TurnConversationRead,
    SealedKind.EVENT: MaintenanceEvent,
}
ERASABLE: dict[SealedKind, tuple[str, ...]] = {
    SealedKind.READ: ("reader_id", "session_account_id", "session_person_id", "turn_account_id"),
    SealedKind.EVENT: (),
}

NO_ROWS = hashlib.sha256(b"no rows").hexdigest()
"""The root of an empty batch, and what stands before the first seal."""


def columns_of(kind: SealedKind) -> tuple[str, ...]:
    """The columns of a sealed table, in the order in which they are hashed."""
    return tuple(sorted(field.attname for field in SEALED_MODELS[kind]._meta.concrete_fields))


def new_salts(kind: SealedKind) -> dict[str, str]:
    """Fresh salts for one row: one for the row itself, one for each erasable value."""
    return {name: secrets.token_hex(16) for name in ("row", *ERASABLE[kind])}


def commitment(salt: str, column: str, value: Any) -> str:
    """What an erasable value is hashed to; without the salt nobody can try values against it."""
    return _digest([salt, column, _plain(value)])


def leaf(
    kind: SealedKind, row: Mapping[str, Any], salts: Mapping[str, str], erased: Mapping[str, str]
) -> str:
    """The digest of one row, its columns by name; `erased` maps a column to the commitment kept for it.

    A KeyError where a salt is missing that no commitment stands in for.
    """
    values = [[column, _hashed(kind, column, row[column], salts, erased)] for column in columns_of(kind)]
    return _digest([kind.value, salts["row"], values])


def root(leaves: Sequence[str]) -> str:
    """The Merkle root of leaves in their order; leaves and nodes are hashed apart, an odd one moves up."""
    level = [hashlib.sha256(b"\x00" + bytes.fromhex(one)).digest() for one in leaves]
    if not level:
        return NO_ROWS
    while len(level) > 1:
        pairs = [level[index : index + 2] for index in range(0, len(level), 2)]
        level = [hashlib.sha256(b"\x01" + b"".join(pair)).digest() if pair[1:] else pair[0] for pair in pairs]
    return level[0].hex()


def chain(number: int, facts: Iterable[Any], previous: str) -> str:
    """The digest of a seal: its number, its facts in order, and the digest of the seal before."""
    return _digest([number, [_plain(fact) for fact in facts], previous])


def _hashed(
    kind: SealedKind, column: str, value: Any, salts: Mapping[str, str], erased: Mapping[str, str]
) -> Any:
    if column not in ERASABLE[kind]:
        return _plain(value)
    return erased[column] if column in erased else commitment(salts[column], column, value)


def _plain(value: Any) -> Any:
    """A value as JSON, the same on both databases."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return value if value is None or isinstance(value, bool | int | str | dict | list) else str(value)


def _digest(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
