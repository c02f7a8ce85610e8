"""Auditors of every kind, rows of the record, and how a test asks for them over REST."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

from django.contrib.auth.models import Permission
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from history_access.agent_platform import services
from history_access.agent_platform.models import Agent, Authority, Trigger, Workspace
from history_access.models import RecordedName, Refusal, TurnConversationRead, TurnReference
from tests.worlds import NOON, World

API = "/api/history"


def _platform_auditor(world: World, name: str = "platform_auditor", **given: Any) -> Any:
    person = world.person(name, **given)
    person.user_permissions.add(Permission.objects.get(codename="audit_reads"))
    return person


def _workspace_auditor(world: World) -> Any:
    person = world.person("workspace_auditor")
    world.grant(person, "reads:audit")
    return person


def _auditor_elsewhere(world: World) -> Any:
    person, elsewhere = world.person("auditor_elsewhere"), Workspace.objects.create(name="Elsewhere")
    Authority.objects.create(workspace=elsewhere, person=person, permission="reads:audit")
    return person


def _agent_auditor(world: World) -> Any:
    """Holds the right for one agent alone, which is not the right for its workspace."""
    person = world.person("agent_auditor")
    world.grant(person, "reads:audit", agent=world.agent)
    return person


def _staff(world: World) -> Any:
    person = world.person("staff", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    world.grant(person, "settings:write")
    world.grant(person, "sessions:read")
    return person


def _inactive(world: World) -> Any:
    return _platform_auditor(world, "inactive")


PEOPLE: dict[str, Callable[[World], Any]] = {
    "platform_auditor": _platform_auditor,
    "workspace_auditor": _workspace_auditor,
    "auditor_elsewhere": _auditor_elsewhere,
    "agent_auditor": _agent_auditor,
    "staff": _staff,
    "nobody": lambda world: world.mara,
    "inactive": _inactive,
    "anonymous": lambda world: None,
}


def visitor(world: World, who: str) -> Client:
    """A client of one of `PEOPLE`; the inactive one was active when they logged in."""
    client, person = Client(raise_request_exception=True), PEOPLE[who](world)
    if person is not None:
        client.force_login(person)
    if who == "inactive":
        type(person).objects.filter(pk=person.pk).update(is_active=False)
    return client


def read_row(world: World, **given: Any) -> TurnConversationRead:
    """One row of the record, in the world's workspace: by default of a title, within the account "acme"."""
    row = {
        "workspace_id": str(world.hollowbrook.pk),
        "agent_id": str(world.agent.pk),
        "turn_id": "t",
        "turn_account_id": "acme",
        "reader_id": "7",
        "session_id": "s",
        "session_account_id": "acme",
        "setting": "same_account",
        "how": "history",
        "what": "title",
        "characters": 5,
        "read_at": NOON,
    }
    return TurnConversationRead.objects.create(**{**row, **given})


def many_rows(world: World, number: int, **given: Any) -> list[TurnConversationRead]:
    """Rows written in one statement, all at one moment."""
    first = read_row(world, **given)
    rest = [TurnConversationRead(**_copied(first)) for _ in range(number - 1)]
    return [first, *TurnConversationRead.objects.bulk_create(rest)]


def _copied(row: TurnConversationRead) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.fields if field.name != "id"}


def refusal_row(world: World, **given: Any) -> Refusal:
    row = {
        "workspace_id": str(world.hollowbrook.pk),
        "agent_id": str(world.agent.pk),
        "turn_id": "t",
        "reader_id": "7",
        "tool": "read_conversation",
        "code": "conversation_unavailable",
        "argument": "conversation_id",
        "refused_at": NOON + timedelta(minutes=1),
    }
    return Refusal.objects.create(**{**row, **given})


def reference_row(world: World, **given: Any) -> TurnReference:
    """One reference of the turn that `read_row` speaks of."""
    row = {
        "workspace_id": str(world.hollowbrook.pk),
        "agent_id": str(world.agent.pk),
        "turn_id": "t",
        "person_id": "7",
        "kind": "conversation",
        "session_id": "s",
        "bound_at": NOON,
    }
    return TurnReference.objects.create(**{**row, **given})


def recorded_name(world: World, kind: str, key: str, name: str) -> RecordedName:
    return RecordedName.objects.create(workspace_id=str(world.hollowbrook.pk), kind=kind, key=key, name=name)


def routes(world: World, read: TurnConversationRead) -> dict[str, str]:
    """Every address, of things that are there."""
    return {
        "reads": f"{API}/reads/",
        "read": f"{API}/reads/{read.pk}/",
        "turn-conversations": f"{API}/turns/{quote(read.turn_id, safe='')}/conversations/",
        "turn-references": f"{API}/turns/{quote(read.turn_id, safe='')}/references/",
        "conversation-turns": f"{API}/conversations/{quote(read.session_id, safe='')}/turns/",
        "refusals": f"{API}/refusals/",
        "seals": f"{API}/seals/",
        "agent-access": f"{API}/agents/{world.agent.pk}/history-access/",
        "export-csv": f"{API}/reads/export.csv",
        "export-jsonl": f"{API}/reads/export.jsonl",
    }


ROUTES = (
    "reads",
    "read",
    "turn-conversations",
    "turn-references",
    "conversation-turns",
    "refusals",
    "seals",
    "agent-access",
    "export-csv",
    "export-jsonl",
)
LISTS = ("reads", "turn-conversations", "turn-references", "conversation-turns", "refusals", "seals")


def in_workspace(world: World, url: str) -> str:
    return f"{url}?{urlencode({'workspace': str(world.hollowbrook.pk)})}"


def body(response: HttpResponse) -> bytes:
    """What was answered, gathered where it was streamed."""
    return b"".join(response.streaming_content) if response.streaming else response.content


def json_lines(text: bytes) -> list[dict[str, Any]]:
    """The objects of JSON Lines, which are ASCII."""
    return [json.loads(line) for line in text.decode("ascii").splitlines()]


def results(client: Client, url: str, **parameters: Any) -> list[dict[str, Any]]:
    """The rows of one page."""
    response = client.get(url, parameters)
    assert response.status_code == 200, response.content
    found: list[dict[str, Any]] = response.json()["results"]
    return found


def walked(client: Client, url: str, **parameters: Any) -> list[dict[str, Any]]:
    """The rows of all pages."""
    rows: list[dict[str, Any]] = []
    following: str | None = f"{url}?{urlencode(parameters)}"
    while following:
        response = client.get(following)
        assert response.status_code == 200, response.content
        rows += response.json()["results"]
        following = response.json()["next"]
    return rows


def problem(response: HttpResponse, status: int) -> dict[str, Any]:
    """The problem details of a refusal, checked for their shape (RFC 9457)."""
    assert response.status_code == status, body(response)
    assert response["Content-Type"] == "application/problem+json"
    found: dict[str, Any] = json.loads(body(response))
    assert found["type"] == "about:blank"
    assert found["status"] == status
    assert found["title"] and found["detail"]
    assert set(found) <= {"type", "title", "status", "detail", "errors", "code"}
    return found


def broken(client: Client, url: str, query: str) -> dict[str, str]:
    """The parameters that are refused, each with its rule."""
    found = problem(client.get(f"{url}?{query}"), 400)
    return {one["parameter"]: one["rule"] for one in found["errors"]}


FILES = ("workspace_files", "write")


def choose(settings: Any, **given: Any) -> None:
    """Change what the platform says in HISTORY_ACCESS; it names its triggers and its shared files."""
    named = {"TRIGGER_MODEL": "agent_platform.Trigger", "SHARED_FILES_SETTING": FILES}
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, **named, **given}


def webhook(world: World, agent: Agent | None = None, kind: str = "webhook") -> Trigger:
    """A trigger of an agent, by default a webhook of the world's."""
    return services.create_trigger(agent or world.agent, kind=kind, name="Bookings", by=world.mara)


def may_write_files(world: World, agent: Agent | None = None, value: str = "write") -> None:
    """Let an agent do this much with shared files."""
    world.set(FILES[0], agent=agent or world.agent, value=value)


def statements(job: Callable[[], Any]) -> int:
    """How many statements a job runs."""
    with CaptureQueriesContext(connection) as captured:
        job()
    return len(captured)
