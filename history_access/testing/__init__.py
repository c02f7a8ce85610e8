"""What a test suite needs: guards that can be lifted, and factories for the agent platform's tables."""

from history_access.testing.guards import lift_guards, put_back_guards

__all__ = ["lift_guards", "put_back_guards"]
