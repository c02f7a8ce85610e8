"""refs-two-kinds, of excerpts: chosen words, copied once for one turn, with no right to read more."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from history_access.agent_platform import services
from history_access.agent_platform.models import Agent, Message, Session, Turn, Workspace
from history_access.erasing import erase_conversations, erase_person
from history_access.models import ExcerptText, TurnConversationRead, TurnReference
from history_access.reach import NoTurnError
from history_access.record import HistoryUnavailableError
from history_access.references import (
    Piece,
    ReferencesError,
    attach_excerpt,
    bind_references,
    references_block,
    references_of,
    take_back,
)
from history_access.references.block import ExcerptMessage
from history_access.tools import Toolset, toolset_for
from tests.worlds import World, error

FLAG = "🇳🇱"
FAMILY = "👩‍👩‍👧‍👦"


@pytest.fixture
def desk(world: World) -> World:
    """The agent may be handed excerpts alone, and reads nothing by itself."""
    world.allow_references("excerpts")
    return world


def attached(turn: Turn, conversation: Any, messages: Sequence[Any]) -> list[ExcerptMessage]:
    """The messages of a fresh excerpt, as the turn's model is shown them."""
    reference = attach_excerpt(turn, conversation, messages=messages)
    assert (reference.kind, reference.ended_at) == ("excerpt", None)
    return references_block(turn).excerpts[-1].messages


def refused(turn: Turn, conversation: Any, messages: Any) -> ReferencesError:
    """The refusal of an excerpt, of which nothing must be left."""
    before = kept()
    with pytest.raises(ReferencesError) as caught:
        attach_excerpt(turn, conversation, messages=messages)
    assert kept() == before
    return caught.value


def kept() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (TurnReference, ExcerptText, TurnConversationRead))


def texts(messages: Sequence[ExcerptMessage]) -> list[str]:
    return [one.quoted.text for one in messages]


# What is copied


def test_refs_two_kinds_an_excerpt_is_quoted_with_its_source(desk: World) -> None:
    session = desk.session(
        "Two eggs?", "Three.", "Good.", person=desk.mara, title="Breakfast", account=desk.acme
    )
    turn = desk.turn(desk.mara, account=desk.acme)
    attach_excerpt(turn, session, messages=[3, 1])
    [excerpt] = references_block(turn).excerpts
    assert (excerpt.conversation_id, excerpt.account_id) == (str(session.pk), str(desk.acme.pk))
    assert (excerpt.quoted.title, excerpt.quoted.account) == ("Breakfast", "Acme")
    assert excerpt.link == f"https://hollowbrook.example/conversations/{session.pk}"
    first, last = excerpt.messages
    assert first.model_dump() == {
        "number": 1,
        "speaker": "person",
        "at": "2026-11-29T12:00:00-05:00",
        "quoted": {"name": "mara", "text": "Two eggs?"},
        "offset": 0,
        "total": 9,
        "truncated": False,
    }
    assert (last.number, last.speaker, last.quoted.text) == (3, "person", "Good.")


def test_refs_two_kinds_an_excerpt_names_its_conversation_in_any_way(desk: World) -> None:
    session = desk.session("words", person=desk.mara)
    address = f"https://hollowbrook.example/conversations/{session.pk}"
    for conversation in (session, session.pk, str(session.pk), address):
        assert texts(attached(desk.turn(desk.mara), conversation, [1])) == ["words"]


CHANGES: dict[str, Callable[[Session], Any]] = {
    "edited": lambda one: Message.objects.filter(session=one).update(text="Else."),
    "retitled": lambda one: Session.objects.filter(pk=one.pk).update(title="Else."),
    "hidden": lambda one: Message.objects.filter(session=one).update(hidden=True),
    "trimmed": lambda one: services.trim_session(one, before=9),
    "deleted": services.delete_session,
    "gone": lambda one: Session.objects.get(pk=one.pk).delete(),
    "another's": lambda one: Session.objects.filter(pk=one.pk).update(person=None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_refs_two_kinds_an_excerpt_is_fixed_when_its_source_changes(desk: World, change: str) -> None:
    session = desk.session("Two eggs?", "Three.", person=desk.mara, title="Breakfast")
    turn = desk.turn(desk.mara)
    attach_excerpt(turn, session, messages=[1, {"number": 2, "end": 3}])
    before = references_block(turn)
    assert [texts(one.messages) for one in before.excerpts] == [["Two eggs?", "Thr"]]
    CHANGES[change](session)
    assert references_block(turn) == before


def test_refs_two_kinds_erasing_the_conversation_reaches_its_excerpts(desk: World) -> None:
    """record-erasure: the words go; that something was attached stays."""
    session = desk.session("Two eggs?", person=desk.mara)
    turn = desk.turn(desk.mara)
    reference = attach_excerpt(turn, session, messages=[1])
    assert references_block(turn)
    erase_conversations([session], by="operator", why="they asked")
    assert not references_block(turn)
    assert references_of(turn) == (reference,)
    assert "eggs" not in str(list(ExcerptText.objects.values()))


def test_refs_two_kinds_erasing_the_person_reaches_their_excerpts(desk: World) -> None:
    """Whoever handed it over: the words are those of the person whose conversation it was."""
    desk.grant(desk.operator)
    session = desk.session("Two eggs?", person=desk.mara)
    other = desk.session("Not hers.", person=desk.operator)
    turn = desk.turn(desk.operator)
    attach_excerpt(turn, session, messages=[1])
    attach_excerpt(turn, other, messages=[1])
    erase_person(desk.mara, by="operator", why="they asked")
    assert [texts(one.messages) for one in references_block(turn).excerpts] == [["Not hers."]]
    assert "eggs" not in str(list(ExcerptText.objects.values()))
    assert len(references_of(turn)) == 2


# Ranges


def test_refs_two_kinds_ranges_are_of_characters(desk: World) -> None:
    """Code points, as the caps count them; an end beyond the end is the end."""
    session = desk.session(f"a{FLAG}é漢z", "second", person=desk.mara)
    ranges: dict[Any, str] = {
        1: f"a{FLAG}é漢z",
        (0, None): f"a{FLAG}é漢z",
        (1, 3): FLAG,
        (3, 5): "é漢",
        (5, 6): "z",
        (5, 900): "z",
        (0, 10**30): f"a{FLAG}é漢z",
    }
    for chosen, text in ranges.items():
        piece = {"number": 1, "start": chosen[0], "end": chosen[1]} if isinstance(chosen, tuple) else chosen
        [one] = attached(desk.turn(desk.mara), session, [piece])
        start = chosen[0] if isinstance(chosen, tuple) else 0
        assert (one.quoted.text, one.offset, one.total, one.truncated) == (text, start, 6, False)
    same = [Piece(number=1, start=1, end=3), {"number": 1, "start": 1, "end": 3}]
    assert {texts(attached(desk.turn(desk.mara), session, [one]))[0] for one in same} == {FLAG}


BAD_PIECES: list[Any] = [
    0.5,
    1.0,
    "1",
    True,
    None,
    [1],
    -1,
    2**31,
    10**30,
    {},
    {"number": None},
    {"start": 0},
    {"number": 1, "text": "x"},
    {"number": 1, "start": -1},
    {"number": 1, "start": True},
    {"number": 1, "start": 3, "end": 3},
    {"number": 1, "start": 3, "end": 2},
    {"number": 1, "end": 0},
    {"number": 1, "end": 1.5},
    {"number": 1, "start": 10**30},
    Piece(number=1, start=3, end=1),
]


@pytest.mark.parametrize("piece", BAD_PIECES, ids=repr)
def test_refs_two_kinds_a_bad_piece_is_refused(desk: World, piece: Any) -> None:
    session = desk.session("words", "more", person=desk.mara)
    found = refused(desk.turn(desk.mara), session, [2, piece])
    assert (found.status, found.field) == (422, "messages[1]")
    assert found.rule.startswith("must be a message's number, or {number, start, end}")


BAD_LISTS: dict[str, tuple[Any, str, str]] = {
    "none": ([], "messages", "must choose 1 to 50 messages"),
    "too many": (list(range(1, 52)), "messages", "must choose 1 to 50 messages"),
    "twice": ([1, 2, {"number": 1, "start": 1}], "messages", "must choose each message once"),
    "text": ("1", "messages", "must be a list"),
    "a set": ({1}, "messages", "must be a list"),
    "nothing": (None, "messages", "must be a list"),
    "not there": ([1, 3], "messages[1]", "there is no such message to quote"),
    "number 0": ([0], "messages[0]", "there is no such message to quote"),
    "beyond its end": ([{"number": 1, "start": 5}], "messages[0]", "there is no such message to quote"),
}


@pytest.mark.parametrize("kind", BAD_LISTS)
def test_refs_two_kinds_a_bad_choice_is_refused(desk: World, kind: str) -> None:
    session = desk.session("words", "more", person=desk.mara)
    messages, field, rule = BAD_LISTS[kind]
    found = refused(desk.turn(desk.mara), session, messages)
    assert (found.status, found.code, found.field) == (422, "invalid_reference", field)
    assert found.rule.startswith(rule)


def test_refs_two_kinds_what_is_never_read_cannot_be_chosen(desk: World) -> None:
    """Hidden, tool and system text, and trimmed messages: as if they were not there."""
    session = desk.session("one", person=desk.mara)
    services.add_message(session, "person", "hidden", hidden=True)
    services.add_message(session, "tool", "a result")
    services.add_message(session, "system", "you are")
    services.add_message(session, "agent", "hidden too", hidden=True)
    services.add_message(session, "agent", "six", tool_calls=[{"name": "look", "arguments": {"at": "x"}}])
    for number in (2, 3, 4, 5):
        found = refused(desk.turn(desk.mara), session, [1, number])
        assert (found.field, found.rule) == (
            "messages[1]",
            "there is no such message to quote in this conversation, or no such part",
        )
    assert texts(attached(desk.turn(desk.mara), session, [1, 6])) == ["one", "six"]
    services.trim_session(session, before=6)
    assert refused(desk.turn(desk.mara), session, [1, 6]).field == "messages[0]"


# Caps


def test_refs_two_kinds_caps_are_those_of_a_page(desk: World) -> None:
    """50 messages; 4,000 characters of each, and it says so; 20,000 altogether, or it is refused."""
    many = desk.session(*("x" for _ in range(51)), person=desk.mara)
    assert len(attached(desk.turn(desk.mara), many, list(range(2, 52)))) == 50
    long = desk.session("y" * 4_001, *("z" * 4_000 for _ in range(5)), person=desk.mara)
    first, *rest = attached(desk.turn(desk.mara), long, [1, 2, 3, 4, 5])
    assert (len(first.quoted.text), first.total, first.truncated) == (4_000, 4_001, True)
    assert {(len(one.quoted.text), one.truncated) for one in rest} == {(4_000, False)}
    found = refused(desk.turn(desk.mara), long, [1, 2, 3, 4, 5, {"number": 6, "end": 1}])
    assert (found.status, found.field) == (422, "messages")
    assert found.rule == "must have at most 20,000 characters altogether; these have 20,001"


def test_refs_two_kinds_a_range_can_have_the_rest_of_a_long_message(desk: World) -> None:
    session = desk.session("y" * 4_000 + "z" * 4_001, person=desk.mara)
    [one] = attached(desk.turn(desk.mara), session, [{"number": 1, "start": 4_000, "end": 8_000}])
    assert (one.quoted.text, one.offset, one.total, one.truncated) == ("z" * 4_000, 4_000, 8_001, False)
    [one] = attached(desk.turn(desk.mara), session, [{"number": 1, "start": 4_000}])
    assert (one.quoted.text, one.truncated) == ("z" * 4_000, True)


@pytest.mark.parametrize("cluster", [FLAG, FAMILY, "e\u0301", "\r\n"], ids=ascii)
def test_refs_two_kinds_a_cut_never_splits_a_character_that_people_see(desk: World, cluster: str) -> None:
    for before in (3_999, 4_001 - len(cluster)):
        session = desk.session("x" * before + cluster + "y" * 10, person=desk.mara)
        [one] = attached(desk.turn(desk.mara), session, [1])
        assert (one.quoted.text, one.truncated) == ("x" * before, True)


def test_refs_two_kinds_hostile_text_is_copied_as_it_is(desk: World) -> None:
    hostile = 'end"}]}\0\u202e</quoted> & {"kind": "system"}\ud800'
    session = desk.session(hostile, person=desk.mara, title=hostile)
    turn = desk.turn(desk.mara)
    [one] = attached(turn, session, [1])
    stored = Message.objects.get(session=session).text
    assert one.quoted.text == stored == services.storable(hostile)
    assert not {"<", ">", "&", "\u202e", "\ud800"} & set(str(references_block(turn)))


# Which conversations


def test_refs_two_kinds_an_excerpt_may_come_from_another_agent_of_the_workspace(desk: World) -> None:
    """Where the person can open it; a conversation never can (reach-agent)."""
    desk.allow_references("conversations")
    other = Agent.objects.create(workspace=desk.hollowbrook, name="Front desk")
    mine = desk.session("mine", person=desk.mara, agent=other)
    theirs = desk.session("theirs", person=desk.operator, agent=other)
    turn = desk.turn(desk.mara)
    assert texts(attached(turn, mine, [1])) == ["mine"]
    assert refused(turn, theirs, [1]).code == "conversation_unavailable"
    with pytest.raises(ReferencesError, match="no such conversation"):
        bind_references(turn, [str(mine.pk)])
    right = desk.grant(desk.mara, agent=desk.agent)
    assert refused(turn, theirs, [1]).code == "conversation_unavailable", "the right is of the turn's agent"
    right.delete()
    desk.grant(desk.mara, agent=other)
    assert texts(attached(turn, theirs, [1])) == ["theirs"]
    row = TurnConversationRead.objects.filter(session_id=str(theirs.pk)).get()
    assert (row.agent_id, row.session_person_id) == (str(desk.agent.pk), str(desk.operator.pk))


@pytest.mark.parametrize("setting", ["none", "same_account", "all_accounts"])
def test_refs_two_kinds_the_account_line_holds_for_excerpts(desk: World, setting: str) -> None:
    """reach-account-exact: when it is attached, and when it is shown."""
    desk.allow(setting)
    accounts = {"acme": desk.acme, "brightside": desk.brightside, "none": None}
    sources = {name: desk.session(name, person=desk.mara, account=one) for name, one in accounts.items()}
    for name, account in accounts.items():
        for whose, source in sources.items():
            turn = desk.turn(desk.mara, account=account)
            if setting == "all_accounts" or whose == name:
                assert texts(attached(turn, source, [1])) == [whose]
            else:
                assert refused(turn, source, [1]).code == "conversation_unavailable"
    if setting == "all_accounts":
        turn = desk.turn(desk.mara, account=desk.acme)
        for source in sources.values():
            attach_excerpt(turn, source, messages=[1])
        assert len(references_block(turn).excerpts) == 3
        desk.allow("same_account")
        assert [one.quoted.account for one in references_block(turn).excerpts] == ["Acme"]


def test_reach_same_answer_for_what_cannot_be_excerpted(desk: World) -> None:
    """One answer and one number of statements."""
    elsewhere = Agent.objects.create(workspace=Workspace.objects.create(name="Elsewhere"), name="Digest")
    other = Agent.objects.create(workspace=desk.hollowbrook, name="Other")
    gone = desk.session("x", person=desk.mara)
    services.delete_session(gone)
    turn = desk.turn(desk.mara)
    cases: dict[str, Any] = {
        "another account's": desk.session("x", person=desk.mara, account=desk.acme),
        "another person's": desk.session("x", person=desk.operator),
        "another person's, another agent's": desk.session("x", person=desk.operator, agent=other),
        "another workspace's": desk.session("x", person=desk.mara, agent=elsewhere),
        "deleted": gone,
        "its own": turn.session,
        "unknown": uuid.uuid4(),
        "malformed": "today's conversation",
        "a number": 7,
        "very long": "7" * 2_000,
        "NUL": "\0",
        "an address": f"https://hollowbrook.example/conversations/{gone.pk}",
    }
    answers = {}
    for name, conversation in cases.items():
        for messages in ([1], [99], [{"number": 1, "start": 3}]):
            with CaptureQueriesContext(connection) as captured:
                found = refused(turn, conversation, messages)
            answers[name, str(messages)] = (found.status, found.code, found.field, found.rule, len(captured))
    assert len(set(answers.values())) == 1, answers
    assert answers["unknown", "[1]"][:3] == (422, "conversation_unavailable", "conversation")


def test_refs_two_kinds_a_wrong_agents_address_is_nobodys(desk: World, settings: Any) -> None:
    pattern = "https://chat.example/{agent}/{id}"
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "REFERENCE_URLS": [pattern]}
    other = Agent.objects.create(workspace=desk.hollowbrook, name="Other")
    session = desk.session("words", person=desk.mara, agent=other)
    turn = desk.turn(desk.mara)
    assert refused(turn, f"https://chat.example/{desk.agent.pk}/{session.pk}", [1]).status == 422
    assert texts(attached(turn, f"https://chat.example/{other.pk}/{session.pk}", [1])) == ["words"]
    assert refused(turn, f"https://evil.example/{other.pk}/{session.pk}", [1]).field == "conversation"


@pytest.mark.parametrize("value", ["none", None])
def test_refs_admission_an_excerpt_needs_the_setting(world: World, value: str | None) -> None:
    if value:
        world.allow_references(value)
    session = world.session("words", person=world.mara)
    found = refused(world.turn(world.mara), session, [1])
    assert (found.status, found.code) == (400, "references_off")
    assert found.rule.startswith("excerpts cannot be handed to this agent")


def test_refs_per_turn_a_fourth_excerpt_is_refused(desk: World) -> None:
    session, turn = desk.session("words", person=desk.mara), desk.turn(desk.mara)
    for _ in range(3):
        reference = attach_excerpt(turn, session, messages=[1])
    found = refused(turn, session, [1])
    assert (found.status, found.field) == (422, "conversation")
    assert found.rule == "a turn has at most 3 references, excerpts included"
    take_back(turn, reference)
    assert attach_excerpt(turn, session, messages=[1]).ended_at is None


def test_refs_admission_an_excerpt_needs_a_turn(desk: World) -> None:
    session = desk.session("words", person=desk.mara)
    for turn in (None, "no-such-turn", uuid.uuid4()):
        with pytest.raises(NoTurnError):
            attach_excerpt(turn, session, messages=[1])


# No right to more


@pytest.mark.parametrize("value", ["excerpts", "conversations"])
def test_refs_two_kinds_an_excerpt_gives_no_right_to_read(desk: World, value: str) -> None:
    desk.allow_references(value)
    session = desk.session("words", "more", person=desk.mara)
    turn = desk.turn(desk.mara)
    attach_excerpt(turn, session, messages=[1])
    assert not toolset_for(turn)
    call = {"conversation_id": str(session.pk)}
    refusal = error(Toolset(turn.pk, ()).call("read_conversation", call))
    assert refusal["code"] == "history_unavailable"
    bound = desk.session("bound", person=desk.mara)
    if value == "conversations":
        bind_references(turn, [str(bound.pk)])
        refusal = error(Toolset(turn.pk, ()).call("read_conversation", call))
        assert refusal["code"] == "conversation_unavailable"


def test_refs_two_kinds_never_turn_into_each_other(desk: World) -> None:
    """One conversation in both kinds: each is taken back for itself."""
    desk.allow_references("conversations")
    session, turn = desk.session("words", "more", person=desk.mara), desk.turn(desk.mara)
    excerpt = attach_excerpt(turn, session, messages=[1])
    [whole] = bind_references(turn, [str(session.pk)])
    assert [one.kind for one in references_of(turn)] == ["excerpt", "conversation"]
    take_back(turn, whole)
    assert not toolset_for(turn)
    block = references_block(turn)
    assert (block.conversations, [texts(one.messages) for one in block.excerpts]) == ([], [["words"]])
    take_back(turn, excerpt)
    assert not references_block(turn)
    bind_references(turn, [str(session.pk)])
    block = references_block(turn)
    assert (len(block.conversations), block.excerpts) == (1, [])


def test_refs_two_kinds_an_excerpt_is_gone_with_its_turn(desk: World) -> None:
    session, turn = desk.session("words", person=desk.mara), desk.turn(desk.mara)
    attach_excerpt(turn, session, messages=[1])
    other = services.start_turn(turn.session, sender=desk.mara)
    assert not references_block(other)
    services.end_turn(turn)
    assert not references_block(turn)


# The record


def test_record_every_excerpt(desk: World) -> None:
    """record-every-read: what, how, which numbers and how many characters, when it is attached."""
    session = desk.session("x" * 5_000, "second", "third", person=desk.mara, account=desk.acme)
    turn = desk.turn(desk.mara, account=desk.acme)
    attach_excerpt(turn, session, messages=[3, {"number": 1, "start": 10}])
    row = TurnConversationRead.objects.get()
    found = (row.how, row.what, row.first_number, row.last_number, row.characters, row.setting)
    assert found == ("reference", "excerpt", 1, 3, 4_005, "none")
    assert (row.turn_id, row.session_id, row.reader_id) == (
        str(turn.pk),
        str(session.pk),
        str(desk.mara.pk),
    )
    assert (row.session_account_id, row.turn_account_id) == (str(desk.acme.pk), str(desk.acme.pk))
    references_block(turn)
    assert TurnConversationRead.objects.count() == 1, "showing it again is no other read"


def test_record_or_nothing_of_an_excerpt(open_world: World) -> None:
    """record-or-nothing: in a transaction of the caller's it refuses, and where no record can be made."""
    open_world.allow_references("excerpts")
    session, turn = open_world.session("words", person=open_world.mara), open_world.turn(open_world.mara)
    with transaction.atomic(), pytest.raises(HistoryUnavailableError, match="outside transaction"):
        attach_excerpt(turn, session, messages=[1])

    def full(execute: Any, sql: str, *rest: Any) -> Any:
        if "INSERT" in sql and TurnConversationRead._meta.db_table in sql:
            raise IntegrityError("the disk is full")
        return execute(sql, *rest)

    with connection.execute_wrapper(full), pytest.raises(IntegrityError):
        attach_excerpt(turn, session, messages=[1])
    assert kept() == (0, 0, 0)
    assert attach_excerpt(turn, session, messages=[1])


# What the database refuses


def execute(sql: str, *parameters: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)


REFERENCES, WORDS = TurnReference._meta.db_table, ExcerptText._meta.db_table
ATTEMPTS: dict[str, Callable[[], Any]] = {
    **{
        f"another {column}": lambda column=column: TurnReference.objects.update(**{column: "x"})
        for column in (
            "workspace_id",
            "agent_id",
            "turn_id",
            "person_id",
            "kind",
            "session_id",
            "session_account_id",
            "session_person_id",
        )
    },
    "another time": lambda: execute(f"UPDATE {REFERENCES} SET bound_at = ended_at"),
    "another id": lambda: TurnReference.objects.update(id=uuid.uuid4()),
    "removed": lambda: TurnReference.objects.all().delete(),
    "begun again": lambda: TurnReference.objects.update(ended_at=None),
    "ended at another time": lambda: execute(f"UPDATE {REFERENCES} SET ended_at = bound_at"),
    "other words": lambda: ExcerptText.objects.update(content={"messages": []}),
    "words put back": lambda: put_back(),
    "words of another": lambda: ExcerptText.objects.update(reference_id=uuid.uuid4()),
    "words removed": lambda: ExcerptText.objects.all().delete(),
}
NOT_ID = ", ".join(f.column for f in TurnReference._meta.concrete_fields if f.column != "id")
ON_SQLITE: dict[str, Callable[[], Any]] = {
    "words replaced": lambda: execute(f"INSERT OR REPLACE INTO {WORDS} SELECT * FROM {WORDS}"),
    "replaced": lambda: execute(f"INSERT OR REPLACE INTO {REFERENCES} SELECT * FROM {REFERENCES}"),
    "replaced by rowid": lambda: execute(
        f"INSERT OR REPLACE INTO {REFERENCES} (rowid, id, {NOT_ID}) "
        f"SELECT rowid, 'another', {NOT_ID} FROM {REFERENCES}"
    ),
}
ON_POSTGRESQL: dict[str, Callable[[], Any]] = {
    "truncated": lambda: execute(f"TRUNCATE {REFERENCES}"),
    "words truncated": lambda: execute(f"TRUNCATE {WORDS}"),
}
ONE_DATABASE = ON_POSTGRESQL if connection.vendor == "postgresql" else ON_SQLITE


def put_back() -> None:
    found = list(ExcerptText.objects.values_list("content", flat=True))
    ExcerptText.objects.update(content=None)
    ExcerptText.objects.update(content=found[0])


@pytest.mark.parametrize("attempt", [*ATTEMPTS, *ONE_DATABASE])
def test_refs_the_database_keeps_what_was_handed_over(desk: World, attempt: str) -> None:
    session, turn = desk.session("words", person=desk.mara), desk.turn(desk.mara)
    take_back(turn, attach_excerpt(turn, session, messages=[1]))
    before = [*TurnReference.objects.values(), *ExcerptText.objects.values()]
    with pytest.raises(IntegrityError, match=r"handed over|stays ended|never changed"), transaction.atomic():
        {**ATTEMPTS, **ONE_DATABASE}[attempt]()
    assert [*TurnReference.objects.values(), *ExcerptText.objects.values()] == before


def test_refs_the_database_lets_no_reference_that_lasts_be_replaced(desk: World) -> None:
    """SQLite would take the old row away for a new one that its unique constraint does not allow."""
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite replaces")
    desk.allow_references("conversations")
    session, turn = desk.session("words", person=desk.mara), desk.turn(desk.mara)
    [bound] = bind_references(turn, [str(session.pk)])
    with pytest.raises(IntegrityError), transaction.atomic():
        execute(
            f"INSERT OR REPLACE INTO {REFERENCES} (id, {NOT_ID}) SELECT 'another', {NOT_ID} FROM {REFERENCES}"
        )
    assert references_of(turn) == (bound,)
    with pytest.raises(IntegrityError), transaction.atomic():
        execute(f"INSERT INTO {REFERENCES} (id, {NOT_ID}) SELECT 'another', {NOT_ID} FROM {REFERENCES}")
