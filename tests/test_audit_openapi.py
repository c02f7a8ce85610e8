"""The description of the REST is valid, complete, and what the answers really look like."""

import json
from typing import Any

import pytest
from django.test import Client
from drf_spectacular.validation import validate_schema
from jsonschema import Draft202012Validator

from history_access import exporting, seals
from history_access.api.urls import urlpatterns
from tests.audits import (
    API,
    ROUTES,
    in_workspace,
    read_row,
    recorded_name,
    reference_row,
    refusal_row,
    routes,
    visitor,
)
from tests.golden import FOLDER, text
from tests.golden_openapi import openapi
from tests.worlds import NOON, World

SCHEMA = openapi()
TEMPLATES = {
    "reads": "/reads/",
    "read": "/reads/{read}/",
    "turn-conversations": "/turns/{turn}/conversations/",
    "turn-references": "/turns/{turn}/references/",
    "conversation-turns": "/conversations/{conversation}/turns/",
    "refusals": "/refusals/",
    "seals": "/seals/",
    "agent-access": "/agents/{agent}/history-access/",
    "export-csv": "/reads/export.csv",
    "export-jsonl": "/reads/export.jsonl",
}


def operation(name: str) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA["paths"][API + TEMPLATES[name]]["get"]
    return found


def test_the_description_is_the_golden_one_without_a_warning() -> None:
    """After a change that is meant, `make golden` writes it anew."""
    assert (FOLDER / "openapi.json").read_text(encoding="utf-8") == text(SCHEMA)


def test_it_is_valid_openapi_3_1() -> None:
    assert SCHEMA["openapi"].startswith("3.1")
    validate_schema(SCHEMA)
    for component in SCHEMA["components"]["schemas"].values():
        Draft202012Validator.check_schema(component)
    assert "nullable" not in json.dumps(SCHEMA)


def test_every_address_is_described_to_look_at_only() -> None:
    assert {one.name for one in urlpatterns} == set(ROUTES) == set(TEMPLATES)
    assert set(SCHEMA["paths"]) == {API + template for template in TEMPLATES.values()}
    assert all(set(path) == {"get"} for path in SCHEMA["paths"].values())


@pytest.mark.parametrize("name", ROUTES)
def test_every_question_describes_itself_its_parameters_and_its_refusals(name: str) -> None:
    described = operation(name)
    assert described["operationId"] and described["description"]
    assert all(one.get("description") or one["in"] == "path" for one in described["parameters"])
    assert {"workspace", "cursor"} & {one["name"] for one in described["parameters"]}
    for code in ("400", "401", "403", "404", "429", "503"):
        (media_type,) = described["responses"][code]["content"]
        assert media_type == "application/problem+json"


@pytest.fixture
def auditor(world: World) -> Client:
    return visitor(world, "platform_auditor")


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with nothing allowed that it does not name."""
    components = {
        name: {**one, "additionalProperties": False} for name, one in SCHEMA["components"]["schemas"].items()
    }
    return {**schema, "components": {"schemas": components}}


@pytest.mark.parametrize("name", [name for name in ROUTES if not name.startswith("export")])
def test_answers_look_as_described(open_world: World, name: str) -> None:
    """Full rows and rows with every absence."""
    read = read_row(open_world, trigger_id="daily", session_person_id="7", first_number=1, last_number=3)
    read_row(open_world, turn_account_id=None, session_account_id=None)
    refusal_row(open_world), refusal_row(open_world, reader_id=None, trigger_id="daily", argument=None)
    reference_row(open_world, session_account_id="acme", session_person_id="7", ended_at=NOON)
    reference_row(open_world, kind="excerpt")
    recorded_name(open_world, "person", "7", "Mara")
    if name == "seals":
        seals.seal()
    open_world.allow("all_accounts")
    answer = visitor(open_world, "platform_auditor").get(routes(open_world, read)[name]).json()
    schema = operation(name)["responses"]["200"]["content"]["application/json"]["schema"]
    Draft202012Validator(closed(schema)).validate(answer)
    assert "results" not in answer or answer["results"]


def test_problems_look_as_described(world: World, auditor: Client) -> None:
    urls = routes(world, read_row(world))
    answers = [
        (400, auditor.get(urls["reads"], {"nonsense": "1", "limit": "0"})),
        (403, Client().get(urls["reads"])),
        (404, visitor(world, "nobody").get(in_workspace(world, urls["reads"]))),
    ]
    for code, answer in answers:
        content = operation("reads")["responses"][str(code)]["content"]["application/problem+json"]
        Draft202012Validator(closed(content["schema"])).validate(answer.json())


def test_rows_of_an_export_are_those_of_the_list() -> None:
    described = list(SCHEMA["components"]["schemas"]["AuditedRead"]["properties"])
    extra = ("turn_account_absent", "conversation_account_absent")
    assert [column for column in exporting.COLUMNS if column not in extra] == described


@pytest.mark.parametrize("name", ROUTES)
def test_the_parameters_that_are_described_are_those_that_are_taken(
    world: World, auditor: Client, name: str
) -> None:
    rule = auditor.get(routes(world, read_row(world))[name], {"nonsense": "1"}).json()["errors"][0]["rule"]
    taken = set(rule.partition("there are ")[2].split(", "))
    assert taken == {one["name"] for one in operation(name)["parameters"] if one["in"] == "query"}
