"""What the tools return, as it goes over the wire; everything that other people wrote is under `quoted`."""

from typing import Literal

from pydantic import Field

from history_access.quoting import NOTICE
from history_access.wire import Conversation, Result


class ConversationList(Result):
    """A page of conversations, newest first. `newer_activity`: something moved since the first page."""

    kind: Literal["conversation_list"] = "conversation_list"
    notice: str = NOTICE
    scope: Literal["same_account", "all_accounts"]
    time_zone: str
    conversations: list[Conversation]
    limit: int
    next_cursor: str | None
    newer_activity: bool


class Truncated(Result):
    """A cut: how many characters are shown here, of how many, and the cursor for the rest."""

    shown: int
    total: int
    continue_: str = Field(alias="continue")


class QuotedMessage(Result):
    """The words of one message; no text at all is null."""

    name: str | None
    text: str | None
    tool_calls: list[str]


class Message(Result):
    """One message, or from `offset` on the rest of one that was cut."""

    number: int
    speaker: Literal["person", "agent"]
    at: str
    quoted: QuotedMessage
    offset: int
    truncated: Truncated | None


class QuotedSummary(Result):
    """The words of a summary."""

    text: str


class Summary(Result):
    """A model's account of the conversation through a message, not the conversation."""

    by: Literal["model"] = "model"
    through: int
    messages_after: int
    quoted: QuotedSummary
    offset: int
    truncated: Truncated | None


class Unavailable(Result):
    """Messages that once stood here and are gone."""

    first: int
    last: int
    why: Literal["trimmed"] = "trimmed"


class QuotedConversation(Result):
    """A page of one conversation."""

    kind: Literal["quoted_conversation"] = "quoted_conversation"
    notice: str = NOTICE
    by: Literal["history", "reference"]
    view: Literal["messages", "summary"]
    conversation: Conversation
    messages: list[Message]
    summary: Summary | None
    unavailable: Unavailable | None
    next_cursor: str | None
