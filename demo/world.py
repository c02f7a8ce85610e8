"""Hollowbrook: its people, its two agents, their conversations, and who may do what."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission as AdminPermission
from django.core.management import CommandError, call_command
from django.db.models import Max

from history_access.agent_platform import services
from history_access.agent_platform.models import Agent, Authority, Permission, Session, Trigger, Workspace
from settings_catalog import changes
from settings_catalog.resolver import Resolution, resolve


def _key(name: str) -> uuid.UUID:
    """The same key in every run, and so the same keys for the conversations."""
    return uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.hollowbrook.example")


WORKSPACE_KEY, DIGEST_KEY = _key("workspace"), _key("digest")
OWN_CONVERSATIONS = Path(__file__).parent / "conversations"
PASSWORD = "hollowbrook"  # noqa: S105
LOGINS = {
    "operator": ("the platform", "says how far any agent may read"),
    "tove": ("settings:write", "the inn's manager, says what the inn's agents may read"),
    "auditor": ("reads:audit", "sees which reply drew on which conversation"),
}
"""Who can log in, all with `PASSWORD`: what they hold, and what they do."""

MORNING = time(7)
"""When the schedule runs."""

_INSTRUCTIONS = "Write a digest of yesterday's conversations for the staff."


@dataclass(frozen=True, kw_only=True)
class World:
    """The workspace, an agent for the staff and one for guests, the people who set them up, a schedule."""

    workspace: Workspace
    digest: Agent
    front_desk: Agent
    operator: Any
    manager: Any
    innkeeper: Any
    schedule: Trigger

    @property
    def zone(self) -> ZoneInfo:
        """The inn's time zone."""
        return ZoneInfo(self.workspace.time_zone)


def build(time_zone: str) -> World:
    """The inn, before anybody has said a word or allowed anything."""
    people = get_user_model().objects
    workspace = Workspace.objects.create(pk=WORKSPACE_KEY, name="Hollowbrook", time_zone=time_zone)
    digest = Agent.objects.create(pk=DIGEST_KEY, workspace=workspace, name="Digest")
    innkeeper = people.create_user("ines")
    manager = _staff("tove", "settingvalue", "settingchange", "workspace", "agent")
    auditor = _staff("auditor", "turnconversationread")
    world = World(
        workspace=workspace,
        digest=digest,
        front_desk=Agent.objects.create(pk=_key("front-desk"), workspace=workspace, name="Front desk"),
        operator=people.create_superuser("operator", password=PASSWORD),
        manager=manager,
        innkeeper=innkeeper,
        schedule=services.create_trigger(
            digest, kind="schedule", name="Morning digest", instructions=_INSTRUCTIONS, by=innkeeper
        ),
    )
    grant(world, innkeeper, Permission.READ_SESSIONS)
    grant(world, manager, Permission.WRITE_SETTINGS)
    grant(world, auditor, Permission.AUDIT_READS)
    return world


def _staff(name: str, *may_look_at: str) -> Any:
    """Somebody who can log in to the admin, and look at the pages of these models."""
    person = get_user_model().objects.create_user(name, password=PASSWORD, is_staff=True)
    views = [f"view_{model}" for model in may_look_at]
    person.user_permissions.set(AdminPermission.objects.filter(codename__in=views))
    return person


def load(agent: Agent, file: Path) -> None:
    """Import an agent's conversations; a CommandError where the file or a line of it is at fault."""
    call_command("import_conversations", str(file), agent=str(agent.pk), no_progress=True, verbosity=0)


def morning(world: World) -> datetime:
    """The first seven o'clock after the last conversation: what the demo takes for now.

    A CommandError where there are no conversations.
    """
    last = Session.objects.filter(agent=world.digest).aggregate(moved=Max("last_moved_at"))["moved"]
    if last is None:
        raise CommandError("There is no conversation to make a digest of.")
    moved = last.astimezone(world.zone)
    day = moved.date() + timedelta(days=int(moved.time() > MORNING))
    return datetime.combine(day, MORNING, world.zone)


def grant(world: World, person: Any, permission: str) -> None:
    """Give a person a right for the whole inn."""
    Authority.objects.create(workspace=world.workspace, person=person, permission=permission)


def revoke(world: World, person: Any, permission: str) -> None:
    """Take a right away again."""
    Authority.objects.filter(workspace=world.workspace, person=person, permission=permission).delete()


def open_history(world: World) -> Iterator[tuple[str, Resolution]]:
    """The steps that let the digest read: what is done, and what then holds for the agent."""
    yield "To begin with", resolve("history_access", world.digest)
    changes.set_value(
        "history_access",
        agent=world.digest,
        value="all_accounts",
        by=world.manager,
        why="The morning digest covers all customers.",
    )
    yield "The manager asks for all_accounts", resolve("history_access", world.digest)
    hold_at(world, "all_accounts", why="Agents of a business may read its own conversations.")
    yield "The operator allows all_accounts", resolve("history_access", world.digest)


def hold_at(world: World, ceiling: str, *, why: str) -> None:
    """Let the operator say how far any agent of the platform may read."""
    changes.set_value("history_access", platform=True, ceiling=ceiling, by=world.operator, why=why)


def open_references(world: World) -> Resolution:
    """Let guests hand their own conversations to a turn of the guests' agent; what then holds."""
    why = "Guests need not say again what they said before."
    changes.set_value(
        "conversation_references", platform=True, ceiling="conversations", by=world.operator, why=why
    )
    return changes.set_value(
        "conversation_references", agent=world.front_desk, value="conversations", by=world.manager, why=why
    )


def confine_front_desk(world: World) -> Resolution:
    """Let the manager give the guests' agent one customer's conversations at a time; what then holds."""
    return changes.set_value(
        "history_access",
        agent=world.front_desk,
        value="same_account",
        by=world.manager,
        why="Guests talk to it: what one customer says stays with that customer.",
    )
