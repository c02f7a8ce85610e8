"""Where a row of a setting stands: on the platform, on a workspace or on an agent."""

from typing import Any, NamedTuple, Self

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from settings_catalog.keys import key_text


class Level(TextChoices):
    """The three levels, widest first."""

    PLATFORM = "platform", _("platform")
    WORKSPACE = "workspace", _("workspace")
    AGENT = "agent", _("agent")


class Place(NamedTuple):
    """One place of the ladder; an agent's place knows its workspace too (`catalog-ladder`)."""

    level: Level
    workspace_id: str | None = None
    agent_id: str | None = None

    @classmethod
    def platform(cls) -> Self:
        """The place above all workspaces."""
        return cls(Level.PLATFORM)

    @classmethod
    def workspace(cls, workspace_id: object) -> Self:
        """The place of one workspace, by its key."""
        return cls(Level.WORKSPACE, key_text(workspace_id))

    @classmethod
    def agent(cls, workspace_id: object, agent_id: object) -> Self:
        """The place of one agent, by the keys of its workspace and of itself."""
        return cls(Level.AGENT, key_text(workspace_id), key_text(agent_id))

    @classmethod
    def of(cls, *, agent: Any = None, workspace: Any = None, platform: bool = False) -> Self:
        """The place of an agent, a workspace or the platform; a ValueError unless exactly one is given."""
        if [agent is not None, workspace is not None, platform].count(True) != 1:
            raise ValueError("name one place: agent=, workspace= or platform=True")
        if agent is not None:
            return cls.agent(agent.workspace_id, agent.pk)
        return cls.platform() if platform else cls.workspace(workspace.pk)

    @property
    def ladder(self) -> "tuple[Place, ...]":
        """This place and those above it, nearest first: the order in which a value is asked for."""
        rungs = [self]
        if self.level is Level.AGENT:
            rungs.append(Place.workspace(self.workspace_id))
        if self.level is not Level.PLATFORM:
            rungs.append(Place.platform())
        return tuple(rungs)

    @property
    def phrase(self) -> str:
        """ "the agent", "the workspace" or "the platform", for a sentence."""
        return f"the {self.level.value}"
