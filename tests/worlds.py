"""A small world on the agent platform's tables, made with its own services."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Exists, Q

from history_access.agent_platform import services
from history_access.agent_platform.authority import PlatformAuthority
from history_access.agent_platform.models import Account, Agent, Authority, Session, Trigger, Turn, Workspace
from history_access.authority import Condition
from history_access.tools import Toolset, toolset_for
from settings_catalog import changes

NOON = datetime(2026, 11, 29, 17, 0, tzinfo=UTC)
"""Sunday noon in New York."""


@dataclass
class World:
    """Hollowbrook in New York: an agent, two accounts, an operator who may set everything, and Mara."""

    operator: Any
    mara: Any
    hollowbrook: Workspace
    agent: Agent
    acme: Account
    brightside: Account

    @classmethod
    def create(cls) -> "World":
        operator = get_user_model().objects.create_superuser("operator")
        hollowbrook = Workspace.objects.create(name="Hollowbrook", time_zone="America/New_York")
        world = cls(
            operator=operator,
            mara=get_user_model().objects.create_user("mara"),
            hollowbrook=hollowbrook,
            agent=Agent.objects.create(workspace=hollowbrook, name="Digest"),
            acme=Account.objects.create(workspace=hollowbrook, name="Acme"),
            brightside=Account.objects.create(workspace=hollowbrook, name="Brightside"),
        )
        world.grant(operator, "settings:write")
        return world

    def person(self, name: str, **given: Any) -> Any:
        return get_user_model().objects.create_user(name, **given)

    def grant(self, person: Any, permission: str = "sessions:read", agent: Agent | None = None) -> Authority:
        workspace = agent.workspace if agent else self.hollowbrook
        return Authority.objects.create(
            workspace=workspace, person=person, permission=permission, agent=agent
        )

    def allow(self, value: str, agent: Agent | None = None) -> None:
        """Let the platform allow everything, and the agent ask for `value`."""
        self.set(platform=True, ceiling="all_accounts")
        self.set(agent=agent or self.agent, value=value)

    def allow_references(self, value: str = "conversations", agent: Agent | None = None) -> None:
        """Let the platform allow every reference, and the agent ask for `value`."""
        self.set("conversation_references", platform=True, ceiling="conversations")
        self.set("conversation_references", agent=agent or self.agent, value=value)

    def set(self, key: str = "history_access", **given: Any) -> Any:
        return changes.set_value(key, by=self.operator, why="a test", **given)

    def session(self, *texts: str, agent: Agent | None = None, at: datetime = NOON, **given: Any) -> Session:
        """A session whose person and agent take turns in saying `texts`, a minute apart."""
        session = services.open_session(agent or self.agent, started_at=at, **given)
        for index, text in enumerate(texts):
            role = "agent" if index % 2 else "person"
            services.add_message(session, role, text, at=at + timedelta(minutes=index))
        session.refresh_from_db()
        return session

    def turn(self, sender: Any = None, *, trigger: Trigger | None = None, **given: Any) -> Turn:
        """A running turn in a new session of its own."""
        agent = given.pop("agent", trigger.agent if trigger else self.agent)
        session = services.open_session(agent, person=sender, title="now", **given)
        return services.start_turn(session, sender=sender, trigger=trigger)

    def tools(self, sender: Any = None, **given: Any) -> Toolset:
        return toolset_for(self.turn(sender, **given))


def listed(toolset: Toolset, **arguments: Any) -> list[str]:
    """The ids of all pages of a list."""
    page = toolset.call("list_conversations", arguments)
    assert page["kind"] == "conversation_list", page
    ids = [one["id"] for one in page["conversations"]]
    if page["next_cursor"] is None:
        return ids
    return ids + listed(toolset, **{**arguments, "cursor": page["next_cursor"]})


def pages(toolset: Toolset, conversation_id: object, **arguments: Any) -> list[dict[str, Any]]:
    """All pages of a conversation."""
    page = toolset.call("read_conversation", {"conversation_id": str(conversation_id), **arguments})
    assert page["kind"] == "quoted_conversation", page
    if page["next_cursor"] is None:
        return [page]
    following = {"cursor": page["next_cursor"], **{k: v for k, v in arguments.items() if k == "limit"}}
    return [page, *pages(toolset, conversation_id, **following)]


def error(result: dict[str, Any]) -> dict[str, Any]:
    """The error of a refused call."""
    assert result["kind"] == "error", result
    found: dict[str, Any] = result["error"]
    return found


def read(toolset: Toolset, conversation_id: object, **arguments: Any) -> dict[str, Any]:
    """One page of a conversation."""
    page = toolset.call("read_conversation", {"conversation_id": str(conversation_id), **arguments})
    assert page["kind"] == "quoted_conversation", page
    return page


def pieces(toolset: Toolset, conversation_id: object, **arguments: Any) -> dict[int, list[str]]:
    """Every message of a conversation by its number: the pieces that its text came in, over all pages."""
    shown = [one for page in pages(toolset, conversation_id, **arguments) for one in page["messages"]]
    found = {one["number"]: list(_pieces_of(toolset, conversation_id, one)) for one in shown}
    assert len(found) == len(shown), "a message came twice"
    return found


def _pieces_of(toolset: Toolset, conversation_id: object, message: dict[str, Any]) -> Iterator[str]:
    """The pieces of one message; each says where it starts, and whether and how it goes on."""
    number, offset, cut = message["number"], 0, {}
    while True:
        text = message["quoted"]["text"] or ""
        assert (message["number"], message["offset"]) == (number, offset)
        yield text
        offset, cut = offset + len(text), message["truncated"]
        if cut is None:
            return
        assert text and (cut["shown"], cut["total"] > offset) == (len(text), True)
        [message] = read(toolset, conversation_id, cursor=cut["continue"])["messages"]


class RunsByGrant(PlatformAuthority):
    """The platform's answers, but for `runs:read`, which takes a row of Authority like the others."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Condition:
        scope = Q(agent__isnull=True) | Q(agent_id=agent_id)
        rows = Authority.objects.filter(scope, person_id=person_id, workspace_id=workspace_id)
        return Exists(rows.filter(permission=permission))


def runs_by_grant(settings: Any) -> None:
    """From now on `runs:read` has to be granted."""
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "AUTHORITY": f"{__name__}.RunsByGrant"}


class _WatchedCursor(CursorWrapper):
    """A cursor that takes every row from the database at once, keeps it, and hands it on."""

    def __init__(self, cursor: Any, db: Any, kept: list[tuple[Any, ...]]) -> None:
        super().__init__(cursor, db)
        self.__dict__.update(kept=kept, waiting=[])

    def execute(self, sql: Any, params: Any = None) -> Any:
        result = super().execute(sql, params)
        self.__dict__["waiting"] = list(self.cursor.fetchall()) if self.cursor.description else []
        self.kept.extend(self.waiting)
        return result

    def fetchone(self) -> Any:
        return self.waiting.pop(0) if self.waiting else None

    def fetchmany(self, size: int = 1) -> list[Any]:
        taken, self.waiting[:] = self.waiting[:size], self.waiting[size:]
        return taken

    def fetchall(self) -> list[Any]:
        return self.fetchmany(len(self.waiting))


@contextmanager
def rows_sent() -> Iterator[list[tuple[Any, ...]]]:
    """Every row that the database sends during a block, whether or not anybody looks at it."""
    kept: list[tuple[Any, ...]] = []
    connection.make_cursor = lambda cursor: _WatchedCursor(cursor, connection, kept)
    try:
        yield kept
    finally:
        del connection.make_cursor
