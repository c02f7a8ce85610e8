from dataclasses import replace

from django.utils.translation import gettext_lazy as _

from settings_catalog.guards import Guard, GuardedConfig, append_only


class HistoryAccessConfig(GuardedConfig):
    default = True
    name = "history_access"
    verbose_name = _("History access")
    default_auto_field = "django.db.models.BigAutoField"

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
