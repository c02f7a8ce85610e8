"""Handing over, and REST for people and for auditors: every key is an integer in its one spelling."""

import json
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from history_access.models import TurnConversationRead, TurnReference
from history_access.record import drawn_on
from history_access.references import (
    ReferencesError,
    attach_excerpt,
    bind_references,
    desk_in,
    offerable_conversations,
    preview_conversation,
    references_block,
    references_of,
    take_back,
)
from history_access.tools import toolset_for
from tests.second_platform.desk import Desk, text
from tests.second_platform.guarantees_reading import IMAGE, page_of, words
from tests.second_platform.models import Entry, Run, Staff

API = "/api/references"


@pytest.fixture
def sharing(desk: Desk) -> Desk:
    """Everything may be handed over, and history is off."""
    desk.allow("conversations", "conversation_references")
    return desk


def client(person: Staff) -> Client:
    found = Client()
    found.force_login(person)
    return found


def told(response: HttpResponse, status: int = 200) -> Any:
    assert response.status_code == status, response.content
    return json.loads(response.content)


def post(person: Staff, address: str, sent: Any) -> HttpResponse:
    return client(person).post(f"{API}/{address}", json.dumps(sent), content_type="application/json")


def test_refs_per_turn_by_id_and_by_address_and_read_by_reference(sharing: Desk) -> None:
    first, second, third = (sharing.thread("a", str(i), person=sharing.nils) for i in range(3))
    run = sharing.run(sharing.nils)
    bound = bind_references(
        run,
        [
            str(first.pk),
            f"https://desk.example/threads/{second.pk}",
            f"https://bots.example/{sharing.otter.pk}/threads/{third.pk}",
            f"https://desk.example/threads/{first.pk}",
        ],
        submission_key="one",
    )
    assert [one.conversation_id for one in bound] == [str(one.pk) for one in (first, second, third)]
    tools = toolset_for(run)
    assert tools.names == ("read_conversation",)
    page = page_of(tools, second)
    assert page["by"] == "reference" and words(page) == ["a", "1"]
    assert TurnConversationRead.objects.get().how == "reference"
    block = references_block(run)
    assert [one.id for one in block.conversations] == [str(one.pk) for one in (first, second, third)]
    assert take_back(run, bound[1])
    refused = tools.call("read_conversation", {"conversation_id": str(second.pk)})
    assert refused["error"]["code"] == "conversation_unavailable"
    assert len(references_block(run).conversations) == 2


REFUSED = {
    "another bot in the address": "https://bots.example/{other}/threads/{id}",
    "the bot spelt another way": "https://bots.example/0{bot}/threads/{id}",
    "a foreign origin": "https://elsewhere.example/threads/{id}",
    "a leading zero": "https://desk.example/threads/0{id}",
    "no such thread": "987654",
    "beyond the column": str(2**40),
    "beyond any column": str(2**70),
    "negative": "-{id}",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refs_per_turn_refuses_all_or_nothing(sharing: Desk, kind: str) -> None:
    old, good = (sharing.thread("a", person=sharing.nils) for _ in range(2))
    run = sharing.run(sharing.nils)
    other = sharing.bot("Seal")
    bad = REFUSED[kind].format(id=old.pk, bot=sharing.otter.pk, other=other.pk)
    with pytest.raises(ReferencesError) as caught:
        bind_references(run, [str(good.pk), bad])
    assert (caught.value.status, caught.value.field) == (422, "conversation_references[1]")
    assert not TurnReference.objects.exists()


def test_refs_admission_asks_the_desk_s_roles(sharing: Desk) -> None:
    guest = sharing.staff("guest")
    old = sharing.thread("a", person=guest)
    run = sharing.run(guest)
    with pytest.raises(ReferencesError) as caught:
        bind_references(run, [str(old.pk)])
    assert caught.value.status == 403
    sharing.member(guest, sharing.team, "agent")
    assert bind_references(run, [str(old.pk)])
    Run.objects.filter(pk=run.pk).update(state="done")
    assert not toolset_for(run)
    assert [one.ended_at for one in references_of(run)] == [None]  # this desk does not keep when
    with pytest.raises(ReferencesError) as caught:
        bind_references(run, [str(old.pk)])
    assert caught.value.status == 403


def test_refs_two_kinds_an_excerpt_of_parts_stays_as_it_was(sharing: Desk) -> None:
    old = sharing.thread("question", [text("one"), IMAGE, text("two")], person=sharing.nils)
    run = sharing.run(sharing.nils)
    attach_excerpt(run, old, messages=[1, {"number": 2, "start": 2, "end": 6}])
    Entry.objects.filter(session=old).update(parts=[text("changed")])
    [excerpt] = references_block(run).excerpts
    assert [(one.speaker, one.quoted.name, one.quoted.text) for one in excerpt.messages] == [
        ("person", "Nils Berg", "question"),
        ("agent", "Otter", "e\ntw"),
    ]
    assert not toolset_for(run)


def test_refs_discovery_offers_and_previews_what_one_can_open(sharing: Desk) -> None:
    mine = sharing.thread("hi", [IMAGE], "x" * 900, person=sharing.nils, title="Fähre nach Bodø")
    sharing.thread("a", person=sharing.ingrid, title="Fähre")
    sharing.thread("a", person=sharing.nils, title="Fähre", status="deleted")
    sharing.thread("a", person=sharing.nils, title=None)
    run = sharing.run(sharing.nils, title="now")
    where = desk_in(sharing.nils, str(run.session_id))
    [offer] = offerable_conversations(sharing.nils, where, title="fahre").offers
    assert (offer.id, offer.conversation, offer.excerpt) == (str(mine.pk), True, True)
    preview = preview_conversation(sharing.nils, where, str(mine.pk))
    shown = [(one.speaker, len(one.text), one.characters) for one in preview.messages]
    assert shown == [("person", 2, 2), ("agent", 0, 0), ("person", 500, 900)]


def test_refs_discovery_and_refs_per_turn_over_rest(sharing: Desk) -> None:
    old = sharing.thread("hello", "there", person=sharing.nils)
    run = sharing.run(sharing.nils)
    page = told(client(sharing.nils).get(f"{API}/conversations/", {"conversation": run.session_id}))
    assert [one["id"] for one in page["offers"]] == [str(old.pk)]
    page = told(client(sharing.nils).get(f"{API}/conversations/", {"agent": sharing.otter.pk}))
    assert {one["id"] for one in page["offers"]} == {str(old.pk), str(run.session_id)}
    preview = told(
        client(sharing.nils).get(f"{API}/conversations/{old.pk}/", {"conversation": run.session_id})
    )
    assert [one["speaker"] for one in preview["messages"]] == ["person", "agent"]
    sent = {"conversation_references": [str(old.pk)]}
    [bound] = told(post(sharing.nils, f"turns/{run.pk}/references/", sent))["references"]
    told(post(sharing.nils, f"turns/{run.pk}/excerpts/", {"conversation": str(old.pk), "messages": [1]}))
    assert page_of(toolset_for(run), old)["by"] == "reference"
    address = f"{API}/turns/{run.pk}/references/"
    assert client(sharing.nils).delete(f"{address}{bound['id']}/").status_code == 204
    kinds = [
        (one["kind"], one["ended_at"] is None)
        for one in told(client(sharing.nils).get(address))["references"]
    ]
    assert kinds == [("conversation", False), ("excerpt", True)]


def test_reach_same_answer_for_odd_keys_over_rest(sharing: Desk) -> None:
    """As the key of a turn, of a conversation, of an agent and of an account."""
    old = sharing.thread("hello", person=sharing.nils, account=sharing.ferry)
    run = sharing.run(sharing.nils)
    person, here, new = client(sharing.nils), {"conversation": run.session_id}, {"agent": sharing.otter.pk}
    keys = {"turn": run.pk, "thread": old.pk, "bot": sharing.otter.pk, "client": sharing.ferry.pk}

    def asked(**spelt: Any) -> dict[str, tuple[int, bytes]]:
        answers = {
            "turn": person.get(f"{API}/turns/{spelt['turn']}/references/"),
            "thread": person.get(f"{API}/conversations/{spelt['thread']}/", here),
            "desk": person.get(f"{API}/conversations/", {"conversation": spelt["thread"]}),
            "bot": person.get(f"{API}/conversations/", {"agent": spelt["bot"]}),
            "of bot": person.get(f"{API}/conversations/", {**here, "of_agent": spelt["bot"]}),
            "client": person.get(f"{API}/conversations/", {**new, "account": spelt["client"]}),
        }
        return {name: (answer.status_code, answer.content) for name, answer in answers.items()}

    assert {status for status, _ in asked(**keys).values()} == {200}
    unknown = asked(**dict.fromkeys(keys, "987654"))
    for odd in OVER_REST:
        found = asked(**{name: odd.format(key) for name, key in keys.items()})
        for name in ("turn", "thread", "desk", "bot"):
            assert found[name] == unknown[name], (name, odd)
        for name, refused in (("of bot", 422), ("client", 403)):
            # An integer that the column can hold is nobody's key, but a key.
            assert found[name][0] == refused or (odd in FREE and found[name] == unknown[name]), (name, odd)


FREE = ("-{}", str(2**31))
OVER_REST = ("0{}", "+{}", "{} ", "٧", "x", str(2**63), str(2**70), *FREE)


def test_record_both_ways_for_the_auditors_of_a_firm(sharing: Desk) -> None:
    sharing.allow()
    old = sharing.thread("hello", person=sharing.nils)
    run = sharing.run(sharing.nils)
    page_of(toolset_for(run), old)
    auditor = sharing.staff("auditor", "auditor")
    firm = {"workspace": sharing.firm.pk}
    for person, given in ((auditor, firm), (sharing.ingrid, {}), (sharing.ingrid, firm)):
        [row] = told(client(person).get("/api/history/reads/", given))["results"]
        assert (row["turn_id"], row["conversation_id"]) == (str(run.pk), str(old.pk)), row
    for address in (f"turns/{run.pk}/conversations/", f"conversations/{old.pk}/turns/", "refusals/"):
        told(client(auditor).get(f"/api/history/{address}", firm))
        told(client(sharing.nils).get(f"/api/history/{address}", firm), 404)
    for key in (f"0{sharing.firm.pk}", str(2**40), str(2**70), "-1", "x"):
        told(client(auditor).get("/api/history/reads/", {"workspace": key}), 404)
    told(client(auditor).get(f"/api/history/agents/{sharing.otter.pk}/history-access/", firm))
    Staff.objects.filter(pk=auditor.pk).update(state="left")
    assert client(auditor).get("/api/history/reads/", firm).status_code in (403, 404)


@pytest.fixture
def plain(desk: Desk, settings: Any) -> Desk:
    """The desk over views: no clients, no digests, no rules, and columns where there were relations."""
    given = dict(settings.HISTORY_ACCESS)
    del given["TRIGGER_MODEL"]
    models = {"SESSION_MODEL": "PlainThread", "MESSAGE_MODEL": "PlainEntry", "TURN_MODEL": "PlainRun"}
    settings.HISTORY_ACCESS = given | {name: f"desk.{model}" for name, model in models.items()}
    desk.allow()
    desk.allow("conversations", "conversation_references")
    return desk


def test_reach_and_tool_read_over_views_that_lack_what_may_be_lacking(plain: Desk) -> None:
    from django.core.management import call_command

    call_command("check", databases=["default"], fail_level="WARNING")
    old = plain.thread("hello", [text("one"), text("two")], person=plain.nils, account=plain.ferry)
    plain.thread("a", person=plain.nils, status="deleted")
    plain.thread("a", person=plain.ingrid)
    run = plain.run(plain.nils)
    tools = toolset_for(run.pk)
    page = tools.call("list_conversations", {})
    [one] = page["conversations"]
    assert (one["id"], one["account_id"], page["time_zone"]) == (str(old.pk), None, "Atlantic/Reykjavik")
    page = page_of(tools, old)
    shown = [(m["speaker"], m["quoted"]["name"], m["quoted"]["text"]) for m in page["messages"]]
    assert shown == [("person", None, "hello"), ("agent", None, "one\ntwo")]
    assert page["unavailable"] is None and page_of(tools, old, start=-1)["unavailable"] is None
    assert page_of(tools, old, view="summary")["summary"] is None
    assert drawn_on(run.pk).accounts == {None} and not drawn_on(run.pk).webhook
    [bound] = bind_references(run.pk, [str(old.pk)])
    attach_excerpt(run.pk, str(old.pk), messages=[2])
    assert references_block(run.pk).excerpts[0].messages[0].quoted.text == "one\ntwo"
    where = desk_in(plain.nils, str(run.session_id))
    assert [one.id for one in offerable_conversations(plain.nils, where).offers] == [str(old.pk)]
    assert take_back(run.pk, bound) and references_of(run.pk)[0].ended_at is not None
    Run.objects.filter(pk=run.pk).update(state="done")
    assert not toolset_for(run.pk)
