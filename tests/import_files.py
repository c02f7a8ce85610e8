"""Files to import, runs of the command over them, and what they left in the database."""

import copy
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management import CommandError, call_command

from history_access.agent_platform.models import Message, Session

CALL = {"name": "Book", "arguments": {"day": "Friday"}}
ABSENT = object()


def conversation(name: str = "one", **changes: Any) -> dict[str, Any]:
    """A line of the format: six entries, of which a reader sees three."""
    at = "2026-11-29T14:30:0{}+00:00".format
    return {
        "id": name,
        "title": "A table for two",
        "person": "guest",
        "account": "Calder",
        "started_at": "2026-11-29T14:30:00Z",
        "messages": [
            {"role": "system", "text": "Be brief.", "at": at(0)},
            {"role": "person", "text": "A table, please", "at": at(1)},
            {"role": "agent", "text": None, "at": at(4), "tool_calls": [CALL]},
            {"role": "tool", "name": "Book", "text": "[]", "at": at(3)},
            {"role": "agent", "text": "Done", "at": at(2), "hidden": False},
            {"role": "agent", "text": "thinking", "at": at(2), "hidden": True},
        ],
        **changes,
    }


def altered(path: str, value: Any) -> dict[str, Any]:
    """A conversation with one value replaced (or taken away): `path` is like "messages.3.at"."""
    changed = copy.deepcopy(conversation())
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    inner: Any = changed
    for step in way:
        inner = inner[step]
    if value is ABSENT:
        del inner[last]
    else:
        inner[last] = value
    return changed


def nested(depth: int) -> Any:
    """Lists within lists."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def write(folder: Path, *lines: Any) -> str:
    """Write lines, bytes as they are and all else as JSON, to a file in this folder; its path."""
    file = folder / "conversations.jsonl"
    raw = (line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    file.write_bytes(b"".join(line + b"\n" for line in raw))
    return str(file)


@dataclass
class Run:
    """What a run of the command said, and whether its exit status was not zero."""

    summary: str
    reports: list[str]
    failed: bool

    @classmethod
    def of(cls, file: str, agent: object = "Digest", **options: Any) -> "Run":
        out, err, failed = io.StringIO(), io.StringIO(), False
        try:
            call_command("import_conversations", file, agent=str(agent), stdout=out, stderr=err, **options)
        except CommandError:
            failed = True
        return cls(out.getvalue().strip(), err.getvalue().splitlines(), failed)


def summary(imported: int = 0, there: int = 0, rejected: int = 0, messages: int = 0) -> str:
    return f"imported {imported}, already there {there}, rejected {rejected}; messages imported {messages}"


def stored() -> list[tuple[Any, ...]]:
    """Everything that imports write, in comparable form."""
    sessions = Session.objects.order_by("pk").values_list(
        "pk", "title", "person__username", "account__name", "started_at", "last_moved_at", "message_count"
    )
    entries = Message.objects.order_by("session", "number")
    return [*sessions, *entries.values_list("session", "number", "role", "hidden", "text", "tool_calls")]
