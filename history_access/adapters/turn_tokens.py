"""Tokens that name a running turn to a process that its agent loop does not run in, and die with the turn."""

import time
from typing import Any

from django.core.signing import BadSignature, Signer

from history_access.models import AbstractTurn
from history_access.refusals import note_refusal
from history_access.tools.errors import Code
from history_access.turns import NoTurnError, turn_facts
from settings_catalog.keys import key_text

MOST_SECONDS = 86_400
"""How long a token may last, even if its turn does not end before: a day."""

_SALT = "history_access.turn_token"


class TokenError(Exception):
    """A token that names no turn that runs now. It never says why, and never holds the token."""

    def __init__(self) -> None:
        super().__init__("The token of the turn is missing or not valid, or the turn has ended.")


def turn_token(turn: AbstractTurn | Any, *, seconds: int = 900) -> str:
    """A signed token with which whoever holds it uses the tools of this turn, until it ends.

    It is refused after `seconds` (a quarter of an hour; a day at most), and as soon as the turn has ended or
    is gone. It is signed with `SECRET_KEY`, and consists of ASCII letters, digits and `-_.`. Takes a turn or
    its key, and asks the database nothing. A NoTurnError without a turn, a ValueError for other seconds.
    """
    key = getattr(turn, "pk", turn)
    if key is None:
        raise NoTurnError("a token names a turn, and there is none")
    if not 1 <= seconds <= MOST_SECONDS:
        raise ValueError(f"seconds: a token lasts from 1 to {MOST_SECONDS} seconds (a day)")
    return _signer().sign_object([key_text(key), time.time() + seconds])


def turn_of(token: str | None) -> Any:
    """The key of the turn that a token names; one statement.

    A TokenError, the same for every reason, where it is missing, was tampered with or has expired, and where
    its turn has ended (which is kept as a refusal, `record-refusals`) or is gone (`reach-live-turn`).
    """
    try:
        turn = turn_facts(_key_in(token))
    except NoTurnError:
        raise TokenError from None
    if not turn.live:
        note_refusal(turn.id, tool="", code=Code.HISTORY_UNAVAILABLE.value, argument=None)
        raise TokenError
    return turn.id


def _key_in(token: str | None) -> str:
    if not token or not token.isascii():
        raise TokenError
    try:
        key, until = _signer().unsign_object(token)
    except BadSignature:
        raise TokenError from None
    if time.time() >= until:
        raise TokenError
    return str(key)


def _signer() -> Signer:
    return Signer(salt=_SALT, sep=".")  # "." is what a Bearer token may have, Django's ":" is not
