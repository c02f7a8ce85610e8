"""reach-now, reach-live-turn, reach-trigger-owner, reach-trigger-edited: rights are those of this moment."""

import uuid
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from history_access.agent_platform import services
from history_access.agent_platform.models import Agent, Authority, Trigger, Turn, Workspace
from history_access.agent_platform.services import TurnRefusedError
from history_access.authority import Authority as AuthorityPort
from history_access.authority import AuthorityError
from history_access.reach import NoTurnError, reach_of
from history_access.tools import ToolError, Toolset, list_conversations, toolset_for
from tests.worlds import World, error, listed


@pytest.fixture
def reading(world: World) -> tuple[World, Turn, Toolset]:
    """Somebody who holds sessions:read, in a running turn, with one conversation of Mara's in reach."""
    reader = world.person("reader")
    world.grant(reader)
    world.allow("all_accounts")
    world.session("hello", person=world.mara)
    turn = world.turn(reader)
    tools = toolset_for(turn)
    assert len(listed(tools)) == 1
    return world, turn, tools


def lose_right(world: World, turn: Turn) -> None:
    Authority.objects.filter(person=turn.sender, permission="sessions:read").delete()


def lose_activity(world: World, turn: Turn) -> None:
    get_user_model().objects.filter(pk=turn.sender.pk).update(is_active=False)


def lower_setting(world: World, turn: Turn) -> None:
    world.set(agent=world.agent, value="none")


def hold_platform(world: World, turn: Turn) -> None:
    world.set(platform=True, ceiling="none")


def end(world: World, turn: Turn) -> None:
    services.end_turn(turn)


def delete_own_session(world: World, turn: Turn) -> None:
    services.delete_session(turn.session)


def remove_person(world: World, turn: Turn) -> None:
    get_user_model().objects.get(pk=turn.sender.pk).delete()


LOSSES = {
    lose_right: None,
    lose_activity: "This turn has nobody to read as.",
    lower_setting: "History access is switched off for this agent.",
    hold_platform: "History access is switched off for this agent.",
    end: "This turn has ended.",
    delete_own_session: "This turn has ended.",
    remove_person: "This turn has nobody to read as.",
}


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_reach_now_the_very_next_call_is_refused(reading: Any, loss: Any) -> None:
    """The turn, its objects and the offered tools stay as they were; only the database has changed."""
    world, turn, tools = reading
    turn.sender.has_perm("anything"), turn.session.deleted_at  # what the objects remember
    loss(world, turn)
    result = tools.call("list_conversations", {})
    if LOSSES[loss] is None:
        assert result["conversations"] == []
    else:
        assert error(result) == {"code": "history_unavailable", "message": LOSSES[loss], "argument": None}
    assert bool(toolset_for(turn)) is (LOSSES[loss] is None)


def test_reach_now_a_right_gained_counts_too(world: World) -> None:
    world.allow("all_accounts")
    world.session("hello", person=world.mara)
    tools = world.tools(world.person("reader"))
    assert listed(tools) == []
    world.grant(get_user_model().objects.get(username="reader"), agent=world.agent)
    assert len(listed(tools)) == 1


def test_reach_now_asks_the_primary_never_a_replica(reading: Any, settings: Any) -> None:
    settings.DATABASE_ROUTERS = ["tests.routers.ReplicaForReads"]
    _, _, tools = reading
    assert len(listed(tools)) == 1, "a read from the replica would have failed: there is none"


def test_reach_live_turn_a_resume_is_a_new_turn(reading: Any) -> None:
    _, turn, tools = reading
    services.end_turn(turn)
    with pytest.raises(IntegrityError, match="a resume is a new turn"), transaction.atomic():
        Turn.objects.filter(pk=turn.pk).update(ended_at=None)
    assert error(tools.call("list_conversations", {}))["code"] == "history_unavailable"
    resumed = services.start_turn(turn.session, sender=turn.sender)
    assert len(listed(toolset_for(resumed))) == 1


@pytest.mark.parametrize("turn", [None, "no-such-turn", "", 0, 12, "00000000-0000-0000-0000-000000000000"])
def test_reach_live_turn_without_a_turn_it_raises_and_never_reads_everything(world: World, turn: Any) -> None:
    world.allow("all_accounts")
    for read in (reach_of, toolset_for, list_conversations):
        with pytest.raises(NoTurnError):
            read(turn)
    assert error(Toolset(turn, ()).call("list_conversations", {}))["code"] == "history_unavailable"


# Triggers


@pytest.fixture
def scheduled(world: World) -> tuple[World, Trigger, Any]:
    owner = world.person("owner")
    world.grant(owner)
    world.allow("all_accounts")
    world.session("hello", person=world.mara)
    return world, services.create_trigger(world.agent, kind="schedule", name="Digest", by=owner), owner


def test_reach_trigger_owner_is_whoever_owns_it_when_it_reads(scheduled: Any) -> None:
    world, trigger, owner = scheduled
    tools = world.tools(trigger=trigger)
    assert len(listed(tools)) == 1
    services.edit_trigger(trigger, by=world.person("newcomer"), instructions="Also the weather.")
    assert listed(tools) == []
    services.edit_trigger(trigger, by=owner)
    assert len(listed(tools)) == 1


@pytest.mark.parametrize("how", ["right", "group", "superuser"])
def test_reach_trigger_owner_inactive_reads_nothing_however_the_right_came(scheduled: Any, how: str) -> None:
    """The right may have come directly, from a group, or from being superuser: inactive is inactive."""
    world, trigger, owner = scheduled
    if how == "superuser":
        type(owner).objects.filter(pk=owner.pk).update(is_superuser=True)
    tools = world.tools(trigger=trigger)
    type(owner).objects.filter(pk=owner.pk).update(is_active=False)
    assert error(tools.call("list_conversations", {}))["message"] == "This turn has nobody to read as."


@pytest.mark.parametrize("gone", ["owner", "trigger"])
def test_reach_trigger_owner_gone_reads_nothing(scheduled: Any, gone: str) -> None:
    world, trigger, owner = scheduled
    turn = world.turn(trigger=trigger)
    assert toolset_for(turn)
    (owner if gone == "owner" else trigger).delete()
    assert not toolset_for(turn)
    with pytest.raises(ToolError, match="nobody to read as"):
        list_conversations(turn)


def test_reach_trigger_owner_a_turn_has_one_reader(world: World) -> None:
    trigger = services.create_trigger(world.agent, kind="webhook", name="Hook", by=world.mara)
    session = services.open_session(world.agent)
    for given in ({}, {"sender": world.mara, "trigger": trigger}):
        with pytest.raises(TurnRefusedError, match="a sender or a trigger"):
            services.start_turn(session, **given)
    with pytest.raises(IntegrityError, match="one_reader"), transaction.atomic():
        Turn.objects.create(
            workspace=world.hollowbrook,
            session=session,
            sender=world.mara,
            trigger=trigger,
            trigger_kind=trigger.kind,
            started_at=session.started_at,
        )


def test_reach_trigger_owner_reads_only_with_its_own_agent(world: World) -> None:
    other = Agent.objects.create(workspace=world.hollowbrook, name="Other")
    trigger = services.create_trigger(other, kind="webhook", name="Hook", by=world.mara)
    with pytest.raises(TurnRefusedError, match="another agent"):
        services.start_turn(services.open_session(world.agent), trigger=trigger)


EDITS: list[dict[str, Any]] = [{"instructions": "Read everything."}, {"kind": "webhook"}, {"agent": "other"}]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: next(iter(edit)))
def test_reach_trigger_edited_makes_the_editor_its_owner(scheduled: Any, edit: dict[str, Any]) -> None:
    world, trigger, _ = scheduled
    if "agent" in edit:
        edit = {"agent": Agent.objects.create(workspace=world.hollowbrook, name="Other")}
    editor = world.person("editor")
    edited = services.edit_trigger(trigger, by=editor, **edit)
    assert edited.owner == editor
    assert {name: getattr(edited, name) for name in edit} == edit


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: next(iter(edit)))
def test_reach_trigger_edited_past_the_service_is_refused_by_the_table(
    scheduled: Any, edit: dict[str, Any]
) -> None:
    world, trigger, owner = scheduled
    if "agent" in edit:
        edit = {"agent": Agent.objects.create(workspace=world.hollowbrook, name="Other")}
    with pytest.raises(IntegrityError, match="edit_trigger"), transaction.atomic():
        Trigger.objects.filter(pk=trigger.pk).update(**edit)
    third = world.person("third")
    with pytest.raises(IntegrityError, match="edit_trigger"), transaction.atomic():
        Trigger.objects.filter(pk=trigger.pk).update(owner=third)
    trigger.refresh_from_db()
    assert trigger.owner == owner
    Trigger.objects.filter(pk=trigger.pk).update(name="A new name", owner=None)


PAST_THE_SERVICE: dict[str, Any] = {
    "update": lambda trigger: Trigger.objects.filter(pk=trigger.pk).update(instructions="Read everything."),
    "save": lambda trigger: _changed(trigger, instructions="Read everything.").save(),
    "save of that field": lambda trigger: _changed(trigger, instructions="Read everything.").save(
        update_fields=["instructions"]
    ),
    "bulk_update": lambda trigger: Trigger.objects.bulk_update(
        [_changed(trigger, instructions="Read everything.")], ["instructions"]
    ),
    "bulk_create over it": lambda trigger: Trigger.objects.bulk_create(
        [_changed(trigger, instructions="Read everything.")],
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=["instructions"],
    ),
    "update_or_create": lambda trigger: Trigger.objects.update_or_create(
        {"instructions": "Read everything."}, pk=trigger.pk
    ),
    "SQL": lambda trigger: _sql("UPDATE agent_platform_trigger SET instructions = 'Read everything.'"),
    "SQL of its key": lambda trigger: _sql(f"UPDATE agent_platform_trigger SET id = '{uuid.uuid4().hex}'"),
    "an edition skipped": lambda trigger: Trigger.objects.filter(pk=trigger.pk).update(
        instructions="Read everything.", edition=F("edition") + 2
    ),
}


def _changed(trigger: Trigger, **changes: Any) -> Trigger:
    found = Trigger.objects.get(pk=trigger.pk)
    vars(found).update(changes)
    return found


def _sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize("orphaned", [False, True], ids=["owned", "orphaned"])
@pytest.mark.parametrize("way", PAST_THE_SERVICE)
def test_reach_trigger_edited_is_refused_whatever_way_it_is_written(
    scheduled: Any, way: str, orphaned: bool
) -> None:
    """Without an owner too: else the next owner would have what somebody else made it do."""
    _, trigger, _ = scheduled
    if orphaned:
        Trigger.objects.filter(pk=trigger.pk).update(owner=None)
    before = Trigger.objects.filter(pk=trigger.pk).values().get()
    with pytest.raises(IntegrityError), transaction.atomic():
        PAST_THE_SERVICE[way](trigger)
    assert Trigger.objects.filter(pk=trigger.pk).values().get() == before


def test_reach_trigger_edited_an_orphan_gets_an_owner_by_an_edit_alone(scheduled: Any) -> None:
    """Taken from its owner, changed and handed back: it would read as somebody who never saw the change."""
    world, trigger, owner = scheduled
    Trigger.objects.filter(pk=trigger.pk).update(owner=None)
    for given in (owner, world.person("third")):
        with pytest.raises(IntegrityError, match="edit_trigger"), transaction.atomic():
            Trigger.objects.filter(pk=trigger.pk).update(owner=given)
    assert services.edit_trigger(trigger, by=world.mara).owner == world.mara


def test_reach_trigger_edited_a_stale_object_brings_nothing_back(scheduled: Any) -> None:
    """Somebody saves what they have loaded before another's edit."""
    world, stale, _ = scheduled
    edited = services.edit_trigger(stale, by=world.mara, instructions="Also the weather.")
    stale.name = "A new name"
    with pytest.raises(IntegrityError, match="edit_trigger"), transaction.atomic():
        stale.save()
    assert Trigger.objects.get() == edited and edited.owner == world.mara


def test_reach_trigger_edited_a_running_turn_gets_no_other_trigger_under_its_key(scheduled: Any) -> None:
    """Foreign keys are looked at when a transaction ends; the table refuses at once."""
    world, trigger, _ = scheduled
    world.turn(trigger=trigger)
    rows = Trigger.objects.filter(pk=trigger.pk)
    with pytest.raises(IntegrityError, match="while its turns are there"), transaction.atomic():
        rows._raw_delete(rows.db)
    trigger.delete()
    assert Turn.objects.get().trigger is None


def test_reach_trigger_edited_is_somebodys(scheduled: Any) -> None:
    _, trigger, owner = scheduled
    with pytest.raises(ValueError, match="by: an edit is somebody's"):
        services.edit_trigger(trigger, by=None, instructions="Read everything.")
    trigger.refresh_from_db()
    assert (trigger.owner, trigger.edition) == (owner, 1)


def test_reach_trigger_edited_refuses_other_fields_and_other_workspaces(scheduled: Any) -> None:
    world, trigger, _ = scheduled
    with pytest.raises(ValueError, match="owner: cannot be changed"):
        services.edit_trigger(trigger, by=world.mara, owner=world.operator)
    foreign = Agent.objects.create(workspace=Workspace.objects.create(name="Other"), name="Foreign")
    with pytest.raises(TurnRefusedError, match="another workspace"):
        services.edit_trigger(trigger, by=world.mara, agent=foreign)


def test_reach_trigger_owner_of_a_platform_without_triggers(scheduled: Any, monkeypatch: Any) -> None:
    """A person's turns read as ever; a trigger without an owner reads nothing."""
    world, trigger, owner = scheduled
    monkeypatch.setattr(Turn, "trigger_owner", None)
    monkeypatch.setattr(Turn, "trigger_name", None)
    assert len(listed(world.tools(owner))) == 1
    assert not toolset_for(world.turn(trigger=trigger))


# The authority's answer


class EmptyAuthority(AuthorityPort):
    """Answers with no condition at all, as a filter that was forgotten would."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Any:
        from django.db.models import Q

        return Q()


def test_reach_person_an_empty_answer_is_never_everything(reading: Any, settings: Any) -> None:
    """An empty set of rights is an empty reach, never "no filter" (reach-person)."""
    _, turn, tools = reading
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "AUTHORITY": f"{__name__}.EmptyAuthority"}
    assert error(tools.call("list_conversations", {}))["code"] == "history_unavailable"
    with pytest.raises(AuthorityError, match="empty condition"):
        reach_of(turn)


class AnyAuthority(AuthorityPort):
    """Answers with whatever the test says."""

    answer: Any = None

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Any:
        return self.answer


@pytest.mark.parametrize("answer", [True, False, None, ["sessions:read"], "yes"], ids=repr)
def test_reach_person_an_answer_that_is_no_condition_is_named(
    reading: Any, settings: Any, monkeypatch: Any, answer: Any
) -> None:
    """A yes, a no or a list of roles opens nothing, and the error says what came (reach-person)."""
    _, turn, tools = reading
    monkeypatch.setattr(AnyAuthority, "answer", answer)
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "AUTHORITY": f"{__name__}.AnyAuthority"}
    assert error(tools.call("list_conversations", {}))["code"] == "history_unavailable"
    with pytest.raises(AuthorityError, match=f"with a {type(answer).__name__}, which is no condition"):
        reach_of(turn)


def test_reach_person_reads_nothing_with_rights_on_zero_agents(world: World) -> None:
    """sessions:read nowhere and no sessions of one's own: nothing, not all (reach-person)."""
    world.allow("all_accounts")
    world.session("hello", person=world.mara)
    stranger = world.person("stranger")
    Authority.objects.create(
        workspace=Workspace.objects.create(name="Empty"), person=stranger, permission="sessions:read"
    )
    assert listed(world.tools(stranger)) == []
