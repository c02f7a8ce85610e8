"""The floor: the best SQL that somebody writes by hand for the same work, and what its two forms share.

The same guarantees as the product's: one durable transaction; turn, reader and setting as the database has
them now; visibility in the statement that fetches the text; the page cut in SQL; each read recorded, and the
names; the setting looked at once more; COMMIT. Results are plain dicts, with times in the workspace's zone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from zoneinfo import ZoneInfo

LIMIT, MESSAGE_CHARACTERS, PAGE_CHARACTERS = 50, 4_000, 20_000
ENTRIES = ("history_access", "conversation_references")
CHOICES = {"none": 0, "same_account": 1, "all_accounts": 2, "excerpts": 1, "conversations": 2}

Result = list[dict[str, Any]]


class UnavailableError(Exception):
    """Nothing can be read: the turn, the reader or the setting does not let it."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What one statement finds about a turn."""

    turn_id: Any
    workspace_id: Any
    session_id: Any
    agent_id: Any
    account_id: Any
    trigger_id: Any
    reader_id: Any
    workspace: str
    time_zone: str
    agent: str
    account: str | None
    trigger: str | None
    reader: str | None
    live: bool
    active: bool
    granted: bool

    @property
    def names(self) -> list[tuple[str, Any, str | None]]:
        """Whose names the record keeps, besides those of what was read."""
        return [
            ("workspace", self.workspace_id, self.workspace),
            ("agent", self.agent_id, self.agent),
            ("account", self.account_id, self.account),
            ("person", self.reader_id, self.reader),
            ("trigger", self.trigger_id, self.trigger),
        ]


class Floor(Protocol):
    """What both floors do."""

    def list_newest(self, turn_id: Any, after: tuple[datetime, Any] | None = None) -> Result:
        """The newest 50 conversations, recorded; or those after a place in the list."""

    def read(self, turn_id: Any, session_id: Any, start: int) -> Result:
        """50 messages from a number on, or from the end where it is negative; recorded."""

    def look_up(self, turn_id: Any) -> tuple[Facts, str]:
        """The turn and its reader, and which setting holds; nothing is recorded."""

    def only_list(self, facts: Facts, setting: str) -> Result:
        """The rows of the list alone in one statement, which looks at visibility."""

    def only_read(self, facts: Facts, setting: str, session_id: Any, start: int) -> Result:
        """The rows of messages alone in one statement, which looks at visibility."""

    def close(self) -> None:
        """Hang up."""


def resolved(ladder: Sequence[Sequence[Any]]) -> str:
    """Which value of `history_access` holds; the rows are (entry, level, value, ceiling)."""
    rows = {level: (value, ceiling) for entry, level, value, ceiling in ladder if entry == ENTRIES[0]}
    values = (rows.get(one, (None, None))[0] for one in ("agent", "workspace", "platform"))
    asked = next((one for one in values if one is not None), "none")
    ceilings = [rows.get("platform", (None, None))[1] or "none", rows.get("workspace", (None, None))[1]]
    return min((one for one in (asked, *ceilings) if one is not None), key=CHOICES.__getitem__)


def allowed(facts: Facts, setting: str) -> None:
    """An UnavailableError where the turn may read nothing at all."""
    if setting == "none" or not facts.live or not facts.active:
        raise UnavailableError


def conversation(row: Mapping[str, Any], zone: ZoneInfo) -> dict[str, Any]:
    """A conversation of a list."""
    return {
        "id": str(row["id"]),
        "account_id": str(row["account_id"]) if row["account_id"] else None,
        "title": row["title"],
        "account": row["account"],
        "started_at": row["started_at"].astimezone(zone).isoformat(),
        "last_moved_at": row["last_moved_at"].astimezone(zone).isoformat(),
        "message_count": row["message_count"],
    }


def message(row: Mapping[str, Any], names: tuple[str | None, str | None], zone: ZoneInfo) -> dict[str, Any]:
    """A message of a page; `names` are the agent's and the person's."""
    text = row["text"][:MESSAGE_CHARACTERS]
    return {
        "number": row["number"],
        "speaker": "agent" if row["by_agent"] else "person",
        "name": names[0] if row["by_agent"] else names[1],
        "at": row["created_at"].astimezone(zone).isoformat(),
        "text": text or None,
        "tool_calls": row["tool_names"],
        "truncated": len(text) < row["characters"],
    }
