"""Settings that operators turn on deliberately: which value holds for an agent, and why."""
