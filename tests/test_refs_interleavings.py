"""refs-admission, refs-within-reach, refs-two-kinds over every interleaving with the loss of a right.

A right is lost, and committed, before each statement of handing a conversation over, of reading it by
reference, of attaching an excerpt and of telling the model. `READING` and those below it say which statement
looks at that right last: whoever lost it before gets nothing, and after a loss no call returns text. On
SQLite the loss waits until the call is done. `EVERY_INTERLEAVING` in the environment tries each statement,
and not only those around the one that looks last and at the ends (`make captured`).
"""

import os
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Q

from history_access.agent_platform import services
from history_access.agent_platform.models import Authority, Session, Turn
from history_access.reach import HandedOver, PersonReach
from history_access.record import HistoryUnavailableError
from history_access.references import (
    ReferencesError,
    attach_excerpt,
    bind_references,
    references_block,
    references_of,
    take_back,
)
from history_access.tools import Toolset
from tests.test_reach_interleavings import Call, last_fetch
from tests.worlds import World, error, runs_by_grant

EVERY = bool(os.environ.get("EVERY_INTERLEAVING"))

Loss = Callable[[Any], Any]


class Reading(Call):
    """A read of a conversation that a person handed over, somebody else's, which they may open."""

    ACCOUNT: ClassVar[str | None] = None
    HISTORY = "none"
    tool = "read_conversation"

    def __init__(self, world: World, number: int, *, bound: bool = True) -> None:
        self.world = world
        self.mark = f"Mark{number}."
        self.sender = world.person(f"sender {number}")
        self.right = world.grant(self.sender)
        world.set(agent=world.agent, value=self.HISTORY)
        world.set("conversation_references", agent=world.agent, value="conversations")
        account = getattr(world, self.ACCOUNT) if self.ACCOUNT else None
        self.session = world.session(
            f"{self.mark} words", person=world.mara, account=account, title=f"{self.mark} title"
        )
        self.arguments = {"conversation_id": str(self.session.pk)}
        self.turn = world.turn(self.sender)
        if bound:
            self.bind()

    def bind(self) -> Any:
        return bind_references(self.turn, [str(self.session.pk)])


class ReadingAcrossAccounts(Reading):
    """The same of another account's conversation, which history access opens too."""

    ACCOUNT = "acme"
    HISTORY = "all_accounts"


class Binding(Reading):
    """Handing that conversation over; what comes back has its id in it, unless it was refused."""

    def __init__(self, world: World, number: int, *, bound: bool = False) -> None:
        super().__init__(world, number, bound=bound)
        self.mark = str(self.session.pk)

    def act(self) -> Any:
        try:
            return self.bind()
        except ReferencesError as refusal:
            assert self.mark not in str(refusal)
            return None

    def reads(self) -> bool:
        """Whether a read after it returns text."""
        return "words" in str(Toolset(self.turn.pk, ()).call(self.tool, self.arguments))


class BindingAcrossAccounts(Binding):
    """The same of another account's conversation."""

    ACCOUNT = "acme"
    HISTORY = "all_accounts"


class BindingAgain(Binding):
    """The same where it had been handed over before."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, number, bound=True)


class Attaching(Reading):
    """Attaching an excerpt of it, where `runs:read` has to be granted."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, number, bound=False)
        self.mark = str(self.session.pk)
        self.run_right = world.grant(self.sender, "runs:read")

    def act(self) -> Any:
        try:
            return attach_excerpt(self.turn, self.session, messages=[1])
        except (ReferencesError, HistoryUnavailableError) as refusal:
            assert self.mark not in str(refusal)
            return None


class AttachingAcrossAccounts(Attaching):
    """The same of another account's conversation."""

    ACCOUNT = "acme"
    HISTORY = "all_accounts"


class Telling(Reading):
    """Telling the model of it: its title."""

    def act(self) -> Any:
        try:
            return references_block(self.turn)
        except HistoryUnavailableError:
            return None


class TellingWords(Telling):
    """Showing the model an excerpt of it."""

    def bind(self) -> Any:
        return attach_excerpt(self.turn, self.session, messages=[1])


def taken_back(call: Reading) -> None:
    assert take_back(call.turn, references_of(call.turn)[0])


def right_revoked(call: Reading) -> None:
    Authority.objects.filter(pk=call.right.pk).delete()


def sender_deactivated(call: Reading) -> None:
    get_user_model().objects.filter(pk=call.sender.pk).update(is_active=False)


def source_deleted(call: Reading) -> None:
    services.delete_session(Session.objects.get(pk=call.session.pk))


def references_lowered(call: Reading) -> None:
    call.world.set("conversation_references", agent=call.world.agent, value="excerpts")


def references_closed(call: Reading) -> None:
    call.world.set("conversation_references", agent=call.world.agent, value="none")


def run_right_revoked(call: Attaching) -> None:
    Authority.objects.filter(pk=call.run_right.pk).delete()


def history_lowered(call: Reading) -> None:
    call.world.set(agent=call.world.agent, value="same_account")


def turn_ended(call: Reading) -> None:
    services.end_turn(Turn.objects.get(pk=call.turn.pk))


def own_session_deleted(call: Reading) -> None:
    services.delete_session(Session.objects.get(pk=call.turn.session_id))


def last_setting(statements: list[str]) -> int:
    """The last look at the settings."""
    return max(at for at, sql in enumerate(statements) if "settings_catalog_settingvalue" in sql)


def setting_again(statements: list[str]) -> int:
    """The same of a call that gives text: it looks once more after the last text was fetched."""
    texts = [at for at, sql in enumerate(statements) if "SUBSTR" in sql or "_excerpttext" in sql]
    assert max(texts) < last_setting(statements), "the setting is not looked at again"
    return last_setting(statements)


def last_reference(statements: list[str]) -> int:
    """The last look at what the turn was handed."""
    looks = [at for at, sql in enumerate(statements) if sql.startswith("SELECT") and "_turnreference" in sql]
    return max(looks)


def last_words(statements: list[str]) -> int:
    """The last look at the words of an excerpt."""
    return max(at for at, sql in enumerate(statements) if "_excerpttext" in sql)


Look = Callable[[list[str]], int]

READING: dict[Loss, tuple[type[Reading], Look]] = {
    taken_back: (Reading, last_fetch),
    right_revoked: (Reading, last_fetch),
    sender_deactivated: (Reading, last_fetch),
    source_deleted: (Reading, last_fetch),
    turn_ended: (Reading, last_fetch),
    own_session_deleted: (Reading, last_fetch),
    references_lowered: (Reading, setting_again),
    history_lowered: (ReadingAcrossAccounts, setting_again),
}
"""The loss, the call in whose way it stands, and the statement that looks at it last."""

BINDING: dict[Loss, tuple[type[Binding], Look]] = {
    right_revoked: (Binding, last_fetch),
    sender_deactivated: (Binding, last_fetch),
    source_deleted: (Binding, last_fetch),
    turn_ended: (Binding, last_fetch),
    own_session_deleted: (Binding, last_fetch),
    references_lowered: (Binding, last_setting),
    history_lowered: (BindingAcrossAccounts, last_setting),
}
"""The same of handing over: later than that it is handed over, and opens nothing."""

GIVING: list[tuple[type[Reading], Loss, Look]] = [
    (Attaching, right_revoked, last_fetch),
    (Attaching, run_right_revoked, last_fetch),
    (Attaching, sender_deactivated, last_fetch),
    (Attaching, source_deleted, last_fetch),
    (Attaching, turn_ended, last_fetch),
    (Attaching, references_closed, setting_again),
    (AttachingAcrossAccounts, history_lowered, setting_again),
    (Telling, taken_back, last_fetch),
    (Telling, right_revoked, last_fetch),
    (Telling, turn_ended, last_fetch),
    (Telling, references_lowered, setting_again),
    (TellingWords, taken_back, last_words),
    (TellingWords, sender_deactivated, last_words),
    (TellingWords, own_session_deleted, last_words),
    (TellingWords, references_closed, setting_again),
]
"""The same of what else gives text; what was copied stays when the source goes, so there is no "after"."""


@pytest.fixture
def call_for(open_world: World) -> Callable[[type[Any]], Any]:
    """A fresh call of a fresh person in one committed world, where the platform allows everything."""
    open_world.set(platform=True, ceiling="all_accounts")
    open_world.set("conversation_references", platform=True, ceiling="conversations")
    numbers = iter(range(1000))
    return lambda kind: kind(open_world, next(numbers))


def given(call_for: Any, kind: type[Reading], loss: Loss, look: Look) -> list[int]:
    """The statements before which the right was lost, and what came back was not as it is written above."""
    got, statements = call_for(kind).run()
    assert got, "without a loss there is something"
    last = look(statements)
    return [at for at in places(statements, look) if call_for(kind).run({at: loss})[0] != (at > last)]


def places(statements: list[str], look: Look) -> list[int]:
    """Before which statements a right is lost: each, or only around the one that looks last, and the ends."""
    last, end = look(statements), len(statements) - 1
    return list(range(end + 1)) if EVERY else sorted({0, last - 1, last, min(last + 1, end), end})


def unexpected(call_for: Any, kind: type[Reading], loss: Loss, look: Look) -> list[tuple[str, int, str]]:
    """The statements before which the right was lost, with what was not as it is written above."""
    got, statements = call_for(kind).run()
    assert got, "without a loss the call returns text"
    last, found = look(statements), []
    for at in places(statements, look):
        call = call_for(kind)
        got, _ = call.run({at: loss})
        if connection.vendor != "sqlite" and got != (at > last):
            found.append((loss.__name__, at, "during it"))
        if call.reads() if isinstance(call, Binding) else call.run()[0]:
            found.append((loss.__name__, at, "after it"))
    return found


# All losses in one world: emptying the database costs more than a loss.


def test_refs_within_reach_in_every_interleaving_of_a_read(call_for: Any) -> None:
    for loss, (kind, look) in READING.items():
        assert unexpected(call_for, kind, loss, look) == []


def test_refs_admission_in_every_interleaving_of_handing_over(call_for: Any) -> None:
    for loss, (kind, look) in BINDING.items():
        assert unexpected(call_for, kind, loss, look) == []


@pytest.mark.parametrize("attaching", [True, False])
def test_refs_two_kinds_in_every_interleaving_of_what_is_given(
    call_for: Any, settings: Any, attaching: bool
) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("there the loss always waits until the call is done")
    if attaching:
        runs_by_grant(settings)
    for kind, loss, look in GIVING:
        if issubclass(kind, Attaching) == attaching:
            assert given(call_for, kind, loss, look) == [], (kind, loss)


def test_refs_per_turn_handed_over_again_while_it_is_taken_back(call_for: Any) -> None:
    """Taken back before that looks, it is handed over anew; later than that it stays taken back.

    On SQLite nothing waits before the transaction begins: which is first there is chance.
    """
    _, statements = call_for(BindingAgain).run()
    for at in range(1 if connection.vendor == "sqlite" else 0, len(statements)):
        call = call_for(BindingAgain)
        call.run({at: taken_back})
        anew = connection.vendor != "sqlite" and at <= last_reference(statements)
        assert call.reads() == anew, f"taken back before statement {at}"
        assert [one.ended_at is None for one in references_of(call.turn)] == [False, True][: 1 + anew]


def test_refs_within_reach_after_a_loss_it_is_not_handed_over_either(call_for: Any) -> None:
    """The other order: the loss first, then handing over, then reading."""
    for loss, (kind, _) in BINDING.items():
        call = call_for(kind)
        loss(call)
        assert (call.run()[0], references_of(call.turn)) == (False, ()), loss.__name__
        refused = error(Toolset(call.turn.pk, ()).call(call.tool, call.arguments))
        assert refused["code"] in ("conversation_unavailable", "history_unavailable"), loss.__name__


def everybody(reach: PersonReach) -> Q:
    """The restrictor as it would be if the right were only looked at before."""
    return Q(pk__isnull=False) if reach.granted else Q(pk__in=[])


def always(handed_over: HandedOver) -> Q:
    """The condition as it would be if a reference were only looked at before."""
    return Q(pk=handed_over.session_id)


CONTROLS: dict[str, tuple[tuple[Any, str, Any], Loss, type[Reading]]] = {
    "taken back": ((HandedOver, "condition", always), taken_back, Reading),
    "revoked, reading": ((PersonReach, "_person", everybody), right_revoked, Reading),
    "revoked, handing over": ((PersonReach, "_person", everybody), right_revoked, Binding),
}


@pytest.mark.parametrize("control", CONTROLS)
def test_refs_within_reach_the_harness_finds_what_is_only_looked_at_before(
    call_for: Any, monkeypatch: Any, control: str
) -> None:
    """The positive control: with the condition left out of the statement that fetches."""
    if connection.vendor == "sqlite":
        pytest.skip("there the loss always waits until the call is done")
    broken, loss, kind = CONTROLS[control]
    monkeypatch.setattr(*broken)
    during = [at for _, at, when in unexpected(call_for, kind, loss, last_fetch) if when == "during it"]
    assert during != []
