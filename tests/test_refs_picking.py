"""refs-discovery: a person finds what they could hand over; what is said of it is what then happens."""

import unicodedata
import uuid
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from history_access.agent_platform import services
from history_access.agent_platform.models import Agent, Session, Workspace
from history_access.models import TurnConversationRead, TurnReference
from history_access.references import (
    Desk,
    OfferPage,
    ReferencesError,
    attach_excerpt,
    bind_references,
    desk_for,
    desk_in,
    offerable_conversations,
    preview_conversation,
    take_back,
)
from history_access.references.picking import NothingToOfferError
from history_access.tools import toolset_for
from tests.worlds import NOON, World, runs_by_grant


@pytest.fixture
def desk(world: World) -> World:
    world.allow_references()
    return world


def here(world: World, **given: Any) -> Desk:
    return desk_for(world.mara, str(world.agent.pk), **given)


def offered(world: World, desk: Desk | None = None, **given: Any) -> list[str]:
    page = offerable_conversations(world.mara, desk or here(world), limit=50, **given)
    return [one.id for one in page.offers]


def titles(world: World, title: str) -> set[str]:
    return {one.title for one in offerable_conversations(world.mara, here(world), title=title).offers}


def test_refs_discovery_lists_what_a_person_can_open_newest_first(desk: World) -> None:
    other = Agent.objects.create(workspace=desk.hollowbrook, name="Other")
    elsewhere = Agent.objects.create(workspace=Workspace.objects.create(name="Elsewhere"), name="x")
    old, new = (desk.session("a", person=desk.mara, at=NOON.replace(day=day)) for day in (1, 2))
    theirs = desk.session("a", person=desk.operator, at=NOON.replace(day=3))
    nobodys = desk.session("a", at=NOON.replace(day=4))
    services.delete_session(desk.session("a", person=desk.mara))
    mine_there = desk.session("a", person=desk.mara, agent=other)
    desk.session("a", person=desk.mara, agent=elsewhere)
    assert offered(desk) == [str(new.pk), str(old.pk)]
    assert offered(desk, of_agent=str(other.pk)) == [str(mine_there.pk)]
    assert offered(desk, of_agent=str(elsewhere.pk)) == []
    desk.grant(desk.mara, agent=desk.agent)
    assert offered(desk) == [str(one.pk) for one in (nobodys, theirs, new, old)]
    desk.grant(desk.mara, agent=elsewhere)
    assert offered(desk, of_agent=str(elsewhere.pk)) == []
    turn = desk.turn(desk.mara)
    assert str(turn.session_id) not in offered(desk, desk_in(desk.mara, str(turn.session_id)))


def tries(world: World, turn: Any, session: Session) -> tuple[bool, bool]:
    """Whether a turn can be handed the conversation, and an excerpt of it: by trying."""

    def done(act: Any) -> bool:
        try:
            found = act()
        except ReferencesError:
            return False
        for reference in found:
            take_back(turn, reference)
        return True

    whole = done(lambda: bind_references(turn, [str(session.pk)]))
    return whole, done(lambda: [attach_excerpt(turn, session, messages=[1])])


SETTINGS = ["none", "same_account", "all_accounts"]
REFERENCES = ["none", "excerpts", "conversations"]


@pytest.mark.parametrize("references", REFERENCES)
@pytest.mark.parametrize("history", SETTINGS)
def test_refs_discovery_says_of_each_what_could_be_handed_over(
    world: World, history: str, references: str
) -> None:
    """Each flag is true exactly if the act then succeeds: a third of the cells is tried, or every one."""
    world.allow(history)
    world.allow_references(references)
    other = Agent.objects.create(workspace=world.hollowbrook, name="Other")
    world.grant(world.mara)
    for agent in (world.agent, other):
        for account in (None, world.acme, world.brightside):
            for person in (world.mara, world.operator):
                world.session("a", person=person, account=account, agent=agent)
    for account in (None, world.acme):
        turn = world.turn(world.mara, account=account)
        where = desk_in(world.mara, str(turn.session_id))
        assert replace(where, session_id=None) == here(world, account=account and str(account.pk))
        for agent in (world.agent, other):
            page = offerable_conversations(world.mara, where, of_agent=str(agent.pk), limit=50)
            assert len(page.offers) == 6 + (agent == world.agent and account is not None)
            for offer in page.offers:
                session = Session.objects.get(pk=offer.id)
                assert (offer.conversation, offer.excerpt) == tries(world, turn, session), offer


FOUND = {
    "Café Été": ["cafe", "CAFÉ ÉTÉ", "cafe\u0301 e\u0301te\u0301", "é é"],
    "STRASSE": ["straße", "strasse"],
    "Straße": ["STRASSE", "strasse", "raß"],
    "ΟΔΟΣ": ["οδος", "οδοσ", "ΟΔΟΣ"],
    "Жизнь ЁЛКА": ["жизнь", "елка", "ЁЛКА"],
    "100 % sure_": ["100 %", "%", "e_"],
    "a*b\\c": ["*", "\\", "A*B"],
    "見学の予約": ["見学", "予約"],
    "İstanbul": ["istanbul", "ISTANBUL"],
    "ﬁnal": ["final", "ＦＩ"],
    'it\'s "two  spaces"': ["IT'S", '"', "  "],
    "👩‍👩‍👧‍👦 family": ["👩‍👩‍👧‍👦", "👩"],
}


@pytest.mark.parametrize("title", FOUND)
def test_refs_discovery_finds_a_title_however_it_is_typed(desk: World, title: str) -> None:
    for one in FOUND:
        desk.session("a", person=desk.mara, title=one)
    for typed in FOUND[title]:
        assert title in titles(desk, typed), typed
        assert title in titles(desk, unicodedata.normalize("NFD", typed)), typed


@pytest.mark.parametrize("typed", ["%%", "a_b", "a%", ".*", "[a-z]", "c?fe", "sure%", "x", "' OR 1=1 --"])
def test_refs_discovery_knows_no_wildcards(desk: World, typed: str) -> None:
    for one in FOUND:
        desk.session("a", person=desk.mara, title=one)
    assert titles(desk, typed) == set()


@pytest.mark.parametrize("title", ["x" * 201, "a\0", "\ud800"])
def test_refs_discovery_a_title_that_is_none_is_refused(desk: World, title: str) -> None:
    with pytest.raises(ReferencesError) as caught:
        titles(desk, title)
    assert (caught.value.status, caught.value.field) == (422, "title")


def walked(world: World, limit: int, **given: Any) -> list[str]:
    ids, page = [], OfferPage(offers=(), next_cursor=None)
    while not ids or page.next_cursor:
        page = offerable_conversations(world.mara, here(world), limit=limit, cursor=page.next_cursor, **given)
        assert len(page.offers) <= limit
        ids += [one.id for one in page.offers]
    return ids


def test_refs_discovery_pages_are_exact_where_all_moved_at_once(desk: World) -> None:
    sessions = [desk.session("a", person=desk.mara, title=f"t{n % 2}") for n in range(9)]
    assert walked(desk, 2) == sorted((str(one.pk) for one in sessions), reverse=True)
    assert len(walked(desk, 2, title="T1")) == 4


def test_refs_discovery_a_page_has_fifty_at_most_and_one_at_least(desk: World) -> None:
    for _ in range(51):
        desk.session(person=desk.mara)
    for limit, most in ((50, 50), (51, 50), (2**70, 50), (1, 1), (0, 1), (-1, 1)):
        page = offerable_conversations(desk.mara, here(desk), limit=limit)
        assert (len(page.offers), page.next_cursor is None) == (most, False), limit


def test_refs_discovery_a_cursor_is_good_for_its_question_alone(desk: World) -> None:
    for _ in range(3):
        desk.session("a", person=desk.mara, title="t")
        desk.session("a", person=desk.operator, title="t")
    where = here(desk)
    cursor = offerable_conversations(desk.mara, where, limit=1).next_cursor
    other = Agent.objects.create(workspace=desk.hollowbrook, name="Other")
    for person, at, given in (
        (desk.operator, where, {}),
        (desk.mara, replace(where, account_id=desk.acme.pk), {}),
        (desk.mara, replace(where, session_id=desk.turn(desk.mara).session_id), {}),
        (desk.mara, replace(where, agent_id=other.pk), {"of_agent": desk.agent.pk}),
        (desk.mara, where, {"title": "t"}),
        (desk.mara, where, {"of_agent": desk.acme.pk}),
        (desk.mara, where, {"cursor": f"{cursor}x"}),
        (desk.mara, where, {"cursor": ""}),
    ):
        with pytest.raises(ReferencesError) as caught:
            offerable_conversations(person, at, **{"cursor": cursor, **given})
        assert (caught.value.status, caught.value.field) == (422, "cursor")


def test_refs_discovery_a_preview_shows_both_ends_cut(desk: World) -> None:
    long = desk.session(*(f"{n} " + "x" * 600 for n in range(1, 10)), person=desk.mara, title="Long")
    services.add_message(long, "tool", "no result")
    services.add_message(long, "person", "hidden", hidden=True)
    preview = preview_conversation(desk.mara, here(desk), str(long.pk))
    assert [one.number for one in preview.messages] == [1, 2, 3, 7, 8, 9]
    assert {len(one.text) for one in preview.messages} == {500}
    assert {one.characters for one in preview.messages} == {602}
    assert (preview.left_out, preview.offer.title, preview.offer.conversation) == (3, "Long", True)
    short = desk.session("a", "b", "c", "d", person=desk.mara)
    found = preview_conversation(desk.mara, here(desk), str(short.pk))
    assert ([one.text for one in found.messages], found.left_out) == (["a", "b", "c", "d"], 0)
    empty = desk.session(person=desk.mara)
    assert preview_conversation(desk.mara, here(desk), str(empty.pk)).messages == ()


def test_refs_discovery_a_preview_is_cut_where_a_character_ends(desk: World) -> None:
    session = desk.session("x" * 499 + "🇳🇱" + "y" * 1_000, "z" * 500, person=desk.mara)
    first, second = preview_conversation(desk.mara, here(desk), str(session.pk)).messages
    assert (first.text, first.characters) == ("x" * 499, 1_501)
    assert (second.text, second.characters) == ("z" * 500, 500)


def test_refs_discovery_a_preview_begins_where_a_conversation_was_trimmed(desk: World) -> None:
    session = desk.session(*(str(number) for number in range(1, 13)), person=desk.mara)
    services.trim_session(session, before=4)
    preview = preview_conversation(desk.mara, here(desk), str(session.pk))
    assert [one.number for one in preview.messages] == [4, 5, 6, 10, 11, 12]
    assert preview.left_out == 3


def test_reach_same_answer_for_what_a_person_cannot_open(desk: World) -> None:
    """A preview, and a desk in it: one answer and one number of statements, of a malformed id too."""
    other = Agent.objects.create(workspace=desk.hollowbrook, name="Other")
    foreign = Agent.objects.create(workspace=Workspace.objects.create(name="Elsewhere"), name="x")
    deleted = desk.session("a", person=desk.mara)
    services.delete_session(deleted)
    closed = {
        "nobody's": desk.session("a").pk,
        "another's with another agent": desk.session("a", person=desk.operator, agent=other).pk,
        "another workspace's": desk.session("a", person=desk.operator, agent=foreign).pk,
        "deleted": deleted.pk,
        "unknown": uuid.uuid4(),
    }
    inside = desk_in(desk.mara, str(desk.turn(desk.mara).session_id))
    for look in (
        lambda key: preview_conversation(desk.mara, here(desk), key),
        lambda key: preview_conversation(desk.mara, inside, key),
        lambda key: desk_in(desk.mara, key),
    ):
        found = {name: nothing(look, str(key)) for name, key in closed.items()}
        assert len(set(found.values())) == 1, found
        for malformed in ("7", "", "\0", "\ud800", "x" * 300):
            answer, statements = nothing(look, malformed)
            assert answer == found["unknown"][0]
            assert statements == found["unknown"][1]
    assert nothing(lambda key: preview_conversation(desk.mara, inside, key), str(inside.session_id))


def nothing(look: Any, key: str) -> tuple[str, int]:
    """The answer that there is nothing, and how many statements it took."""
    with CaptureQueriesContext(connection) as captured, pytest.raises(NothingToOfferError) as caught:
        look(key)
    return str(caught.value), len(captured)


def test_refs_discovery_needs_runs_read(desk: World, settings: Any) -> None:
    """Of the desk's agent, now; an agent that is none is one of nobody's."""
    session, where = desk.session("a", person=desk.mara), here(desk)
    other = Agent.objects.create(workspace=desk.hollowbrook, name="Other")
    runs_by_grant(settings)
    desk.grant(desk.mara, "runs:read", agent=other)
    agents = (str(desk.agent.pk), str(other.pk).upper(), str(uuid.uuid4()), "7", "", "x" * 300)
    for look in (
        lambda: offerable_conversations(desk.mara, where),
        lambda: preview_conversation(desk.mara, where, str(session.pk)),
        *(partial(desk_for, desk.mara, agent) for agent in agents),
    ):
        with pytest.raises(ReferencesError) as caught:
            look()
        assert caught.value.rule == "you lack the permission runs:read for this agent"
        assert caught.value.status == 403
    desk.grant(desk.mara, "runs:read", agent=desk.agent)
    assert offered(desk, where) == [str(session.pk)]


def test_refs_discovery_grants_nothing(desk: World) -> None:
    session, turn = desk.session("a", person=desk.mara), desk.turn(desk.mara)
    where = desk_in(desk.mara, str(turn.session_id))
    offered(desk, where)
    preview_conversation(desk.mara, where, str(session.pk))
    assert toolset_for(turn).names == ()
    assert not TurnReference.objects.exists() and not TurnConversationRead.objects.exists()


def test_refs_discovery_needs_an_active_person_who_may_run_the_agent(desk: World) -> None:
    desk.session("a", person=desk.mara)
    where = here(desk)
    type(desk.mara).objects.update(is_active=False)
    with pytest.raises(ReferencesError) as caught:
        offerable_conversations(desk.mara, where)
    assert (caught.value.status, caught.value.code) == (403, "not_permitted")


@pytest.mark.parametrize("number", [1, 60])
def test_refs_discovery_takes_a_constant_number_of_statements(desk: World, number: int) -> None:
    sessions = [desk.session("a", "b", person=desk.mara, title="t") for _ in range(number)]
    where = here(desk)
    with CaptureQueriesContext(connection) as listed:
        offerable_conversations(desk.mara, where, title="t", limit=50)
    with CaptureQueriesContext(connection) as previewed:
        preview_conversation(desk.mara, where, str(sessions[0].pk))
    assert (len(listed), len(previewed)) == (4, 6)
