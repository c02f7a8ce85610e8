"""A router as a platform with a replica has one: reads go to a database that is not there."""

from typing import Any


class ReplicaForReads:
    """Whatever does not ask for the primary fails."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "replica"

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "default"


class RecordElsewhere:
    """The record is written to another database than the sessions."""

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "elsewhere" if model._meta.app_label == "history_access" else "default"
