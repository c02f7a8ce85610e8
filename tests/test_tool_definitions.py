"""tool-errors, tool-quoted: the tools and their results as schemas, in every dialect; no identity in any."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from history_access.agent_platform import services
from history_access.tools import Toolset
from tests.golden import FOLDER, NAMES, golden, text
from tests.worlds import World

LIST, READ = NAMES
FILES = [
    "anthropic",
    "json_schema",
    "mcp",
    "openai",
    "openai-strict",
    "openapi",
    "openapi-references",
    "results",
]
DIALECTS = ["openai", "anthropic", "mcp", "json_schema"]
TOOLSET = Toolset(None, NAMES)


@pytest.mark.parametrize("name", FILES)
def test_schemas_are_the_golden_ones(name: str):
    """tool-errors: after a change that is meant, `make golden` writes them anew."""
    kept = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert json.loads(kept) == golden()[f"{name}.json"]
    assert kept == text(json.loads(kept))


def test_every_golden_file_is_compared():
    """tool-errors: the list above, what is written, and the folder name the same files."""
    names = {f"{name}.json" for name in FILES}
    assert set(golden()) == {one.name for one in FOLDER.iterdir()} == names


def parameters(definition: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the schema of the arguments in a definition of any dialect."""
    said = definition.get("function", definition)
    found = (said[key] for key in ("parameters", "input_schema", "inputSchema") if key in said)
    return said.get("name", said.get("title")), next(found, said)


EVERY = [(dialect, False) for dialect in DIALECTS] + [("openai", True)]


@pytest.mark.parametrize(("dialect", "strict"), EVERY)
def test_every_dialect_has_the_same_arguments(dialect: Any, strict: bool):
    """tool-list, tool-read: those of the contract, and no others."""
    found = dict(map(parameters, TOOLSET.definitions(dialect, strict=strict)))
    assert {name: sorted(schema["properties"]) for name, schema in found.items()} == {
        LIST: ["after", "before", "cursor", "limit"],
        READ: ["conversation_id", "cursor", "limit", "start", "view"],
    }
    assert {schema["additionalProperties"] for schema in found.values()} == {False}
    assert {schema["type"] for schema in found.values()} == {"object"}
    if not strict:
        assert (found[LIST]["required"], found[READ]["required"]) == ([], ["conversation_id"])


@pytest.mark.parametrize(("dialect", "strict"), EVERY)
def test_no_argument_says_who_is_asking(dialect: Any, strict: bool):
    """tool-errors: neither a person nor an agent, an account, a workspace or a turn."""
    for _, schema in map(parameters, TOOLSET.definitions(dialect, strict=strict)):
        for name in schema["properties"]:
            assert not re.search("agent|account|person|user|reader|workspace|turn|trigger|sender", name)


@pytest.mark.parametrize(("dialect", "strict"), EVERY)
def test_every_argument_is_described(dialect: Any, strict: bool):
    """tool-list, tool-read: with one plain type, and null only where the strict form needs it."""
    for definition in TOOLSET.definitions(dialect, strict=strict):
        name, schema = parameters(definition)
        assert re.fullmatch("[a-z_]{1,64}", name)
        assert definition.get("function", definition)["description"]
        for said in schema["properties"].values():
            assert said["description"]
            assert strict or said["type"] in ("string", "integer")


def test_the_strict_form_obeys_its_rules():
    """tool-errors: all required, null where something may be left out, and no keyword that strict lacks."""
    usual = dict(map(parameters, TOOLSET.definitions("openai")))
    for definition in TOOLSET.definitions("openai", strict=True):
        name, schema = parameters(definition)
        assert definition["function"]["strict"] is True
        assert set(schema) == {"type", "properties", "required", "additionalProperties"}
        assert schema["required"] == list(schema["properties"])
        for argument, said in schema["properties"].items():
            kind = usual[name]["properties"][argument]["type"]
            optional = argument not in usual[name]["required"]
            assert said["type"] == ([kind, "null"] if optional else kind)
            assert set(said) <= {"type", "description", "enum"}
            assert (None in said.get("enum", ())) == ("enum" in said and optional)


def test_a_dialect_says_that_reading_changes_nothing():
    """tool-read-only: where there is a place to say so."""
    for definition in TOOLSET.definitions("mcp"):
        assert definition["annotations"] == {"readOnlyHint": True, "openWorldHint": False}


def test_only_what_is_offered_is_defined():
    """tool-errors: a model is not told of what it may not use."""
    for dialect in DIALECTS:
        assert Toolset(None, ()).definitions(dialect) == []
        [one] = Toolset(None, (READ,)).definitions(dialect)
        assert parameters(one)[0] == READ
    assert (bool(Toolset(None, ())), bool(TOOLSET)) == (False, True)


@pytest.mark.parametrize("dialect", ["", "OpenAI", "gemini", None, "json"])
def test_an_unknown_dialect_is_an_error(dialect: Any):
    """tool-errors: this one is for a platform's developer, not for a model."""
    with pytest.raises(ValueError, match="dialect"):
        TOOLSET.definitions(dialect)


@pytest.mark.parametrize("dialect", ["anthropic", "mcp", "json_schema"])
def test_only_openai_has_a_strict_form(dialect: Any):
    """tool-errors: this one is for a platform's developer, not for a model."""
    with pytest.raises(ValueError, match="strict"):
        TOOLSET.definitions(dialect, strict=True)


def test_definitions_are_the_callers_own():
    """tool-errors: a platform may change what it got without changing what others get."""
    for dialect in DIALECTS:
        expected = json.dumps(TOOLSET.definitions(dialect))
        for definition in TOOLSET.definitions(dialect):
            parameters(definition)[1]["properties"].clear()
        assert json.dumps(TOOLSET.definitions(dialect)) == expected


# Results


KINDS: dict[str, type] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
}
KNOWN = {"$ref", "anyOf", "type", "const", "enum", "properties", "required", "items"}
WORDS = {"title", "description", "default", "$defs"}


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> Iterator[str]:
    """Where a value breaks a JSON Schema; an AssertionError for a keyword that is not known here."""
    assert set(schema) <= KNOWN | WORDS, set(schema) - KNOWN - WORDS
    if "$ref" in schema:
        yield from faults(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    elif "anyOf" in schema:
        if all(any(faults(value, one, root)) for one in schema["anyOf"]):
            yield "none of the options"
    elif not isinstance(value, KINDS[schema["type"]]) or (schema["type"] == "integer" and value is True):
        yield f"no {schema['type']}: {value!r}"
    else:
        yield from _faults_within(value, schema, root)


def _faults_within(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> Iterator[str]:
    """Where a value of the right type breaks the rest of a JSON Schema."""
    if value not in schema.get("enum", [schema.get("const", value)]):
        yield f"not allowed: {value!r}"
    if isinstance(value, dict):
        yield from (f"missing: {name}" for name in schema["required"] if name not in value)
        yield from (f"unknown: {name}" for name in value if name not in schema["properties"])
        for name in value.keys() & schema["properties"].keys():
            yield from faults(value[name], schema["properties"][name], root)
    for one in value if isinstance(value, list) else ():
        yield from faults(one, schema["items"], root)


@pytest.fixture
def results(world: World) -> list[tuple[str, dict[str, Any]]]:
    """Results of every make, with the names of their models."""
    world.allow("all_accounts")
    world.grant(world.mara)
    session = world.session("a", "x" * 9_000, "y", account=world.acme, person=world.mara, title="Title")
    services.add_message(session, "agent", tool_calls=[{"name": "find"}])
    services.summarize_session(session, "z" * 21_000, through=1)
    services.trim_session(session, before=2)
    world.session()
    tools, this = world.tools(world.mara), {"conversation_id": str(session.pk)}
    calls = [
        *((LIST, given) for given in ({}, {"limit": 1}, {"before": "2000-01-01"})),
        *((READ, {**this, **given}) for given in ({}, {"limit": 1}, {"start": 99}, {"view": "summary"})),
    ]
    models = {LIST: "ConversationList", READ: "QuotedConversation"}
    return [(models[name], tools.call(name, given)) for name, given in calls]


def test_results_obey_their_schema(results: Any):
    """tool-quoted: every field is there, and nothing that the schema does not know."""
    schemas = golden()["results.json"]
    for name, result in results:
        assert list(faults(result, schemas[name], schemas[name])) == []


def test_the_schema_knows_that_every_field_is_there(results: Any):
    """tool-quoted: a result that lacks one, at any depth, is none."""
    schemas = golden()["results.json"]

    def thinned(value: Any) -> Iterator[Any]:
        """A result without one of its fields, once for each."""
        if isinstance(value, dict):
            for name, one in value.items():
                yield {key: kept for key, kept in value.items() if key != name}
                yield from ({**value, name: less} for less in thinned(one))
        elif isinstance(value, list):
            for index, one in enumerate(value):
                yield from ([*value[:index], less, *value[index + 1 :]] for less in thinned(one))

    for name, result in results:
        for less in thinned(result):
            assert any(faults(less, schemas[name], schemas[name])), less


def test_a_strict_call_is_like_any_other(world: World):
    """tool-errors: null for whatever is left out."""
    world.allow("all_accounts")
    session = world.session("hello", person=world.mara)
    tools = world.tools(world.mara)
    given: dict[str, dict[str, Any]] = {LIST: {}, READ: {"conversation_id": str(session.pk)}}
    for name, schema in map(parameters, tools.definitions("openai", strict=True)):
        strict = {argument: given[name].get(argument) for argument in schema["required"]}
        assert tools.call(name, strict) == tools.call(name, given[name])
        assert tools.call(name, strict)["kind"] != "error"
