"""The rules of reach that follow what changes meanwhile: rights, people, settings, and who owns a trigger."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.models import QuerySet
from django.test import override_settings

from history_access.authority import READ_SESSIONS, platform_authority
from history_access.reach import reach_of
from history_access.testing.contract.case import ContractCase
from history_access.testing.contract.failures import rule
from history_access.testing.platform import Part, Refused
from history_access.tools import toolset_for
from settings_catalog import compiled


def query_for(turn: Any, session: Any) -> "QuerySet[Any, Any]":
    """The query that looks whether a turn reads a session, made and not run."""
    return reach_of(turn).sessions().filter(pk=session.pk).values_list("pk", flat=True)


@contextmanager
def _noting(logger: str) -> Iterator[list[str]]:
    """What a logger warns of within the block."""
    noted: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: noted.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger(logger).addHandler(handler)
    try:
        yield noted
    finally:
        logging.getLogger(logger).removeHandler(handler)


class NowRules(ContractCase):
    """What is lost before text is fetched is lost, whatever was looked at before."""

    def _read_by_right(self) -> tuple[Any, Any]:
        self.platform.grant(self.reader, READ_SESSIONS, self.workspace)
        return self.turn(self.reader), self.session("theirs", person=self.other)

    @rule("reach-now")
    def test_reach_now_a_right_goes_between_two_calls(self) -> None:
        turn, theirs = self._read_by_right()
        toolset = toolset_for(turn)
        self.check_reach("with the right it is read", turn, toolset=toolset, may=[theirs])
        self.platform.revoke(self.reader, READ_SESSIONS, self.workspace)
        self.check_reach(
            "the next call after sessions:read was revoked reads nothing by it",
            turn,
            toolset=toolset,
            may_not=[theirs],
        )
        self.platform.grant(self.reader, READ_SESSIONS, self.workspace)
        self.check_reach("given again, it opens again", turn, toolset=toolset, may=[theirs])

    @rule("reach-now")
    def test_reach_now_a_right_goes_before_the_statement_runs(self) -> None:
        turn, theirs = self._read_by_right()
        query = query_for(turn, theirs)
        self.platform.revoke(self.reader, READ_SESSIONS, self.workspace)
        self.check(
            "a right is looked at in the statement that fetches the text: `holds` answers with a condition, "
            "not with what it found when it was asked",
            turn=turn,
            session=theirs,
            expected=[],
            came=list(query),
        )

    @rule("reach-now")
    def test_reach_now_by_sql_that_is_kept(self) -> None:
        """Where the authority says `compiled_once`: nothing is decided in Python, nothing stands still."""
        if not platform_authority().compiled_once:
            self.skipTest("the authority does not say `compiled_once`")
        for person in (self.reader, self.other):
            self.session("own", person=person)
        turns = [self.turn(self.reader), self.turn(self.other)]
        compiled.forget()
        with _noting("settings_catalog.compiled") as noted:
            kept = [toolset_for(turn).call("list_conversations", {}) for turn in (*turns, *turns)]
        with override_settings(SETTINGS_CATALOG_COMPILED_QUERIES=False):
            anew = [toolset_for(turn).call("list_conversations", {}) for turn in turns]
        promise = (
            "`compiled_once` promises the same SQL for everybody at every time, and each value is put into it"
        )
        self.check(promise, expected=[], came=noted)
        self.check(promise, expected=[*anew, *anew], came=kept)

    @rule("reach-now")
    def test_reach_now_a_person_is_switched_off(self) -> None:
        turn, own = self.turn(self.reader), self.session("own", person=self.reader)
        toolset, query = toolset_for(turn), query_for(turn, own)
        self.platform.deactivate(self.reader)
        self.check(
            "whether a person is active is looked at in the statement that fetches the text",
            turn=turn,
            expected=[],
            came=list(query),
        )
        self.check_reach(
            "the next call after a person was switched off reads nothing",
            turn,
            toolset=toolset,
            may_not=[own],
        )

    @rule("reach-now")
    def test_reach_now_the_setting_is_lowered(self) -> None:
        turn, own = self.turn(self.reader), self.session("own", person=self.reader)
        toolset = toolset_for(turn)
        self.check_reach("while it is allowed it is read", turn, toolset=toolset, may=[own])
        self.allow("none")
        self.check_reach(
            "the next call after history access was switched off reads nothing",
            turn,
            toolset=toolset,
            may_not=[own],
        )


class TriggerRules(ContractCase):
    """Whom a schedule or a webhook reads as."""

    @rule("reach-trigger-owner", Part.TRIGGERS)
    def test_reach_trigger_owner(self) -> None:
        turn = self.turn(trigger=self.platform.trigger(self.agent, self.reader))
        self.check_reach(
            "a triggered turn reads as its trigger's owner, and as nobody else",
            turn,
            may=[self.session("the owner's", person=self.reader)],
            may_not=[self.session("theirs", person=self.other), self.session("nobody's", person=None)],
        )

    @rule("reach-trigger-owner", Part.TRIGGERS)
    def test_reach_trigger_owner_is_gone(self) -> None:
        trigger, own = self.platform.trigger(self.agent, self.reader), self.session("a", person=self.reader)
        turn = self.turn(trigger=trigger)
        toolset, query = toolset_for(turn), query_for(turn, own)
        self.platform.disown_trigger(trigger)
        self.check(
            "who owns the trigger is looked at in the statement that fetches the text",
            turn=turn,
            expected=[],
            came=list(query),
        )
        self.check_reach(
            "a turn whose trigger has no owner any more reads nothing",
            turn,
            toolset=toolset,
            may_not=[own, self.session("nobody's", person=None)],
        )

    @rule("reach-trigger-owner", Part.TRIGGERS)
    def test_reach_trigger_owner_beside_a_sender(self) -> None:
        now = self.session("now", person=self.reader)
        trigger = self.platform.trigger(self.agent, self.reader)
        try:
            turn = self.platform.turn(now, sender=self.reader, trigger=trigger)
        except Refused:
            return  # as it may
        self.check_reach(
            "a turn with both a sender and a trigger has no one reader, and reads nothing",
            turn,
            may_not=[self.session("own", person=self.reader)],
        )

    @rule("reach-trigger-owner", Part.TRIGGERS)
    def test_reach_trigger_owner_is_not_active(self) -> None:
        trigger, own = self.platform.trigger(self.agent, self.reader), self.session("a", person=self.reader)
        turn = self.turn(trigger=trigger)
        self.platform.deactivate(self.reader)
        self.check_reach("a turn whose trigger's owner left reads nothing", turn, may_not=[own])

    @rule("reach-trigger-edited", Part.TRIGGERS)
    def test_reach_trigger_edited(self) -> None:
        trigger = self.platform.trigger(self.agent, self.reader)
        turn = self.turn(trigger=trigger)
        first, editors = self.session("the first owner's", person=self.reader), self.other
        toolset = toolset_for(turn)
        try:
            self.platform.edit_trigger(trigger, by=editors)
        except Refused:
            return  # as it may
        self.check_reach(
            "whoever edits a trigger owns it from then on, also for a turn that runs: it reads as them",
            turn,
            toolset=toolset,
            may=[self.session("the editor's", person=editors)],
            may_not=[first],
        )
