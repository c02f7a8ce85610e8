"""The rows of the ladder, and the log of every change to them."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from settings_catalog.keys import stored_text, uuid7
from settings_catalog.places import Level, Place


class _Placed(models.Model):
    """A row that belongs to one entry and one place; keys are text, so that any platform's fit."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    entry = models.CharField(_("setting"), max_length=100)
    level = models.CharField(_("level"), max_length=10, choices=Level.choices)
    workspace_id = models.CharField(_("workspace"), max_length=255, null=True, blank=True)
    agent_id = models.CharField(_("agent"), max_length=255, null=True, blank=True)

    class Meta:
        abstract = True

    @property
    def place(self) -> Place:
        """Where this row stands."""
        return Place(Level(self.level), stored_text(self.workspace_id), stored_text(self.agent_id))


_AT_PLATFORM = Q(level=Level.PLATFORM, workspace_id=None, agent_id=None)
_AT_WORKSPACE = Q(level=Level.WORKSPACE, workspace_id__isnull=False, agent_id=None)
_AT_AGENT = Q(level=Level.AGENT, workspace_id__isnull=False, agent_id__isnull=False)
_AT_ONE_PLACE = _AT_PLATFORM | _AT_WORKSPACE | _AT_AGENT


class SettingValue(_Placed):
    """What one place asks for (`value`), and what it allows at most (`ceiling`): `catalog-ladder`.

    Written by `settings_catalog.changes` alone.
    """

    value = models.CharField(_("value"), max_length=100, null=True, blank=True)
    ceiling = models.CharField(_("ceiling"), max_length=100, null=True, blank=True)

    class Meta:
        verbose_name = _("setting")
        verbose_name_plural = _("settings")
        permissions = [("change_platform_settings", "Can change the settings of the whole platform")]
        constraints = [
            models.CheckConstraint(condition=_AT_ONE_PLACE, name="settings_catalog_one_place"),
            models.CheckConstraint(
                condition=~Q(level=Level.AGENT) | Q(ceiling=None), name="settings_catalog_no_agent_ceiling"
            ),
            models.CheckConstraint(
                condition=Q(value__isnull=False) | Q(ceiling__isnull=False), name="settings_catalog_not_empty"
            ),
            models.UniqueConstraint(
                fields=["entry"],
                condition=Q(level=Level.PLATFORM),
                name="settings_catalog_one_row_per_platform",
            ),
            models.UniqueConstraint(
                fields=["entry", "workspace_id"],
                condition=Q(level=Level.WORKSPACE),
                name="settings_catalog_one_row_per_workspace",
            ),
            models.UniqueConstraint(
                fields=["entry", "agent_id"],
                condition=Q(level=Level.AGENT),
                name="settings_catalog_one_row_per_agent",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.entry} on {self.place.phrase}"


class SettingChange(_Placed):
    """One change of a setting: who, when, where, from what to what, and why (`catalog-change-log`).

    The database refuses to change or remove it.
    """

    changed_at = models.DateTimeField(_("changed at"))
    by_id = models.CharField(_("changed by"), max_length=255)
    value_before = models.CharField(_("value before"), max_length=100, null=True)
    value_after = models.CharField(_("value after"), max_length=100, null=True)
    ceiling_before = models.CharField(_("ceiling before"), max_length=100, null=True)
    ceiling_after = models.CharField(_("ceiling after"), max_length=100, null=True)
    why = models.TextField(_("why"))

    class Meta:
        verbose_name = _("change of a setting")
        verbose_name_plural = _("changes of settings")
        ordering = ["-id"]
        indexes = [models.Index(fields=["entry", "level", "workspace_id", "agent_id"])]
        constraints = [
            models.CheckConstraint(condition=_AT_ONE_PLACE, name="settings_catalog_change_one_place")
        ]

    def __str__(self) -> str:
        return f"{self.entry} on {self.place.phrase}, {self.changed_at:%Y-%m-%d %H:%M}"
