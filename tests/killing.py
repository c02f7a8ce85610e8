"""Reads and seals in processes that are killed, at every step of theirs.

python -m tests.killing ACT DATABASE TURN CONVERSATION: for each step a line of JSON on what is left after it.
ACT is read or seal. DATABASE is the settings of a database as JSON, in which the turn may read the
conversation. Each act runs in a child that is forked without a connection, and kills itself by SIGKILL just
before or just after a statement or a commit. Only what the act returned does the child hand out.
"""

import itertools
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import django
from django.conf import settings

if __name__ == "__main__":
    settings.DATABASES = {"default": json.loads(sys.argv[2])}
    django.setup()

from django.db import connection

from history_access.agent_platform.models import Turn
from history_access.models import SealedRow, TurnConversationRead
from history_access.seals import seal
from history_access.tools import toolset_for
from tests.sealed_records import findings, whole, write_reads

Act = Callable[[], str]


class Killer:
    """Kills its own process at the step of this number: before or after a statement or a commit."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.commit = connection._commit
        connection._commit = self._commit
        connection.execute_wrappers.append(self._execute)

    def _step(self) -> None:
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1

    def _execute(self, execute: Any, *rest: Any) -> Any:
        self._step()
        result = execute(*rest)
        self._step()
        return result

    def _commit(self) -> None:
        self._step()
        self.commit()
        self._step()


def in_a_child(act: Act, at: int) -> tuple[bool, str]:
    """Whether a child that ran the act was killed at that step, and what it handed out."""
    out, into = os.pipe()
    connection.close()
    child = os.fork()
    if child == 0:
        connection.ensure_connection()
        Killer(at)
        os.write(into, act().encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as stream:
        given = stream.read()
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, given


def run(act: Act, prepare: Callable[[int], Any]) -> Iterator[dict[str, Any]]:
    """What is left after each step at which the act was killed, and at last after the whole of it."""
    for step in itertools.count():
        prepare(step)
        before = TurnConversationRead.objects.count()
        killed, given = in_a_child(act, step)
        left = {
            "killed": killed,
            "given": given,
            "rows": TurnConversationRead.objects.count() - before,
            "waiting": TurnConversationRead.objects.count() - SealedRow.objects.count(),
            "findings": [str(one) for one in findings()],
        }
        seal()
        if not killed:
            yield {**left, "whole": whole()}
            return
        yield left


def main(act: str, turn: str, conversation: str) -> None:
    """Write the lines of an act."""

    def read() -> str:
        tools = toolset_for(Turn.objects.get(pk=turn))
        page = tools.call("read_conversation", {"conversation_id": conversation})
        return str(page["messages"][0]["quoted"]["text"])

    def seals() -> str:
        return str(seal(size=1))

    acts = {"read": (read, lambda step: None), "seal": (seals, lambda step: write_reads(2, seed=step))}
    for left in run(*acts[act]):
        sys.stdout.write(json.dumps(left) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], *sys.argv[3:])
