"""The contract suite on our own tables."""

from history_access import testing
from history_access.testing.agent_platform import AgentPlatformFactories


class TestAgentPlatform(testing.HistoryAccessContract):
    platform = AgentPlatformFactories()
