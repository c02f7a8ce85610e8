"""A conversation in its wire form, for tools and references; other people's words are under `quoted`."""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, TypeAdapter

from history_access import door, times
from history_access.conf import conf
from history_access.quoting import short
from settings_catalog.keys import key_text, optional_key_text


class Result(BaseModel):
    """Anything that goes over the wire."""

    model_config = ConfigDict(
        frozen=True,
        serialize_by_alias=True,
        validate_by_name=True,
        # Every field is always there, and the JSON Schema says so.
        json_schema_serialization_defaults_required=True,
    )


class QuotedNames(Result):
    """The title and the account's name."""

    title: str
    account: str | None


class Conversation(Result):
    """One conversation, without its words."""

    id: str
    account_id: str | None
    quoted: QuotedNames
    started_at: str
    last_moved_at: str
    message_count: int
    link: str | None


def conversations_of(rows: Iterable[door.SessionRow], zone: ZoneInfo) -> list[Conversation]:
    """Conversations in their wire form, as models."""
    return _CONVERSATIONS.validate_python(list(written(rows, zone)))


_CONVERSATIONS = TypeAdapter(list[Conversation])


def written(rows: Iterable[door.SessionRow], zone: ZoneInfo) -> Iterator[dict[str, Any]]:
    """Conversations as they go over the wire: what a `Conversation` is written as, without making one."""
    pattern = conf.conversation_url
    for row in rows:
        yield {
            "id": key_text(row.id),
            "account_id": optional_key_text(row.account_id),
            "quoted": {"title": short(row.title, door.NAME_CHARACTERS), "account": account_name(row)},
            "started_at": times.local(row.started_at, zone),
            "last_moved_at": times.local(row.last_moved_at, zone),
            "message_count": row.message_count,
            "link": _link(pattern, row.id),
        }


def account_name(row: door.SessionRow) -> str | None:
    """The account's name, None where there is no account."""
    if row.account_id is None or row.account_name is None:
        return None
    return short(row.account_name, door.NAME_CHARACTERS)


def link_of(key: Any) -> str | None:
    """Where people open a conversation; None where the platform declares no address."""
    return _link(conf.conversation_url, key)


def _link(pattern: str | None, key: Any) -> str | None:
    if pattern is None:
        return None
    text = key_text(key)
    return pattern.replace("{id}", text if type(key) is UUID else quote(text, safe=""))
