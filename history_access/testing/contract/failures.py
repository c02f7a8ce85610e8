"""How a broken rule is told: the rule, the rows that prove it, what was expected and what came."""

import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol, TypeVar
from unittest import SkipTest

from history_access.models.platform import session_model
from history_access.testing.platform import Part, PlatformFactories
from history_access.turns import turn_facts

RULE = "rule"
"""The attribute of a test that names its rule."""

_WIDTH = 10


class BrokenRule(AssertionError):  # noqa: N818 (the rule is what a reader looks for)
    """The platform does not keep a rule; the message begins with its name."""


class Told(Protocol):
    """What a test has that can tell a broken rule."""

    platform: ClassVar[PlatformFactories]
    rule: str


Case = TypeVar("Case", bound=Told)
Test = Callable[[Case], None]


def rule(name: str, *needs: Part) -> "Callable[[Test[Case]], Test[Case]]":
    """Mark a test as that of one rule; it is skipped where the platform lacks one of the parts it needs.

    Whatever goes wrong in it is told as a break of the rule, with what was logged meanwhile.
    """

    def marked(test: "Test[Case]") -> "Test[Case]":
        @functools.wraps(test)
        def run(self: Case) -> None:
            self.rule = name
            for part in needs:
                if part in self.platform.lacks:
                    raise SkipTest(f"{name}: no {part.value}: {self.platform.lacks[part]}")
            with _exceptions_logged() as logged:
                try:
                    test(self)
                except BrokenRule as error:
                    raise BrokenRule(_with_log(str(error), logged)) from error.__cause__
                except (AssertionError, SkipTest):
                    raise
                except Exception as error:
                    told = f"{name}: {type(error).__name__} was raised: {error}"
                    raise BrokenRule(_with_log(told, logged)) from error

        setattr(run, RULE, name)
        return run

    return marked


def broken(rule: str, that: str, rows: Mapping[str, object]) -> BrokenRule:
    """The failure of a rule: what should be so, and a row for each name; a turn and a session as they are."""
    told = {name: _SHOWN[name](value) if name in _SHOWN else value for name, value in rows.items()}
    lines = [f"  {name:<{_WIDTH}}{line}" for name, value in told.items() for line in _lines(value)]
    return BrokenRule("\n".join([f"{rule}: {that}", *lines]))


def _turn(turn: Any) -> str:
    """A turn as the database has it."""
    try:
        facts = turn_facts(turn)
    except Exception as error:
        return f"{getattr(turn, 'pk', turn)} ({type(error).__name__}: {error})"
    state = "running" if facts.live else "ended"
    started = f"trigger {facts.trigger_id}" if facts.trigger_id is not None else f"sender {facts.sender_id}"
    return (
        f"{facts.id}: {state}, {started}, reads as {_or_nobody(facts.reader_id)}, in conversation "
        f"{facts.session_id} of agent {facts.agent_id}, account {_or_none(facts.account_id)}"
    )


def _session(session: Any) -> str:
    """A session as the database has it."""
    model: Any = session_model()
    columns = ("workspace_id", "agent_id", "account_id", "person_id", "title", "message_count")
    key = getattr(session, "pk", session)
    found = model._base_manager.filter(pk=key).values_list(*columns, "last_moved_at").first()
    if found is None:
        return f"{key}: there is no such row"
    workspace, agent, account, person, title, count, moved = found
    return (
        f"{key} {title!r}: workspace {workspace}, agent {agent}, account {_or_none(account)}, person "
        f"{_or_nobody(person)}, message_count {count}, last moved {moved:%Y-%m-%d %H:%M}"
    )


_SHOWN: Mapping[str, Callable[[Any], str]] = {"turn": _turn, "session": _session}


def _lines(value: object) -> Sequence[str]:
    if isinstance(value, list):
        return [str(one) for one in value] or ["nothing"]
    return [str(value)]


def _or_none(key: object | None) -> object:
    return "none" if key is None else key


def _or_nobody(key: object | None) -> object:
    return "nobody" if key is None else key


@contextmanager
def _exceptions_logged() -> Iterator[list[str]]:
    """What the tools logged of exceptions, which they never let through (`tool-errors`)."""
    found: list[str] = []
    handler = _Keeping(found)
    logger = logging.getLogger("history_access")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


class _Keeping(logging.Handler):
    """Keeps the exceptions of what is logged, a line each."""

    def __init__(self, kept: list[str]) -> None:
        super().__init__(logging.ERROR)
        self.kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        line = f"{type(error).__name__}: {error}".strip().replace("\n", " ")
        if error is not None and line not in self.kept:
            self.kept.append(line)


def _with_log(told: str, logged: Sequence[str]) -> str:
    return "\n".join([told, *(f"  {'logged':<{_WIDTH}}{line}" for line in logged)])
