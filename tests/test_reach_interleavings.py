"""reach-now over every interleaving: a right is lost, and committed, before each statement of a call.

No text is returned by a call in which the right was lost before the text was fetched, and no call that
starts after a revocation has committed returns text. On SQLite the loss waits until the call is done.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Q

from history_access.agent_platform import services
from history_access.agent_platform.models import Authority, Session, Turn
from history_access.reach import PersonReach
from history_access.tools import Toolset
from tests.worlds import World


class Call:
    """One call of a tool by a scheduled turn, with something done before some of its statements."""

    def __init__(self, world: World, tool: str, number: int) -> None:
        self.world = world
        self.mark = f"Mark{number}."
        self.owner = world.person(f"owner {number}")
        self.newcomer = world.person(f"newcomer {number}")
        world.grant(self.owner)
        world.allow("all_accounts")
        self.session = world.session(f"{self.mark} words", person=world.mara, title=f"{self.mark} title")
        self.trigger = services.create_trigger(world.agent, kind="schedule", name="Digest", by=self.owner)
        self.turn = world.turn(trigger=self.trigger)
        self.tool = tool
        self.arguments = {} if tool == "list_conversations" else {"conversation_id": str(self.session.pk)}

    def run(self, doing: "Mapping[int, Job] | None" = None) -> tuple[bool, list[str]]:
        """Whether any text came back, and the statements that ran; `doing` is by their number, from 0."""
        ran: list[str] = []
        waiting: list[threading.Thread] = []

        def note(execute: Any, sql: str, *rest: Any) -> Any:
            if doing and len(ran) in doing:
                waiting.append(self._do(doing[len(ran)]))
            ran.append(sql)
            return execute(sql, *rest)

        with connection.execute_wrapper(note):
            result = self.act()
        for thread in waiting:
            thread.join()
        return self.mark in str(result), ran

    def act(self) -> Any:
        """The call itself; what it returns has the mark in it where any text came back."""
        return Toolset(self.turn.pk, ()).call(self.tool, self.arguments)

    def _do(self, job: "Job") -> threading.Thread:
        """Do it on another connection; where the database lets it, wait until that is committed."""

        def work() -> None:
            try:
                job(self)
            finally:
                connection.close()

        thread = threading.Thread(target=work)
        thread.start()
        if connection.vendor != "sqlite":
            thread.join()
        return thread


Job = Callable[[Call], Any]


def revoke(call: Call) -> None:
    Authority.objects.filter(person=call.owner).delete()


def deactivate(call: Call) -> None:
    get_user_model().objects.filter(pk=call.owner.pk).update(is_active=False)


def change_owner(call: Call) -> None:
    services.edit_trigger(call.trigger, by=call.newcomer)


def remove_owner(call: Call) -> None:
    get_user_model().objects.get(pk=call.owner.pk).delete()


def lower(call: Call) -> None:
    call.world.set(agent=call.world.agent, value="none")


def hold(call: Call) -> None:
    call.world.set(platform=True, ceiling="none")


def delete_source(call: Call) -> None:
    services.delete_session(Session.objects.get(pk=call.session.pk))


def end_turn(call: Call) -> None:
    services.end_turn(Turn.objects.get(pk=call.turn.pk))


def delete_own(call: Call) -> None:
    services.delete_session(Session.objects.get(pk=call.turn.session_id))


LOSSES = [revoke, deactivate, change_owner, remove_owner, lower, hold, delete_source, end_turn, delete_own]


def last_fetch(statements: list[str]) -> int:
    """The last statement that fetches text: a loss before it must be seen."""
    return max(index for index, sql in enumerate(statements) if "SUBSTR" in sql)


def stale(call_for: Callable[[], Call], loss: Job) -> list[int]:
    """The statements before which the right was lost, and text came back all the same."""
    text, statements = call_for().run()
    assert text, "without a loss the call returns text"
    found = []
    for at in range(last_fetch(statements) + 1):
        text, _ = call_for().run({at: loss})
        if text and connection.vendor != "sqlite":
            found.append(at)
    return found


@pytest.fixture
def call_for(open_world: World) -> Callable[[str], Call]:
    """A fresh call of a fresh person on a conversation with a mark of its own, in one committed world."""
    numbers = iter(range(1000))
    return lambda tool: Call(open_world, tool, next(numbers))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("tool", ["list_conversations", "read_conversation"])
def test_reach_now_in_every_interleaving(call_for: Any, tool: str, loss: Any) -> None:
    assert stale(lambda: call_for(tool), loss) == []


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_reach_now_after_a_loss_no_call_returns_text(call_for: Any, loss: Any) -> None:
    """Whenever within a call the right was lost: the next call sees it, on both databases."""
    for at in range(len(call_for("read_conversation").run()[1])):
        call = call_for("read_conversation")
        call.run({at: loss})
        text, _ = call.run()
        assert not text, f"lost before statement {at}"


SWITCHES: dict[str, tuple[Job, Job]] = {
    "the agent's value": (lower, lambda call: call.world.set(agent=call.world.agent, value="all_accounts")),
    "the platform's ceiling": (hold, lambda call: call.world.set(platform=True, ceiling="all_accounts")),
    "a ceiling where no row stood": (
        lambda call: call.world.set(workspace=call.world.hollowbrook, ceiling="none"),
        lambda call: call.world.set(workspace=call.world.hollowbrook, ceiling=None),
    ),
}


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("tool", ["list_conversations", "read_conversation"])
def test_reach_now_sees_a_setting_that_was_off_for_a_moment(call_for: Any, tool: str, switch: str) -> None:
    """Switched off and on again between the first look at it and the last: the value alone looks the same."""
    if connection.vendor == "sqlite":
        pytest.skip("there both wait until the call is done")
    off, on = SWITCHES[switch]
    text, statements = call_for(tool).run()
    looks = [at for at, sql in enumerate(statements) if "settings_catalog_settingvalue" in sql]
    assert text and len(looks) == 2
    assert looks[0] < last_fetch(statements) < looks[1]
    text, _ = call_for(tool).run({last_fetch(statements): off, looks[1]: on})
    assert not text


def test_reach_now_the_harness_finds_a_right_that_is_only_checked_before(
    call_for: Any, monkeypatch: Any
) -> None:
    """The positive control: with the right left out of the statement that fetches, stale text comes back."""
    if connection.vendor == "sqlite":
        pytest.skip("there the loss always waits until the call is done")
    monkeypatch.setattr(
        PersonReach, "_person", lambda self: Q(pk__isnull=False) if self.granted else Q(pk__in=[])
    )
    assert stale(lambda: call_for("read_conversation"), revoke) != []
