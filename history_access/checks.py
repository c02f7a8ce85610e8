"""System checks: what a platform must have for history access to be right. See `docs/` for each."""
