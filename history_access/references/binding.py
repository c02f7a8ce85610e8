"""A person hands whole conversations to one turn: all of what was submitted, or nothing (`refs-per-turn`)."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from history_access import door
from history_access.authority import RUN_READS, person_holds, platform_authority
from history_access.entries import CONVERSATIONS
from history_access.models import AbstractTurn, ReferenceKind, ReferenceSubmission, TurnReference
from history_access.models.platform import primary
from history_access.models.references import MOST_SUBMISSION_KEY
from history_access.reach import Handover, handover_of
from history_access.references import errors
from history_access.references.addresses import AddressError, Named, declared_addresses, named
from history_access.references.bound import MOST_REFERENCES, Reference, locked, shown
from history_access.turns import TurnFacts
from settings_catalog.keys import key_text, optional_key_text

MOST_SUBMITTED = 50
"""How many entries one submission may have, the same ones that collapse included."""

Entry = tuple[str, Any | None]
"""The name of a place in what was submitted, and the session key that stands there, None for none."""


def bind_references(
    turn: AbstractTurn | Any, submitted: Sequence[str], *, submission_key: str | None = None
) -> tuple[Reference, ...]:
    """Hand conversations to a turn, as its sender, and return them; each read of one is checked again.

    `submitted` are up to three ids, or addresses on the platform's own frontends; duplicates collapse (of at
    most 50 entries), and nothing submitted binds nothing. It may run in the transaction in which the
    platform makes the turn. With a `submission_key` (up to 200 characters) a retry returns what was bound
    before, also what has ended.

    A ReferencesError where any entry is refused, and then none is bound: status 400 where the setting allows
    no conversations, 403 where the sender may hand over nothing, 409 for a key that was used for others, 422
    for an entry, named with its rule (`refs-admission`). A NoTurnError without a turn.
    """
    _check_key(submission_key)
    _check_list(submitted)
    if not submitted and submission_key is None:
        return ()
    with transaction.atomic(using=primary()):
        handover = handover_of(turn, CONVERSATIONS)
        before = list(locked(handover.turn))
        noted = _noted(handover.turn, submission_key)
        if noted is None and submitted:
            admit(handover, "conversations")
        entries = [(place, key_named(handover, one)) for place, one in _entries(submitted)]
        if noted is not None:
            return _repeated(noted, before, entries)
        bound = _bound(handover, before, entries)
        _note(handover.turn, submission_key, entries)
        return bound


def admit(handover: Handover, kind: str) -> None:
    """A ReferencesError unless the turn's sender may hand it this kind now (`refs-admission`)."""
    turn = handover.turn
    if not handover.allowed:
        raise errors.switched_off(kind)
    if turn.sender_id is None or turn.trigger_id is not None:
        raise errors.not_permitted("a turn that no person sent cannot be handed anything")
    if handover.closed_because is not None:
        raise errors.not_permitted("this turn has ended, or its sender is not active")
    authority = platform_authority()
    if not person_holds(authority, turn.sender_id, RUN_READS, turn.workspace_id, turn.agent_id):
        raise errors.not_permitted("the sender of this turn lacks the permission runs:read")


def entry_name(index: int) -> str:
    """How an entry of what was submitted is named in an error."""
    return f"{errors.FIELD}[{index}]"


def read_entry(text: Any, field: str) -> Named:
    """Which conversation a submitted string names; a ReferencesError for one that breaks a rule of form."""
    try:
        return named(text, declared_addresses())
    except AddressError as error:
        raise errors.invalid(field, str(error)) from None


def key_named(handover: Handover, one: Named) -> Any | None:
    """The session key that an entry names, None for none; its address has to say the turn's own agent."""
    if one.agent is not None and one.agent != key_text(handover.turn.agent_id):
        return None
    return door.key_of(one.conversation)


def _check_list(submitted: Any) -> None:
    """A text is no list, not even an empty one."""
    if isinstance(submitted, str | bytes) or not isinstance(submitted, Sequence):
        raise errors.invalid(errors.FIELD, "must be a list of ids and addresses")
    if len(submitted) > MOST_SUBMITTED:
        raise errors.invalid(errors.FIELD, f"must have at most {MOST_SUBMITTED} entries")


def _entries(submitted: Sequence[Any]) -> list[tuple[str, Named]]:
    """The entries with the names of their places, each conversation once."""
    read = [(entry_name(index), read_entry(text, entry_name(index))) for index, text in enumerate(submitted)]
    once = {one: place for place, one in reversed(read)}
    found = [(place, one) for place, one in read if once[one] == place]
    if len({one.conversation for _, one in found}) > MOST_REFERENCES:
        raise errors.invalid(errors.FIELD, f"must name at most {MOST_REFERENCES} conversations")
    return found


def _check_key(key: Any) -> None:
    fits = isinstance(key, str) and 1 <= len(key) <= MOST_SUBMISSION_KEY and key.isprintable()
    if key is not None and not fits:
        raise errors.invalid("submission_key", f"must be 1 to {MOST_SUBMISSION_KEY} printable characters")


def _noted(turn: TurnFacts, submission_key: str | None) -> ReferenceSubmission | None:
    """The earlier submission under this key, whatever has ended since; None where there is none."""
    if submission_key is None:
        return None
    rows = ReferenceSubmission.objects.using(primary())
    return rows.filter(
        workspace_id=key_text(turn.workspace_id), turn_id=key_text(turn.id), submission_key=submission_key
    ).first()


def _note(turn: TurnFacts, submission_key: str | None, entries: Sequence[Entry]) -> None:
    """Keep what a submission handed over, for a retry of it."""
    if submission_key is not None:
        ReferenceSubmission.objects.using(primary()).create(
            workspace_id=key_text(turn.workspace_id),
            turn_id=key_text(turn.id),
            submission_key=submission_key,
            conversations=_conversations(entries),
        )


def _repeated(
    noted: ReferenceSubmission, before: Sequence[TurnReference], entries: Sequence[Entry]
) -> tuple[Reference, ...]:
    """What became of each conversation of a submission that is repeated; it grants nothing anew."""
    if noted.conversations != _conversations(entries):
        raise errors.key_used()
    latest = {row.session_id: row for row in before if row.kind == ReferenceKind.CONVERSATION}
    wanted = dict.fromkeys(key_text(key) for _, key in entries)
    return tuple(shown(latest[key]) for key in wanted if key in latest)


def _conversations(entries: Sequence[Entry]) -> list[str]:
    return sorted({optional_key_text(key) or "" for _, key in entries})


def _bound(
    handover: Handover, before: Sequence[TurnReference], entries: Sequence[Entry]
) -> tuple[Reference, ...]:
    if not entries:
        return ()
    found = door.among(handover, [door.looked_up(handover, key) for _, key in entries])
    for place, key in entries:
        if key not in found:
            raise errors.unavailable(place)
    lasting = [row for row in before if row.ended_at is None]
    held = {row.session_id: row for row in lasting if row.kind == ReferenceKind.CONVERSATION}
    wanted = {key_text(key): found[key] for _, key in entries}
    new = {
        key: new_reference(handover, session, ReferenceKind.CONVERSATION)
        for key, session in wanted.items()
        if key not in held
    }
    check_room(len(lasting) + len(new), errors.FIELD)
    TurnReference.objects.using(primary()).bulk_create(new.values())
    return tuple(shown(new.get(key) or held[key]) for key in wanted)


def check_room(number: int, field: str) -> None:
    """A ReferencesError where a turn would have more references than it may."""
    if number > MOST_REFERENCES:
        raise errors.invalid(field, f"a turn has at most {MOST_REFERENCES} references, excerpts included")


def new_reference(handover: Handover, session: door.SessionRow, kind: ReferenceKind) -> TurnReference:
    """A reference that is not written yet."""
    turn = handover.turn
    return TurnReference(
        workspace_id=key_text(turn.workspace_id),
        agent_id=key_text(turn.agent_id),
        turn_id=key_text(turn.id),
        person_id=key_text(turn.sender_id),
        kind=kind,
        session_id=key_text(session.id),
        session_account_id=optional_key_text(session.account_id),
        session_person_id=optional_key_text(session.person_id),
        bound_at=timezone.now(),
    )
