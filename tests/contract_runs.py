"""Runs the contract suite in this process, on a platform that may break it."""

import unittest
from collections.abc import Callable, Iterator
from typing import Any

from history_access.testing import HistoryAccessContract, PlatformFactories

Chosen = Callable[[str, str], bool]
"""Whether a test is to run: its name, and its rule."""


class Told(unittest.TestResult):
    """The messages of what failed, by rule; an error is one of the suite itself."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: dict[str, list[str]] = {}
        self.failed: set[str] = set()

    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self.failed.add(test._testMethodName)
        self.messages.setdefault(rule_of(test), []).append(str(err[1]))

    @property
    def red(self) -> set[str]:
        return set(self.messages)


class _OneByOne(unittest.TestSuite):
    """Chooses each test when its turn comes."""

    def __init__(self, tests: Any, chosen: Chosen) -> None:
        super().__init__(tests)
        self.chosen = chosen

    def __iter__(self) -> Iterator[Any]:
        return (test for test in super().__iter__() if self.chosen(test._testMethodName, rule_of(test)))


def rule_of(test: Any) -> str:
    return getattr(test, test._testMethodName).rule


def tests_of(platform: PlatformFactories) -> list[unittest.TestCase]:
    """A fresh class of the suite for a platform; its tests."""
    ours = type("Ours", (HistoryAccessContract,), {"platform": platform, "__module__": __name__})
    return list(unittest.defaultTestLoader.loadTestsFromTestCase(ours))


def run(platform: PlatformFactories, choose: Callable[[Told], Chosen] = lambda told: lambda *_: True) -> Told:
    """What the suite says; `choose` may look at what it has said so far."""
    told = Told()
    _OneByOne(tests_of(platform), choose(told)).run(told)
    assert not told.errors, told.errors[0][1]
    return told
