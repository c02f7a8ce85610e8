"""Case 4, 7, 9: every route, every method, every kind of person; the same refusal for everything else."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client

from history_access import audited, auditors
from history_access.agent_platform.models import Authority, Workspace
from history_access.api import views
from history_access.exporting import RightLostError
from history_access.models import AuditQuery
from history_access.queries import log_query
from tests.audits import (
    API,
    LISTS,
    PEOPLE,
    ROUTES,
    body,
    in_workspace,
    problem,
    read_row,
    refusal_row,
    routes,
    visitor,
)
from tests.worlds import World

SEE = {"platform_auditor", "workspace_auditor"}
OUTSIDE = {"inactive", "anonymous"}
WRITING = ("post", "put", "patch", "delete", "trace")


def expected(who: str, route: str, method: str, named: bool) -> int:
    """The status that a person gets, with the workspace named or not."""
    if who in OUTSIDE:
        return 403
    if method in WRITING:
        return 405
    if method == "options":
        return 200
    if route == "seals":
        return 200 if who == "platform_auditor" and not named else 400 if named else 404
    if who == "platform_auditor":
        return 200
    return (200 if who in SEE else 404) if named else 400


@pytest.mark.parametrize("named", [True, False], ids=["workspace named", "not named"])
@pytest.mark.parametrize("who", PEOPLE)
def test_who_may_do_what(world: World, who: str, named: bool) -> None:
    client, urls = visitor(world, who), routes(world, read_row(world))
    assert set(urls) == set(ROUTES)
    for route, url in urls.items():
        asked = in_workspace(world, url) if named else url
        for method in ("get", "head", "options", *WRITING):
            response = getattr(client, method)(asked)
            assert response.status_code == expected(who, route, method, named), (route, method)
            if response.status_code >= 400 and method != "head":
                problem(response, response.status_code)
            assert response["Cache-Control"] == "private, no-store"


def test_every_method_but_three_is_named_as_refused(world: World) -> None:
    client = visitor(world, "platform_auditor")
    for url in routes(world, read_row(world)).values():
        assert client.post(url)["Allow"] == "GET, HEAD, OPTIONS"


def test_a_superuser_audits_everywhere(world: World) -> None:
    client = Client()
    client.force_login(world.operator)
    row = read_row(world)
    assert client.get(f"{API}/reads/{row.pk}/").status_code == 200


UNKNOWN = {
    "read": "reads/019adf00-0000-7000-8000-000000000000/",
    "agent-access": "agents/019adf00-0000-7000-8000-000000000000/history-access/",
}
MALFORMED = (
    "1",
    "x" * 37,
    "{019adf00-0000-7000-8000-000000000000}",
    "019ADF00-0000-7000-8000-000000000000",
    "%00",
    "a%00b",
    "%ED%A0%80",
    "%FF",
    "-1",
    "9" * 400,
    "x" * 10_000,
    "%20",
)


@pytest.mark.parametrize("who", ["platform_auditor", "workspace_auditor"])
def test_unknown_foreign_and_malformed_keys_are_one_refusal(world: World, who: str) -> None:
    client = visitor(world, who)
    elsewhere = Workspace.objects.create(name="Foreign")
    foreign = read_row(world, workspace_id=str(elsewhere.pk))
    agent = type(world.agent).objects.create(workspace=elsewhere, name="Foreign")
    answers = [
        client.get(in_workspace(world, f"{API}/{path}"))
        for path in (
            *UNKNOWN.values(),
            f"reads/{foreign.pk}/",
            f"agents/{agent.pk}/history-access/",
            *(f"reads/{key}/" for key in MALFORMED),
            *(f"agents/{key}/history-access/" for key in MALFORMED),
        )
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert len({body(answer) for answer in answers}) == 1
    assert all(problem(answer, 404) for answer in answers)


SPELLINGS = (str.upper, "{{{}}}".format, lambda key: key.replace("-", ""), "urn:uuid:{}".format)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_another_spelling_of_a_key_is_no_key(world: World, spelling: Any) -> None:
    """The record knows only one; for a workspace, an empty list would say that nothing was read."""
    row, auditor = read_row(world), visitor(world, "platform_auditor")
    answers = [
        auditor.get(f"{API}/reads/{spelling(str(row.pk))}/"),
        auditor.get(f"{API}/agents/{spelling(str(world.agent.pk))}/history-access/"),
        visitor(world, "workspace_auditor").get(
            f"{API}/reads/", {"workspace": spelling(str(world.hollowbrook.pk))}
        ),
    ]
    assert all(problem(answer, 404) for answer in answers)


@pytest.mark.parametrize("who", ["auditor_elsewhere", "agent_auditor", "staff", "nobody"])
def test_whoever_may_not_audit_gets_one_refusal_for_everything(world: World, who: str) -> None:
    client, row = visitor(world, who), read_row(world)
    there = [in_workspace(world, url) for name, url in routes(world, row).items() if name != "seals"]
    gone = [in_workspace(world, f"{API}/{path}") for path in UNKNOWN.values()]
    odd = [f"{url}?workspace={key}" for url in routes(world, row).values() for key in ("1", "nowhere", "{}")]
    odd = [url for url in odd if "/seals/" not in url]
    answers = [client.get(url) for url in (*there, *gone, *odd, f"{API}/seals/")]
    assert {answer.status_code for answer in answers} == {404}
    assert len({body(answer) for answer in answers}) == 1
    assert not AuditQuery.objects.exists()


def test_a_refusal_asks_as_many_questions_of_the_database_for_what_is_there(
    world: World, django_assert_num_queries: Any
) -> None:
    """session, user, person again, and the two that has_perm asks; the right for the workspace."""
    row = read_row(world)
    client = visitor(world, "nobody")
    for path in (f"reads/{row.pk}/", UNKNOWN["read"], "turns/t/conversations/", "turns/none/conversations/"):
        with django_assert_num_queries(7):
            client.get(in_workspace(world, f"{API}/{path}"))


def test_a_right_that_is_lost_is_lost_at_the_next_request(world: World) -> None:
    client, url = visitor(world, "workspace_auditor"), in_workspace(world, f"{API}/reads/")
    assert client.get(url).status_code == 200
    Authority.objects.filter(permission="reads:audit").delete()
    assert client.get(url).status_code == 404


def test_rights_rows_and_names_are_read_on_the_primary_database(world: World, settings: Any) -> None:
    """reach-now: a replica may not know yet that a right was lost."""
    row, auditor = read_row(world), PEOPLE["workspace_auditor"](world)
    workspace = str(world.hollowbrook.pk)
    settings.DATABASE_ROUTERS = ["tests.routers.ReplicaForReads"]
    scope = auditors.Scope(person_id=auditor.pk, workspace=workspace, everywhere=False)
    assert scope.still_holds()
    assert auditors.fresh_person(auditor.pk) == auditor
    for rows in (audited.reads(), audited.conversations_of(row.turn_id), audited.turns_of(row.session_id)):
        assert len(scope.of(rows)) == 1
    assert audited.shown_reads(scope.of(audited.reads()))[0]["id"] == str(row.pk)
    log_query(auditor.pk, "reads", {})


@pytest.mark.parametrize("way", ["user", "group", "superuser", "neither"])
def test_a_platform_right_is_looked_up_on_the_primary_database(world: World, settings: Any, way: str) -> None:
    """reach-now: whichever way the person came to hold it; has_perm alone would ask the replica."""
    person = world.person("auditor", is_superuser=way == "superuser")
    right = Permission.objects.get(codename="audit_reads")
    if way == "user":
        person.user_permissions.add(right)
    if way == "group":
        group = Group.objects.create(name="auditors")
        group.permissions.add(right)
        person.groups.add(group)
    settings.DATABASE_ROUTERS = ["tests.routers.ReplicaForReads"]
    assert auditors.audits_everywhere(person.pk) is (way != "neither")


def test_a_platform_right_that_is_lost_is_lost_at_the_next_request(world: World) -> None:
    client = visitor(world, "platform_auditor")
    assert client.get(f"{API}/reads/").status_code == 200
    person = type(world.mara).objects.get(username="platform_auditor")
    person.user_permissions.clear()
    assert problem(client.get(f"{API}/reads/"), 400)["errors"][0]["parameter"] == "workspace"


@pytest.mark.parametrize("name", [name for name in ROUTES if name != "seals"])
def test_the_right_is_looked_at_again_in_the_statement_that_reads(
    world: World, monkeypatch: Any, name: str
) -> None:
    """Lost after the first look, before anything is fetched: nothing is seen."""
    refusal_row(world)
    url = in_workspace(world, routes(world, read_row(world))[name])
    client = visitor(world, "workspace_auditor")
    assert body(client.get(url)).strip()

    def lost_meanwhile(*_: Any, **__: Any) -> None:
        Authority.objects.filter(permission="reads:audit").delete()

    monkeypatch.setattr(views, "log_query", lost_meanwhile)
    answer = client.get(url)
    if name.startswith("export"):
        with pytest.raises(RightLostError):
            body(answer)
    elif name in LISTS:
        assert answer.json() == {"next": None, "results": []}
    else:
        problem(answer, 404)


def test_a_workspace_auditor_sees_no_other_workspace(world: World) -> None:
    read_row(world, workspace_id="elsewhere", turn_id="foreign")
    mine = read_row(world, turn_id="mine")
    client = visitor(world, "workspace_auditor")
    for url in (f"{API}/reads/", f"{API}/turns/foreign/conversations/", f"{API}/conversations/s/turns/"):
        found = client.get(in_workspace(world, url)).json()["results"]
        assert all(row["workspace_id"] == mine.workspace_id for row in found), url
    assert client.get(in_workspace(world, f"{API}/turns/foreign/conversations/")).json()["results"] == []


def test_anonymous_is_401_where_the_hosts_authentication_has_a_challenge(
    world: World, monkeypatch: Any
) -> None:
    from rest_framework.authentication import BasicAuthentication

    monkeypatch.setattr(views.AuditView, "authentication_classes", [BasicAuthentication])
    for url in routes(world, read_row(world)).values():
        answer = Client().get(url)
        assert problem(answer, 401)
        assert answer["WWW-Authenticate"].startswith("Basic")


def test_a_person_whom_the_authentication_remembers_but_who_is_gone_sees_nothing(
    world: World, monkeypatch: Any
) -> None:
    from rest_framework.authentication import BaseAuthentication

    ghost = PEOPLE["platform_auditor"](world)

    class Remembering(BaseAuthentication):
        def authenticate(self, request: Any) -> tuple[Any, None]:
            return ghost, None

    monkeypatch.setattr(views.AuditView, "authentication_classes", [Remembering])
    assert Client().get(f"{API}/reads/").status_code == 200
    type(ghost).objects.filter(pk=ghost.pk).update(is_active=False)
    problem(Client().get(f"{API}/reads/"), 403)
    type(ghost).objects.filter(pk=ghost.pk).delete()
    problem(Client().get(f"{API}/reads/"), 403)


def test_names_are_only_in_what_an_auditor_sees(world: World) -> None:
    """The record has no titles and no words, and the schema of the answers has no place for them."""
    world.allow("all_accounts")
    mark = "Zq7Mark"
    session = world.session(f"{mark} words", person=world.mara, title=f"{mark} title")
    tools = world.tools(world.mara)
    tools.call("list_conversations", {})
    tools.call("read_conversation", {"conversation_id": str(session.pk)})
    client = visitor(world, "platform_auditor")
    for url in (f"{API}/reads/", f"{API}/reads/export.csv", f"{API}/reads/export.jsonl"):
        seen = body(client.get(url))
        assert str(session.pk).encode() in seen
        assert mark.encode() not in seen
