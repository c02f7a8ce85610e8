"""The contract suite: what a platform subclasses to prove that its tables and authority keep the rules."""

from history_access.testing.contract.authority import AuthorityRules
from history_access.testing.contract.failures import RULE, BrokenRule
from history_access.testing.contract.listing import ListRules
from history_access.testing.contract.now import NowRules, TriggerRules
from history_access.testing.contract.reach import ReachRules
from history_access.testing.contract.reading import ReadRules, RestRules
from history_access.testing.contract.record import RecordRules
from history_access.testing.contract.references import ReferenceRules

__all__ = ["RULE", "BrokenRule", "HistoryAccessContract"]


class HistoryAccessContract(
    ReachRules,
    NowRules,
    TriggerRules,
    AuthorityRules,
    ListRules,
    ReadRules,
    RestRules,
    RecordRules,
    ReferenceRules,
):
    """Subclass it in a module of tests and set `platform`: that is all.

    Each test is named for its rule, and fails with a message that begins with the rule and shows the rows
    that prove it. A rule that needs what the platform lacks is skipped with the platform's reason. It is a
    `django.test.TestCase`, for Django's runner and for pytest.
    """
