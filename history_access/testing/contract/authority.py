"""The platform's answers: one definition for a row and for a query, and what the other rights open."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import OuterRef, QuerySet

from history_access.auditors import audited_workspaces, audits_workspace
from history_access.authority import (
    AUDIT_READS,
    READ_SESSIONS,
    RUN_READS,
    WRITE_SETTINGS,
    condition,
    person_holds,
    platform_authority,
)
from history_access.entries import HISTORY_ACCESS
from history_access.models.platform import primary, session_model
from history_access.reach import truth
from history_access.testing.contract.case import ContractCase
from history_access.testing.contract.failures import rule
from history_access.testing.platform import Part
from settings_catalog.changes import SettingForbiddenError, set_value
from settings_catalog.conf import conf

PERMISSIONS = (READ_SESSIONS, WRITE_SETTINGS, AUDIT_READS, RUN_READS)


class AuthorityRules(ContractCase):
    """`holds` as it is asked: of one person, within a query of conversations, and of many workspaces."""

    @rule("reach-person")
    def test_reach_person_holds_what_was_granted(self) -> None:
        elsewhere = self.platform.workspace("UTC")
        for permission in PERMISSIONS:
            self._check_holds(self.reader, permission, self.workspace, expected=self._everybody(permission))
            self.platform.grant(self.reader, permission, self.workspace)
            self._check_holds(self.reader, permission, self.workspace, expected=True)
            self._check_holds(self.other, permission, self.workspace, expected=self._everybody(permission))
            self._check_holds(self.reader, permission, elsewhere, expected=self._everybody(permission))
            self.platform.revoke(self.reader, permission, self.workspace)
            self._check_holds(self.reader, permission, self.workspace, expected=self._everybody(permission))

    @rule("reach-person")
    def test_reach_person_by_one_answer_for_rows_and_queries(self) -> None:
        """Each question is put to a row of the person, to conversations, and of every workspace at once."""
        elsewhere = self.platform.workspace("UTC")
        self.session("here", person=self.other)
        self.session("elsewhere", person=self.other, agent=self.platform.agent(elsewhere))
        for permission in PERMISSIONS:
            self.platform.grant(self.other, permission, self.workspace)
        if Part.AGENT_RIGHTS not in self.platform.lacks:
            self.platform.grant(self.reader, READ_SESSIONS, self.workspace, self.agent)
        beside = self.platform.agent(self.workspace)
        for person in (self.reader, self.other):
            self._check_one_answer(person, [self.workspace, elsewhere], [None, self.agent, beside])

    @rule("reach-person")
    def test_reach_person_by_no_other_right(self) -> None:
        """Each permission is given to somebody who has no other, and then all are asked for."""
        for granted in PERMISSIONS:
            person = self.platform.person()
            self.platform.grant(person, granted, self.workspace)
            brought = {granted, *self.platform.brought_along.get(granted, ())}
            for permission in PERMISSIONS:
                held = permission in brought or self._everybody(permission)
                self._check_holds(person, permission, self.workspace, expected=held, granted=granted)

    @rule("reach-person")
    def test_reach_person_audits_the_workspaces_of_their_right(self) -> None:
        elsewhere = self.platform.workspace("UTC")
        self.platform.grant(self.reader, AUDIT_READS, self.workspace)
        here, there = str(self.workspace.pk), str(elsewhere.pk)
        offered = {str(key) for key in audited_workspaces(self.reader.pk).values_list("pk", flat=True)}
        self.check(
            "reads:audit opens its workspace's record: to choose (`workspace_id` is an OuterRef) and to see",
            person=self.reader.pk,
            expected={here: (True, True), there: (False, False)},
            came={one: (one in offered, audits_workspace(self.reader.pk, one)) for one in (here, there)},
        )
        self.platform.deactivate(self.reader)
        self.check(
            "who is not active audits nothing",
            person=self.reader.pk,
            expected=([], False),
            came=(list(audited_workspaces(self.reader.pk)), audits_workspace(self.reader.pk, here)),
        )

    @rule("catalog-who")
    def test_catalog_who(self) -> None:
        self._check_writes(False, self.workspace)
        self.platform.grant(self.reader, WRITE_SETTINGS, self.workspace)
        self._check_writes(True, self.workspace)
        self._check_writes(False, self.platform.workspace("UTC"))
        self.platform.deactivate(self.reader)
        self._check_writes(False, self.workspace)

    def _everybody(self, permission: str) -> bool:
        return permission in self.platform.held_by_everybody

    def _check_holds(
        self, person: Any, permission: str, workspace: Any, *, expected: bool, **rows: object
    ) -> None:
        came = person_holds(platform_authority(), person.pk, permission, workspace.pk)
        self.check(
            f"{permission} is held by whom it was granted to, where it was, until it is revoked",
            person=person.pk,
            workspace=workspace.pk,
            **rows,
            expected=expected,
            came=came,
        )

    def _check_one_answer(self, person: Any, workspaces: list[Any], agents: list[Any]) -> None:
        authority, places = platform_authority(), [one.pk for one in workspaces]
        asked = {
            (permission, workspace, agent if agent is None else agent.pk): condition(
                authority, person.pk, permission, workspace, agent if agent is None else agent.pk
            )
            for permission in PERMISSIONS
            for workspace in places
            for agent in agents
        }
        model: Any = session_model()
        people = get_user_model()._base_manager.using(primary()).filter(pk=person.pk)
        of_row = self._verdicts(people, asked)
        of_sessions = self._verdicts(model._base_manager.using(primary()).all(), asked)
        for question, answer in of_row.items():
            self._check_same(person, question, answer, of_sessions[question], "a query of conversations")
        for permission in PERMISSIONS:
            of_each = condition(authority, person.pk, permission, OuterRef("pk"), None)
            rows = conf.workspace_model._base_manager.using(primary()).filter(of_each)
            found = set(rows.values_list("pk", flat=True))
            for key in places:
                question = (permission, key, None)
                self._check_same(
                    person, question, of_row[question], {key in found}, "an OuterRef as the workspace"
                )

    @staticmethod
    def _verdicts(rows: "QuerySet[Any]", asked: Mapping[Any, Any]) -> dict[Any, set[bool]]:
        columns = {f"answer_{place}": truth(one) for place, one in enumerate(asked.values())}
        found = list(rows.annotate(**columns).values_list(*columns))
        return {question: {row[place] for row in found} for place, question in enumerate(asked)}

    def _check_same(self, person: Any, question: Any, row: set[bool], query: set[bool], form: str) -> None:
        permission, workspace, agent = question
        self.check(
            f"`holds` answers alike for a row of the person and for {form}, of whatever rows that is",
            person=person.pk,
            permission=permission,
            workspace=workspace,
            agent=agent,
            expected=sorted(row),
            came=sorted(query),
        )

    def _check_writes(self, may: bool, workspace: Any) -> None:
        try:
            set_value(
                HISTORY_ACCESS.key, workspace=workspace, value="same_account", by=self.reader, why="a test"
            )
            came = True
        except SettingForbiddenError:
            came = False
        self.check(
            "a person changes the settings of the workspaces in which they hold settings:write",
            person=self.reader.pk,
            workspace=workspace.pk,
            expected=may,
            came=came,
        )
