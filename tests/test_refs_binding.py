"""refs-per-turn, refs-admission: what a person submits is bound to one turn, all of it or nothing."""

import threading
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from history_access.agent_platform import services
from history_access.agent_platform.models import Agent, Session, Turn, Workspace
from history_access.models import ReferenceSubmission, TurnReference
from history_access.reach import NoTurnError
from history_access.references import (
    Reference,
    ReferencesError,
    attach_excerpt,
    bind_references,
    end_references,
    references_of,
    take_back,
)
from history_access.references.binding import MOST_SUBMITTED
from history_access.tools import toolset_for
from tests.worlds import World, error, read, runs_by_grant

FIELD = "conversation_references"
UNAVAILABLE = "there is no such conversation that you can hand to this turn"

NOBODYS = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def desk(world: World) -> World:
    """The agent may be handed conversations, and reads nothing by itself."""
    world.allow_references()
    return world


def several(world: World, number: int) -> list[Session]:
    return [world.session(f"words {index}", person=world.mara) for index in range(number)]


def keys(sessions: list[Session]) -> list[str]:
    return [str(session.pk) for session in sessions]


def address(session: Session) -> str:
    return f"https://hollowbrook.example/conversations/{session.pk}"


def bound(turn: Turn) -> list[str]:
    return [one.conversation_id for one in references_of(turn) if one.ended_at is None]


def refused(turn: Any, submitted: Any, **given: Any) -> ReferencesError:
    """The refusal of a submission, of which nothing must be left."""
    before = rows()
    with pytest.raises(ReferencesError) as caught:
        bind_references(turn, submitted, **given)
    assert rows() == before
    return caught.value


def rows() -> tuple[int, int]:
    return TurnReference.objects.count(), ReferenceSubmission.objects.count()


def answer(found: ReferencesError) -> tuple[int, str, str | None, str]:
    return found.status, found.code, found.field, found.rule


# All or nothing


def test_refs_per_turn_binds_to_the_turn_and_its_sender(desk: World) -> None:
    one, two, three = several(desk, 3)
    turn = desk.turn(desk.mara)
    found = bind_references(turn, [str(two.pk), address(one), str(three.pk)])
    assert [ref.conversation_id for ref in found] == keys([two, one, three])
    assert references_of(turn) == found == references_of(turn.pk, workspace=desk.hollowbrook)
    assert {(ref.kind, ref.person_id, ref.ended_at) for ref in found} == {
        ("conversation", str(desk.mara.pk), None)
    }
    row = TurnReference.objects.filter(session_id=str(one.pk)).get()
    assert (row.workspace_id, row.agent_id) == (str(desk.hollowbrook.pk), str(desk.agent.pk))
    assert (row.session_account_id, row.session_person_id) == (None, str(desk.mara.pk))
    for session in (one, two, three):
        assert read(toolset_for(turn), session.pk)["by"] == "reference"


def test_refs_per_turn_duplicates_collapse(desk: World) -> None:
    """An id and an address of the same are one, also those that were handed over before."""
    one, two, three = several(desk, 3)
    turn = desk.turn(desk.mara)
    first = bind_references(turn, [str(one.pk), address(one), str(one.pk)])
    assert [ref.conversation_id for ref in first] == keys([one])
    again = bind_references(turn, [address(two), address(one), str(three.pk), str(two.pk)])
    assert [ref.conversation_id for ref in again] == keys([two, one, three])
    assert again[1] == first[0]
    assert bound(turn) == keys([one, two, three])


def test_refs_per_turn_a_fourth_is_refused(desk: World) -> None:
    one, two, three, four = several(desk, 4)
    turn = desk.turn(desk.mara)
    found = refused(turn, keys([one, two, three, four]))
    assert answer(found) == (422, "invalid_reference", FIELD, "must name at most 3 conversations")
    bind_references(turn, keys([one, two]))
    found = refused(turn, keys([three, four]))
    assert found.rule == "a turn has at most 3 references, excerpts included"
    assert (found.status, found.field) == (422, FIELD)
    attach_excerpt(turn, four, messages=[1])
    assert refused(turn, keys([three])).rule == "a turn has at most 3 references, excerpts included"
    assert len(bound(turn)) == 3


def test_refs_per_turn_what_was_taken_back_makes_room(desk: World) -> None:
    one, two, three, four = several(desk, 4)
    turn = desk.turn(desk.mara)
    first, *_ = bind_references(turn, keys([one, two, three]))
    assert take_back(turn, first)
    assert not take_back(turn, first), "it had ended already"
    bind_references(turn, keys([four]))
    assert bound(turn) == keys([two, three, four])
    assert refused(turn, keys([one])).status == 422


BAD = {
    "unknown": lambda: str(uuid.uuid4()),
    "no id": lambda: "today's conversation",
    "foreign": lambda: "https://evil.example/conversations/7",
    "no text": lambda: 7,
}


@pytest.mark.parametrize("bad", BAD)
def test_refs_per_turn_one_bad_entry_refuses_all(desk: World, bad: str) -> None:
    good, turn = keys(several(desk, 2)), desk.turn(desk.mara)
    for place in range(3):
        submitted = [*good[:place], BAD[bad](), *good[place:]]
        found = refused(turn, submitted, submission_key="k")
        assert (found.status, found.field) == (422, f"{FIELD}[{place}]")
        assert str(found) == f"{found.field}: {found.rule}"
    assert bound(turn) == []


@pytest.mark.parametrize("given", [None, 7, {"a": 1}, {1, 2}, object()], ids=lambda one: type(one).__name__)
def test_refs_per_turn_what_is_no_list_is_refused(desk: World, given: Any) -> None:
    found = refused(desk.turn(desk.mara), given)
    assert answer(found) == (422, "invalid_reference", FIELD, "must be a list of ids and addresses")


def test_refs_per_turn_one_text_is_no_list(desk: World) -> None:
    [one] = several(desk, 1)
    for text in (str(one.pk), "", b""):
        assert refused(desk.turn(desk.mara), text).rule == "must be a list of ids and addresses"


def test_refs_per_turn_a_submission_has_so_many_entries_at_most(desk: World) -> None:
    """The same ones that collapse are read one by one too."""
    [one], turn = several(desk, 1), desk.turn(desk.mara)
    found = refused(turn, keys([one]) * (MOST_SUBMITTED + 1))
    assert answer(found) == (422, "invalid_reference", FIELD, f"must have at most {MOST_SUBMITTED} entries")
    assert len(bind_references(turn, keys([one]) * MOST_SUBMITTED)) == 1


def test_refs_per_turn_nothing_submitted_binds_nothing(world: World) -> None:
    """Wherever the setting stands: a platform calls it for every turn."""
    turn = world.turn(world.mara)
    with CaptureQueriesContext(connection) as captured:
        assert bind_references(turn, []) == ()
    assert len(captured) == 0
    assert bind_references(turn, (), submission_key="k") == ()
    world.allow_references()
    assert refused(turn, keys(several(world, 1)), submission_key="k").status == 409


# Who may, and where


@pytest.mark.parametrize("value", ["none", "excerpts", None])
def test_refs_admission_needs_the_setting(world: World, value: str | None) -> None:
    if value:
        world.allow_references(value)
    found = refused(world.turn(world.mara), keys(several(world, 1)))
    assert (found.status, found.code, found.field) == (400, "references_off", None)
    assert "the setting conversation_references does not allow it" in str(found)


def test_refs_admission_a_ceiling_counts(desk: World) -> None:
    desk.set("conversation_references", workspace=desk.hollowbrook, ceiling="excerpts")
    assert refused(desk.turn(desk.mara), keys(several(desk, 1))).status == 400


@pytest.mark.parametrize("kind", ["schedule", "webhook"])
def test_refs_admission_a_trigger_cannot_bind(desk: World, kind: str) -> None:
    """Not even what its owner could hand over."""
    [one] = several(desk, 1)
    trigger = services.create_trigger(desk.agent, kind=kind, name="Digest", by=desk.mara)
    turn = desk.turn(trigger=trigger)
    found = refused(turn, keys([one]))
    assert answer(found) == (
        403,
        "not_permitted",
        None,
        "a turn that no person sent cannot be handed anything",
    )
    with pytest.raises(ReferencesError, match="no person sent"):
        attach_excerpt(turn, one, messages=[1])


def end(world: World, turn: Turn) -> None:
    services.end_turn(turn)


def delete_own(world: World, turn: Turn) -> None:
    services.delete_session(turn.session)


def deactivate(world: World, turn: Turn) -> None:
    get_user_model().objects.filter(pk=world.mara.pk).update(is_active=False)


@pytest.mark.parametrize("over", [end, delete_own, deactivate])
def test_refs_admission_needs_a_running_turn_of_somebody_active(desk: World, over: Any) -> None:
    [one], turn = several(desk, 1), desk.turn(desk.mara)
    over(desk, turn)
    found = refused(turn, keys([one]))
    rule = "this turn has ended, or its sender is not active"
    assert answer(found) == (403, "not_permitted", None, rule)


def test_refs_admission_a_sender_who_is_gone_hands_over_nothing(desk: World) -> None:
    turn = desk.turn(desk.mara)
    [one] = several(desk, 1)
    desk.mara.delete()
    assert refused(turn, keys([one])).status == 403


def test_refs_admission_needs_runs_read(desk: World, settings: Any) -> None:
    """For this agent, now; another agent's does not count."""
    runs_by_grant(settings)
    [one], turn = several(desk, 1), desk.turn(desk.mara)
    other = Agent.objects.create(workspace=desk.hollowbrook, name="Other")
    desk.grant(desk.mara, "runs:read", agent=other)
    found = refused(turn, keys([one]))
    rule = "the sender of this turn lacks the permission runs:read"
    assert answer(found) == (403, "not_permitted", None, rule)
    with pytest.raises(ReferencesError, match="runs:read"):
        attach_excerpt(turn, one, messages=[1])
    right = desk.grant(desk.mara, "runs:read", agent=desk.agent)
    [bound_now] = bind_references(turn, keys([one]))
    assert bound_now.conversation_id == str(one.pk)
    right.delete()
    assert refused(turn, keys([one])).status == 403, "rights are those of this moment"


@pytest.mark.parametrize("turn", [None, "no-such-turn", 7, NOBODYS])
def test_refs_admission_needs_a_turn(desk: World, turn: Any) -> None:
    with pytest.raises(NoTurnError):
        bind_references(turn, keys(several(desk, 1)))


# One answer


@pytest.fixture
def refusals(desk: World, settings: Any) -> dict[str, Callable[[Turn], str]]:
    """What somebody without a right could submit: a function of the turn gives the text."""
    pattern = "https://chat.example/{agent}/{id}"
    settings.HISTORY_ACCESS = {
        **settings.HISTORY_ACCESS,
        "REFERENCE_URLS": [pattern, "https://hollowbrook.example/conversations/{id}"],
    }
    elsewhere = Workspace.objects.create(name="Elsewhere")
    other = Agent.objects.create(workspace=desk.hollowbrook, name="Other")
    foreign = Agent.objects.create(workspace=elsewhere, name="Digest")
    [mine, gone] = several(desk, 2)
    services.delete_session(gone)
    found = {
        "another account's": desk.session("x", person=desk.mara, account=desk.acme),
        "another person's": desk.session("x", person=desk.operator),
        "nobody's": desk.session("x"),
        "another agent's": desk.session("x", person=desk.mara, agent=other),
        "another workspace's": desk.session("x", person=desk.mara, agent=foreign),
        "deleted": gone,
    }
    given: dict[str, Callable[[Turn], str]] = {
        name: (lambda turn, key=str(session.pk): key) for name, session in found.items()
    }
    return given | {
        "its address": lambda turn: address(gone),
        "its own": lambda turn: str(turn.session_id),
        "unknown": lambda turn: str(uuid.uuid4()),
        "malformed": lambda turn: "today's conversation",
        "a number": lambda turn: "7",
        "upper case": lambda turn: str(mine.pk).upper(),
        "NUL": lambda turn: f"{mine.pk}\0",
        "a surrogate": lambda turn: "\ud800",
        "very long": lambda turn: "7" * 2_048,
        "a wrong agent's address": lambda turn: f"https://chat.example/{other.pk}/{mine.pk}",
        "no agent's address": lambda turn: f"https://chat.example/7/{mine.pk}",
    }


@pytest.mark.parametrize("setting", ["none", "same_account"])
def test_reach_same_answer_for_what_cannot_be_handed_over(
    desk: World, refusals: dict[str, Callable[[Turn], str]], setting: str
) -> None:
    """One answer and one number of statements, with a submission key and without."""
    desk.allow(setting)
    answers = {}
    for name, text in refusals.items():
        turn = desk.turn(desk.mara)
        submitted = [text(turn)]
        counts = []
        for key in (None, "k"):
            with CaptureQueriesContext(connection) as captured:
                found = refused(turn, submitted, submission_key=key)
            counts.append(len(captured))
        answers[name] = (answer(found), tuple(counts))
    assert len(set(answers.values())) == 1, answers
    assert answers["unknown"][0] == (422, "conversation_unavailable", f"{FIELD}[0]", UNAVAILABLE)


def test_refs_admission_takes_that_persons_own_reach(desk: World) -> None:
    """reach-person, reach-account-exact, as for a read by history, whatever the model could read."""
    desk.allow("all_accounts")
    theirs = desk.session("x", person=desk.operator, account=desk.acme)
    turn = desk.turn(desk.mara)
    assert refused(turn, keys([theirs])).rule == UNAVAILABLE
    desk.grant(desk.mara, agent=desk.agent)
    assert len(bind_references(turn, keys([theirs]))) == 1
    desk.allow("same_account")
    assert refused(desk.turn(desk.mara), keys([theirs])).rule == UNAVAILABLE
    assert len(bind_references(desk.turn(desk.mara, account=desk.acme), keys([theirs]))) == 1


# Retries


def test_refs_admission_a_retry_is_answered_after_the_turn_and_the_setting_are_gone(desk: World) -> None:
    """Its client never saw the first answer; what it is told now grants nothing."""
    one, two = several(desk, 2)
    turn = desk.turn(desk.mara)
    [bound] = bind_references(turn, keys([one]), submission_key="k")
    services.end_turn(turn)
    desk.set("conversation_references", agent=desk.agent, value="none")
    [again] = bind_references(turn, keys([one]), submission_key="k")
    assert (again.id, bound.ended_at, again.ended_at is None) == (bound.id, None, False)
    assert refused(turn, keys([two]), submission_key="k").status == 409
    assert refused(turn, keys([two]), submission_key="another").status == 400


def test_refs_admission_a_retry_binds_nothing_more(desk: World) -> None:
    one, two = several(desk, 2)
    turn = desk.turn(desk.mara)
    first = bind_references(turn, [str(one.pk), address(two)], submission_key="k")
    before = rows()
    assert bind_references(turn, [str(one.pk), str(two.pk)], submission_key="k") == first
    assert bind_references(turn, [address(two), str(one.pk), str(two.pk)], submission_key="k") == first[::-1]
    assert rows() == before
    assert bind_references(turn, keys([one]), submission_key="another") == first[:1]


def test_refs_admission_a_key_stands_for_its_references_alone(desk: World) -> None:
    one, two = several(desk, 2)
    turn = desk.turn(desk.mara)
    bind_references(turn, keys([one]), submission_key="k")
    others: list[list[str]] = [keys([two]), keys([one, two]), [], [str(uuid.uuid4())], ["malformed"]]
    for other in others:
        found = refused(turn, other, submission_key="k")
        assert (found.status, found.code, found.field) == (409, "submission_key_used", "submission_key")
        assert found.rule.startswith("was used for other references of this turn")
    assert bound(turn) == keys([one])
    assert len(bind_references(desk.turn(desk.mara), keys([two]), submission_key="k")) == 1


def test_refs_admission_a_retry_grants_nothing_anew(desk: World) -> None:
    """After taking back it returns what has ended, and the read stays refused."""
    [one], turn = several(desk, 1), desk.turn(desk.mara)
    [first] = bind_references(turn, keys([one]), submission_key="k")
    tools = toolset_for(turn)
    assert read(tools, one.pk)["by"] == "reference"
    take_back(turn, first)
    [ended] = bind_references(turn, keys([one]), submission_key="k")
    assert (ended.id, ended.ended_at is None) == (first.id, False)
    assert bound(turn) == []
    assert error(tools.call("read_conversation", {"conversation_id": str(one.pk)}))
    assert not toolset_for(turn)


def test_refs_admission_a_refused_submission_uses_no_key(desk: World) -> None:
    [one], turn = several(desk, 1), desk.turn(desk.mara)
    refused(turn, [str(one.pk), "malformed"], submission_key="k")
    assert len(bind_references(turn, keys([one]), submission_key="k")) == 1


@pytest.mark.parametrize("key", ["", "x" * 201, "a\0b", "a\nb", "\ud800", "\u202e", 7, b"k", ["k"]], ids=repr)
def test_refs_admission_a_bad_submission_key_is_refused(desk: World, key: Any) -> None:
    found = refused(desk.turn(desk.mara), keys(several(desk, 1)), submission_key=key)
    rule = "must be 1 to 200 printable characters"
    assert answer(found) == (422, "invalid_reference", "submission_key", rule)


def test_refs_admission_the_longest_submission_key_is_kept(desk: World) -> None:
    [one], turn = several(desk, 1), desk.turn(desk.mara)
    first = bind_references(turn, keys([one]), submission_key="é" * 200)
    assert bind_references(turn, keys([one]), submission_key="é" * 200) == first


# The caller's transaction


def test_refs_per_turn_binds_in_the_transaction_that_makes_the_turn(open_world: World) -> None:
    """What the platform rolls back was never handed over; what it commits, was."""
    open_world.allow_references()
    [one] = several(open_world, 1)
    with transaction.atomic():
        turn = open_world.turn(open_world.mara)
        bind_references(turn, keys([one]), submission_key="k")
    assert read(toolset_for(turn), one.pk)["by"] == "reference"
    before = rows()
    with pytest.raises(KeyboardInterrupt), transaction.atomic():
        turn = open_world.turn(open_world.mara)
        bind_references(turn, keys([one]), submission_key="k")
        raise KeyboardInterrupt
    assert rows() == before


def test_refs_per_turn_a_refusal_leaves_the_callers_transaction_usable(open_world: World) -> None:
    open_world.allow_references()
    [one] = several(open_world, 1)
    with transaction.atomic():
        turn = open_world.turn(open_world.mara)
        assert refused(turn, [str(one.pk), "malformed"]).status == 422
        bind_references(turn, keys([one]))
    assert bound(turn) == keys([one])


# At once


def at_once(jobs: list[Callable[[], Any]]) -> list[Any]:
    """What each job returned or raised, all of them begun together on connections of their own."""
    found: list[Any] = [None] * len(jobs)
    begin = threading.Barrier(len(jobs))

    def run(place: int) -> None:
        try:
            begin.wait()
            found[place] = jobs[place]()
        except ReferencesError as refusal:
            found[place] = refusal
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_refs_per_turn_never_exceeds_three_at_once(open_world: World) -> None:
    """Five submissions of one each, and two of two each: what fits is bound, the rest refused whole."""
    open_world.allow_references()
    sessions = keys(several(open_world, 5))
    for groups in ([[key] for key in sessions], [sessions[:2], sessions[2:4]]):
        turn = open_world.turn(open_world.mara)
        found = at_once([partial(bind_references, turn, group) for group in groups])
        fits = [one for one in found if isinstance(one, tuple)]
        assert len(fits) == 3 // len(groups[0])
        assert len(bound(turn)) == len(fits) * len(groups[0])
        assert {one.status for one in found if not isinstance(one, tuple)} == {422}


def test_refs_per_turn_a_conversation_is_bound_once_at_once(open_world: World) -> None:
    """With one submission key, and with none."""
    open_world.allow_references()
    sessions = keys(several(open_world, 2))
    for key in ("k", None):
        turn = open_world.turn(open_world.mara)
        jobs = [partial(bind_references, turn, sessions, submission_key=key)] * 4
        found = at_once(jobs)
        assert [one for one in found if one != found[0]] == []
        assert bound(turn) == sessions


def test_refs_admission_one_key_for_two_submissions_at_once(open_world: World) -> None:
    open_world.allow_references()
    one, two = keys(several(open_world, 2))
    turn = open_world.turn(open_world.mara)
    jobs = [partial(bind_references, turn, [key], submission_key="k") for key in (one, two)]
    first, second = sorted(at_once(jobs), key=lambda found: isinstance(found, ReferencesError))
    assert isinstance(first, tuple)
    assert second.status == 409
    assert len(bound(turn)) == 1


# What is kept


def test_refs_per_turn_what_was_handed_over_is_kept_with_the_turn(desk: World) -> None:
    """Who, when and until when, without titles, when the transcript, the turn and its sender are gone."""
    [one], turn = several(desk, 1), desk.turn(desk.mara)
    [first] = bind_references(turn, keys([one]))
    services.end_turn(turn)
    turn.refresh_from_db()
    [ended] = references_of(turn)
    assert ended.id == first.id
    assert ended.ended_at is not None and ended.ended_at >= turn.ended_at
    key, person = turn.pk, str(desk.mara.pk)
    turn.delete(), one.delete(), desk.mara.delete()
    assert references_of(key) == (ended,)
    assert (ended.conversation_id, ended.person_id) == (first.conversation_id, person)
    assert isinstance(ended, Reference)


def test_refs_per_turn_ends_with_the_turn_whoever_ends_it(desk: World) -> None:
    """A platform's own code may end a turn without saying so: it is told from the turn itself."""
    [one], turn = several(desk, 1), desk.turn(desk.mara)
    bind_references(turn, keys([one]))
    at = turn.started_at
    Turn.objects.filter(pk=turn.pk).update(ended_at=at)
    assert [ref.ended_at for ref in references_of(turn)] == [at]
    assert bound(turn) == []
    end_references([turn, turn.pk], at=at)
    assert TurnReference.objects.get().ended_at == at


def test_refs_per_turn_what_ended_with_its_turn_is_not_taken_back_later(desk: World) -> None:
    [one], turn = several(desk, 1), desk.turn(desk.mara)
    [reference] = bind_references(turn, keys([one]))
    Turn.objects.filter(pk=turn.pk).update(ended_at=turn.started_at)
    assert not take_back(turn, reference)
    assert [ref.ended_at for ref in references_of(turn)] == [turn.started_at]


def test_refs_per_turn_deleting_the_turns_own_conversation_ends_them(desk: World) -> None:
    [one], turn = several(desk, 1), desk.turn(desk.mara)
    bind_references(turn, keys([one]))
    services.delete_session(turn.session)
    assert bound(turn) == []
    assert TurnReference.objects.get().ended_at is not None


@pytest.mark.parametrize("reference", ["", "x", None, 7, NOBODYS, uuid.UUID(NOBODYS)], ids=repr)
def test_refs_per_turn_taking_back_what_is_none(desk: World, reference: Any) -> None:
    [one], turn = several(desk, 1), desk.turn(desk.mara)
    bind_references(turn, keys([one]))
    assert not take_back(turn, reference)
    assert bound(turn) == keys([one])


def test_refs_per_turn_nobody_takes_back_through_another_turn(desk: World) -> None:
    [one], turn = several(desk, 1), desk.turn(desk.mara)
    [first] = bind_references(turn, keys([one]))
    assert not take_back(desk.turn(desk.mara), first)
    assert not take_back(turn, str(first.id).upper())
    assert take_back(turn, str(first.id))
    with pytest.raises(NoTurnError):
        take_back(uuid.uuid4(), first)
