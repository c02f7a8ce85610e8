"""The floor on PostgreSQL: psycopg, binary, prepared; five round trips, two of them BEGIN and COMMIT.

What was read is recorded by the statement that reads it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
from psycopg.rows import dict_row

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
from settings_catalog.keys import uuid7_at

_LADDER = """
  (SELECT json_agg(json_build_array(v.entry, v.level, v.value, v.ceiling))
   FROM settings_catalog_settingvalue v WHERE v.entry = ANY(%(entries)s) AND (v.level = 'platform'
     OR v.level = 'workspace' AND v.workspace_id = {workspace}
     OR v.level = 'agent' AND v.workspace_id = {workspace} AND v.agent_id = {agent})) AS ladder,
  (SELECT count(*) FROM settings_catalog_settingchange c
   WHERE c.entry = ANY(%(entries)s) AND (c.level = 'platform'
     OR c.level = 'workspace' AND c.workspace_id = {workspace}
     OR c.level = 'agent' AND c.workspace_id = {workspace} AND c.agent_id = {agent})) AS changes"""

_FACTS = f"""
SELECT t.id AS turn_id, t.workspace_id, t.session_id, s.agent_id, s.account_id, t.trigger_id,
  p.id AS reader_id, w.name AS workspace, w.time_zone, a.name AS agent, c.name AS account,
  g.name AS trigger, p.username AS reader,
  t.ended_at IS NULL AND s.deleted_at IS NULL AS live, COALESCE(p.is_active, false) AS active,
  EXISTS(SELECT FROM agent_platform_authority r WHERE r.person_id = p.id AND r.workspace_id = t.workspace_id
    AND r.permission = 'sessions:read' AND (r.agent_id IS NULL OR r.agent_id = s.agent_id)) AS granted,
  {_LADDER.format(workspace="t.workspace_id::text", agent="s.agent_id::text")}
FROM agent_platform_turn t
JOIN agent_platform_session s ON s.id = t.session_id
JOIN agent_platform_workspace w ON w.id = t.workspace_id
JOIN agent_platform_agent a ON a.id = s.agent_id
LEFT JOIN agent_platform_account c ON c.id = s.account_id
LEFT JOIN agent_platform_trigger g ON g.id = t.trigger_id
LEFT JOIN auth_user p ON p.id = COALESCE(t.sender_id, g.owner_id)
WHERE t.id = %(turn)s"""

_AGAIN = f"SELECT {_LADDER.format(workspace='%(workspace_text)s', agent='%(agent_text)s')}"

_VISIBLE = """
  s.agent_id = %(agent)s AND s.workspace_id = %(workspace)s AND s.deleted_at IS NULL AND s.id <> %(session)s
  AND EXISTS(SELECT FROM agent_platform_turn t JOIN agent_platform_session o ON o.id = t.session_id
    LEFT JOIN agent_platform_trigger g ON g.id = t.trigger_id JOIN auth_user p ON p.id = %(reader)s
    WHERE t.id = %(turn)s AND t.ended_at IS NULL AND o.deleted_at IS NULL AND p.is_active
      AND (t.sender_id = p.id AND t.trigger_id IS NULL OR t.sender_id IS NULL AND g.owner_id = p.id))"""
_GRANTED = """
  AND EXISTS(SELECT FROM agent_platform_authority r WHERE r.person_id = %(reader)s
    AND r.workspace_id = %(workspace)s AND r.permission = 'sessions:read'
    AND (r.agent_id IS NULL OR r.agent_id = %(agent)s))"""
_OWN = " AND s.person_id = %(reader)s"
_SAME_ACCOUNT, _NO_ACCOUNT = " AND s.account_id = %(account)s", " AND s.account_id IS NULL"
_AFTER = " AND (s.last_moved_at, s.id) < (%(after_moved)s, %(after_id)s)"

_PAGE = """
SELECT s.id, s.account_id, s.person_id, substr(s.title, 1, 201) AS title, c.name AS account,
  p.username AS person, s.started_at, s.last_moved_at, s.message_count
FROM agent_platform_session s
LEFT JOIN agent_platform_account c ON c.id = s.account_id
LEFT JOIN auth_user p ON p.id = s.person_id
WHERE {visible} ORDER BY s.last_moved_at DESC, s.id DESC LIMIT 51"""

_INTO_RECORD = """
INSERT INTO history_access_turnconversationread (id, workspace_id, agent_id, turn_id, turn_account_id,
  reader_id, trigger_id, session_id, session_account_id, session_person_id, setting, how, what, first_number,
  last_number, characters, read_at)
SELECT {id}, %(workspace_text)s, %(agent_text)s, %(turn_text)s, %(account_text)s, %(reader_text)s,
  %(trigger_text)s, page.id::text, page.account_id::text, page.person_id::text, %(setting)s, 'history',
  {what}, {first}, {last}, {characters}, %(now)s FROM {source}"""

_INTO_NAMES = """
INSERT INTO history_access_recordedname (id, workspace_id, kind, key, name)
SELECT gen_random_uuid(), %(workspace_text)s, one.kind, one.key, substr(one.name, 1, 200) FROM (
  SELECT DISTINCT 'account', account_id::text, account FROM {source} WHERE account_id IS NOT NULL
  UNION SELECT DISTINCT 'person', person_id::text, person FROM {source} WHERE person_id IS NOT NULL
  UNION SELECT * FROM (VALUES ('workspace', %(workspace_text)s, %(workspace_name)s),
    ('agent', %(agent_text)s, %(agent_name)s), ('account', %(account_text)s, %(account_name)s),
    ('person', %(reader_text)s, %(reader_name)s), ('trigger', %(trigger_text)s, %(trigger_name)s)) AS own
) AS one(kind, key, name) WHERE one.key IS NOT NULL AND one.name <> ''
ON CONFLICT DO NOTHING"""

_LIST_RECORDED = """
WITH page AS MATERIALIZED (SELECT *, row_number() OVER () AS nth FROM ({page}) AS found),
shown AS (SELECT * FROM page WHERE nth <= 50),
recorded AS ({record}),
named AS ({names})
SELECT * FROM page"""

_MESSAGES = """
SELECT number, by_agent, created_at, characters, tool_names,
  CASE WHEN nth <= 50 AND running <= {page} THEN substr(words, 1, {most} + 1) END AS text FROM (
  SELECT m.number, m.role = 'agent' AS by_agent, m.created_at, m.text AS words, length(m.text) AS characters,
    (SELECT COALESCE(jsonb_agg(left(call->>'name', 101)), '[]')
     FROM jsonb_array_elements(m.tool_calls) AS call) AS tool_names,
    row_number() OVER by_number AS nth, sum(least(length(m.text), {most})) OVER by_number AS running
  FROM agent_platform_message m
  WHERE m.session_id = ({within}) AND NOT m.hidden AND m.role IN ('person', 'agent')
    AND m.number >= {start} WINDOW by_number AS (ORDER BY m.number) ORDER BY m.number LIMIT 51
) AS cut"""

_FROM_END = """COALESCE((SELECT number FROM agent_platform_message WHERE session_id = %(read)s AND NOT hidden
  AND role IN ('person', 'agent') ORDER BY number DESC OFFSET %(start)s - 1 LIMIT 1), 0)"""

_READ_RECORDED = """
WITH head AS MATERIALIZED (
  SELECT s.id, s.account_id, s.person_id, substr(s.title, 1, 201) AS title, c.name AS account,
    p.username AS person, s.started_at, s.last_moved_at, s.message_count, s.trimmed_before
  FROM agent_platform_session s
  LEFT JOIN agent_platform_account c ON c.id = s.account_id
  LEFT JOIN auth_user p ON p.id = s.person_id
  WHERE s.id = %(read)s AND {visible}),
page AS MATERIALIZED ({messages}),
given AS MATERIALIZED (SELECT head.*, min(number) AS first, max(number) AS last,
  COALESCE(sum(least(characters, {most})), 0) AS characters
  FROM head LEFT JOIN page ON page.text IS NOT NULL
  GROUP BY head.id, head.account_id, head.person_id, head.title, head.account, head.person, head.started_at,
    head.last_moved_at, head.message_count, head.trimmed_before),
recorded AS ({record}),
named AS ({names})
SELECT page.*, head.id, head.title, head.person FROM head LEFT JOIN page ON true"""


@cache
def _list_statement(visible: str, *, recorded: bool) -> str:
    page = _PAGE.format(visible=visible)
    if not recorded:
        return page
    characters = "least(length(page.title), 200)"
    record = _INTO_RECORD.format(
        id="(%(ids)s::uuid[])[page.nth]",
        what="'title'",
        first="NULL",
        last="NULL",
        characters=characters,
        source="shown AS page",
    )
    return _LIST_RECORDED.format(page=page, record=record, names=_INTO_NAMES.format(source="shown"))


@cache
def _read_statement(visible: str, *, from_end: bool, recorded: bool) -> str:
    caps = {"most": MESSAGE_CHARACTERS, "page": PAGE_CHARACTERS}
    within = f"SELECT s.id FROM agent_platform_session s WHERE s.id = %(read)s AND {visible}"
    start = _FROM_END if from_end else "%(start)s"
    if not recorded:
        return _MESSAGES.format(within=within, start=start, **caps)
    record = _INTO_RECORD.format(
        id="%(id)s",
        what="CASE WHEN page.first IS NULL THEN 'title' ELSE 'messages' END",
        first="page.first",
        last="page.last",
        characters="page.characters",
        source="given AS page",
    )
    messages = _MESSAGES.format(within="SELECT id FROM head", start=start, **caps)
    names = _INTO_NAMES.format(source="given")
    return _READ_RECORDED.format(visible=visible, messages=messages, record=record, names=names, **caps)


def _visible(facts: Facts, setting: str) -> str:
    visible = _VISIBLE + (_GRANTED if facts.granted else _OWN)
    if setting == "same_account":
        visible += _NO_ACCOUNT if facts.account_id is None else _SAME_ACCOUNT
    return visible


def _text(key: Any) -> str | None:
    return None if key is None else str(key)


class PostgreSQLFloor:
    """One connection; what is durable is up to the server, whose `synchronous_commit` must be on."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.connection = psycopg.connect(**given, autocommit=True, prepare_threshold=0)
        self.cursor = self.connection.cursor(row_factory=dict_row, binary=True)
        for setting in ("enable_sort TO off", "plan_cache_mode TO force_generic_plan"):
            self.cursor.execute(f"SET {setting}")  # plans are kept, and go down an index for any value
        if self.cursor.execute("SHOW synchronous_commit").fetchone() != {"synchronous_commit": "on"}:
            raise RuntimeError("synchronous_commit is off: what is compared would not be durable alike")

    def close(self) -> None:
        self.connection.close()

    def look_up(self, turn_id: Any) -> tuple[Facts, str]:
        facts, setting, _ = self._look_up(turn_id)
        return facts, setting

    def list_newest(self, turn_id: Any, after: tuple[datetime, Any] | None = None) -> Result:
        with self.connection.transaction():
            facts, setting, trace = self._look_up(turn_id)
            now = datetime.now(UTC)
            given = self._record(facts, setting, now)
            given["ids"] = sorted(uuid7_at(now) for _ in range(LIMIT))
            visible = _visible(facts, setting)
            if after is not None:
                visible += _AFTER
                given["after_moved"], given["after_id"] = after
            rows = self._all(_list_statement(visible, recorded=True), given)
            self._still_holds(given, trace)
        zone = ZoneInfo(facts.time_zone)
        return [conversation(row, zone) for row in rows[:LIMIT]]

    def read(self, turn_id: Any, session_id: Any, start: int) -> Result:
        with self.connection.transaction():
            facts, setting, trace = self._look_up(turn_id)
            now = datetime.now(UTC)
            given = self._record(facts, setting, now)
            given |= {"id": uuid7_at(now), "read": session_id, "start": abs(start)}
            statement = _read_statement(_visible(facts, setting), from_end=start < 0, recorded=True)
            rows = self._all(statement, given)
            if not rows:
                raise UnavailableError
            self._still_holds(given, trace)
        zone, names = ZoneInfo(facts.time_zone), (facts.agent, rows[0]["person"])
        return [message(row, names, zone) for row in rows if row["text"] is not None]

    def only_list(self, facts: Facts, setting: str) -> Result:
        return self._all(_list_statement(_visible(facts, setting), recorded=False), self._keys(facts))

    def only_read(self, facts: Facts, setting: str, session_id: Any, start: int) -> Result:
        statement = _read_statement(_visible(facts, setting), from_end=start < 0, recorded=False)
        return self._all(statement, {**self._keys(facts), "read": session_id, "start": abs(start)})

    def _look_up(self, turn_id: Any) -> tuple[Facts, str, tuple[Any, int]]:
        [row] = self._all(_FACTS, {"turn": turn_id, "entries": list(ENTRIES)})
        trace = row.pop("ladder"), row.pop("changes")
        facts = Facts(**row)
        setting = resolved(trace[0] or [])
        allowed(facts, setting)
        return facts, setting, trace

    def _still_holds(self, given: dict[str, Any], trace: tuple[Any, int]) -> None:
        [row] = self._all(_AGAIN, given)
        if (resolved(row["ladder"] or []), row["changes"]) != (resolved(trace[0] or []), trace[1]):
            raise UnavailableError

    def _all(self, statement: str, given: dict[str, Any]) -> list[dict[str, Any]]:
        return self.cursor.execute(statement, given, prepare=True).fetchall()

    def _keys(self, facts: Facts) -> dict[str, Any]:
        return {
            "turn": facts.turn_id,
            "agent": facts.agent_id,
            "workspace": facts.workspace_id,
            "session": facts.session_id,
            "account": facts.account_id,
            "reader": facts.reader_id,
        }

    def _record(self, facts: Facts, setting: str, now: datetime) -> dict[str, Any]:
        return {
            **self._keys(facts),
            "entries": list(ENTRIES),
            "setting": setting,
            "now": now,
            "workspace_text": str(facts.workspace_id),
            "agent_text": str(facts.agent_id),
            "turn_text": str(facts.turn_id),
            "account_text": _text(facts.account_id),
            "reader_text": str(facts.reader_id),
            "trigger_text": _text(facts.trigger_id),
            "workspace_name": facts.workspace,
            "agent_name": facts.agent,
            "account_name": facts.account,
            "reader_name": facts.reader,
            "trigger_name": facts.trigger,
        }
