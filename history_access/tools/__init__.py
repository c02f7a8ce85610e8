"""The two tools, and what a platform's agent loop imports."""

from history_access.quoting import wire_text
from history_access.tools.errors import Code, ToolError
from history_access.tools.listing import list_conversations
from history_access.tools.reading import read_conversation
from history_access.tools.results import ConversationList, QuotedConversation
from history_access.tools.toolset import Toolset, toolset_for

__all__ = [
    "Code",
    "ConversationList",
    "QuotedConversation",
    "ToolError",
    "Toolset",
    "list_conversations",
    "read_conversation",
    "toolset_for",
    "wire_text",
]
