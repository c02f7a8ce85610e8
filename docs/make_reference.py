"""Writes `docs/reference.md` from the code: `python -m docs.make_reference`."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("reference.md")


def main() -> None:
    """Write the page anew."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "demo.settings")
    django.setup()
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page; Django must be set up."""
    parts = [_settings(), _catalog(), _tools(), _errors(), _permissions(), _checks(), _commands()]
    lead = "# Reference\n\nMade from the code by `make golden`; a test fails where it is out of date.\n"
    return "\n".join([lead, *parts])


def _settings() -> str:
    from history_access.conf import KNOWN
    from history_access.conf import Conf as HistoryConf
    from settings_catalog.conf import Conf as CatalogConf

    rows = [_line(value) for value in vars(CatalogConf).values() if isinstance(value, property)]
    own = [_line(getattr(HistoryConf, name.lower())) for name in sorted(KNOWN)]
    return "\n".join(["## Settings", "", *rows, "", "In `HISTORY_ACCESS`:", "", *own, ""])


def _line(found: property) -> str:
    return f"- {_words(found.__doc__)}"


def _catalog() -> str:
    from settings_catalog.catalog import catalog

    lines = ["## The catalog's entries", ""]
    for entry in (entry for entry in catalog if entry.key in {"history_access", "conversation_references"}):
        lines += [f"### `{entry.key}`: {entry.title}", "", str(entry.help), ""]
        lines += ["| value | label | allows |", "|---|---|---|"]
        lines += [f"| `{c.value}` | {c.label} | {c.allows} |" for c in entry.choices]
        lines += [
            "",
            f"Default `{entry.default}`; the platform's ceiling starts at `{entry.starting_ceiling}`.",
            "",
        ]
    return "\n".join(lines)


def _tools() -> str:
    from history_access.tools.arguments import ListConversationsArguments, ReadConversationArguments
    from history_access.tools.definitions import parameters
    from history_access.tools.results import ConversationList, QuotedConversation

    lines = ["## Tools", ""]
    for model, result in (
        (ListConversationsArguments, ConversationList),
        (ReadConversationArguments, QuotedConversation),
    ):
        schema = parameters(model)
        lines += [
            f"### `{model.tool}`",
            "",
            _words(model.__doc__),
            "",
            "| argument | type | |",
            "|---|---|---|",
        ]
        lines += [_argument(name, said, schema) for name, said in schema["properties"].items()]
        fields = ", ".join(f"`{name}`" for name in result.model_fields)
        lines += ["", f"Returns {fields}. {_words(result.__doc__)}", ""]
    return "\n".join(lines)


def _argument(name: str, said: dict[str, Any], schema: dict[str, Any]) -> str:
    kind = " or ".join(f"`{value}`" for value in said["enum"]) if "enum" in said else said["type"]
    needed = ", required" if name in schema["required"] else ""
    return f"| `{name}` | {kind}{needed} | {said['description']} |"


def _errors() -> str:
    from history_access.tools.errors import Code

    meanings = {
        Code.INVALID_ARGUMENTS: "an argument breaks a rule; the message names both",
        Code.CONVERSATION_UNAVAILABLE: "no such conversation that this turn may read, for any reason",
        Code.HISTORY_UNAVAILABLE: "nothing can be read now: switched off, nobody to read as, no record",
    }
    rows = [f"| `{code.value}` | {meanings[code]} |" for code in Code]
    return "\n".join(["### Errors", "", "| code | meaning |", "|---|---|", *rows, ""])


def _permissions() -> str:
    from history_access import authority
    from settings_catalog.authority import PLATFORM_PERMISSION

    rows = [
        f"| `{authority.READ_SESSIONS}` | read other people's conversations with an agent |",
        f"| `{authority.WRITE_SETTINGS}` | change the settings of a workspace and its agents |",
        f"| `{authority.AUDIT_READS}` | audit what a workspace's agents read |",
        f"| `{authority.RUN_READS}` | hand a turn a conversation |",
        f"| `{PLATFORM_PERMISSION}` | change the settings of the whole platform (a Django permission) |",
    ]
    return "\n".join(["## Permissions", "", "| permission | allows |", "|---|---|", *rows, ""])


def _checks() -> str:
    from history_access import checks as history_checks
    from settings_catalog import checks as catalog_checks

    lines = [
        "## Checks",
        "",
        "`manage.py check --database default` runs them all.",
        "Those that look at tables (E017 to E022 and W003) wait until every migration has run.",
        "",
        "| id | finds |",
        "|---|---|",
    ]
    for module in (catalog_checks, history_checks):
        app = module.__name__.partition(".")[0]
        found = sorted(
            {finding for name, check in vars(module).items() for finding in _findings(name, check)}
        )
        lines += [f"| `{app}.{number}` | {words} |" for number, words in found]
    return "\n".join([*lines, ""])


def _findings(name: str, check: Any) -> Iterator[tuple[str, str]]:
    """What a check's docstring says of each id."""
    if name.startswith("check_") and check.__doc__:
        for said in re.split(r"(?=\b[EW]\d{3}: )", _words(check.__doc__)):
            number, colon, words = said.strip().partition(": ")
            if colon and re.fullmatch(r"[EW]\d{3}", number):
                yield number, words.rstrip(".")


def _commands() -> str:
    from django.core.management import get_commands, load_command_class

    ours = ("history_access", "history_access.agent_platform")
    lines = ["## Commands", ""]
    for name, app in sorted(get_commands().items()):
        if app in ours:
            lines.append(f"- `manage.py {name}`: {_words(load_command_class(app, name).help)}")
    return "\n".join([*lines, ""])


def _words(text: str | None) -> str:
    return " ".join((text or "").split())


if __name__ == "__main__":
    main()
