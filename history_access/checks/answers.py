"""Checks that the platform's authority gives one answer, in whichever way it is asked (`reach-person`).

Asked about a small sample of people and places, in six statements, whatever there is in the database.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connections, transaction
from django.db.models import OuterRef, Q, QuerySet

from history_access.authority import (
    AUDIT_READS,
    READ_SESSIONS,
    RUN_READS,
    WRITE_SETTINGS,
    Authority,
    platform_authority,
)
from history_access.checks.migrated import unless_migrations_wait
from history_access.checks.models import primary_of_sound_models
from history_access.checks.settings import check_authority
from history_access.models.platform import primary, session_model, turn_model
from history_access.reach import truth
from settings_catalog.conf import conf as catalog_conf
from settings_catalog.keys import key_text

TURNS, PEOPLE, PLACES, ROWS = 50, 4, 2, 3
"""Of how many turns the sample is taken, how large it is, and over how many conversations it is asked."""

MOST_NAMED = 5

_PERMISSIONS = (READ_SESSIONS, WRITE_SETTINGS, AUDIT_READS, RUN_READS)
_OVER_SESSIONS = (READ_SESSIONS, RUN_READS)
_BY_TEXT = (WRITE_SETTINGS, AUDIT_READS)
_HINT = (
    "In `holds`, answer Exists(...) over your tables of rights, for the workspace as it is given (a key, its "
    "text, or an OuterRef) and for a right of the whole workspace also where an agent is given."
)


@dataclass(frozen=True, kw_only=True)
class _Question:
    """What the authority is asked; `agent` is None for the whole workspace."""

    person: Any
    permission: str
    workspace: Any
    agent: Any | None = None

    def __str__(self) -> str:
        where = "" if self.agent is None else f", agent {self.agent}"
        workspace = "as an OuterRef" if isinstance(self.workspace, OuterRef) else repr(self.workspace)
        return f"person {self.person}, {self.permission}, workspace {workspace}{where}"


class _NoAnswerError(Exception):
    """What the authority did instead of answering; the message is for the finding."""


@register(Tags.database)
def check_answers(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """E020: the authority's answer is no condition, or cannot be asked of the database. E021: it answers
    otherwise for a workspace's text or for an OuterRef than for the key, or otherwise where it is asked over
    conversations. E022: a right for the whole workspace does not count for one of its agents (all three
    as seen in a small sample of people and places).
    """
    if not databases or primary_of_sound_models() not in databases or check_authority(None):
        return []
    connection = connections[primary()]
    try:
        with _apart():
            people, places = _sample()
    except DatabaseError:
        return []  # a table is not there, which another check says
    try:
        found = list(_disagreements(platform_authority(), people, places))
    except _NoAnswerError as error:
        found = [Error(str(error), hint=_HINT, id="history_access.E020")]
    return unless_migrations_wait(connection, found[:MOST_NAMED])


def _apart() -> AbstractContextManager[Any]:
    """So that a statement which fails leaves a transaction that is already open as it was."""
    using = primary()
    return transaction.atomic(using=using) if connections[using].in_atomic_block else nullcontext()


def _sample() -> tuple[list[Any], list[tuple[Any, Any]]]:
    """Keys of people, and of workspaces with one agent each: those of the newest turns, then others."""
    model: Any = turn_model()
    newest = model._base_manager.using(primary()).order_by("-pk")
    turns = list(newest.values_list("sender_id", "workspace_id", "session__agent_id")[:TURNS])
    agents = catalog_conf.agent_model._base_manager.using(primary()).order_by("pk")
    people = get_user_model()._base_manager.using(primary()).order_by("pk")
    others = agents.values_list("workspace_id", "pk")[:TURNS]
    places: dict[Any, Any] = {}
    for workspace, agent in [*(place for _, *place in turns), *others]:
        places.setdefault(workspace, agent)
    senders = [sender for sender, *_ in turns if sender is not None]
    known = dict.fromkeys([*senders, *people.values_list("pk", flat=True)[:PEOPLE]])
    return list(known)[:PEOPLE], list(places.items())[:PLACES]


def _disagreements(
    authority: Authority, people: list[Any], places: list[tuple[Any, Any]]
) -> Iterator[CheckMessage]:
    questions = [
        _Question(person=person, permission=permission, workspace=workspace, agent=agent)
        for workspace, some_agent in places
        for person in people
        for permission in _PERMISSIONS
        for agent in (None, some_agent)
    ]
    if not questions:
        return
    texts = {
        replace(one, workspace=key_text(one.workspace)): one
        for one in questions
        if one.agent is None and one.permission in _BY_TEXT
    }
    said = _over_people(authority, [*questions, *(text for text in texts if text not in questions)])
    yield from _narrower_for_an_agent(said, questions)
    yield from _otherwise(said, ((one, said.get(text)) for text, one in texts.items()), "for its text")
    asked = [one for one in questions if one.agent is None]
    yield from _otherwise(said, _over_workspaces(authority, asked), "for an OuterRef to it")
    asked = [one for one in questions if one.permission in _OVER_SESSIONS]
    yield from _otherwise(said, _over_sessions(authority, asked), "in a query of conversations")


def _narrower_for_an_agent(said: "_Said", questions: Iterable[_Question]) -> Iterator[CheckMessage]:
    for one in questions:
        whole = replace(one, agent=None)
        if said.get(whole) is True and said.get(one) is False:
            message = f"The authority lets {whole} pass, and not {one}: a right of the whole is one of each."
            yield Error(message, hint=_HINT, id="history_access.E022")


def _otherwise(
    said: "_Said", again: Iterable[tuple[_Question, bool | None]], how: str
) -> Iterator[CheckMessage]:
    words = {True: "yes", False: "no"}
    for one, answer in again:
        if one in said and answer is not None and answer != said[one]:
            message = f"The authority answers {one}, with {words[said[one]]}, and {how} with {words[answer]}."
            yield Error(message, hint=_HINT, id="history_access.E021")


_Said = dict[_Question, bool]


def _over_people(authority: Authority, questions: Sequence[_Question]) -> _Said:
    """As a right of one person is looked at: over that person's own row."""
    people = get_user_model()._base_manager.using(primary())
    conditions = [(one, _condition(authority, one)) for one in questions]
    rows = _values(_those(people, {one.person for one in questions}), conditions)
    return {one: rows[one.person][nth] for nth, one in enumerate(questions) if one.person in rows}


def _over_workspaces(
    authority: Authority, questions: Sequence[_Question]
) -> Iterator[tuple[_Question, bool]]:
    """As an auditor's workspaces are found: over the workspaces, each of which is the one in question."""
    every = list(dict.fromkeys(replace(one, workspace=None) for one in questions))
    outer = [replace(one, workspace=OuterRef("pk")) for one in every]
    workspaces = catalog_conf.workspace_model._base_manager.using(primary())
    conditions = [(one, _condition(authority, one)) for one in outer]
    rows = _values(_those(workspaces, {one.workspace for one in questions}), conditions)
    for one in questions:
        if one.workspace in rows:
            yield one, rows[one.workspace][every.index(replace(one, workspace=None))]


def _over_sessions(authority: Authority, questions: Sequence[_Question]) -> Iterator[tuple[_Question, bool]]:
    """As conversations are fetched: over their rows, of which the answer does not speak."""
    sessions = session_model()._base_manager.using(primary()).order_by("-pk")[:ROWS]
    rows = _values(sessions, [(one, _condition(authority, one)) for one in questions])
    for answers in rows.values():
        yield from zip(questions, answers, strict=True)


def _those(rows: "QuerySet[Any]", keys: set[Any]) -> "QuerySet[Any]":
    """The rows under these keys; none where they are no keys of theirs, which another check says."""
    try:
        return rows.filter(pk__in=keys)
    except (TypeError, ValueError, ValidationError):
        return rows.none()


def _condition(authority: Authority, question: _Question) -> Q:
    asked = (question.person, question.permission, question.workspace, question.agent)
    try:
        answer: Any = authority.holds(*asked)
    except Exception as error:  # whatever the platform's own code raises is the finding
        raise _NoAnswerError(f"The authority fails when asked for {question}: {error!r}") from error
    if not (isinstance(answer, Q) or getattr(answer, "conditional", False)):
        raise _NoAnswerError(f"The authority answers {question}, with {answer!r}, which is no condition.")
    if isinstance(answer, Q) and not answer:
        raise _NoAnswerError(f"The authority answers {question}, with an empty condition.")
    return answer if isinstance(answer, Q) else Q(answer)


def _values(query: "QuerySet[Any]", conditions: Sequence[tuple[_Question, Q]]) -> dict[Any, list[bool]]:
    """Whether each condition holds for each row, by the row's key; one statement.

    A _NoAnswerError that names the first one that cannot be asked; each is then tried by itself.
    """
    try:
        return _run(query, [condition for _, condition in conditions])
    except Exception as failure:
        for question, condition in conditions:
            try:
                _run(query, [condition])
            except Exception as error:
                of = query.model._meta.label
                message = f"What the authority answers {question}, cannot be asked of {of}: {error}"
                raise _NoAnswerError(message) from error
        raise _NoAnswerError(f"What the authority answers cannot be asked: {failure}") from failure


def _run(query: "QuerySet[Any]", conditions: Iterable[Q]) -> dict[Any, list[bool]]:
    with _apart():
        rows = list(query.values_list("pk", *(truth(condition) for condition in conditions)))
    return {key: [bool(value) for value in values] for key, *values in rows}
