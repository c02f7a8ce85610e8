"""Runs the contract suite in this process, on a platform that may break it."""

import unittest
from collections.abc import Callable, Collection
from typing import Any

from history_access.testing import HistoryAccessContract, PlatformFactories
from history_access.testing.agent_platform import AgentPlatformFactories


class Told(unittest.TestResult):
    """The messages of what failed, by rule; an error is one of the suite itself."""

    def __init__(self, before_each: Callable[[], None]) -> None:
        super().__init__()
        self.before_each = before_each
        self.messages: dict[str, list[str]] = {}
        self.failed: set[str] = set()

    def startTest(self, test: Any) -> None:  # noqa: N802 (unittest's name)
        self.before_each()
        super().startTest(test)

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802 (unittest's name)
        super().addFailure(test, err)
        self.failed.add(test._testMethodName)
        self.messages.setdefault(rule_of(test), []).append(str(err[1]))


def rule_of(test: Any) -> str:
    return getattr(test, test._testMethodName).rule


def tests_of(platform: PlatformFactories) -> list[unittest.TestCase]:
    """The tests of a fresh class of the suite for a platform."""
    ours = type("Ours", (HistoryAccessContract,), {"platform": platform, "__module__": __name__})
    return list(unittest.defaultTestLoader.loadTestsFromTestCase(ours))


def rules() -> dict[str, str]:
    """The rule of each test of the suite, by its name."""
    return {test._testMethodName: rule_of(test) for test in tests_of(AgentPlatformFactories())}


def run(
    platform: PlatformFactories,
    chosen: Collection[str] | None = None,
    before_each: Callable[[], None] = lambda: None,
) -> Told:
    """What the suite says of a platform, by all of its tests or by the chosen ones."""
    tests = tests_of(platform)
    told = Told(before_each)
    unittest.TestSuite(t for t in tests if chosen is None or t._testMethodName in chosen).run(told)
    assert not told.errors, told.errors[0][1]
    return told
