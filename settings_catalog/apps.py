from django.utils.translation import gettext_lazy as _

from settings_catalog.guards import Guard, GuardedConfig, append_only


class SettingsCatalogConfig(GuardedConfig):
    default = True
    name = "settings_catalog"
    verbose_name = _("Settings catalog")
    default_auto_field = "django.db.models.BigAutoField"
    before_removal = "Keep them elsewhere first, as with `manage.py dumpdata settings_catalog.settingchange`."

    def guards(self) -> tuple[Guard, ...]:
        """The change log is append-only (`catalog-change-log`)."""
        return append_only("settings_catalog_settingchange")

    def ready(self) -> None:
        """Guard the change log and register the checks."""
        super().ready()
        from settings_catalog import checks  # noqa: F401
