"""What a platform can listen to."""

from django.dispatch import Signal

conversations_read = Signal()
"""Sent after a turn was given something, once the record of it is committed (`record-label`).

Receivers get `turn_id`, `workspace_id`, `agent_id` (keys of the platform) and `given`, a list of
`history_access.record.Given`. What a receiver raises is logged, and changes nothing.
"""
