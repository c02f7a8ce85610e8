"""Importing conversations: one line of a file is checked, and written whole or not at all."""

import json
import sqlite3
import uuid
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.db import router, transaction

from history_access.agent_platform.import_format import GivenConversation, RejectedError
from history_access.agent_platform.models import Account, Agent, Message, Session, Workspace
from history_access.agent_platform.services import MAX_TITLE, is_readable

_BATCH = 1000


class SeenIds:
    """On which line of a file an id came first. SQLite keeps them in a temporary file of its own, so that
    memory stays the same however long the file is. Close it after use.
    """

    def __init__(self) -> None:
        self._rows = sqlite3.connect("", isolation_level=None)
        self._rows.execute("CREATE TABLE seen (id TEXT PRIMARY KEY, line INTEGER NOT NULL) WITHOUT ROWID")

    def first_line(self, given_id: str, number: int) -> int:
        """The line on which this id came first, which is `number` itself for a new one."""
        self._rows.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (given_id, number))
        line: int = self._rows.execute("SELECT line FROM seen WHERE id = ?", (given_id,)).fetchone()[0]
        return line

    def close(self) -> None:
        """Let the temporary file go."""
        self._rows.close()


def session_key(agent: Agent, given_id: str) -> uuid.UUID:
    """The key of the session that a line becomes: the same in every run, another for every agent."""
    return uuid.uuid5(agent.pk, given_id)


def import_conversation(agent: Agent, given: GivenConversation) -> bool:
    """Write a conversation of this agent in one transaction: True where it was written, False where it was
    there already.

    What was there is never changed. It may have moved on, been trimmed or deleted since: only what the line
    says and what is still kept are compared. A RejectedError where they differ.
    """
    using = router.db_for_write(Session)
    with transaction.atomic(using=using):
        session, written = (
            Session.objects.using(using)
            .select_related("account", "person")
            .get_or_create(
                workspace_id=agent.workspace_id,
                pk=session_key(agent, given.id),
                defaults=_fields(agent, given, using),
            )
        )
        if written:
            messages = _messages(session, given)
            while batch := list(islice(messages, _BATCH)):
                Message.objects.using(using).bulk_create(batch)
        elif differing := _difference(session, given, using):
            raise RejectedError(f"{differing}: differs from what is there already under this id")
    return written


def _fields(agent: Agent, given: GivenConversation, using: str) -> dict[str, Any]:
    """A session's columns; people and accounts are looked for only where the session is written."""
    return {
        "agent": agent,
        "person": partial(_person, given.person, using),
        "account": partial(_account, agent, given.account, using),
        "title": given.title[:MAX_TITLE],
        "started_at": given.started_at,
        "last_moved_at": max([given.started_at, *(message.at for message in given.messages)]),
        "message_count": sum(is_readable(message.role, hidden=message.hidden) for message in given.messages),
    }


def _messages(session: Session, given: GivenConversation) -> Iterator[Message]:
    for number, message in enumerate(given.messages, start=1):
        yield Message(
            workspace_id=session.workspace_id,
            session=session,
            number=number,
            role=message.role,
            hidden=message.hidden,
            text=message.text or "",
            tool_calls=[{"name": call.name, "arguments": call.arguments} for call in message.tool_calls],
            created_at=message.at,
        )


def _person(username: str | None, using: str) -> Any:
    """The user of this name, made without a usable password where there is none; None for no name."""
    if username is None:
        return None
    people = get_user_model()
    unusable: dict[str, Any] = {"password": partial(make_password, None)}
    person, _ = people._default_manager.using(using).get_or_create(
        **{people.USERNAME_FIELD: username}, defaults=unusable
    )
    return person


def _account(agent: Agent, name: str | None, using: str) -> Account | None:
    """The workspace's account of exactly this name, opened where there is none; None for no name.

    "" is a name (`reach-account-exact`). A RejectedError where several accounts have it.
    """
    if name is None:
        return None
    accounts = Account.objects.using(using)
    exactly: dict[str, Any] = {"workspace_id": agent.workspace_id, "name": name}
    if not accounts.filter(**exactly).exists():
        # The table allows two accounts of one name: without this, two imports would open it twice.
        Workspace.objects.using(using).select_for_update(no_key=True).get(pk=agent.workspace_id)
    try:
        return accounts.get_or_create(**exactly)[0]
    except Account.MultipleObjectsReturned:
        raise RejectedError("account: several accounts of the workspace have this name") from None


def _difference(session: Session, given: GivenConversation, using: str) -> str | None:
    """The first field in which a line and its stored session differ; None where there is none."""
    pairs = {
        "title": (session.title, given.title[:MAX_TITLE]),
        "person": (session.person and str(session.person.get_username()), given.person),
        "account": (session.account and session.account.name, given.account),
        "started_at": (session.started_at, given.started_at),
    }
    for field, (stored, line) in pairs.items():
        if stored != line:
            return field
    return _differing_message(session, given, using)


def _differing_message(session: Session, given: GivenConversation, using: str) -> str | None:
    kept = Message.objects.using(using).filter(
        workspace_id=session.workspace_id, session=session, number__lte=len(given.messages)
    )
    stored = {message.number: _content(message) for message in kept}
    for message in _messages(session, given):
        if message.number >= session.trimmed_before and stored.get(message.number) != _content(message):
            return f"messages[{message.number - 1}]"
    return None


def _content(message: Message) -> tuple[Any, ...]:
    """What is compared of a message. PostgreSQL gives 1e300 back as a whole number: here all are floats."""
    calls = json.loads(json.dumps(message.tool_calls), parse_int=float)
    return message.role, message.hidden, message.text, message.created_at, calls
