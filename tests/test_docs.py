"""The documentation says what the code does: the reference is made from it, and what it shows runs."""

import ast
import asyncio
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest
from django.core.management import call_command, get_commands, load_command_class
from django.db import models
from django.test.utils import isolate_apps
from django.urls import resolve

from docs import make_reference, make_rules
from history_access import conf, door
from history_access.adapters.turn_tokens import turn_of
from history_access.agent_platform.models import Authority
from history_access.authority import person_holds
from history_access.checks import models as checks
from history_access.management.commands.history_mcp import TOKEN_VARIABLE
from history_access.models import conversations
from history_access.references import ReferencesError
from history_access.testing import Part, PlatformFactories
from history_access.testing.agent_platform import AgentPlatformFactories
from history_access.testing.platform import FACTORIES
from history_access.tools import toolset_for
from settings_catalog import checks as catalog_checks
from settings_catalog.conf import conf as catalog_conf
from settings_catalog.models import SettingValue
from settings_catalog.places import Place
from tests.golden_openapi import references_openapi
from tests.test_adapter_mcp import served
from tests.worlds import World, listed

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
TEST_FILES = sorted((ROOT / "tests").glob("test_*.py"))
DOCUMENTED = (ast.Module, ast.FunctionDef, ast.ClassDef)
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def blocks(name: str) -> list[str]:
    return BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))


def block(name: str, word: str) -> str:
    (found,) = [one for one in blocks(name) if word in one]
    return found


def test_the_reference_is_up_to_date() -> None:
    assert make_reference.PAGE.read_text(encoding="utf-8") == make_reference.page(), "run: make golden"


def test_the_rules_are_up_to_date() -> None:
    assert make_rules.PAGE.read_text(encoding="utf-8") == make_rules.page(), "run: make golden"


@pytest.mark.parametrize("name", make_rules.RULES)
def test_every_rule_has_a_test(name: str) -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in TEST_FILES}
    assert list(make_rules.holding(name, texts))
    assert name.partition("-")[0] in make_rules.PARTS


RULE = r"\b(?:catalog|danger|reach|record|refs|tool)(?:-[a-z]+)+\b"


def rules_in_tests(path: Path) -> set[str]:
    """The rules that a file of tests names: in marks, and in the docstrings of the file and of its tests."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = [ast.get_docstring(node) or "" for node in (tree, *tree.body) if isinstance(node, DOCUMENTED)]
    marks = re.findall(r"mark\.rule\((.*?)\)", path.read_text(encoding="utf-8"), re.DOTALL)
    return set(re.findall(RULE, "\n".join([*told, *marks])))


def rules_in_text(path: Path) -> set[str]:
    """The rules that code or a page names, in backticks."""
    return set(re.findall(f"`({RULE})`", path.read_text(encoding="utf-8")))


def test_every_rule_that_is_named_is_explained() -> None:
    code = (
        path for app in ("settings_catalog", "history_access", "demo") for path in (ROOT / app).rglob("*.py")
    )
    named = [(path, rules_in_tests(path)) for path in TEST_FILES]
    named += [(path, rules_in_text(path)) for path in (*code, *PAGES)]
    unknown = {path.name: names - set(make_rules.RULES) for path, names in named}
    assert {name: names for name, names in unknown.items() if names} == {}
    assert len(set.union(*(names for _, names in named))) > 30  # they are looked for in the right way


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_link_is_broken(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path) if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_is_python(page: Path) -> None:
    for found in BLOCK.findall(page.read_text(encoding="utf-8")):
        compile(found, page.name, "exec")


def test_the_first_lines_of_code_in_the_readme_run(world: World) -> None:
    world.allow("all_accounts")
    world.session("hello", person=world.mara, title="Yesterday")
    names: dict[str, Any] = {"turn": world.turn(world.mara)}
    exec(block("README.md", "toolset_for"), names)
    assert names["toolset"]
    assert [one["function"]["name"] for one in names["definitions"]] == [
        "list_conversations",
        "read_conversation",
    ]
    assert "conversation_list" in names["text"]


def test_the_steps_for_a_backend_developer_run(world: World, capsys: Any) -> None:
    world.allow("all_accounts")
    session = world.session("hello", person=world.mara)
    turn = world.turn(world.mara)
    names: dict[str, Any] = {}
    for word in ("def tools_of", "def answer_call", "def show", "def why_not"):
        exec(block("docs/backend-developer.md", word), names)
    toolset, definitions = names["tools_of"](turn)
    assert len(definitions) == 2
    assert "hello" in names["answer_call"](toolset, "read_conversation", {"conversation_id": str(session.pk)})
    names["show"](turn, session)
    assert str(session.pk) in capsys.readouterr().out
    assert names["why_not"](turn, session) == []


def test_the_contract_suite_that_is_shown_is_one() -> None:
    """What it runs is what `test_contract_suite` runs."""
    names: dict[str, Any] = {"__name__": "tests.shown"}
    exec(block("docs/backend-developer.md", "class TestHistoryAccess"), names)
    suite = names["TestHistoryAccess"]
    assert suite.__test__ and type(suite.platform) is AgentPlatformFactories


def test_the_factories_that_are_shown_are_whole(monkeypatch: Any) -> None:
    """Over models that are not there: each method is one that the suite calls, as it calls it."""
    shown: dict[str, Any] = {}
    for name in ("models", "chat"):
        monkeypatch.setitem(sys.modules, f"crm.{name}", MagicMock())
    exec(block("docs/backend-developer.md", "class CrmFactories"), shown)
    factories = shown["CrmFactories"]
    assert factories().left_out() == []
    for name, method in vars(factories).items():
        if not name.startswith("_") and callable(method):
            wanted = inspect.signature(getattr(PlatformFactories, name)).parameters
            assert list(inspect.signature(method).parameters) == list(wanted), name


def test_the_table_of_parts_names_the_factories_of_each() -> None:
    text = (ROOT / "docs/backend-developer.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`[A-Z_]+`(?:, )?)+) \| (.*) \|$", text, re.MULTILINE)
    told = {
        Part[part]: re.findall(r"`(\w+)`", said) for parts, said in rows for part in re.findall(r"\w+", parts)
    }
    assert set(told) == set(Part)
    for part, names in FACTORIES.items():
        assert set(names) <= set(told[part]), part


def test_the_fake_authority_that_is_shown_lets_a_turn_read(world: World) -> None:
    world.allow("all_accounts")
    world.session("hello", person=world.operator, title="Yesterday")
    names: dict[str, Any] = {}
    exec(block("docs/backend-developer.md", "def reads_what_others_said"), names)
    page = names["reads_what_others_said"](world.turn(world.mara), world.mara, world.hollowbrook)
    assert [one["quoted"]["title"] for one in page["conversations"]] == ["Yesterday"]


def test_what_is_shown_of_mcp_runs(open_world: World) -> None:
    open_world.allow("all_accounts")
    session = open_world.session("hello", person=open_world.mara, title="Yesterday")
    turn, names = open_world.turn(open_world.mara), dict[str, Any]()
    for word in ("def history_server", "async def application", "async def newest", "def history_process"):
        exec(block("docs/mcp.md", word), names)

    async def asked() -> Any:
        async with served(names["application"]) as address:
            given = names["history_server"](turn)
            path = given["url"].removeprefix("https://chat.example")
            return await names["newest"]({**given, "url": address.removesuffix("/mcp") + path})

    offered, failed, text = asyncio.run(asked())
    assert (offered, failed) == (["list_conversations", "read_conversation"], False)
    assert str(session.pk) in text
    process = names["history_process"](turn)
    assert process["args"][1] in get_commands()
    assert turn_of(process["env"][TOKEN_VARIABLE]) == turn.pk


def test_what_is_shown_of_references_runs(open_world: World, capsys: Any) -> None:
    for place in ({"platform": True, "ceiling": "conversations"}, {"agent": open_world.agent}):
        open_world.set("conversation_references", **place, value="conversations")
    session = open_world.session("a", "b", "c", "d", person=open_world.mara, title="Yesterday")
    turn, names = open_world.turn(open_world.mara), dict[str, Any]()
    for word in ("def hand_over", "def prompt_of", "def quote"):
        exec(block("docs/backend-developer.md", word), names)
    assert names["prompt_of"](turn, "Answer.") == "Answer."
    names["hand_over"](turn, [str(session.pk)], "a key")
    names["quote"](turn, session)
    assert "Yesterday" in names["prompt_of"](turn, "Answer.")
    with pytest.raises(ReferencesError):
        names["hand_over"](turn, ["https://elsewhere.example/7"])
    assert capsys.readouterr().out.startswith("422 invalid_reference conversation_references[0]")


def test_the_addresses_for_people_are_those_that_there_are() -> None:
    shown = re.findall(
        r"^(GET|POST|DELETE) +(/api/references/[^ ?\n]*)", (ROOT / "docs/person.md").read_text(), re.MULTILINE
    )
    there = {
        (method.upper(), re.sub(r"{\w+}", "KEY", path).replace("references/KEY", "references/ID"))
        for path, methods in references_openapi()["paths"].items()
        for method in methods
    }
    assert set(shown) == there


def test_the_settings_that_are_shown_are_those_that_there_are() -> None:
    shown: dict[str, Any] = {}
    text = block("docs/backend-developer.md", "SETTINGS_CATALOG_AGENT_MODEL")
    exec(text.replace("    ...,\n", ""), shown)
    assert set(shown["HISTORY_ACCESS"]) <= conf.KNOWN
    assert {"settings_catalog", "history_access"} <= set(shown["INSTALLED_APPS"])


def test_the_limits_page_names_the_caps_of_the_code() -> None:
    text = (ROOT / "docs/limits.md").read_text(encoding="utf-8")
    assert (
        f"cut** at {door.NAME_CHARACTERS} characters, names of tools at {conversations.TOOL_NAME_CHARACTERS}"
        in text
    )


def test_no_page_names_a_machine_or_a_workplace() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"/work/|/root/|pypi\.org|files\.pythonhosted", text), page


def test_the_first_turn_that_is_shown_reads_once_it_is_switched_on(world: World) -> None:
    names: dict[str, Any] = {}
    exec(block("docs/backend-developer.md", "def first_turn"), names)
    turn = names["first_turn"](world.mara)
    assert not toolset_for(turn)
    SettingValue.objects.create(
        entry="history_access", **Place.platform()._asdict(), value="same_account", ceiling="same_account"
    )
    assert len(listed(toolset_for(turn))) == 1


def test_the_line_of_an_import_that_is_shown_is_imported(world: World, tmp_path: Path) -> None:
    text = (ROOT / "docs/backend-developer.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    file = tmp_path / "one.jsonl"
    file.write_text(shown.replace("\n", " "), encoding="utf-8")
    call_command("import_conversations", str(file), agent=str(world.agent.pk), no_progress=True, verbosity=0)
    assert world.agent.session_set.get().message_count == 2


@isolate_apps()
def test_the_second_model_of_agents_that_is_shown_has_a_workspace(monkeypatch: Any) -> None:
    names = {"__name__": "tests.crm"}
    exec(block("docs/backend-developer.md", "class SettingsBot"), names)
    monkeypatch.setattr(type(catalog_conf), "agent_model", names["SettingsBot"])
    assert catalog_checks.check_models(None) == []


COLUMNS_READ = (conversations.AbstractSession, conversations.AbstractMessage, conversations.AbstractTurn)


@pytest.mark.parametrize("model", COLUMNS_READ, ids=lambda model: model.__name__)
def test_the_columns_that_are_read_are_shown(model: Any) -> None:
    text = (ROOT / "docs/backend-developer.md").read_text(encoding="utf-8")
    told = re.findall(rf"^\| `{model.__name__}` \| (.*) \|$", text, re.MULTILINE)[0]
    assert re.findall(r"`(\w+)`", told) == [field.name for field in model._meta.fields]


def test_switching_on_by_code_runs(world: World) -> None:
    names: dict[str, Any] = {}
    exec(block("docs/backend-developer.md", "def switch_on"), names)
    world.grant(world.mara, permission="settings:write")
    held = names["switch_on"](world.agent, world.operator, world.mara)
    assert held.value == "same_account"


@isolate_apps()
def test_the_session_that_is_shown_lacks_no_column_and_no_path(monkeypatch: Any) -> None:
    """Over a table of agents that has a name, as the example's `crm.Bot` is."""
    label = {"Meta": type("Meta", (), {"app_label": "crm"}), "__module__": "crm.models"}
    type("Bot", (models.Model,), {"name": models.TextField(), **label})
    names = {"__name__": "tests.crm"}
    exec(block("docs/backend-developer.md", "class Thread"), names)
    thread = names["Thread"]
    monkeypatch.setattr(checks, "session_model", lambda: thread)
    monkeypatch.setitem(checks._MODELS, "SESSION_MODEL", (lambda: thread, checks._MODELS["SESSION_MODEL"][1]))
    assert {message.id for message in checks.check_models(None)} == {"history_access.E005"}  # not its fault


@isolate_apps()
def test_the_message_that_is_shown_can_be_asked_for_its_words_and_calls() -> None:
    names = {"__name__": "tests.crm"}
    exec(block("docs/backend-developer.md", "class Entry"), names)
    entry = names["Entry"]
    rows = entry._base_manager.filter(entry.readable(), entry.by_agent())
    assert "crm_entries" in str(rows.values_list(entry.words(), entry.tool_names()).query)


@isolate_apps()
def test_the_authority_that_is_shown_answers(world: World, monkeypatch: Any) -> None:
    """Over a table of rights with the example's columns: here, over the agent platform's."""
    role = {
        "tenant_id": models.UUIDField(db_column="workspace_id"),
        "person_id": models.IntegerField(),
        "may": models.TextField(db_column="permission"),
        "Meta": type(
            "Meta", (), {"app_label": "crm", "db_table": Authority._meta.db_table, "managed": False}
        ),
        "__module__": "crm.models",
    }
    crm = ModuleType("crm.models")
    crm.TeamRole = type("TeamRole", (models.Model,), role)
    monkeypatch.setitem(sys.modules, "crm", ModuleType("crm"))
    monkeypatch.setitem(sys.modules, "crm.models", crm)
    names: dict[str, Any] = {"__name__": "crm.authority"}
    exec(block("docs/backend-developer.md", "class CrmAuthority"), names)
    asked = (names["CrmAuthority"](), world.mara.pk, "sessions:read", world.hollowbrook.pk)
    assert not person_holds(*asked)
    world.grant(world.mara)
    assert person_holds(*asked)


def test_the_addresses_that_are_shown_are_there() -> None:
    urls = ModuleType("urls")
    exec(block("docs/backend-developer.md", "history_access.api.urls"), urls.__dict__)
    told = (ROOT / "docs/auditor.md").read_text(encoding="utf-8")
    shown = re.findall(r"^GET (/\S+?)(?:\?\S*)?(?:\s|$)", told, re.MULTILINE)
    assert len(shown) == 7
    for path in shown:
        assert resolve(path, urlconf=urls).view_name.startswith("history_access_api:")


COMMANDS = [
    (page.name, command)
    for page in PAGES
    for command in re.findall(r"manage\.py ([a-z_]+[^`\n#)]*)", page.read_text(encoding="utf-8"))
    if page.name != "reference.md"
]


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[f"{page}-{told}" for page, told in COMMANDS])
def test_every_command_that_is_shown_is_there_with_its_options(page: str, command: str) -> None:
    name = command.split(maxsplit=1)[0]
    found = load_command_class(get_commands()[name], name)
    known = {
        option
        for action in found.create_parser("manage.py", name)._actions
        for option in action.option_strings
    }
    assert set(re.findall(r"--[a-z-]+", command)) <= known
