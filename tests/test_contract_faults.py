"""The contract suite can fail: each wrong platform has its rules named red, and no other.

Of each only the tests that must fail are run, and a few others by turns, so that every test passes somewhere
where something else is wrong. EVERY_RULE=1 (`make contract`) runs the whole suite on each.
"""

import os
import re
from typing import Any

from django.test import TransactionTestCase

from tests.contract_runs import rules, run
from tests.wrong_authorities import Cached
from tests.wrong_platforms import WRONG

EVERY_RULE = "EVERY_RULE" in os.environ
RULES = rules()
OTHERS = 1


class TestWrongPlatforms(TransactionTestCase):
    """Each runs the suite, which has transactions of its own: there is none around it here."""

    def _fixture_teardown(self) -> None:
        """There is nothing to flush: the suite took back what it wrote."""

    def check(self, name: str) -> None:
        wrong, place = WRONG[name], list(WRONG).index(name)
        red = {RULES[test] for test in wrong.red}
        others = [test for test, rule in RULES.items() if rule not in red]
        some = [others[(place * OTHERS + step) % len(others)] for step in range(OTHERS)]
        with wrong.in_place():
            told = run(wrong.platform, None if EVERY_RULE else {*wrong.red, *some}, Cached.answers.clear)
        assert set(told.messages) == red, told.messages
        assert set(wrong.red) <= told.failed
        for rule, messages in told.messages.items():
            assert all(message.startswith(f"{rule}: ") for message in messages), messages

    def test_every_test_of_the_suite_fails_on_one(self) -> None:
        assert {test for wrong in WRONG.values() for test in wrong.red} == set(RULES)


def add_test(name: str) -> None:
    def test(self: Any) -> None:
        self.check(name)

    setattr(TestWrongPlatforms, f"test_{re.sub('[^a-z0-9]+', '_', name.lower())}", test)


for name in WRONG:
    add_test(name)
