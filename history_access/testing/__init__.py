"""What a test suite needs: the contract for a platform to prove, a fake authority, guards that can be lifted.

The factories for our own tables are in `history_access.testing.agent_platform`.
"""

from history_access.testing.contract import BrokenRule, HistoryAccessContract
from history_access.testing.fake_authority import FakeAuthority, Rights, fake_authority
from history_access.testing.guards import lift_guards, put_back_guards
from history_access.testing.platform import Part, PlatformFactories, Refused

__all__ = [
    "BrokenRule",
    "FakeAuthority",
    "HistoryAccessContract",
    "Part",
    "PlatformFactories",
    "Refused",
    "Rights",
    "fake_authority",
    "lift_guards",
    "put_back_guards",
]
