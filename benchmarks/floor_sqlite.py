"""The floor on SQLite: one IMMEDIATE transaction, statements that the connection keeps prepared."""

import json
import sqlite3
import uuid
from datetime import UTC, datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from benchmarks.floor import (
    ENTRIES,
    LIMIT,
    MESSAGE_CHARACTERS,
    PAGE_CHARACTERS,
    Facts,
    Result,
    UnavailableError,
    allowed,
    conversation,
    message,
    resolved,
)
from settings_catalog.keys import uuid7, uuid7_at

_LADDER = """
SELECT v.entry, v.level, v.value, v.ceiling, (
  SELECT count(*) FROM settings_catalog_settingchange c WHERE c.entry = v.entry AND (c.level = 'platform'
    OR c.level = 'workspace' AND c.workspace_id = :workspace_text
    OR c.level = 'agent' AND c.workspace_id = :workspace_text AND c.agent_id = :agent_text))
FROM settings_catalog_settingvalue v WHERE v.entry IN (:first_entry, :second_entry) AND (v.level = 'platform'
  OR v.level = 'workspace' AND v.workspace_id = :workspace_text
  OR v.level = 'agent' AND v.workspace_id = :workspace_text AND v.agent_id = :agent_text)"""

_FACTS = """
SELECT t.id AS turn_id, t.workspace_id, t.session_id, s.agent_id, s.account_id, t.trigger_id,
  p.id AS reader_id, w.name AS workspace, w.time_zone, a.name AS agent, c.name AS account,
  g.name AS "trigger", p.username AS reader, t.ended_at IS NULL AND s.deleted_at IS NULL AS live,
  COALESCE(p.is_active, 0) AS active,
  EXISTS(SELECT 1 FROM agent_platform_authority r WHERE r.person_id = p.id AND r.workspace_id = t.workspace_id
    AND r.permission = 'sessions:read' AND (r.agent_id IS NULL OR r.agent_id = s.agent_id)) AS granted
FROM agent_platform_turn t
JOIN agent_platform_session s ON s.id = t.session_id
JOIN agent_platform_workspace w ON w.id = t.workspace_id
JOIN agent_platform_agent a ON a.id = s.agent_id
LEFT JOIN agent_platform_account c ON c.id = s.account_id
LEFT JOIN agent_platform_trigger g ON g.id = t.trigger_id
LEFT JOIN auth_user p ON p.id = COALESCE(t.sender_id, g.owner_id)
WHERE t.id = :turn"""

_VISIBLE = """
  s.agent_id = :agent AND s.workspace_id = :workspace AND s.deleted_at IS NULL AND s.id <> :session
  AND EXISTS(SELECT 1 FROM agent_platform_turn t JOIN agent_platform_session o ON o.id = t.session_id
    LEFT JOIN agent_platform_trigger g ON g.id = t.trigger_id JOIN auth_user p ON p.id = :reader
    WHERE t.id = :turn AND t.ended_at IS NULL AND o.deleted_at IS NULL AND p.is_active
      AND (t.sender_id = p.id AND t.trigger_id IS NULL OR t.sender_id IS NULL AND g.owner_id = p.id))"""
_GRANTED = """
  AND EXISTS(SELECT 1 FROM agent_platform_authority r WHERE r.person_id = :reader
    AND r.workspace_id = :workspace AND r.permission = 'sessions:read'
    AND (r.agent_id IS NULL OR r.agent_id = :agent))"""
_OWN = " AND s.person_id = :reader"
_SAME_ACCOUNT, _NO_ACCOUNT = " AND s.account_id = :account", " AND s.account_id IS NULL"
_AFTER = " AND (s.last_moved_at, s.id) < (:after_moved, :after_id)"

_COLUMNS = """s.id, s.account_id, s.person_id, substr(s.title, 1, 201) AS title, c.name AS account,
  p.username AS person, s.started_at, s.last_moved_at, s.message_count, s.trimmed_before
FROM agent_platform_session s
LEFT JOIN agent_platform_account c ON c.id = s.account_id
LEFT JOIN auth_user p ON p.id = s.person_id"""

_MESSAGES = """
SELECT number, by_agent, created_at, characters, tool_names,
  CASE WHEN nth <= 50 AND running <= {page} THEN substr(words, 1, {most} + 1) END AS text FROM (
  SELECT number, by_agent, created_at, words, characters, tool_names,
    row_number() OVER by_number AS nth, sum(min(characters, {most})) OVER by_number AS running FROM (
    SELECT m.number, m.role = 'agent' AS by_agent, m.created_at, m.text AS words,
      length(m.text) AS characters,
      (SELECT json_group_array(substr(call.value ->> 'name', 1, 101)) FROM json_each(m.tool_calls) AS call)
        AS tool_names
    FROM agent_platform_message m
    WHERE m.session_id = (SELECT s.id FROM agent_platform_session s WHERE s.id = :read AND {visible})
      AND NOT m.hidden AND m.role IN ('person', 'agent') AND m.number >= {start}
    ORDER BY m.number LIMIT 51
  ) WINDOW by_number AS (ORDER BY number ROWS UNBOUNDED PRECEDING)
) ORDER BY number"""

_FROM_END = """COALESCE((SELECT number FROM agent_platform_message WHERE session_id = :read AND NOT hidden
  AND role IN ('person', 'agent') ORDER BY number DESC LIMIT 1 OFFSET :start - 1), 0)"""

_RECORD = """
INSERT INTO history_access_turnconversationread (id, workspace_id, agent_id, turn_id, turn_account_id,
  reader_id, trigger_id, session_id, session_account_id, session_person_id, setting, how, what, first_number,
  last_number, characters, read_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'history', ?, ?, ?, ?, ?)"""
_NAMES = """
INSERT OR IGNORE INTO history_access_recordedname (id, workspace_id, kind, key, name)
VALUES (?, ?, ?, ?, ?)"""


@cache
def _list_statement(visible: str) -> str:
    return f"SELECT {_COLUMNS} WHERE {visible} ORDER BY s.last_moved_at DESC, s.id DESC LIMIT 51"


@cache
def _head_statement(visible: str) -> str:
    return f"SELECT {_COLUMNS} WHERE s.id = :read AND {visible}"


@cache
def _read_statement(visible: str, *, from_end: bool) -> str:
    caps = {"most": MESSAGE_CHARACTERS, "page": PAGE_CHARACTERS}
    return _MESSAGES.format(visible=visible, start=_FROM_END if from_end else ":start", **caps)


def _visible(facts: Facts, setting: str) -> str:
    visible = _VISIBLE + (_GRANTED if facts.granted else _OWN)
    if setting == "same_account":
        visible += _NO_ACCOUNT if facts.account_id is None else _SAME_ACCOUNT
    return visible


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _key(text: str | None) -> str | None:
    """A key as text, with its hyphens."""
    return None if text is None else str(uuid.UUID(text))


class SQLiteFloor:
    """One connection to a file."""

    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, timeout=20)
        self.connection.row_factory = sqlite3.Row
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")

    def close(self) -> None:
        self.connection.close()

    def look_up(self, turn_id: Any) -> tuple[Facts, str]:
        facts, setting, _ = self._look_up(turn_id)
        return facts, setting

    def list_newest(self, turn_id: Any, after: tuple[datetime, Any] | None = None) -> Result:
        with self._transaction():
            facts, setting, trace = self._look_up(turn_id)
            visible, given = _visible(facts, setting), self._keys(facts)
            if after is not None:
                visible += _AFTER
                given |= {"after_moved": str(after[0].replace(tzinfo=None)), "after_id": after[1].hex}
            rows = [self._listed(row) for row in self._all(_list_statement(visible), given)[:LIMIT]]
            self._record(
                facts, setting, [(row, "title", None, None, len(row["title"][:200])) for row in rows]
            )
            self._still_holds(facts, trace)
        zone = ZoneInfo(facts.time_zone)
        return [conversation(row, zone) for row in rows]

    def read(self, turn_id: Any, session_id: Any, start: int) -> Result:
        with self._transaction():
            facts, setting, trace = self._look_up(turn_id)
            visible = _visible(facts, setting)
            given = {**self._keys(facts), "read": session_id.hex, "start": abs(start)}
            shown = self._messages(visible, given, from_end=start < 0)
            heads = [self._listed(row) for row in self._all(_head_statement(visible), given)]
            if not heads:
                raise UnavailableError
            zone, names = ZoneInfo(facts.time_zone), (facts.agent, heads[0]["person"])
            page = [message(row, names, zone) for row in shown]
            characters = sum(len(one["text"] or "") for one in page)
            numbers = (page[0]["number"], page[-1]["number"]) if page else (None, None)
            what = "messages" if page else "title"
            self._record(facts, setting, [(heads[0], what, *numbers, characters)])
            self._still_holds(facts, trace)
        return page

    def only_list(self, facts: Facts, setting: str) -> Result:
        rows = self._all(_list_statement(_visible(facts, setting)), self._keys(facts))
        return [self._listed(row) for row in rows]

    def only_read(self, facts: Facts, setting: str, session_id: Any, start: int) -> Result:
        given = {**self._keys(facts), "read": session_id.hex, "start": abs(start)}
        return self._messages(_visible(facts, setting), given, from_end=start < 0)

    def _transaction(self) -> sqlite3.Connection:
        self.connection.execute("BEGIN IMMEDIATE")
        return self.connection

    def _look_up(self, turn_id: Any) -> tuple[Facts, str, list[Any]]:
        [row] = self._all(_FACTS, {"turn": turn_id.hex})
        facts = Facts(**dict(row))
        ladder = self._ladder(facts)
        setting = resolved([one[:4] for one in ladder])
        allowed(facts, setting)
        return facts, setting, ladder

    def _ladder(self, facts: Facts) -> list[Any]:
        given = {"workspace_text": _key(facts.workspace_id), "agent_text": _key(facts.agent_id)}
        given |= {"first_entry": ENTRIES[0], "second_entry": ENTRIES[1]}
        return [tuple(row) for row in self._all(_LADDER, given)]

    def _still_holds(self, facts: Facts, trace: list[Any]) -> None:
        if self._ladder(facts) != trace:
            raise UnavailableError

    def _all(self, statement: str, given: dict[str, Any]) -> list[Any]:
        return self.connection.execute(statement, given).fetchall()

    def _listed(self, row: Any) -> dict[str, Any]:
        times = {name: _moment(row[name]) for name in ("started_at", "last_moved_at")}
        return {**dict(row), "id": _key(row["id"]), "account_id": _key(row["account_id"]), **times}

    def _messages(self, visible: str, given: dict[str, Any], *, from_end: bool) -> list[dict[str, Any]]:
        rows = self._all(_read_statement(visible, from_end=from_end), given)
        return [
            {
                **dict(row),
                "created_at": _moment(row["created_at"]),
                "tool_names": json.loads(row["tool_names"]),
            }
            for row in rows
            if row["text"] is not None
        ]

    def _record(self, facts: Facts, setting: str, given: list[tuple[Any, ...]]) -> None:
        now = datetime.now(UTC)
        keys, written = sorted(uuid7_at(now).hex for _ in given), str(now.replace(tzinfo=None))
        workspace, account = _key(facts.workspace_id), _key(facts.account_id)
        whose = (workspace, _key(facts.agent_id), _key(facts.turn_id), account, str(facts.reader_id))
        trigger, named = _key(facts.trigger_id), set[tuple[str, str, str]]()
        reads = []
        for key, (row, what, first, last, characters) in zip(keys, given, strict=True):
            person = None if row["person_id"] is None else str(row["person_id"])
            read = (row["id"], row["account_id"], person, setting, what, first, last, characters, written)
            reads.append((key, *whose, trigger, *read))
            named |= {("account", row["account_id"], row["account"]), ("person", person, row["person"])}
        for kind, own, name in facts.names:
            named.add((kind, str(own) if kind == "person" else _key(own), name))
        self.connection.executemany(_RECORD, reads)
        names = [(uuid7().hex, workspace, kind, key, name[:200]) for kind, key, name in named if key and name]
        self.connection.executemany(_NAMES, names)

    def _keys(self, facts: Facts) -> dict[str, Any]:
        return {
            "turn": facts.turn_id,
            "agent": facts.agent_id,
            "workspace": facts.workspace_id,
            "session": facts.session_id,
            "account": facts.account_id,
            "reader": facts.reader_id,
        }
