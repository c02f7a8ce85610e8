"""Writes the JSON Schemas of the tools, of their results and of the REST, as they are kept in `tests/golden`.

python -m tests.golden
"""

import json
import os
from pathlib import Path
from typing import Any

import django

FOLDER = Path(__file__).resolve().parent / "golden"
NAMES = ("list_conversations", "read_conversation")


def golden() -> dict[str, Any]:
    """What each file holds: the tools in every dialect, and the results. No database is asked."""
    from history_access.references import ReferencesBlock
    from history_access.tools import ConversationList, QuotedConversation, Toolset
    from tests.golden_openapi import openapi, references_openapi

    toolset = Toolset(None, NAMES)
    results = (ConversationList, QuotedConversation, ReferencesBlock)
    return {
        "openai.json": toolset.definitions("openai"),
        "openai-strict.json": toolset.definitions("openai", strict=True),
        "anthropic.json": toolset.definitions("anthropic"),
        "mcp.json": toolset.definitions("mcp"),
        "json_schema.json": toolset.definitions("json_schema"),
        "openapi.json": openapi(),
        "openapi-references.json": references_openapi(),
        "results.json": {one.__name__: one.model_json_schema(mode="serialization") for one in results},
    }


def text(content: Any) -> str:
    """A file's text: one form for one content."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, content in golden().items():
        (FOLDER / name).write_text(text(content), encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "demo.settings")
    django.setup()
    main()
