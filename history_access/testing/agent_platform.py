"""The contract suite's factories for `history_access.agent_platform`, by its own services."""

import itertools
from datetime import datetime
from typing import Any, ClassVar

from django.contrib.auth import get_user_model

from history_access.agent_platform import services
from history_access.agent_platform.models import Account, Agent, Authority, Session, Trigger, Turn, Workspace
from history_access.authority import RUN_READS
from history_access.models import Role
from history_access.testing.platform import PlatformFactories, Refused, Speaker

_NUMBERS = itertools.count(1)


class AgentPlatformFactories(PlatformFactories):
    """For projects that use our tables; a subclass says what differs, such as how a person is made."""

    held_by_everybody: ClassVar[frozenset[str]] = frozenset({RUN_READS})

    def workspace(self, time_zone: str) -> Workspace:
        """A workspace."""
        return Workspace.objects.create(name="A workspace", time_zone=time_zone)

    def agent(self, workspace: Workspace) -> Agent:
        """An agent."""
        return Agent.objects.create(workspace=workspace, name="An agent")

    def account(self, workspace: Workspace, name: str) -> Account:
        """An account; names may repeat."""
        return Account.objects.create(workspace=workspace, name=name)

    def person(self) -> Any:
        """A user of Django's model, or of one with its field for the name."""
        model: Any = get_user_model()
        return model.objects.create(**{model.USERNAME_FIELD: f"person-{next(_NUMBERS)}@people.example"})

    def deactivate(self, person: Any) -> None:
        """As Django does."""
        type(person)._base_manager.filter(pk=person.pk).update(is_active=False)

    def grant(self, person: Any, permission: str, workspace: Workspace, agent: Agent | None = None) -> None:
        """A row of Authority; everybody may hand over."""
        if permission != RUN_READS:
            Authority.objects.create(workspace=workspace, person=person, permission=permission, agent=agent)

    def revoke(self, person: Any, permission: str, workspace: Workspace, agent: Agent | None = None) -> None:
        """That row removed."""
        rows = Authority.objects.filter(workspace=workspace, person=person, permission=permission)
        rows.filter(agent=agent).delete()

    def session(
        self, agent: Agent, *, account: Account | None, person: Any | None, title: str, at: datetime
    ) -> Session:
        """By `services.open_session`."""
        return services.open_session(agent, account=account, person=person, title=title, started_at=at)

    def say(self, session: Session, speaker: Speaker, text: str, *, at: datetime) -> None:
        """By `services.add_message`."""
        services.add_message(session, speaker, text, at=at)

    def say_unseen(self, session: Session, text: str, *, at: datetime) -> None:
        """System text, a tool's result, and hidden words of everybody's."""
        for role in (Role.SYSTEM, Role.TOOL):
            services.add_message(session, role, text, at=at)
        for role in Role:
            services.add_message(session, role, text, hidden=True, at=at)

    def say_calling(self, session: Session, text: str, tool: str, argument: str, *, at: datetime) -> None:
        """Calls stand beside the agent's words."""
        calls = [{"name": tool, "arguments": {"given": argument}, "result": argument}]
        services.add_message(session, Role.AGENT, text, tool_calls=calls, at=at)

    def delete_session(self, session: Session) -> None:
        """By `services.delete_session`."""
        services.delete_session(session)

    def turn(self, session: Session, *, sender: Any | None = None, trigger: Trigger | None = None) -> Turn:
        """By `services.start_turn`, which makes none of nobody."""
        try:
            return services.start_turn(session, sender=sender, trigger=trigger)
        except services.TurnRefusedError as error:
            raise Refused from error

    def end_turn(self, turn: Turn) -> None:
        """By `services.end_turn`."""
        services.end_turn(turn)

    def trigger(self, agent: Agent, owner: Any) -> Trigger:
        """A schedule."""
        return services.create_trigger(agent, kind="schedule", name="Every morning", by=owner)

    def webhook(self, agent: Agent, owner: Any) -> Trigger:
        """A webhook."""
        return services.create_trigger(agent, kind="webhook", name="A form", by=owner)

    def edit_trigger(self, trigger: Trigger, by: Any) -> None:
        """By `services.edit_trigger`."""
        services.edit_trigger(trigger, by=by, instructions="Something else.")

    def disown_trigger(self, trigger: Trigger) -> None:
        """As when its owner's row is removed."""
        Trigger.objects.filter(pk=trigger.pk).update(owner=None)

    def summarize(self, session: Session, text: str, through: int) -> None:
        """By `services.summarize_session`."""
        services.summarize_session(session, text, through=through)

    def trim(self, session: Session, before: int) -> None:
        """By `services.trim_session`."""
        services.trim_session(session, before=before)

    def erase(self, session: Session, before: int) -> None:
        """By `services.trim_session`, as an erasure."""
        services.trim_session(session, before=before, erasure=True)
