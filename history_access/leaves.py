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
    SealedKind.EVENT: ("by", "why"),
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

    A column counts as erasable where the row has a salt or a commitment for it, and an absent value is left
    out: so a later release may add a nullable column, or make one erasable, and older leaves still hold.
    A KeyError without the row's own salt.
    """
    values = [
        _hashed(column, row[column], salts, erased)
        for column in columns_of(kind)
        if row[column] is not None or column in salts or column in erased
    ]
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


def erased_digest(triples: Iterable[tuple[Any, str, str]]) -> str:
    """The digest over what one erasure left: (row id, column, commitment) triples, in any order.

    An erasure's event holds it under `details["erased_digest"]`, and so names each of its `ErasedValue`s.
    """
    return erased_digest_in_order(sorted((str(row), column, kept) for row, column, kept in triples))


def erased_digest_in_order(triples: Iterable[tuple[Any, str, str]]) -> str:
    """The same of triples that come sorted by row id, column and commitment, without holding them."""
    digest, before = hashlib.sha256(b"["), ""
    for row, column, kept in triples:
        digest.update(f"{before}{_json([str(row), column, kept])}".encode())
        before = ","
    digest.update(b"]")
    return digest.hexdigest()


def _hashed(column: str, value: Any, salts: Mapping[str, str], erased: Mapping[str, str]) -> list[Any]:
    """A column as it is hashed; a commitment stands in a third place, so that no value can pass for one."""
    if column in erased:
        return [column, None, erased[column]]
    if column in salts:
        return [column, None, commitment(salts[column], column, value)]
    return [column, _plain(value)]


def _plain(value: Any) -> Any:
    """A value as JSON, the same on both databases."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return value if value is None or isinstance(value, bool | int | str | dict | list) else str(value)


def _digest(value: Any) -> str:
    return hashlib.sha256(_json(value).encode()).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
