from django.utils.translation import gettext_lazy as _

from settings_catalog.guards import Guard, GuardedConfig


class AgentPlatformConfig(GuardedConfig):
    default = True
    name = "history_access.agent_platform"
    label = "agent_platform"
    verbose_name = _("Agent platform")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """People are named by whatever the project's user model names them by."""
        super().ready()
        from django.contrib.auth import get_user_model

        from history_access.agent_platform.models import Session

        Session.person_name = f"person__{get_user_model().USERNAME_FIELD}"

    def guards(self) -> tuple[Guard, ...]:
        """What these tables refuse by themselves (`reach-fixed-session`, `reach-trigger-edited`)."""
        from history_access.agent_platform.table_guards import TABLE_GUARDS

        return TABLE_GUARDS
