"""The contract suite on our own tables, what it says of what is wrong, and the fake authority that it proves.

It holds reach-agent, reach-account-exact, reach-person, reach-trigger-owner, reach-trigger-edited,
reach-fixed-session, reach-not-self, reach-not-deleted, reach-live-turn, reach-now, reach-one-door,
reach-same-answer, catalog-who, refs-per-turn, refs-admission, refs-within-reach, refs-two-kinds,
refs-discovery, tool-list, tool-read, tool-caps, tool-count, tool-pages, tool-unavailable, tool-summary,
tool-read-only, tool-text-is-hostile, record-every-read, record-both-ways and record-label.
"""

import unittest
from typing import Any, ClassVar

import pytest
from django.db.models import F, Q
from django.test import TransactionTestCase

from history_access import testing
from history_access.agent_platform.models import Message
from history_access.authority import Authority
from history_access.testing import HistoryAccessContract, Part, Rights, fake_authority
from history_access.testing.agent_platform import AgentPlatformFactories
from history_access.tools import toolset_for
from tests.contract_runs import rules, run
from tests.worlds import World, listed
from tests.wrong_authorities import AnyWorkspace
from tests.wrong_platforms import WRONG, Wrong


class TestAgentPlatform(testing.HistoryAccessContract):
    platform = AgentPlatformFactories()


class RightsOfATest(AgentPlatformFactories):
    """Our tables, with rights that are nowhere in them."""

    held_by_everybody: ClassVar[frozenset[str]] = frozenset()
    rights: Rights

    def grant(self, person: Any, permission: str, workspace: Any, agent: Any = None) -> None:
        self.rights.grant(person, permission, workspace, agent)

    def revoke(self, person: Any, permission: str, workspace: Any, agent: Any = None) -> None:
        self.rights.revoke(person, permission, workspace, agent)


class TestTheSuite(TransactionTestCase):
    """What it says, run in this process."""

    def _fixture_teardown(self) -> None:
        """There is nothing to flush: the suite took back what it wrote."""

    def test_a_fake_authority_keeps_the_rules_of_a_real_one(self) -> None:
        of_rights = {"reach-person", "reach-now", "catalog-who", "refs-admission"}
        platform = RightsOfATest()
        with fake_authority() as platform.rights:
            told = run(
                platform,
                [test for test, rule in rules().items() if rule in of_rights],
                platform.rights.clear,
            )
        assert told.messages == {} and told.testsRun > 15
        assert [reason for _, reason in told.skipped] == ["the authority does not say `compiled_once`"]

    def test_a_failure_begins_with_the_rule_and_shows_the_rows(self) -> None:
        name = "test_reach_person_by_no_right_elsewhere"
        with Wrong(authority=AnyWorkspace, red={name}).in_place():
            [message] = run(AgentPlatformFactories(), [name]).messages["reach-person"]
        rule, *rows = message.splitlines()
        assert rule.startswith("reach-person: sessions:read in another workspace")
        assert [row.split()[0] for row in rows[:4]] == ["turn", "session", "expected", "came"]
        assert "running, sender" in rows[0] and "'theirs': workspace" in rows[1]
        assert rows[2].endswith("out of reach") and rows[3].endswith("list_conversations: listed")
        assert rows[-1].endswith("read_conversation: given")

    def test_a_failure_shows_what_the_tools_logged(self) -> None:
        """Also of an authority that fails altogether, of which a model hears nothing."""
        name = "test_reach_not_self"
        with Wrong(authority=Empty, red={name}).in_place():
            [message] = run(AgentPlatformFactories(), [name]).messages["reach-not-self"]
        assert message.startswith("reach-not-self: AuthorityError was raised: the authority answered")
        with Wrong(patches=((Message, "words", lambda: F("nothing")),), red=set()).in_place():
            [message] = run(AgentPlatformFactories(), ["test_tool_count"]).messages["tool-count"]
        assert message.startswith("tool-count: read_conversation gives a page\n")
        assert "\n  logged    FieldError: Cannot resolve keyword 'nothing'" in message

    def test_what_a_platform_lacks_is_skipped_with_its_reason(self) -> None:
        without = type("Without", (AgentPlatformFactories,), {"lacks": {Part.SUMMARIES: "Short threads."}})
        told = run(without(), ["test_tool_summary", "test_tool_read_only"])
        assert [reason for _, reason in told.skipped] == ["tool-summary: no summaries: Short threads."]
        assert told.testsRun == 2 and not told.failures

    def test_a_factory_that_is_left_out_is_named(self) -> None:
        names = {"summarize": testing.PlatformFactories.summarize}
        left_out = type("LeftOut", (AgentPlatformFactories,), names)
        with pytest.raises(AssertionError, match=r"LeftOut lacks summarize\(\) \(summaries\): write it, or"):
            run(left_out())

    def test_the_suite_itself_is_not_run_by_either_runner(self) -> None:
        assert not HistoryAccessContract.__test__ and TestAgentPlatform.__test__
        tests, told = (
            unittest.defaultTestLoader.loadTestsFromTestCase(HistoryAccessContract),
            unittest.TestResult(),
        )
        tests.run(told)
        assert told.testsRun == 0 and len(told.skipped) == 1


class Empty(Authority):
    def holds(self, *asked: Any) -> Q:
        return Q()


def test_every_test_is_named_for_its_rule() -> None:
    assert all(rule in __doc__ for rule in rules().values())
    for test, rule in rules().items():
        assert test.startswith(f"test_{rule.replace('-', '_')}"), test
    assert len(WRONG) >= 12


def test_a_fake_authority_is_gone_after_its_block(world: World) -> None:
    """reach-now: what it gave is looked at when the statement runs, and lost with the block."""
    world.allow("all_accounts")
    theirs = world.session("hello", person=world.operator)
    tools = toolset_for(world.turn(world.mara))
    with fake_authority() as rights:
        rights.grant(world.mara, "sessions:read", world.hollowbrook, world.agent)
        assert listed(tools) == [str(theirs.pk)]
        rights.revoke(world.mara, "sessions:read", world.hollowbrook, world.agent)
        assert listed(tools) == []
        rights.grant(world.mara, "sessions:read", world.hollowbrook)
    assert listed(tools) == []
    with fake_authority():
        assert listed(tools) == []
