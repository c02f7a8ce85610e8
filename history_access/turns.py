"""Turns as the database knows them now: who runs, where, and whom they read as."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.core.exceptions import ValidationError
from django.db.models import (
    BooleanField,
    DateTimeField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    TextField,
    Value,
)
from django.db.models.functions import Cast

from history_access.authority import is_active, platform_authority
from history_access.entries import CONVERSATION_REFERENCES, HISTORY_ACCESS
from history_access.models import AbstractTurn
from history_access.models.platform import (
    column,
    compiled_basis,
    primary,
    session_model,
    turn_model,
    webhooks,
)
from settings_catalog.compiled import First, Question, compiled
from settings_catalog.places import Place
from settings_catalog.resolver import Resolution, resolve_each


class NoTurnError(Exception):
    """Asked to read without a turn, or with one that is not in the database: never "everything"."""


class TurnKey(NamedTuple):
    """A turn by its key and its workspace's."""

    pk: Any
    workspace_id: Any


@dataclass(frozen=True, kw_only=True)
class TurnFacts:
    """A turn as the database knows it now; the names are for the record and may be None."""

    id: Any
    workspace_id: Any
    session_id: Any
    agent_id: Any
    account_id: Any | None
    sender_id: Any | None
    trigger_id: Any | None
    trigger_owner_id: Any | None
    live: bool
    reader_active: bool
    workspace_name: str | None
    agent_name: str | None
    account_name: str | None
    trigger_name: str | None
    time_zone: str | None

    @property
    def reader_id(self) -> Any | None:
        """Whom the turn reads as: its sender, or its trigger's owner now; None is nobody.

        A turn with both, or with neither, has no one reader (`reach-trigger-owner`).
        """
        if self.trigger_id is None:
            return self.sender_id
        if self.sender_id is None:
            return self.trigger_owner_id
        return None

    @property
    def place(self) -> Place:
        """Where the settings of the turn's agent stand."""
        return Place.agent(self.workspace_id, self.agent_id)


def turn_facts(turn: AbstractTurn | Any) -> TurnFacts:
    """The turn as it is in the database, whatever the object at hand remembers; one statement (`reach-now`).

    Takes a turn, a `TurnKey` or a key; a NoTurnError where there is none. Without a workspace, which a key
    does not tell, a cluster has to look for it on every shard.
    """
    key = getattr(turn, "pk", turn)
    if key is None:
        raise NoTurnError("history is read for a turn, and there is none")
    found = _facts(_valid(key), getattr(turn, "workspace_id", None))
    if not found:
        raise NoTurnError(_NO_SUCH_TURN)
    return TurnFacts(**found[0])


@compiled(compiled_basis)
def _facts(key: Any, workspace: Any | None) -> Question:
    which = {} if workspace is None else {"workspace_id": workspace}
    return every_turn(pk=key, session__workspace_id=F("workspace_id"), **which), _fact_columns()


def ended_at(key: Any, workspace: Any = None) -> datetime | None:
    """When a turn ended, by its key, and its workspace's where that is known; None while it runs, where there
    is none any more, and on a platform that does not keep it.
    """
    over = column(turn_model(), "ended_at", None, DateTimeField())
    which = {"pk": _valid(key)} if workspace is None else {"pk": _valid(key), "workspace_id": workspace}
    return every_turn(**which).values_list(over, flat=True).first()


def settings_of(place: Place, *, after: First | None = None) -> tuple[Resolution, Resolution]:
    """What holds for an agent now: `history_access`, `conversation_references`; one statement.

    `after` is written before, where the database can in the same statement.
    """
    history, references = resolve_each([HISTORY_ACCESS.key, CONVERSATION_REFERENCES.key], place, after=after)
    return history, references


_NO_SUCH_TURN = "history is read for a turn, and this one is not in the database"


def _valid(key: Any) -> Any:
    try:
        return turn_model()._meta.pk.to_python(key)
    except ValidationError:
        raise NoTurnError(_NO_SUCH_TURN) from None


def heard_a_webhook(turn: TurnFacts, sessions: Sequence[str]) -> bool:
    """Whether a webhook started a turn of this one's session, or of one of these (keys as text)."""
    started, hooks = turn_model().started_by_webhook(), webhooks()
    if started is None:
        if hooks is None:
            return False
        started = Q(trigger_id__in=hooks.values("pk"))
    to_key = session_model()._meta.pk.to_python
    turns: Any = every_turn()
    concerned = turns.filter(session_id__in=[turn.session_id, *map(to_key, sessions)])
    return bool(concerned.filter(started).exists())


def _fact_columns() -> dict[str, Any]:
    turns, sessions = turn_model(), session_model()
    return {
        "id": F("pk"),
        "workspace_id": F("workspace_id"),
        "session_id": F("session_id"),
        "sender_id": F("sender_id"),
        "trigger_id": F("trigger_id"),
        "agent_id": F("session__agent_id"),
        "account_id": F("session__account_id"),
        "trigger_owner_id": _named(turns.trigger_owner),
        "trigger_name": _name(turns.trigger_name),
        "workspace_name": _name(sessions.workspace_name, "session__"),
        "agent_name": _name(sessions.agent_name, "session__"),
        "account_name": _name(sessions.account_name, "session__"),
        "time_zone": _named(sessions.time_zone, "session__"),
        "live": Exists(live_turns(pk=OuterRef("pk"), workspace_id=OuterRef("workspace_id"))),
        "reader_active": ExpressionWrapper(_somebody_active(), output_field=BooleanField()),
    }


def _somebody_active() -> Q:
    """Whether the sender is active, or the trigger's owner: a turn has one of them."""
    authority, owner = platform_authority(), turn_model().trigger_owner
    sender = Q(is_active(authority, OuterRef("sender_id")))
    return sender if owner is None else sender | Q(is_active(authority, OuterRef(owner)))


def _named(path: str | None, prefix: str = "") -> Any:
    return F(prefix + path) if path else Value(None, output_field=TextField())


def _name(path: str | None, prefix: str = "") -> Any:
    """A name as text: a platform may go by numbers."""
    return Cast(_named(path, prefix), TextField())


def every_turn(**which: Any) -> "QuerySet[AbstractTurn]":
    """The platform's turns, or those of them, on the primary database."""
    return turn_model()._base_manager.using(primary()).filter(**which)


def live_turns(**which: Any) -> "QuerySet[AbstractTurn]":
    """Turns that have not ended, in sessions that are not deleted (`reach-live-turn`)."""
    standing: Any = session_model()._base_manager.using(primary()).filter(session_model().not_deleted())
    its_own = standing.filter(pk=OuterRef("session_id"), workspace_id=OuterRef("workspace_id"))
    return every_turn(**which).filter(turn_model().live(), Exists(its_own))
