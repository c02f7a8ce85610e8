"""A scripted model: it calls the tools and reads their results as a model would, and needs no network.

At each step it looks at the message history alone: what was asked, what came back, what is still to be read.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from django.core.management import CommandError
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from demo.digest import written

Call = tuple[str, dict[str, Any]]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass
class History:
    """What the message history says: the prompt, the calls that were made, the results that came back."""

    prompt: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, messages: list[ModelMessage]) -> "History":
        history = cls()
        for part in (part for message in messages for part in message.parts):
            if isinstance(part, UserPromptPart):
                history.prompt = str(part.content)
            elif isinstance(part, ToolCallPart):
                history.calls.append(part.args_as_dict())
            elif isinstance(part, ToolReturnPart):
                history.results.append(json.loads(str(part.content)))
        return history

    def kind(self, kind: str) -> list[dict[str, Any]]:
        """The results of one kind, in the order in which they came."""
        return [result for result in self.results if result["kind"] == kind]

    @property
    def yesterday(self) -> date:
        """The day before the one that the prompt names."""
        found = _DATE.search(self.prompt)
        if found is None:
            raise ValueError("the prompt does not say what day it is")
        return date.fromisoformat(found[0]) - timedelta(days=1)


def chosen_model() -> Model | str:
    """The model that `DEMO_MODEL` names, for pydantic-ai as it is; without it the scripted one.

    A CommandError where pydantic-ai does not know it, or lacks a package or a key for it.
    """
    name = os.environ.get("DEMO_MODEL")
    if not name:
        return FunctionModel(_step, model_name="scripted")
    try:
        infer_model(name)
    except (ImportError, UserError) as error:
        raise CommandError(f"DEMO_MODEL={name} cannot be used. {error}") from None
    return name


def _step(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """The next step: the calls that are left to make, or the digest."""
    history = History.of(messages)
    if not info.function_tools:
        return ModelResponse(parts=[TextPart("I have no way to read past conversations.")])
    calls = [call for call in _wanted(history) if call[1] not in history.calls]
    if calls and not history.kind("error"):
        return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in calls])
    return ModelResponse(parts=[TextPart(written(history.yesterday, history.results))])


def _wanted(history: History) -> Iterator[Call]:
    """Every call that yesterday's digest needs, as far as the results so far tell."""
    day = history.yesterday.isoformat()
    span = {"after": day, "before": day, "limit": 50}  # a date in `before` includes that day
    yield "list_conversations", span
    for page in history.kind("conversation_list"):
        if page["next_cursor"]:
            yield "list_conversations", {**span, "cursor": page["next_cursor"]}
        for conversation in page["conversations"]:
            yield "read_conversation", {"conversation_id": conversation["id"]}
    for page in history.kind("quoted_conversation"):
        for cursor in _cursors(page):
            yield "read_conversation", {"conversation_id": page["conversation"]["id"], "cursor": cursor}


def _cursors(page: dict[str, Any]) -> Iterator[str]:
    """Where a page goes on: in the rest of each message that was cut, and on the next page."""
    for message in page["messages"]:
        if message["truncated"]:
            yield message["truncated"]["continue"]
    if page["next_cursor"] and not any(message["offset"] for message in page["messages"]):
        yield page["next_cursor"]  # the rest of one message also points on, to what this model has already
