"""What the contract suite needs of a platform: how its rows come to be, and what it does not have."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Literal

from django.db.models import UUIDField

from history_access.models.platform import session_model
from settings_catalog.keys import key_text

Speaker = Literal["person", "agent"]


class Part(StrEnum):
    """What a platform may be without. It then says why in `PlatformFactories.lacks`."""

    ACCOUNTS = "accounts"
    AGENT_RIGHTS = "rights for one agent"
    TRIGGERS = "triggers"
    WEBHOOKS = "webhooks"
    HIDDEN_MESSAGES = "hidden messages"
    TOOL_CALLS = "tool calls"
    SUMMARIES = "summaries"
    TRIMMING = "trimming"
    ERASURE = "erasure"
    FIXED_SESSIONS = "tables that fix a session"


class Refused(Exception):  # noqa: N818 (it is an answer, not an error)
    """For a factory to raise where the platform refuses what it was asked for, as it may."""


class PlatformFactories(ABC):
    """How one platform makes the rows that the contract suite reads: a method for each kind of row.

    Every factory writes to the test's database, through the platform's own code where there is some: what
    keeps counts, numbers and times right is on trial too. Objects are the platform's own; the suite asks them
    for `pk` alone. What the platform does not have stands in `lacks`, each with a reason, and then its
    methods are left out.
    """

    lacks: ClassVar[Mapping[Part, str]] = {}
    """What there is none of, and why: `{Part.ACCOUNTS: "We have one customer."}`. Its rules are skipped."""

    held_by_everybody: ClassVar[frozenset[str]] = frozenset()
    """Permissions that every active person holds without a grant, such as `runs:read`."""

    brought_along: ClassVar[Mapping[str, frozenset[str]]] = {}
    """What a grant of one permission brings besides, where people have roles:
    `{"sessions:read": frozenset({"runs:read"})}`."""

    account_names_are_unique: ClassVar[bool] = False
    """Whether a workspace never has two accounts of one name."""

    @abstractmethod
    def workspace(self, time_zone: str) -> Any:
        """A new workspace in this time zone (left aside where workspaces have none)."""

    @abstractmethod
    def agent(self, workspace: Any) -> Any:
        """A new agent of a workspace."""

    @abstractmethod
    def person(self) -> Any:
        """A new person who is active and holds no permission."""

    @abstractmethod
    def deactivate(self, person: Any) -> None:
        """Switch a person off: they left, or may not log in any more."""

    @abstractmethod
    def grant(self, person: Any, permission: str, workspace: Any, agent: Any | None = None) -> None:
        """Give a person `sessions:read`, `settings:write`, `reads:audit` or `runs:read`.

        In a workspace, or for one of its agents alone (never asked for where `lacks` has AGENT_RIGHTS). By
        a role that brings more than the one permission, if need be: `brought_along` then says so.
        """

    @abstractmethod
    def revoke(self, person: Any, permission: str, workspace: Any, agent: Any | None = None) -> None:
        """Take back what `grant` gave with the same arguments."""

    @abstractmethod
    def session(
        self, agent: Any, *, account: Any | None, person: Any | None, title: str, at: datetime
    ) -> Any:
        """A new conversation with an agent that begins at a time and has no messages yet.

        Of a person or of nobody; with an account or with none.
        """

    @abstractmethod
    def say(self, session: Any, speaker: Speaker, text: str, *, at: datetime) -> None:
        """Append words of the person's or the agent's, as they are, said at a time, which may lie back."""

    @abstractmethod
    def delete_session(self, session: Any) -> None:
        """Delete a conversation as the platform does, softly or not."""

    @abstractmethod
    def turn(self, session: Any, *, sender: Any | None = None, trigger: Any | None = None) -> Any:
        """A running turn in a session, sent by a person or started by a trigger.

        It is also asked for one of neither, and of both; `Refused` where the platform makes none.
        """

    @abstractmethod
    def end_turn(self, turn: Any) -> None:
        """End a turn."""

    def account(self, workspace: Any, name: str) -> Any:
        """ACCOUNTS: a new account of this name, whatever others there are that look like it.

        Where accounts have keys of your choosing, such as text, let the name be the key.
        """
        raise NotImplementedError

    def trigger(self, agent: Any, owner: Any) -> Any:
        """TRIGGERS: a new schedule (or what starts an agent by itself), owned by a person."""
        raise NotImplementedError

    def edit_trigger(self, trigger: Any, by: Any) -> None:
        """TRIGGERS: a person changes what a trigger does; `Refused` where only its owner may."""
        raise NotImplementedError

    def disown_trigger(self, trigger: Any) -> None:
        """TRIGGERS: leave a trigger without an owner, as when that person's row is gone."""
        raise NotImplementedError

    def webhook(self, agent: Any, owner: Any) -> Any:
        """WEBHOOKS: like `trigger`, one that strangers can call."""
        raise NotImplementedError

    def say_unseen(self, session: Any, text: str, *, at: datetime) -> None:
        """HIDDEN_MESSAGES: append an entry with this text of every kind that people are not shown.

        System text, results of tools, notes, hidden context, drafts.
        """
        raise NotImplementedError

    def say_calling(self, session: Any, text: str, tool: str, argument: str, *, at: datetime) -> None:
        """TOOL_CALLS: append the agent's words together with a call of a tool, `argument` among its input."""
        raise NotImplementedError

    def summarize(self, session: Any, text: str, through: int) -> None:
        """SUMMARIES: keep a summary of the messages up to number `through`."""
        raise NotImplementedError

    def trim(self, session: Any, before: int) -> None:
        """TRIMMING: remove the entries below number `before` to save room."""
        raise NotImplementedError

    def erase(self, session: Any, before: int) -> None:
        """ERASURE: remove them because nobody may have them any more."""
        raise NotImplementedError

    def unknown_key(self) -> str:
        """The text of a session's key, well formed, that no session has."""
        if isinstance(session_model()._meta.pk, UUIDField):
            return key_text(uuid.uuid4())
        return str(2**31 - 2)

    def left_out(self) -> list[str]:
        """The factories that are neither there nor said to be lacking, each with its part."""
        return [
            f"{name}() ({part.value})"
            for part, names in FACTORIES.items()
            for name in names
            if part not in self.lacks and getattr(type(self), name) is getattr(PlatformFactories, name)
        ]


FACTORIES: Mapping[Part, tuple[str, ...]] = {
    Part.ACCOUNTS: ("account",),
    Part.TRIGGERS: ("trigger", "edit_trigger", "disown_trigger"),
    Part.WEBHOOKS: ("webhook",),
    Part.HIDDEN_MESSAGES: ("say_unseen",),
    Part.TOOL_CALLS: ("say_calling",),
    Part.SUMMARIES: ("summarize",),
    Part.TRIMMING: ("trim",),
    Part.ERASURE: ("erase",),
}
"""The factories that each part takes, unless a platform lacks it."""
