"""Which sessions a turn may read now: the restrictors, one definition for a row and for a whole query.

    reach = setting ∩ live turn ∩ active reader ∩ agent ∩ not deleted ∩ not itself ∩ account ∩ person

Each is a condition in SQL. Those that speak of the turn and its reader, not of a session, are uncorrelated
subqueries: a database answers them once, in the statement that fetches the text, so that whoever lost a
right before that moment gets nothing (`reach-now`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import (
    BooleanField,
    Case,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    TextField,
    Value,
    When,
)

from history_access.authority import READ_SESSIONS, condition, is_active, platform_authority
from history_access.entries import ALL_ACCOUNTS, HISTORY_ACCESS, NONE
from history_access.models import AbstractSession, AbstractTurn
from history_access.models.platform import one_row, primary, session_model, turn_model, webhooks
from settings_catalog.places import Place
from settings_catalog.resolver import Resolution, resolve_at

NEVER = Q(pk__in=[])


class NoTurnError(Exception):
    """Asked to read without a turn, or with one that is not in the database: never "everything"."""


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


@dataclass(frozen=True)
class Restrictor:
    """One condition of reach: the contract's rule, why it keeps a session out, and the condition itself."""

    rule: str
    reason: str
    condition: Q


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What one turn may read under one value of the setting.

    `granted`, whether the reader holds `sessions:read`, only shapes the query: the right is looked at again
    when it runs.
    """

    turn: TurnFacts
    setting: Resolution
    granted: bool
    reader_name: str | None

    @property
    def closed_because(self) -> str | None:
        """Why this turn can read nothing at all, whatever there is; None where it may read something."""
        if self.setting.value == NONE:
            return "History access is switched off for this agent."
        if not self.turn.live:
            return "This turn has ended."
        if self.turn.reader_id is None or not self.turn.reader_active:
            return "This turn has nobody to read as."
        return None

    def restrictors(self) -> tuple[Restrictor, ...]:
        """Every condition, each on a line of its own; a session is in reach where all of them hold."""
        return (
            Restrictor("catalog-resolve", str(self.setting), self._setting()),
            Restrictor(
                "reach-live-turn", "The turn has ended, or its own conversation is deleted.", self._turn()
            ),
            Restrictor(
                "reach-trigger-owner", "The turn reads as nobody, or as somebody else by now.", self._reader()
            ),
            Restrictor("reach-person", "The person whom the turn reads as is not active.", self._active()),
            Restrictor("reach-agent", "It is another agent's conversation.", self._agent()),
            Restrictor("reach-not-deleted", "It is deleted.", session_model().not_deleted()),
            Restrictor("reach-not-self", "It is the conversation that the turn is in.", self._not_self()),
            Restrictor("reach-account-exact", self._account_reason(), self._account()),
            Restrictor(
                "reach-person", "It is another person's, and sessions:read is missing.", self._person()
            ),
        )

    def sessions(self) -> "QuerySet[AbstractSession]":
        """The sessions in reach, as one query that evaluates every restrictor when it runs."""
        return self._sessions.all()

    @cached_property
    def _sessions(self) -> "QuerySet[AbstractSession]":
        """Never run itself, only built once: a call asks the door more than once within the same reach."""
        conditions = (restrictor.condition for restrictor in self.restrictors())
        return session_model()._base_manager.using(primary()).filter(*conditions)

    def explain(self, session: AbstractSession | Any) -> list[str]:
        """Why a session is out of reach, a sentence for each restrictor that keeps it out; [] is in reach.

        For operators and tests, never for a model. Takes a session or its key.
        """
        applied = [restrictor for restrictor in self.restrictors() if restrictor.condition]
        verdicts = {f"holds_{index}": _verdict(restrictor) for index, restrictor in enumerate(applied)}
        rows = session_model()._base_manager.using(primary()).annotate(**verdicts)
        row = rows.filter(pk=getattr(session, "pk", session)).values(*verdicts).first()
        if row is None:
            return ["There is no such conversation."]
        return [
            restrictor.reason for restrictor, name in zip(applied, verdicts, strict=True) if not row[name]
        ]

    def _setting(self) -> Q:
        return NEVER if self.setting.value == NONE else Q()

    def _turn(self) -> Q:
        return Q(Exists(_live_turns().filter(pk=self.turn.id)))

    def _reader(self) -> Q:
        reader = self.turn.reader_id
        if reader is None:
            return NEVER
        one_reader = Q(sender_id=reader, trigger_id__isnull=True)
        owner = turn_model().trigger_owner
        if owner is not None:
            one_reader |= Q(**{"sender_id__isnull": True, owner: reader})
        return Q(Exists(_turns().filter(one_reader, pk=self.turn.id)))

    def _active(self) -> Q:
        return (
            NEVER if self.turn.reader_id is None else Q(is_active(platform_authority(), self.turn.reader_id))
        )

    def _agent(self) -> Q:
        return Q(workspace_id=self.turn.workspace_id, agent_id=self.turn.agent_id)

    def _not_self(self) -> Q:
        return ~Q(pk=self.turn.session_id)

    def _account(self) -> Q:
        if self.setting.value == ALL_ACCOUNTS:
            return Q()
        if self.turn.account_id is None:
            return Q(account_id__isnull=True)
        return Q(account_id=self.turn.account_id)

    def _account_reason(self) -> str:
        whose = "without an account" if self.turn.account_id is None else "of the turn's account"
        return f"Only conversations {whose} may be read."

    def _person(self) -> Q:
        """Own sessions, and with the right everybody's.

        The right is looked at in this statement too. Whether it is asked for at all follows a look just
        before: "mine OR granted" makes a database walk every session for somebody without the right.
        """
        reader = self.turn.reader_id
        if reader is None:
            return NEVER
        own = Q(person_id=reader)
        return own | _may_read_all(self.turn, reader) if self.granted else own


def _verdict(restrictor: Restrictor) -> Case:
    holds = When(restrictor.condition, then=Value(True))
    return Case(holds, default=Value(False), output_field=BooleanField())


def reach_of(turn: AbstractTurn | Any) -> Reach:
    """What this turn may read now: its row, its agent's setting and its reader's right, read afresh.

    Three statements. A NoTurnError where the turn is None or not in the database.
    """
    facts = turn_facts(turn)
    setting = setting_of(facts)
    name, granted = _look_up_reader(facts)
    return Reach(turn=facts, setting=setting, granted=granted, reader_name=name)


def setting_of(turn: TurnFacts) -> Resolution:
    """Which value of `history_access` holds for the turn's agent now; one statement (`catalog-fresh`)."""
    return resolve_at(HISTORY_ACCESS.key, turn.place)


def turn_facts(turn: AbstractTurn | Any) -> TurnFacts:
    """The turn as it is in the database, whatever the object at hand remembers; one statement (`reach-now`).

    Takes a turn or its key; a NoTurnError where there is none.
    """
    key = getattr(turn, "pk", turn)
    if key is None:
        raise NoTurnError("history is read for a turn, and there is none")
    row = one_row(_turns().filter(pk=_valid(key)), _fact_columns())
    if row is None:
        raise NoTurnError(_NO_SUCH_TURN)
    return TurnFacts(**row)


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
    turns: Any = _turns()
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
        "trigger_name": _named(turns.trigger_name),
        "workspace_name": _named(sessions.workspace_name, "session__"),
        "agent_name": _named(sessions.agent_name, "session__"),
        "account_name": _named(sessions.account_name, "session__"),
        "time_zone": _named(sessions.time_zone, "session__"),
        "live": Exists(_live_turns().filter(pk=OuterRef("pk"))),
        "reader_active": ExpressionWrapper(_somebody_active(), output_field=BooleanField()),
    }


def _somebody_active() -> Q:
    """Whether the sender is active, or the trigger's owner: a turn has one of them."""
    authority, owner = platform_authority(), turn_model().trigger_owner
    sender = Q(is_active(authority, OuterRef("sender_id")))
    return sender if owner is None else sender | Q(is_active(authority, OuterRef(owner)))


def _named(path: str | None, prefix: str = "") -> Any:
    return F(prefix + path) if path else Value(None, output_field=TextField())


def _turns() -> "QuerySet[AbstractTurn]":
    return turn_model()._base_manager.using(primary())


def _live_turns() -> "QuerySet[AbstractTurn]":
    """Turns that have not ended, in sessions that are not deleted (`reach-live-turn`)."""
    standing = session_model()._base_manager.using(primary()).filter(session_model().not_deleted())
    return _turns().filter(turn_model().live(), Exists(standing.filter(pk=OuterRef("session_id"))))


def _may_read_all(turn: TurnFacts, reader_id: Any) -> Q:
    authority = platform_authority()
    return condition(authority, reader_id, READ_SESSIONS, turn.workspace_id, turn.agent_id)


def _look_up_reader(turn: TurnFacts) -> tuple[str | None, bool]:
    """The reader's name for the record, and whether they hold `sessions:read`."""
    if turn.reader_id is None:
        return None, False
    people = get_user_model()._base_manager.using(primary()).filter(pk=turn.reader_id)
    granted = ExpressionWrapper(_may_read_all(turn, turn.reader_id), output_field=BooleanField())
    name = get_user_model().USERNAME_FIELD
    row = people.annotate(granted=granted).values_list(name, "granted").first()
    return row or (None, False)
