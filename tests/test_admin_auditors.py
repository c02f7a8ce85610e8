"""Case 4, 7, 9 in the admin: who sees what of the record, and what is logged of it, as over REST."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from history_access import auditors, seals
from history_access.admin import auditing
from history_access.agent_platform.models import Authority, Workspace
from history_access.models import (
    AuditQuery,
    EventKind,
    MaintenanceEvent,
    Refusal,
    Seal,
    TurnConversationRead,
)
from tests.admin_pages import HOSTILE, ODD_VALUES, SHOWN_HOSTILE, body, list_url, row_url, words
from tests.audits import API, PEOPLE, read_row, recorded_name, refusal_row, results
from tests.sealed_records import event
from tests.worlds import NOON, World

OF_WORKSPACES = (TurnConversationRead, Refusal)
OF_ALL = (Seal, MaintenanceEvent, AuditQuery)
MODELS = (*OF_WORKSPACES, *OF_ALL)
REST = {TurnConversationRead: "reads", Refusal: "refusals", Seal: "seals"}
"""What REST has too, under the same name."""


def visitor(world: World, who: str) -> Client:
    """A client of one of the auditors' `PEOPLE`, who may enter the admin but holds no more of its rights."""
    client, person = Client(), PEOPLE[who](world)
    if person is not None:
        type(person).objects.filter(pk=person.pk).update(is_staff=True)
        client.force_login(person)
    if who == "inactive":
        type(person).objects.filter(pk=person.pk).update(is_active=False)
    return client


@pytest.fixture
def rows(world: World) -> dict[Any, Any]:
    """A row of each model, in the world's workspace where it has one."""
    return {
        TurnConversationRead: read_row(world),
        Refusal: refusal_row(world),
        Seal: next(seals.seal_batches()),
        MaintenanceEvent: event(EventKind.PRUNE, NOON, rows=3),
        AuditQuery: AuditQuery.objects.create(by_id="7", asked="reads", filters={}, asked_at=NOON),
    }


def expected(who: str, model: Any) -> int:
    if who in ("inactive", "anonymous"):
        return 302
    seen = who == "platform_auditor" or (who == "workspace_auditor" and model in OF_WORKSPACES)
    elsewhere = who == "auditor_elsewhere" and model in OF_WORKSPACES
    return 200 if seen or elsewhere else 403


@pytest.mark.parametrize("who", PEOPLE)
def test_who_sees_what(world: World, rows: dict[Any, Any], who: str):
    client = visitor(world, who)
    for model in MODELS:
        status = expected(who, model)
        assert client.get(list_url(model), follow=status == 200).status_code == status, model
        # A row of another workspace answers as one that is not there: with the way back.
        of_a_row = 302 if who == "auditor_elsewhere" and status == 200 else status
        assert client.get(row_url(rows[model])).status_code == of_a_row, model


@pytest.mark.parametrize("who", PEOPLE)
def test_the_index_names_what_can_be_seen(world: World, who: str):
    shown = body(visitor(world, who).get("/admin/"))
    for model in MODELS:
        assert (f'href="{list_url(model)}"' in shown) is (expected(who, model) == 200), model


@pytest.mark.parametrize("who", PEOPLE)
def test_lists_have_the_rows_that_rest_has(world: World, rows: dict[Any, Any], who: str):
    elsewhere = Workspace.objects.create(name="Another")
    read_row(world, workspace_id=str(elsewhere.pk))
    refusal_row(world, workspace_id=str(elsewhere.pk))
    client, named = visitor(world, who), {"workspace": str(world.hollowbrook.pk)}
    for model, question in REST.items():
        asked = {} if model is Seal else named
        rest = client.get(f"{API}/{question}/", asked)
        page = client.get(list_url(model), asked)
        assert (page.status_code == 200) is (rest.status_code == 200), model
        if page.status_code == 200:
            name = model._meta.pk.name
            shown = [str(row.pk) for row in page.context["cl"].result_list]
            assert shown == [str(row[name]) for row in rest.json()["results"]] != [], model


@pytest.mark.parametrize("model", OF_WORKSPACES)
def test_whoever_audits_one_workspace_is_led_to_it(world: World, rows: dict[Any, Any], model: Any):
    client = visitor(world, "workspace_auditor")
    response = client.get(list_url(model), {"q": "t"})
    assert response["Location"] == f"?q=t&workspace={world.hollowbrook.pk}"
    shown = client.get(f"{list_url(model)}{response['Location']}")
    assert [row.pk for row in shown.context["cl"].result_list] == [rows[model].pk]
    assert "By workspace Hollowbrook By" in words(shown)


@pytest.mark.parametrize("model", OF_WORKSPACES)
def test_workspaces_are_offered_to_those_who_audit_several(world: World, rows: dict[Any, Any], model: Any):
    client, other = visitor(world, "workspace_auditor"), Workspace.objects.create(name="Second")
    Workspace.objects.create(name="Third")
    person = type(world.mara).objects.get(username="workspace_auditor")
    Authority.objects.create(workspace=other, person=person, permission="reads:audit")
    shown = client.get(list_url(model), follow=True)
    assert "By workspace Hollowbrook Second By" in words(shown)
    assert "By workspace All Hollowbrook Second Third By" in words(
        visitor(world, "platform_auditor").get(list_url(model))
    )
    assert client.get(list_url(model), {"workspace": str(other.pk)}).context["cl"].result_count == 0


@pytest.mark.parametrize("model", OF_WORKSPACES)
def test_foreign_and_unknown_workspaces_are_one_refusal(world: World, rows: dict[Any, Any], model: Any):
    client = visitor(world, "workspace_auditor")
    foreign = Workspace.objects.create(name="Foreign").pk
    for key in (str(foreign), "nowhere", str(world.hollowbrook.pk).upper(), "", "\0", "x" * 10_000):
        assert client.get(list_url(model), {"workspace": key}).status_code == 404, key[:20]
    assert not AuditQuery.objects.exclude(by_id="7").exists()


def test_foreign_and_unknown_rows_are_one_answer(world: World, rows: dict[Any, Any]):
    client = visitor(world, "workspace_auditor")
    foreign = read_row(world, workspace_id=str(Workspace.objects.create(name="Foreign").pk))
    unknown = TurnConversationRead(pk="019adf00-0000-7000-8000-000000000000")
    answers = [client.get(row_url(row), follow=True) for row in (foreign, unknown)]
    texts = {
        words(answer).replace(str(row.pk), "KEY")
        for row, answer in zip((foreign, unknown), answers, strict=True)
    }
    assert len(texts) == 1
    assert "doesn’t exist" in texts.pop()
    asked = set()
    for row in (foreign, unknown):
        with CaptureQueriesContext(connection) as captured:
            client.get(row_url(row))
        asked.add(len(captured))
    assert len(asked) == 1


@pytest.mark.parametrize("spelling", [str.upper, "{{{}}}".format, lambda key: key.replace("-", "")])
def test_another_spelling_of_a_key_is_no_key(world: World, rows: dict[Any, Any], spelling: Any):
    client, read = visitor(world, "platform_auditor"), rows[TurnConversationRead]
    url = row_url(read).replace(str(read.pk), spelling(str(read.pk)))
    assert client.get(url).status_code == 302
    assert AuditQuery.objects.count() == 1


def test_djangos_permissions_to_view_open_nothing_here(world: World, rows: dict[Any, Any]):
    person, client = world.person("viewer", is_staff=True), Client()
    person.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client.force_login(person)
    for model in MODELS:
        for page in (list_url(model), row_url(rows[model])):
            assert client.get(page).status_code == 403, page
    assert AuditQuery.objects.count() == 1


def test_a_right_that_is_lost_is_lost_at_the_next_page(world: World, rows: dict[Any, Any]):
    clients = [visitor(world, who) for who in ("workspace_auditor", "platform_auditor")]
    url = f"{list_url(Refusal)}?workspace={world.hollowbrook.pk}"
    assert [client.get(url).status_code for client in clients] == [200, 200]
    Authority.objects.filter(permission="reads:audit").delete()
    type(world.mara).objects.get(username="platform_auditor").user_permissions.clear()
    assert [client.get(url).status_code for client in clients] == [403, 403]


@pytest.mark.parametrize("model", OF_WORKSPACES)
def test_the_right_is_looked_at_again_in_the_statement_that_reads(
    world: World, rows: dict[Any, Any], monkeypatch: Any, model: Any
):
    """Lost after the first look, before anything is fetched: nothing is seen."""
    client = visitor(world, "workspace_auditor")
    url = f"{list_url(model)}?workspace={world.hollowbrook.pk}"
    assert client.get(url).context["cl"].result_count == 1

    def lost_meanwhile(*_: Any) -> None:
        Authority.objects.filter(permission="reads:audit").delete()

    monkeypatch.setattr(auditing, "log_query", lost_meanwhile)
    assert client.get(url).context["cl"].result_count == 0


def test_a_right_that_is_lost_meanwhile_hides_a_row(world: World, rows: dict[Any, Any], monkeypatch: Any):
    client = visitor(world, "workspace_auditor")
    held = auditors.scope_of

    def lost_meanwhile(*given: Any) -> Any:
        scope = held(*given)
        Authority.objects.filter(permission="reads:audit").delete()
        return scope

    monkeypatch.setattr(auditors, "scope_of", lost_meanwhile)
    assert client.get(row_url(rows[TurnConversationRead])).status_code == 302


def logged() -> list[tuple[str, dict[str, str]]]:
    return list(AuditQuery.objects.order_by("id").values_list("asked", "filters"))[1:]


def test_a_look_is_logged_as_over_rest(world: World, rows: dict[Any, Any]):
    """The same question with the same filters leaves the same row, of lists and of single rows."""
    client, began = visitor(world, "platform_auditor"), timezone.now()
    named = {"workspace": str(world.hollowbrook.pk)}
    asked = [
        (TurnConversationRead, {**named, "crossed": "false", "account_absent": "false", "what": "title"}),
        (TurnConversationRead, {"turn_account_absent": "false", "how": "history", "setting": "same_account"}),
        (Refusal, {**named, "tool": "read_conversation", "code": "conversation_unavailable"}),
        (Seal, {}),
    ]
    for model, filters in asked:
        client.get(list_url(model), filters)
        assert len(results(client, f"{API}/{REST[model]}/", **filters)) == 1, model
    read = rows[TurnConversationRead]
    client.get(row_url(read))
    client.get(f"{API}/reads/{read.pk}/")
    found = logged()
    assert found[::2] == found[1::2]
    assert len(found) == 10
    assert found[8] == ("reads/{id}", {"read": str(read.pk)})
    person = type(world.mara).objects.get(username="platform_auditor")
    assert set(AuditQuery.objects.filter(asked_at__gte=began).values_list("by_id", flat=True)) == {
        str(person.pk)
    }


def test_a_look_at_what_rest_has_not_is_logged_too(world: World, rows: dict[Any, Any]):
    client = visitor(world, "platform_auditor")
    for model in (MaintenanceEvent, AuditQuery):
        client.get(list_url(model))
    for model in (Refusal, *OF_ALL):
        client.get(row_url(rows[model]))
    assert logged() == [
        ("maintenance", {}),
        ("queries", {}),
        ("refusals/{id}", {"refusal": str(rows[Refusal].pk)}),
        ("seals/{number}", {"seal": "1"}),
        ("maintenance/{id}", {"event": str(rows[MaintenanceEvent].pk)}),
        ("queries/{id}", {"query": str(rows[AuditQuery].pk)}),
    ]


def test_what_is_no_question_is_not_logged(world: World, rows: dict[Any, Any]):
    client, read = visitor(world, "platform_auditor"), rows[TurnConversationRead]
    for model in MODELS:
        client.get(list_url(model), {"misspelt": "1"})
        client.post(list_url(model))
        client.post(row_url(rows[model]))
        client.get(row_url(rows[model], "delete"))
        client.get(row_url(rows[model], "history"))
    client.get("/admin/")
    assert logged() == []
    client.get(row_url(TurnConversationRead(pk="019adf00-0000-7000-8000-000000000000")))
    client.head(row_url(read))
    assert len(logged()) == 2  # what is not there is asked for too, and so is a row without its body


@pytest.mark.parametrize("model", MODELS)
def test_where_the_look_cannot_be_logged_nothing_is_shown(
    world: World, rows: dict[Any, Any], monkeypatch: Any, model: Any
):
    def broken(*_: Any, **__: Any) -> None:
        raise DatabaseError("no room for names like Zq7Mark")

    client = visitor(world, "platform_auditor")
    monkeypatch.setattr(AuditQuery, "save", broken)
    for page in (list_url(model), row_url(rows[model])):
        response = client.get(page)
        assert response.status_code == 503
        assert "What you asked could not be logged, so it is not answered." in words(response)
        assert "Zq7Mark" not in body(response)
        assert str(rows[model].pk) not in words(response) or model is Seal


@pytest.mark.parametrize("model", [Refusal, *OF_ALL])
def test_no_parameter_breaks_a_list(world: World, rows: dict[Any, Any], model: Any):
    client, own = visitor(world, "platform_auditor"), admin.site.get_model_admin(model).list_filter
    for parameter in ("q", *(one.parameter_name for one in own)):
        for value in ODD_VALUES:
            response = client.get(f"{list_url(model)}?{parameter}={value}")
            assert response.status_code in (200, 404), (parameter, value[:20])


@pytest.mark.parametrize("model", MODELS)
def test_nobody_adds_changes_or_deletes(world: World, rows: dict[Any, Any], model: Any):
    client, row = Client(), rows[model]
    client.force_login(world.operator)
    action = {"action": "delete_selected", "_selected_action": str(row.pk), "post": "yes"}
    answers = [
        client.post(list_url(model), action),
        client.post(row_url(row), {"why": "changed"}),
        client.post(row_url(row, "delete"), {"post": "yes"}),
        client.get(f"{list_url(model)}add/"),
        client.post(f"{list_url(model)}add/", {}),
    ]
    assert [answer.status_code for answer in answers] == [403] * len(answers)
    assert "historylink" not in body(client.get(row_url(row)))
    assert client.get(row_url(row, "history")).status_code == 404


@pytest.mark.parametrize("who", ["platform_auditor", "workspace_auditor"])
def test_how_long_rows_wait_unsealed_is_shown(world: World, who: str):
    """record-sealed: to those who see the seals, which cover every workspace; as REST counts it."""
    client, reads, sealed = visitor(world, who), list_url(TurnConversationRead), list_url(Seal)
    pages = (reads, sealed) if who == "platform_auditor" else (reads,)

    def said(sentence: str) -> list[bool]:
        return [sentence in words(client.get(page, follow=True)) for page in pages]

    shown = [who == "platform_auditor"] * len(pages)
    assert said("Nothing waits for a seal.") == shown
    read_row(world)
    assert said("1 row waits for a seal, for less than a minute.") == shown
    later = timezone.now() + timezone.timedelta(minutes=61)
    read_row(world)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seals.timezone, "now", lambda: later)
        sentence = "2 rows wait for a seal, the oldest for 1\xa0hour, 1\xa0minute."
        assert said(" ".join(sentence.split())) == shown
        if who == "platform_auditor":
            assert client.get(f"{API}/seals/").json()["waiting"]["rows"] == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("history_access.admin.waiting.MOST_COUNTED", 2)
        assert said("2 rows or more wait for a seal, the oldest for less than a minute.") == shown


def test_seals_maintenance_and_queries_say_what_they_are(world: World, rows: dict[Any, Any]):
    client = visitor(world, "platform_auditor")
    sealed, person = rows[Seal], type(world.mara).objects.get(username="platform_auditor")
    assert f"1 read {timezone.localtime(sealed.sealed_at):%Y-%m-%d %H:%M:%S} UTC 1 " in words(
        client.get(list_url(Seal))
    )
    for digest in (sealed.root, sealed.previous, sealed.digest):
        assert digest in words(client.get(row_url(sealed)))
    done = MaintenanceEvent.objects.create(
        kind=EventKind.ERASE, happened_at=NOON, by="ines", why="asked for", details={"values": 12}
    )
    assert "erased ines asked for values: 12" in words(client.get(list_url(MaintenanceEvent)))
    assert "Why: asked for Details: values: 12" in words(client.get(row_url(done)))
    client.get(f"{API}/reads/", {"crossed": "true"})
    shown = words(client.get(list_url(AuditQuery)))
    assert "platform_auditor reads crossed: true" in shown
    assert "7 (gone) reads –" in shown
    found = client.get(list_url(AuditQuery), {"q": str(person.pk)}).context["cl"].result_count
    assert found == AuditQuery.objects.exclude(by_id="7").count()


def test_refused_calls_show_recorded_names_and_never_what_was_asked_for(world: World, rows: dict[Any, Any]):
    recorded_name(world, "agent", str(world.agent.pk), "Digest as it was")
    client = visitor(world, "workspace_auditor")
    shown = words(client.get(list_url(Refusal), follow=True))
    assert "Digest as it was as 7 read_conversation conversation_unavailable conversation_id t" in shown
    assert "Argument: conversation_id" in words(client.get(row_url(rows[Refusal])))
    refusal_row(world, tool="", code="invalid_arguments", argument=None, turn_id="other")
    named = {"workspace": str(world.hollowbrook.pk)}
    for query, turns in (
        ({"tool": ""}, ["other"]),
        ({"code": "conversation_unavailable"}, ["t"]),
        ({"tool": "x"}, []),
    ):
        found = client.get(list_url(Refusal), {**named, **query}).context["cl"].result_list
        assert [row.turn_id for row in found] == turns, query


def test_hostile_words_are_inert(world: World):
    client = visitor(world, "platform_auditor")
    refusal = refusal_row(world, tool="<img src=x>", argument="<img src=x onerror=alert(1)>", turn_id=HOSTILE)
    done = MaintenanceEvent.objects.create(
        kind=EventKind.PRUNE, happened_at=NOON, by=HOSTILE, why=HOSTILE, details={HOSTILE: HOSTILE}
    )
    query = AuditQuery.objects.create(by_id=HOSTILE, asked="reads", filters={HOSTILE: HOSTILE}, asked_at=NOON)
    for row in (refusal, done, query):
        for page in (list_url(type(row)), row_url(row)):
            shown = body(client.get(page))
            assert SHOWN_HOSTILE in shown, page
            assert "<img src=x" not in shown, page
            assert "\u202e" not in shown, page


@pytest.mark.parametrize(
    ("who", "model"),
    [
        *(("platform_auditor", model) for model in MODELS),
        *(("workspace_auditor", model) for model in OF_WORKSPACES),
    ],
)
def test_a_page_takes_as_many_statements_for_sixty_rows_as_for_three(world: World, model: Any, who: str):
    client, counts, named = visitor(world, who), [], {"workspace": str(world.hollowbrook.pk)}
    for total in (3, 60):
        for number in range(total - model.objects.count()):
            _one_more(world, model, f"{total}-{number}")
        with CaptureQueriesContext(connection) as statements:
            page = client.get(list_url(model), named if model in OF_WORKSPACES else {})
        assert len(page.context["cl"].result_list) == min(total, 50) or model is AuditQuery
        counts.append(len(statements))
        if model is AuditQuery:
            continue
        counted = [one["sql"] for one in statements if "COUNT(" in one["sql"]]
        assert all(" LIMIT " in statement for statement in counted)
    assert counts[0] == counts[1]


def _one_more(world: World, model: Any, name: str) -> None:
    if model is TurnConversationRead:
        read_row(world, agent_id=name, reader_id=name, turn_account_id=name)
    elif model is Refusal:
        refusal_row(world, agent_id=name, reader_id=name)
    elif model is MaintenanceEvent:
        MaintenanceEvent.objects.create(kind=EventKind.PRUNE, happened_at=NOON, by="", why="", details={})
    elif model is AuditQuery:
        asker = world.person(name)
        AuditQuery.objects.create(by_id=str(asker.pk), asked="reads", filters={}, asked_at=NOON)
    else:
        read_row(world)
        list(seals.seal_batches())


def test_no_other_page_of_the_admin_asks_more_than_once_who_looks(world: World):
    """The index lists all five pages; what a person may audit is asked for once."""
    client = visitor(world, "workspace_auditor")
    with CaptureQueriesContext(connection) as statements:
        client.get("/admin/")
    rights = [one["sql"] for one in statements if "agent_platform_authority" in one["sql"]]
    assert len(rights) == 1
    assert set(MODELS) <= set(admin.site._registry)
