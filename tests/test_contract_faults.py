"""The contract suite can fail: each wrong platform has its rules named red, and no other."""

import os
import re
from typing import Any

from django.test import TransactionTestCase

from tests.contract_runs import run
from tests.wrong_platforms import WRONG


class TestWrongPlatforms(TransactionTestCase):
    """Each runs the suite, which has transactions of its own: there is none around it here."""

    def _fixture_teardown(self) -> None:
        """There is nothing to flush: the suite took back what it wrote."""


def add_test(name: str) -> None:
    def test(self: Any) -> None:
        with WRONG[name].in_place():
            told = run(WRONG[name].platform)
        print("@@", repr(name), sorted(told.red), sorted(told.failed))
        if os.environ.get("SHOW"):
            for m in told.messages.values():
                print(*m, sep="\n")

    setattr(TestWrongPlatforms, f"test_{re.sub('[^a-z0-9]+', '_', name.lower())}", test)


for name in WRONG:
    add_test(name)
