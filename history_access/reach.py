"""Which sessions a turn may read now: the restrictors, one definition for a row and for a whole query.

    reach = setting or reference ∩ live turn ∩ its reader ∩ what that person may read from there
    what a person may read = active person ∩ agent ∩ not deleted ∩ not itself ∩ account ∩ person

Each is a condition in SQL. Those that speak of the turn and its reader, not of a session, are uncorrelated
subqueries: a database answers them once, in the statement that fetches the text, so that whoever lost a
right before that moment gets nothing (`reach-now`).
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import (
    BooleanField,
    Case,
    Exists,
    ExpressionWrapper,
    F,
    Q,
    QuerySet,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast

from history_access.authority import (
    READ_SESSIONS,
    RUN_READS,
    condition,
    is_active,
    platform_authority,
)
from history_access.entries import ALL_ACCOUNTS, CONVERSATIONS, NONE
from history_access.models import AbstractSession, AbstractTurn, ReferenceKind, TurnReference
from history_access.models.platform import compiled_basis, primary, session_model, turn_model
from history_access.turns import (
    NoTurnError,
    TurnFacts,
    every_turn,
    live_turns,
    settings_of,
    turn_facts,
)
from settings_catalog.compiled import First, Question, compiled
from settings_catalog.keys import key_text
from settings_catalog.resolver import Resolution

__all__ = [
    "HandedOver",
    "Handover",
    "NoTurnError",
    "PersonReach",
    "Reach",
    "Restrictor",
    "TurnReach",
    "reach_of",
]

NEVER = Q(pk__in=[])


@dataclass(frozen=True)
class Restrictor:
    """One condition of reach: the contract's rule, why it keeps a session out, and the condition itself."""

    rule: str
    reason: str
    condition: Q


@dataclass(frozen=True, kw_only=True)
class PersonReach:
    """Which of one agent's conversations a person may read from within one conversation.

    `session_id` is that conversation, None for none; `account_id` its account, absent included, and
    `every_account` opens the others. `granted`, whether the person holds `sessions:read`, only shapes the
    query: the right is looked at again when it runs.
    """

    person_id: Any | None
    workspace_id: Any
    agent_id: Any
    session_id: Any | None
    account_id: Any | None
    every_account: bool
    granted: bool

    def restrictors(self) -> tuple[Restrictor, ...]:
        """Every condition, each on a line of its own."""
        return (
            Restrictor("reach-person", "The person whom the turn reads as is not active.", self.active()),
            Restrictor("reach-agent", "It is another agent's conversation.", self._agent()),
            Restrictor("reach-not-deleted", "It is deleted.", session_model().not_deleted()),
            Restrictor("reach-not-self", "It is the conversation that the turn is in.", self._not_self()),
            Restrictor("reach-account-exact", self._account_reason(), self.account()),
            Restrictor(
                "reach-person", "It is another person's, and sessions:read is missing.", self._person()
            ),
        )

    def sessions(self) -> "QuerySet[AbstractSession]":
        """The sessions in reach, as one query that evaluates every restrictor when it runs."""
        return sessions_within(self.restrictors())

    def handed_over(self) -> Q:
        """None: nobody hands anything to themselves."""
        return NEVER

    def account(self) -> Q:
        """The account line: exact, absent included (`reach-account-exact`)."""
        if self.every_account:
            return Q()
        if self.account_id is None:
            return Q(account_id__isnull=True)
        return Q(account_id=self.account_id)

    def active(self) -> Q:
        """That the person may act at all."""
        return NEVER if self.person_id is None else Q(is_active(platform_authority(), self.person_id))

    def _agent(self) -> Q:
        return Q(workspace_id=self.workspace_id, agent_id=self.agent_id)

    def _not_self(self) -> Q:
        return Q() if self.session_id is None else ~Q(pk=self.session_id)

    def _account_reason(self) -> str:
        whose = "without an account" if self.account_id is None else "of the turn's account"
        return f"Only conversations {whose} may be read."

    def _person(self) -> Q:
        """Own sessions, and with the right everybody's.

        The right is looked at in this statement too. Whether it is asked for at all follows a look just
        before: "mine OR granted" makes a database walk every session for somebody without the right.
        """
        if self.person_id is None:
            return NEVER
        own = Q(person_id=self.person_id)
        everybody = _may_read_all(self.person_id, self.workspace_id, self.agent_id)
        return own | everybody if self.granted else own


@dataclass(frozen=True, kw_only=True)
class TurnReach:
    """What a live turn may be given, as its reader; a subclass says what permits it."""

    turn: TurnFacts
    setting: Resolution
    references_setting: Resolution
    person: PersonReach
    reader_name: str | None

    @property
    def workspace_id(self) -> Any:
        """The turn's workspace."""
        return self.turn.workspace_id

    @property
    def session_id(self) -> Any:
        """The conversation that the turn is in, which is never in reach."""
        return self.turn.session_id

    @property
    def closed_because(self) -> str | None:
        """Why nothing at all can be read, whatever there is; None where something may be."""
        if not self.turn.live:
            return "This turn has ended."
        if self.turn.reader_id is None or not self.turn.reader_active:
            return "This turn has nobody to read as."
        return None

    def permission(self) -> Restrictor:
        """What lets the turn have a session at all."""
        raise NotImplementedError

    def restrictors(self) -> tuple[Restrictor, ...]:
        """Every condition, each on a line of its own; a session is in reach where all of them hold."""
        return (
            self.permission(),
            Restrictor(
                "reach-live-turn", "The turn has ended, or its own conversation is deleted.", self._turn()
            ),
            Restrictor(
                "reach-trigger-owner", "The turn reads as nobody, or as somebody else by now.", self._reader()
            ),
            *self.person.restrictors(),
        )

    def sessions(self) -> "QuerySet[AbstractSession]":
        """The sessions in reach, as one query that evaluates every restrictor when it runs."""
        return self._sessions.all()

    @cached_property
    def _sessions(self) -> "QuerySet[AbstractSession]":
        """Never run itself, only built once: a call asks the door more than once within the same reach."""
        return sessions_within(self.restrictors())

    def explain(self, session: AbstractSession | Any) -> list[str]:
        """Why a session is out of reach, a sentence for each restrictor that keeps it out; [] is in reach.

        For operators and tests, never for a model. Takes a session or its key.
        """
        applied = [restrictor for restrictor in self.restrictors() if restrictor.condition]
        verdicts = {f"holds_{index}": truth(one.condition) for index, one in enumerate(applied)}
        rows = session_model()._base_manager.using(primary()).annotate(**verdicts)
        row = rows.filter(pk=getattr(session, "pk", session)).values(*verdicts).first()
        if row is None:
            return ["There is no such conversation."]
        return [
            restrictor.reason for restrictor, name in zip(applied, verdicts, strict=True) if not row[name]
        ]

    def handed_over(self) -> Q:
        """Which sessions a person handed to the turn: none, unless a subclass knows of any."""
        return NEVER

    def of_the_turn(self) -> Q:
        """What has to hold of the turn and its reader alone, for what was copied for it."""
        return self._turn() & self._reader() & self.person.active()

    def still_holds(self, *, after: First | None = None) -> bool:
        """Whether the two settings held all the time since this was made (`reach-now`).

        One statement, in which `after` is written too where the database can: it sees what was committed
        before it began, and so after the text was fetched.
        """
        setting, references_setting = settings_of(self.turn.place, after=after)
        return setting.unchanged_since(self.setting) and references_setting.unchanged_since(
            self.references_setting
        )

    def _turn(self) -> Q:
        return Q(Exists(live_turns(pk=self.turn.id, workspace_id=self.turn.workspace_id)))

    def _reader(self) -> Q:
        reader = self.turn.reader_id
        if reader is None:
            return NEVER
        one_reader = Q(sender_id=reader, trigger_id__isnull=True)
        owner = turn_model().trigger_owner
        if owner is not None:
            one_reader |= Q(**{"sender_id__isnull": True, owner: reader})
        its_own = every_turn(pk=self.turn.id, workspace_id=self.turn.workspace_id)
        return Q(Exists(its_own.filter(one_reader)))


@dataclass(frozen=True, kw_only=True)
class HandedOver:
    """A conversation that a person handed to a turn: the key of the reference, and its own."""

    reference_id: uuid.UUID
    workspace: str
    session_id: Any

    def condition(self) -> Q:
        """True of that session while the reference lasts: looked at when the query runs (`refs-per-turn`)."""
        standing = TurnReference.objects.using(primary()).filter(
            pk=self.reference_id, workspace_id=self.workspace, ended_at__isnull=True
        )
        return Q(pk=self.session_id) & Q(Exists(standing))


@dataclass(frozen=True, kw_only=True)
class Reach(TurnReach):
    """What a turn may read: what the setting opens, and what a person handed to it."""

    references: tuple[HandedOver, ...] = ()

    @property
    def closed_because(self) -> str | None:
        """Why this turn can read nothing at all, whatever there is; None where it may read something."""
        if self.setting.value == NONE and not self.references:
            return SWITCHED_OFF
        return super().closed_because

    def permission(self) -> Restrictor:
        """The setting, or where it opens nothing that the session was handed over."""
        if self.setting.value != NONE:
            return Restrictor("catalog-resolve", str(self.setting), Q())
        if not self.references:
            return Restrictor("catalog-resolve", str(self.setting), NEVER)
        reason = f"{self.setting} It was not handed to this turn, or was taken back."
        return Restrictor("refs-within-reach", reason, self.handed_over())

    def handed_over(self) -> Q:
        """Which sessions a person handed to this turn and has not taken back."""
        found = NEVER
        for one in self.references:
            found |= one.condition()
        return found


@dataclass(frozen=True, kw_only=True)
class Handover(TurnReach):
    """What a turn's sender may hand to it: their own reach at this moment (`refs-admission`).

    `allowed` tells whether `conversation_references` lets them.
    """

    allowed: bool

    def permission(self) -> Restrictor:
        """The setting for references, and `runs:read`, looked at when the query runs."""
        reason = f"{self.references_setting} Or the sender lacks runs:read."
        return Restrictor("refs-admission", reason, self._may_run() if self.allowed else NEVER)

    def _may_run(self) -> Q:
        sender, turn = self.turn.sender_id, self.turn
        if sender is None:
            return NEVER
        return condition(platform_authority(), sender, RUN_READS, turn.workspace_id, turn.agent_id)


SWITCHED_OFF = "History access is switched off for this agent."


def reach_of(turn: AbstractTurn | Any) -> Reach:
    """What this turn may read now: its row, its agent's settings and its reader's right, read afresh.

    Three statements, and one more where people may hand over conversations. A NoTurnError where the turn is
    None or not in the database.
    """
    facts = turn_facts(turn)
    settings = settings_of(facts.place)
    name, granted = look_up_person(facts.reader_id, facts.workspace_id, facts.agent_id)
    return _reach(facts, settings, granted=granted, name=name)


def outline_of(turn: AbstractTurn | Any) -> Reach:
    """Like `reach_of`, a statement shorter: enough to tell what a turn may be offered, not to read by."""
    facts = turn_facts(turn)
    return _reach(facts, settings_of(facts.place), granted=False, name=None)


def handover_of(turn: AbstractTurn | Any, least: str) -> Handover:
    """What a turn's sender may hand to it now, where `conversation_references` is at `least` this value.

    Of conversations with the turn's own agent. Three statements. A NoTurnError where the turn is None or not
    in the database.
    """
    facts = turn_facts(turn)
    return _handover(facts, facts.agent_id, least)


def handover_of_any_agent(turn: AbstractTurn | Any, session: Any | None, least: str) -> Handover:
    """Like `handover_of`, of conversations with the agent of `session`, one's key, in the same workspace.

    Four statements, whether or not there is such a session (`reach-same-answer`).
    """
    facts = turn_facts(turn)
    asked = facts.session_id if session is None else session
    return _handover(facts, agent_within(facts.workspace_id, asked, otherwise=facts.agent_id), least)


def _handover(facts: TurnFacts, agent_id: Any, least: str) -> Handover:
    setting, references_setting = settings_of(facts.place)
    name, granted = look_up_person(facts.reader_id, facts.workspace_id, agent_id)
    return Handover(
        turn=facts,
        setting=setting,
        references_setting=references_setting,
        person=person_of(facts, setting, agent_id=agent_id, granted=granted),
        reader_name=name,
        allowed=references_setting.allows(least),
    )


def agent_of(session: Any) -> tuple[Any, Any] | None:
    """The keys of a session's workspace and agent, to ask the right question: it gives no reach by itself."""
    found: tuple[Any, Any] | None = _agents(pk=session).first()
    return found


def _agents(**which: Any) -> Any:
    sessions: Any = session_model()._base_manager.using(primary()).filter(**which)
    return sessions.values_list("workspace_id", "agent_id")


def agent_within(workspace_id: Any, session: Any, *, otherwise: Any) -> Any:
    """The key of the agent of a session of this workspace, `otherwise` where there is no such session."""
    found = _agents(pk=session, workspace_id=workspace_id).first()
    return found[1] if found else otherwise


def _reach(
    turn: TurnFacts, settings: tuple[Resolution, Resolution], *, granted: bool, name: str | None
) -> Reach:
    setting, references_setting = settings
    return Reach(
        turn=turn,
        setting=setting,
        references_setting=references_setting,
        references=_handed_over(turn, references_setting),
        person=person_of(turn, setting, agent_id=turn.agent_id, granted=granted),
        reader_name=name,
    )


def person_of(turn: TurnFacts, setting: Resolution, *, agent_id: Any, granted: bool) -> PersonReach:
    """What the turn's reader may read of one agent's conversations from within the turn's own."""
    return PersonReach(
        person_id=turn.reader_id,
        workspace_id=turn.workspace_id,
        agent_id=agent_id,
        session_id=turn.session_id,
        account_id=turn.account_id,
        every_account=setting.value == ALL_ACCOUNTS,
        granted=granted,
    )


def look_up_person(person_id: Any, workspace_id: Any, agent_id: Any) -> tuple[str | None, bool]:
    """A person's name for the record, and whether they hold `sessions:read` for the agent; one statement."""
    if person_id is None:
        return None, False
    found = _person(person_id, workspace_id, agent_id)
    return (found[0]["name"], found[0]["granted"]) if found else (None, False)


@compiled(compiled_basis)
def _person(person_id: Any, workspace_id: Any, agent_id: Any) -> Question:
    people = get_user_model()._base_manager.using(primary()).filter(pk=person_id)
    right = _may_read_all(person_id, workspace_id, agent_id)
    name = Cast(get_user_model().USERNAME_FIELD, TextField())
    return people, {"name": name, "granted": ExpressionWrapper(right, output_field=BooleanField())}


def sessions_within(restrictors: Iterable[Restrictor]) -> "QuerySet[AbstractSession]":
    """The sessions for which every restrictor holds, on the primary database."""
    conditions = (restrictor.condition for restrictor in restrictors)
    return session_model()._base_manager.using(primary()).filter(*conditions)


def truth(condition: Q) -> Any:
    """A condition as a column: true or false, never NULL; none at all holds for every row."""
    if not condition:
        return Value(True, output_field=BooleanField())
    return Case(When(condition, then=Value(True)), default=Value(False), output_field=BooleanField())


def _handed_over(turn: TurnFacts, references_setting: Resolution) -> tuple[HandedOver, ...]:
    """What the turn's sender handed to it, and only while the setting allows it (`refs-per-turn`)."""
    sender = None if turn.trigger_id is not None else turn.sender_id
    if sender is None or not references_setting.allows(CONVERSATIONS):
        return ()
    workspace, to_key = key_text(turn.workspace_id), session_model()._meta.pk.to_python
    return tuple(
        HandedOver(reference_id=row["id"], workspace=workspace, session_id=to_key(row["session_id"]))
        for row in _references(workspace, key_text(turn.id), key_text(sender))
    )


@compiled(compiled_basis)
def _references(workspace: str, turn: str, person: str) -> Question:
    lasting = TurnReference.objects.using(primary()).filter(
        workspace_id=workspace,
        turn_id=turn,
        person_id=person,
        kind=ReferenceKind.CONVERSATION,
        ended_at__isnull=True,
    )
    return lasting.order_by("id"), {"id": F("id"), "session_id": F("session_id")}


def _may_read_all(person_id: Any, workspace_id: Any, agent_id: Any) -> Q:
    return condition(platform_authority(), person_id, READ_SESSIONS, workspace_id, agent_id)
