from dataclasses import replace

from django.utils.translation import gettext_lazy as _

from settings_catalog.guards import Guard, GuardedConfig, append_only, fixed_columns, never_removed

_REFERENCE = "history_access_turnreference"
_EXCERPT = "history_access_excerpttext"
_FIXED = "what was handed to a turn stays as it was handed over"
_ONCE = (
    "turn_id = NEW.turn_id AND workspace_id = NEW.workspace_id AND session_id = NEW.session_id AND "
    "kind = 'conversation' AND NEW.kind = kind AND ended_at IS NULL AND NEW.ended_at IS NULL"
)

_HANDED_OVER = (
    *fixed_columns(
        _REFERENCE,
        [
            "workspace_id",
            "agent_id",
            "turn_id",
            "person_id",
            "kind",
            "session_id",
            "session_account_id",
            "session_person_id",
            "bound_at",
        ],
        _FIXED,
        also=_ONCE,
    ),
    Guard(
        name=f"{_REFERENCE}_ended",
        table=_REFERENCE,
        event="UPDATE",
        when="OLD.ended_at IS NOT NULL AND NEW.ended_at {differs} OLD.ended_at",
        message="a reference that has ended stays ended",
    ),
    *never_removed(_REFERENCE, _FIXED),
    *fixed_columns(_EXCERPT, ["workspace_id"], _FIXED, key="reference_id"),
    Guard(
        name=f"{_EXCERPT}_words",
        table=_EXCERPT,
        event="UPDATE",
        when="NEW.content IS NOT NULL AND NEW.content {differs} OLD.content",
        message="an excerpt is copied once: its words are erased, never changed",
    ),
    *never_removed(_EXCERPT, _FIXED),
    *append_only("history_access_referencesubmission", unique=("turn_id", "workspace_id", "submission_key")),
)


class HistoryAccessConfig(GuardedConfig):
    default = True
    name = "history_access"
    verbose_name = _("History access")
    default_auto_field = "django.db.models.BigAutoField"
    before_removal = "Keep them elsewhere first: `manage.py export_reads`, `export_seal`, and a backup."

    def guards(self) -> tuple[Guard, ...]:
        """The record and what proves it are append-only (`record-append-only`)."""
        return (
            *append_only("history_access_turnconversationread"),
            *append_only("history_access_seal", key="number"),
            *append_only("history_access_sealedrow", key="row_id", unique=("seal_number", "position")),
            *append_only("history_access_maintenanceevent"),
            *append_only("history_access_erasedvalue", unique=("row_id", "column")),
            *append_only("history_access_refusal"),
            *append_only("history_access_auditquery"),
            *_HANDED_OVER,
        )

    def ready(self) -> None:
        """Register the two settings, their warnings, the checks, and what SQLite's connections need.

        The guard comes to its entry here, since it asks the database, which `entries` knows nothing of.
        """
        super().ready()
        from history_access import checks, danger  # noqa: F401
        from history_access.entries import CONVERSATION_REFERENCES, HISTORY_ACCESS
        from history_access.models import text
        from settings_catalog import catalog
        from settings_catalog.dangers import warn_with

        catalog.register(replace(HISTORY_ACCESS, guard=danger.guard))
        catalog.register(CONVERSATION_REFERENCES)
        warn_with(danger.warnings_of)
        text.connect()
