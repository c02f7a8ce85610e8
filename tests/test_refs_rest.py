"""refs-per-turn, refs-admission, refs-discovery over REST: the answers, and the words, of Python."""

import json
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from drf_spectacular.validation import validate_schema
from jsonschema import Draft202012Validator

from history_access.agent_platform import services
from history_access.agent_platform.models import Agent, Workspace
from history_access.api.bodies import MOST_BYTES
from history_access.models import TurnConversationRead, TurnReference
from history_access.references import ReferencesError, bind_references, references_block
from history_access.references.addresses import MOST_CHARACTERS
from history_access.references.binding import MOST_SUBMITTED
from history_access.tools import toolset_for
from tests.audits import problem
from tests.golden import FOLDER, text
from tests.golden_openapi import references_openapi
from tests.worlds import World, error, read

API = "/api/references"
PAGE = "https://hollowbrook.example/conversations/"


@pytest.fixture
def shared(open_world: World) -> World:
    """Everything may be handed over, and history is off."""
    open_world.set("conversation_references", platform=True, ceiling="conversations")
    open_world.set("conversation_references", agent=open_world.agent, value="conversations")
    return open_world


def client(person: Any) -> Client:
    found = Client(raise_request_exception=True)
    found.force_login(person)
    return found


def post(person: Any, address: str, sent: Any) -> HttpResponse:
    return client(person).post(f"{API}/{address}", json.dumps(sent), content_type="application/json")


def hand_over(person: Any, turn: Any, *submitted: Any, **given: Any) -> HttpResponse:
    return post(person, f"turns/{turn.pk}/references/", {"conversation_references": submitted, **given})


def test_a_person_hands_over_reads_and_takes_back(shared: World) -> None:
    old = shared.session("hello", "there", person=shared.mara, title="Lake trip")
    turn = shared.turn(shared.mara)
    page = client(shared.mara).get(
        f"{API}/conversations/", {"conversation": turn.session_id, "title": "LAKE"}
    )
    [offer] = page.json()["offers"]
    assert (offer["id"], offer["conversation"], offer["excerpt"]) == (str(old.pk), True, True)
    asked = {"conversation": turn.session_id}
    preview = client(shared.mara).get(f"{API}/conversations/{old.pk}/", asked).json()
    assert [one["text"] for one in preview["messages"]] == ["hello", "there"]
    assert toolset_for(turn).names == () and not TurnReference.objects.exists()
    [bound] = hand_over(shared.mara, turn, offer["link"], submission_key="one").json()["references"]
    [again] = hand_over(shared.mara, turn, str(old.pk), submission_key="one").json()["references"]
    assert bound == again
    assert read(toolset_for(turn), old.pk)["by"] == "reference"
    address = f"{API}/turns/{turn.pk}/references/{bound['id']}/"
    assert [client(shared.mara).delete(address).status_code for _ in range(2)] == [204, 204]
    refused = toolset_for(turn).call("read_conversation", {"conversation_id": str(old.pk)})
    assert error(refused)["code"] == "history_unavailable"
    [kept] = client(shared.mara).get(f"{API}/turns/{turn.pk}/references/").json()["references"]
    assert kept["ended_at"] is not None


def test_a_person_attaches_an_excerpt(shared: World) -> None:
    old = shared.session("hello", "there you are", person=shared.mara)
    turn = shared.turn(shared.mara)
    sent = {"conversation": f"{PAGE}{old.pk}", "messages": [1, {"number": 2, "start": 6, "end": 9}]}
    assert post(shared.mara, f"turns/{turn.pk}/excerpts/", sent).json()["kind"] == "excerpt"
    [excerpt] = references_block(turn).excerpts
    assert [one.quoted.text for one in excerpt.messages] == ["hello", "you"]
    [row] = TurnConversationRead.objects.all()
    assert (row.how, row.what, row.first_number, row.last_number) == ("reference", "excerpt", 1, 2)
    assert toolset_for(turn).names == ()


def test_record_or_nothing_holds_under_atomic_requests(shared: World, monkeypatch: Any) -> None:
    """The excerpt is recorded in a transaction of its own, whatever the host wraps its views in."""
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    old, turn = shared.session("hello", person=shared.mara), shared.turn(shared.mara)
    assert hand_over(shared.mara, turn, str(old.pk)).status_code == 200
    sent = {"conversation": str(old.pk), "messages": [1]}
    assert post(shared.mara, f"turns/{turn.pk}/excerpts/", sent).status_code == 200
    assert TurnConversationRead.objects.filter(what="excerpt").count() == 1


REFUSED = {
    "a foreign address": (["https://elsewhere.example/conversations/7"], 422, "conversation_references[0]"),
    "no conversation": (["7"], 422, "conversation_references[0]"),
    "a number": ([7], 422, "conversation_references[0]"),
    "no list": ("7", 422, "conversation_references"),
    "four": (["1", "2", "3", "4"], 422, "conversation_references"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refusals_have_the_words_that_python_has(shared: World, kind: str) -> None:
    submitted, status, field = REFUSED[kind]
    turn = shared.turn(shared.mara)
    sent = {"conversation_references": submitted}
    found = problem(post(shared.mara, f"turns/{turn.pk}/references/", sent), status)
    with pytest.raises(ReferencesError) as caught:
        bind_references(turn, submitted)
    assert (found["detail"], found["code"]) == (str(caught.value), caught.value.code)
    assert (caught.value.status, caught.value.field) == (status, field)
    assert found["errors"] == [{"parameter": field, "rule": caught.value.rule}]


def test_switched_off_is_400_and_another_use_of_a_key_409(shared: World) -> None:
    old, other = (shared.session("hello", person=shared.mara) for _ in range(2))
    turn = shared.turn(shared.mara)
    hand_over(shared.mara, turn, str(old.pk), submission_key="one")
    problem(hand_over(shared.mara, turn, str(other.pk), submission_key="one"), 409)
    shared.set("conversation_references", agent=shared.agent, value="excerpts")
    problem(hand_over(shared.mara, turn, str(old.pk)), 400)
    assert TurnReference.objects.count() == 1


@pytest.mark.parametrize(
    "sent",
    [[], "x", {}, {"conversation_references": [], "acount": 1}, {"conversation_references": [], "turn": "7"}],
    ids=repr,
)
def test_a_body_that_is_none_is_400_and_names_the_field(shared: World, sent: Any) -> None:
    turn = shared.turn(shared.mara)
    assert problem(post(shared.mara, f"turns/{turn.pk}/references/", sent), 400)["errors"]


def test_case_9_nobody_but_its_sender_hands_anything_to_a_turn(shared: World) -> None:
    """The same answer for another person's turn, a trigger's and none, on every address and method."""
    old = shared.session("hello", person=shared.mara)
    other = shared.person("other")
    shared.grant(other)
    trigger = services.create_trigger(shared.agent, kind="schedule", name="s", by=other)
    turns = [str(shared.turn(shared.mara).pk), str(shared.turn(trigger=trigger).pk), str(shared.agent.pk)]
    turns += ["7", "a" * 300, turns[0].upper(), "%00"]
    answers = set()
    for turn in turns:
        sent = {"conversation_references": [str(old.pk)]}
        excerpt = {"conversation": str(old.pk), "messages": [1]}
        for response in (
            client(other).get(f"{API}/turns/{turn}/references/"),
            post(other, f"turns/{turn}/references/", sent),
            post(other, f"turns/{turn}/excerpts/", excerpt),
            client(other).delete(f"{API}/turns/{turn}/references/{old.pk}/"),
        ):
            answers.add(json.dumps(problem(response, 404), sort_keys=True))
    assert len(answers) == 1 and not TurnReference.objects.exists()


def test_case_9_a_conversation_that_a_person_cannot_open_is_like_none(shared: World) -> None:
    turn = shared.turn(shared.mara)
    deleted = shared.session("a", person=shared.mara)
    services.delete_session(deleted)
    elsewhere = Agent.objects.create(workspace=Workspace.objects.create(name="Elsewhere"), name="x")
    keys = [
        shared.session("a", person=shared.operator).pk,
        shared.session("a").pk,
        shared.session("a", person=shared.mara, agent=elsewhere).pk,
        deleted.pk,
        turn.session_id,
        shared.agent.pk,
        "7",
    ]
    answers = set()
    for key in keys:
        response = client(shared.mara).get(f"{API}/conversations/{key}/", {"conversation": turn.session_id})
        answers.add(json.dumps(problem(response, 404), sort_keys=True))
    for key in (*keys[:4], "7"):
        if key != keys[2]:  # her own, with an agent elsewhere: a desk of hers, where this one is not offered
            response = client(shared.mara).get(f"{API}/conversations/", {"conversation": key})
            answers.add(json.dumps(problem(response, 404), sort_keys=True))
    assert len(answers) == 1


def test_a_new_conversation_has_an_agent_and_perhaps_an_account(shared: World) -> None:
    shared.session("a", person=shared.mara, account=shared.acme)
    shared.session("a", person=shared.mara)
    for account, wanted in ((None, [True, False]), (shared.acme, [False, True])):
        asked = {"agent": str(shared.agent.pk)} | ({"account": str(account.pk)} if account else {})
        offers = client(shared.mara).get(f"{API}/conversations/", asked).json()["offers"]
        assert [one["conversation"] for one in offers] == wanted
    for asked in (
        {},
        {"agent": "7", "conversation": "7"},
        {"conversation": "7", "account": "7"},
        {"agent": str(shared.agent.pk), "limit": "0"},
        {"agent": str(shared.agent.pk), "limit": "51"},
        {"agent": str(shared.agent.pk), "titel": "x"},
        {"agent": str(shared.agent.pk), "title": ""},
        {"agent": str(shared.agent.pk), "title": "\0"},
    ):
        assert problem(client(shared.mara).get(f"{API}/conversations/", asked), 400)["errors"]
    problem(client(shared.mara).get(f"{API}/conversations/", {"agent": "7"}), 403)


def test_whoever_is_not_known_or_not_active_is_refused_everywhere(shared: World) -> None:
    turn = shared.turn(shared.mara)
    gone = client(shared.mara)
    type(shared.mara).objects.filter(pk=shared.mara.pk).update(is_active=False)
    for visitor in (Client(), gone):
        for address in (f"turns/{turn.pk}/references/", f"conversations/?conversation={turn.session_id}"):
            problem(visitor.get(f"{API}/{address}"), 403)
        sent = {"conversation_references": []}
        problem(visitor.post(f"{API}/turns/{turn.pk}/references/", sent, "application/json"), 403)


def test_a_session_needs_its_csrf_token(shared: World) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(shared.mara)
    address = f"{API}/turns/{shared.turn(shared.mara).pk}/references/"
    problem(strict.post(address, {"conversation_references": []}, "application/json"), 403)


ODD_BODIES = [
    (400, '{"\\ud800": 1}'),
    (422, '{"conversation_references": ["\\ud800"]}'),
    (400, "[" * 100_000),
    (400, '{"conversation_references": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    (400, '{"conversation_references": [NaN]}'),
    (400, '{"conversation_references": [' + "9" * 5_000 + "]}"),
    (400, '{"conversation_references": ["\xff"]}'),
    (413, '{"conversation_references": ["' + "x" * MOST_BYTES + '"]}'),
    (422, '{"conversation_references": ""}'),
]


def test_a_body_that_is_odd_is_refused_and_never_fails(shared: World) -> None:
    address = f"{API}/turns/{shared.turn(shared.mara).pk}/references/"
    visitor = client(shared.mara)
    for status, sent in ODD_BODIES:
        problem(visitor.post(address, sent.encode("latin-1"), content_type="application/json"), status)
    for form in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        problem(visitor.post(address, b"conversation_references=7", content_type=form), 415)
    assert not TurnReference.objects.exists()


def test_the_longest_submission_is_no_body_too_long(shared: World) -> None:
    turn = shared.turn(shared.mara)
    longest = ["\u2028" * MOST_CHARACTERS] * MOST_SUBMITTED
    found = problem(hand_over(shared.mara, turn, *longest), 422)
    assert found["errors"][0]["parameter"] == "conversation_references[0]"


def test_a_conversation_for_an_excerpt_is_a_text(shared: World) -> None:
    turn = shared.turn(shared.mara)
    for odd in (7, None, True, ["7"], {"id": "7"}):
        response = post(shared.mara, f"turns/{turn.pk}/excerpts/", {"conversation": odd, "messages": [1]})
        [error_of] = problem(response, 400)["errors"]
        assert error_of["parameter"] == "conversation" and "must be text" in error_of["rule"]


def test_the_description_is_the_golden_one_and_valid() -> None:
    """After a change that is meant, `make golden` writes it anew."""
    described = references_openapi()
    assert (FOLDER / "openapi-references.json").read_text(encoding="utf-8") == text(described)
    validate_schema(described)
    for component in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(component)
