"""How other systems get at the same rows, each shape written anew here and named for what it does.

They are let off lightly: none of them records anything or looks at a setting, and rights are one condition.
"""

import json
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from benchmarks.floor import LIMIT, MESSAGE_CHARACTERS, PAGE_CHARACTERS, Result, conversation
from benchmarks.loading import ENTRY, WHOLE

_COLUMNS = """s.id, s.account_id, s.person_id, s.title, s.started_at, s.last_moved_at, s.message_count,
  c.name AS account FROM agent_platform_session s LEFT JOIN agent_platform_account c ON c.id = s.account_id"""
_OF_AGENT = "s.workspace_id = %s AND s.agent_id = %s AND s.deleted_at IS NULL AND s.id <> %s"


class Shapes:
    """They run on one cursor of a driver; `adapted` is how it takes a key."""

    def __init__(self, execute: Any, adapted: Any, *, agent_name: str, person_name: str, zone: str) -> None:
        self.execute = execute
        self.adapted = adapted
        self.agent_name = agent_name
        self.person_name = person_name
        self.zone = ZoneInfo(zone)

    def whole_conversation(self, session_id: Any, start: int) -> Result:
        """The conversation is one row of JSON: it is fetched and parsed, and what is wanted picked out."""
        [row] = self.execute(f"SELECT body FROM {WHOLE} WHERE session_id = %s", [session_id.hex])
        return self._picked(json.loads(row["body"]), start)

    def every_row(self, session_id: Any, start: int) -> Result:
        """Each message is a row, and a reader begins at the first one."""
        statement = f"SELECT body FROM {ENTRY} WHERE session_id = %s ORDER BY number"
        return self._picked(
            [json.loads(row["body"]) for row in self.execute(statement, [session_id.hex])], start
        )

    def every_session_walked(self, keys: Any) -> Result:
        """All the agent's sessions are fetched, and sorted and filtered in Python."""
        rows = self.execute(
            f"SELECT {_COLUMNS} WHERE s.workspace_id = %s AND s.agent_id = %s",
            [self.adapted(keys[0]), self.adapted(keys[1])],
        )
        own = self.adapted(keys[2])
        rows = [row for row in rows if row["id"] != own]
        rows.sort(key=lambda row: (row["last_moved_at"], row["id"]), reverse=True)
        return [self._listed(row) for row in rows[:LIMIT]]

    def by_offset(self, keys: Any, page: int) -> Result:
        """A page by its number: the database walks what lies before it."""
        order = "ORDER BY s.last_moved_at DESC, s.id DESC LIMIT %s OFFSET %s"
        given = [*map(self.adapted, keys), LIMIT, LIMIT * (page - 1)]
        return [
            self._listed(row) for row in self.execute(f"SELECT {_COLUMNS} WHERE {_OF_AGENT} {order}", given)
        ]

    def with_a_count(self, keys: Any, page: int) -> Result:
        """The same, and how many there are in all, as lists with numbered pages show."""
        statement = f"SELECT count(*) AS total FROM agent_platform_session s WHERE {_OF_AGENT}"
        [total] = self.execute(statement, [*map(self.adapted, keys)])
        return self.by_offset(keys, page) if total["total"] else []

    def _picked(self, entries: list[dict[str, Any]], start: int) -> Result:
        readable = [one for one in entries if one["role"] != "tool" and not one["hidden"]]
        wanted = readable[start:] if start < 0 else [one for one in readable if one["number"] >= start]
        page, taken = [], 0
        for one in wanted[:LIMIT]:
            taken += min(len(one["text"]), MESSAGE_CHARACTERS)
            if taken > PAGE_CHARACTERS:
                break
            page.append(self._message(one))
        return page

    def _message(self, one: dict[str, Any]) -> dict[str, Any]:
        text, by_agent = one["text"][:MESSAGE_CHARACTERS], one["role"] == "agent"
        at = datetime.fromisoformat(one["created_at"]).replace(tzinfo=UTC)
        return {
            "number": one["number"],
            "speaker": one["role"],
            "name": self.agent_name if by_agent else self.person_name,
            "at": at.astimezone(self.zone).isoformat(),
            "text": text or None,
            "tool_calls": [call["name"] for call in one["tool_calls"]],
            "truncated": len(text) < len(one["text"]),
        }

    def _listed(self, row: Any) -> dict[str, Any]:
        return conversation(
            {**row, **{name: _moment(row[name]) for name in _TIMES}, **self._keys(row)}, self.zone
        )

    def _keys(self, row: Any) -> dict[str, Any]:
        return {name: row[name] and _key(row[name]) for name in ("id", "account_id")}


_TIMES = ("started_at", "last_moved_at")


def _moment(value: Any) -> datetime:
    return datetime.fromisoformat(value).replace(tzinfo=UTC) if isinstance(value, str) else value


def _key(value: Any) -> Any:
    """SQLite keeps a key as its 32 digits."""
    if not isinstance(value, str):
        return value
    return f"{value[:8]}-{value[8:12]}-{value[12:16]}-{value[16:20]}-{value[20:]}"
