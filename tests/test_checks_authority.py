"""Checks that an authority gives one answer, however it is asked: each wrong one beside the right one."""

from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import connection
from django.db.models import Exists, OuterRef, Q, TextField
from django.db.models.functions import Cast
from django.test.utils import CaptureQueriesContext

from history_access.agent_platform.authority import PlatformAuthority
from history_access.agent_platform.models import Agent, Authority, Workspace
from history_access.authority import AUDIT_READS, READ_SESSIONS, WRITE_SETTINGS
from history_access.checks import check_answers
from tests.worlds import World

FOUND = ("history_access.E020", "history_access.E021", "history_access.E022")


def found(settings: Any, authority: type[PlatformAuthority]) -> list[Any]:
    path = f"{authority.__module__}.{authority.__name__}"
    settings.HISTORY_ACCESS = {**settings.HISTORY_ACCESS, "AUTHORITY": path}
    return [message for message in run_checks(databases=["default"]) if message.id in FOUND]


@pytest.fixture
def asked(world: World) -> World:
    """Mara, who has just run a turn, holds a right of each kind; there is a conversation to ask over."""
    for permission in (READ_SESSIONS, AUDIT_READS, WRITE_SETTINGS):
        world.grant(world.mara, permission)
    world.session("hello", "hi")
    world.turn(world.mara)
    return world


def rights(person: Any, permission: str, **more: Any) -> Any:
    return Authority.objects.filter(person_id=person, permission=permission, agent=None, **more)


class ByPython(PlatformAuthority):
    """Looks for itself, and says yes or no: right at the moment, and never looked at again."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Any:
        if isinstance(workspace_id, OuterRef):
            return super().holds(person_id, permission, workspace_id, agent_id)
        return rights(person_id, permission, workspace_id=workspace_id).exists()


class Rows(PlatformAuthority):
    """The rows themselves, without Exists."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Any:
        return rights(person_id, permission, workspace_id=workspace_id)


class Empty(PlatformAuthority):
    def holds(self, *given: Any) -> Any:
        return Q()


class Looks(PlatformAuthority):
    """Looks at the workspace before it is one."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Any:
        held = rights(person_id, permission, workspace_id=workspace_id).exists()
        return Q(pk__isnull=False) if held else Q(pk__in=[])


class OfPeople(PlatformAuthority):
    """A column of people, whatever the query is of."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Any:
        return super().holds(person_id, permission, workspace_id, agent_id) | Q(is_superuser=True)


@pytest.mark.parametrize(
    ("authority", "says"),
    [
        (ByPython, "with True, which is no condition"),
        (Rows, "which is no condition"),
        (Empty, "with an empty condition"),
        (Looks, "workspace as an OuterRef: ValueError("),
        (OfPeople, "is_superuser"),
    ],
)
def test_an_answer_that_is_no_condition_or_cannot_be_asked_is_found(
    settings: Any, asked: World, authority: type[PlatformAuthority], says: str
) -> None:
    (wrong,) = found(settings, authority)
    assert wrong.id == "history_access.E020" and says in wrong.msg
    assert f"person {asked.mara.pk}, " in wrong.msg
    assert "Exists(...)" in wrong.hint


class WiderForARow(PlatformAuthority):
    """A key is looked up by itself, and an OuterRef is not."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Any:
        if isinstance(workspace_id, OuterRef):
            return Q(pk__in=[])
        return super().holds(person_id, permission, workspace_id, agent_id)


class WiderForAQuery(PlatformAuthority):
    """What one may audit somewhere, one may audit everywhere, if it is asked of all of them."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Any:
        if isinstance(workspace_id, OuterRef):
            return Exists(rights(person_id, permission))
        return super().holds(person_id, permission, workspace_id, agent_id)


class OtherwiseForText(PlatformAuthority):
    """Only keys of the right type have rights; the record's are text."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Any:
        if isinstance(workspace_id, str):
            return Q(pk__in=[])
        return super().holds(person_id, permission, workspace_id, agent_id)


class OfTheRow(PlatformAuthority):
    """Finds the person in the row that is asked over, which may be one of a conversation."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Any:
        if permission != READ_SESSIONS or isinstance(workspace_id, OuterRef):
            return super().holds(person_id, permission, workspace_id, agent_id)
        held = rights(person_id, permission, workspace_id=workspace_id)
        return Exists(held.annotate(row=Cast(OuterRef("pk"), TextField())).filter(row=str(person_id)))


@pytest.mark.parametrize(
    ("authority", "permission", "says"),
    [
        (WiderForARow, AUDIT_READS, "with yes, and for an OuterRef to it with no"),
        (OtherwiseForText, WRITE_SETTINGS, "with yes, and for its text with no"),
        (OfTheRow, READ_SESSIONS, "with yes, and in a query of conversations with no"),
    ],
)
def test_an_answer_that_depends_on_how_it_is_asked_is_found(
    settings: Any, asked: World, authority: type[PlatformAuthority], permission: str, says: str
) -> None:
    messages = found(settings, authority)
    assert {message.id for message in messages} == {"history_access.E021"}
    who = f"person {asked.mara.pk}, {permission}, workspace {asked.hollowbrook.pk!r}, "
    assert any(who in message.msg and says in message.msg for message in messages), messages


def test_an_answer_that_is_wider_for_a_query_is_found(settings: Any, asked: World) -> None:
    """Mara audits Hollowbrook; another workspace, of which she has nothing, would be offered too."""
    elsewhere = Workspace.objects.create(name="Elsewhere")
    Agent.objects.create(workspace=elsewhere, name="Other")
    messages = found(settings, WiderForAQuery)
    assert {message.id for message in messages} == {"history_access.E021"}
    who = f"person {asked.mara.pk}, {AUDIT_READS}, workspace {elsewhere.pk!r}, with no, and for an OuterRef"
    assert any(who in message.msg and message.msg.endswith("with yes.") for message in messages), messages


class ForThisAgentAlone(PlatformAuthority):
    """With an agent it looks for that agent's rights, and forgets those for the whole workspace."""

    def holds(self, person_id: Any, permission: str, workspace_id: Any, agent_id: Any) -> Any:
        held = Authority.objects.filter(person_id=person_id, permission=permission, workspace_id=workspace_id)
        return Exists(held.filter(agent_id=agent_id) if agent_id else held.filter(agent=None))


def test_a_right_of_the_workspace_that_does_not_count_for_its_agent_is_found(
    settings: Any, asked: World
) -> None:
    messages = found(settings, ForThisAgentAlone)
    assert {message.id for message in messages} == {"history_access.E022"}
    assert any(
        f"person {asked.mara.pk}, {READ_SESSIONS}" in message.msg and f"agent {asked.agent.pk}" in message.msg
        for message in messages
    ), messages


def test_an_authority_that_answers_as_it_is_asked_has_no_findings(settings: Any, asked: World) -> None:
    """The platform's own, also where a right is of one agent alone."""
    asked.grant(oona := asked.person("oona"), agent=asked.agent)
    asked.turn(oona)
    assert found(settings, PlatformAuthority) == []


def test_the_sample_takes_six_statements_whatever_there_is(settings: Any, asked: World) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as taken:
            assert check_answers(None, databases=["default"]) == []
        return sum(not one["sql"].startswith(("SAVEPOINT", "RELEASE")) for one in taken)

    assert statements() == 6
    for name in "abcdefgh":
        asked.turn(asked.person(name))
        asked.session(name)
    assert statements() == 6


def test_nobody_is_asked_about_without_the_database(settings: Any, asked: World) -> None:
    with CaptureQueriesContext(connection) as taken:
        assert check_answers(None) == check_answers(None, databases=["elsewhere"]) == []
    assert len(taken) == 0
