"""Puts a corpus into Django's database: with COPY into PostgreSQL, in one transaction into SQLite."""

import itertools
import json
import random
import sys
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection, transaction
from tqdm import tqdm

from benchmarks.corpus import (
    ACCOUNTS,
    MESSAGE_COLUMNS,
    PEOPLE,
    SEED,
    SESSION_COLUMNS,
    Corpus,
    Row,
    SessionPlan,
    Size,
    Texts,
    messages,
    sessions,
)
from history_access.agent_platform import services
from history_access.agent_platform.models import Account, Agent, Authority, Message, Session, Workspace
from settings_catalog import changes

WHOLE, ENTRY = "benchmark_whole_conversation", "benchmark_entry"
"""Tables for the shapes of others: a conversation in one row of JSON, and a row of JSON for each message."""

_OTHERS = (
    f"DROP TABLE IF EXISTS {WHOLE}",
    f"DROP TABLE IF EXISTS {ENTRY}",
    f"CREATE TABLE {WHOLE} (session_id char(32) PRIMARY KEY, body text NOT NULL)",
    f"CREATE TABLE {ENTRY} (session_id char(32), number integer, body text NOT NULL, "
    "PRIMARY KEY (session_id, number))",
)
_AT_ONCE = 1_000


def fill(size: Size, *, progress: bool = True) -> Corpus:
    """Make the corpus in an empty, migrated database, and say where things are."""
    corpus = Corpus(size=size)
    people = get_user_model().objects.bulk_create(
        get_user_model()(username=f"person-{number}", password="!") for number in range(PEOPLE)
    )
    reader, stranger, newcomer = (
        get_user_model().objects.create_user(name) for name in ("reader", "stranger", "newcomer")
    )
    workspace = Workspace.objects.create(name="Hollowbrook", time_zone="America/New_York")
    growing = [Agent.objects.create(workspace=workspace, name=f"Agent of {n}") for n in size.growing]
    lined = Agent.objects.create(workspace=workspace, name="Agent with a line")
    others = [Agent.objects.create(workspace=workspace, name=f"Agent {n}") for n in range(size.others)]
    accounts = Account.objects.bulk_create(
        Account(workspace=workspace, name=f"Account {n}") for n in range(ACCOUNTS)
    )
    Authority.objects.create(workspace=workspace, person=reader, permission="sessions:read")
    _open(growing, lined)
    plans = list(
        sessions(
            size,
            growing=[agent.pk.hex for agent in growing],
            lined=lined.pk.hex,
            others=[agent.pk.hex for agent in others],
            accounts=[account.pk.hex for account in accounts],
            people=[person.pk for person in people],
            stranger=stranger.pk,
        )
    )
    random.Random(SEED).shuffle(plans)
    _load(plans, workspace.pk.hex, size, progress=progress)
    corpus.conversations.update({plan.length: uuid.UUID(plan.id) for plan in plans if plan.kept})
    corpus.agents.update(zip(size.growing, (agent.pk for agent in growing), strict=True))
    for number, agent in zip(size.growing, growing, strict=True):
        corpus.turns[number] = _turn(agent, reader)
    corpus.turns["stranger"] = _turn(growing[-1], stranger)
    corpus.turns["newcomer"] = _turn(growing[-1], newcomer)
    corpus.turns["no account"] = _turn(lined, reader)
    corpus.turns["named account"] = _turn(lined, reader, account=accounts[0])
    _settle()
    return corpus


def _open(growing: list[Agent], lined: Agent) -> None:
    """The settings, as operators make them: through the ladder, with a log."""
    operator = get_user_model().objects.create_superuser("operator")
    Authority.objects.create(workspace=lined.workspace, person=operator, permission="settings:write")
    given: dict[str, Any] = {"by": operator, "why": "benchmark"}
    changes.set_value("history_access", platform=True, ceiling="all_accounts", **given)
    for agent in growing:
        changes.set_value("history_access", agent=agent, value="all_accounts", **given)
    changes.set_value("history_access", agent=lined, value="same_account", **given)


def _turn(agent: Agent, sender: Any, account: Account | None = None) -> uuid.UUID:
    session = services.open_session(agent, person=sender, account=account, title="now")
    turn: uuid.UUID = services.start_turn(session, sender=sender).pk
    return turn


def _load(plans: list[SessionPlan], workspace: str, size: Size, *, progress: bool) -> None:
    texts = Texts()
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in _OTHERS:
            cursor.execute(statement)
        _copy(Session._meta.db_table, SESSION_COLUMNS, (plan.row(workspace) for plan in plans))
        rows = itertools.chain.from_iterable(messages(plan, workspace, texts) for plan in plans)
        shown = tqdm(rows, "messages", size.entries, unit_scale=True, file=sys.stderr, disable=not progress)
        _copy(Message._meta.db_table, MESSAGE_COLUMNS, shown)
        for plan in plans:
            if plan.kept:
                entries = [_entry(row) for row in messages(plan, workspace, texts)]
                _copy(WHOLE, ("session_id", "body"), [(plan.id, json.dumps(entries))])
                _copy(
                    ENTRY,
                    ("session_id", "number", "body"),
                    [(plan.id, one["number"], json.dumps(one)) for one in entries],
                )


def _entry(row: Row) -> dict[str, Any]:
    """A message as a store of JSON keeps it."""
    one = dict(zip(MESSAGE_COLUMNS, row, strict=True))
    kept = {name: one[name] for name in ("id", "number", "role", "hidden", "text", "created_at")}
    return {**kept, "tool_calls": json.loads(one["tool_calls"])}


def _copy(table: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            return
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})"
        for chunk in _chunks(rows):
            cursor.executemany(statement, chunk)


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while chunk := list(itertools.islice(iterator, _AT_ONCE)):
        yield chunk


def _settle() -> None:
    """Let PostgreSQL look at what it has now, as it does by itself after a while; SQLite never does."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
            cursor.execute("CHECKPOINT")
