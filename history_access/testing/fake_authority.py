"""An authority whose rights a test gives and takes, for tests of an agent loop rather than of rights.

    with fake_authority() as rights:
        rights.grant(ines, "sessions:read", inn)
        ...

It answers with conditions in SQL like a real one. What is held is looked at when the statement runs, so that
a right that is taken meanwhile is lost (`reach-now`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.exceptions import EmptyResultSet
from django.db.models import BooleanField, Exists, F, Func
from django.db.models.lookups import In
from django.test.utils import override_settings

from history_access.authority import Authority, Condition
from history_access.models.platform import primary
from settings_catalog.conf import AUTHORITY, conf
from settings_catalog.keys import key_text, optional_key_text

_Right = tuple[str, str, str, str | None]
"""A person, a permission, a workspace and perhaps one agent, by the text of their keys."""


class Rights:
    """What people hold while a fake authority is in place, without a row of the platform's."""

    def __init__(self) -> None:
        self._held: dict[_Right, Any] = {}

    def grant(self, person: Any, permission: str, workspace: Any, agent: Any | None = None) -> None:
        """Let a person hold a permission in a workspace, or for one of its agents alone."""
        self._held[_right(person, permission, workspace, agent)] = workspace.pk

    def revoke(self, person: Any, permission: str, workspace: Any, agent: Any | None = None) -> None:
        """Take it back; a KeyError where it was not given so."""
        del self._held[_right(person, permission, workspace, agent)]

    def workspaces(self, person_id: Any, permission: str, agent_id: Any | None) -> list[Any]:
        """The keys of the workspaces in which a person holds a permission now."""
        asked, agents = (key_text(person_id), permission), {None, optional_key_text(agent_id)}
        return [key for right, key in self._held.items() if right[:2] == asked and right[3] in agents]

    def clear(self) -> None:
        """Nobody holds anything."""
        self._held.clear()


_RIGHTS = Rights()


class FakeAuthority(Authority):
    """Answers by the rights that the test gave; who is active is left to the user model."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any | None) -> Condition:
        """Whether the workspace is one of those in which the person holds the permission."""
        workspaces = conf.workspace_model._base_manager.using(primary()).filter(pk=workspace_id)
        return Exists(workspaces.filter(_HeldNow(F("pk"), asked=(person_id, permission, agent_id))))


@contextmanager
def fake_authority() -> Iterator[Rights]:
    """Let the fake authority answer for the project in a block; nobody holds anything when it begins.

    Also for settings, so that `settings:write` counts.
    """
    path = f"{FakeAuthority.__module__}.{FakeAuthority.__qualname__}"
    _RIGHTS.clear()
    changed = {"HISTORY_ACCESS": {**settings.HISTORY_ACCESS, "AUTHORITY": path}, AUTHORITY: path}
    with override_settings(**changed):
        try:
            yield _RIGHTS
        finally:
            _RIGHTS.clear()


class _HeldNow(Func):
    """Whether a workspace is among those of a right, which are looked up when the SQL is made."""

    output_field = BooleanField()

    def __init__(self, key: Any, *, asked: tuple[Any, str, Any | None]) -> None:
        super().__init__(key)
        self.asked = asked

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **context: Any) -> Any:
        """`key IN (…)`, or never."""
        key = self.get_source_expressions()[0]
        try:
            return compiler.compile(In(key, _RIGHTS.workspaces(*self.asked)))
        except EmptyResultSet:
            return "1 = 0", ()


def _right(person: Any, permission: str, workspace: Any, agent: Any | None) -> _Right:
    return key_text(person.pk), permission, key_text(workspace.pk), agent and key_text(agent.pk)
