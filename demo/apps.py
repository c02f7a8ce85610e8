from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "demo"
    verbose_name = "Hollowbrook"

    def ready(self) -> None:
        """Register the platform's own settings beside the two of history access."""
        from demo.entries import AGENT_FILES, WORKSPACE_FILES
        from settings_catalog import catalog

        catalog.register(AGENT_FILES)
        catalog.register(WORKSPACE_FILES)
