"""Triggers: whoever saves what one does becomes its owner."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from history_access.agent_platform import services
from history_access.agent_platform.admin.columns import NameColumns
from history_access.agent_platform.models import Agent, Trigger, TriggerKind
from settings_catalog.admin.lists import BoundedAdmin, KnownValues

_WHAT_IT_DOES = ("agent", "kind", "name", "instructions")


class TriggerForm(forms.ModelForm):  # type: ignore[type-arg]
    """What a trigger does."""

    def clean_agent(self) -> Agent:
        """Refuse an agent of another workspace than the trigger's."""
        agent: Agent = self.cleaned_data["agent"]
        if self.instance.workspace_id not in (None, agent.workspace_id):
            raise ValidationError(_("This agent belongs to another workspace than the trigger."))
        return agent


class KindFilter(KnownValues):
    """Schedules, or webhooks."""

    title = _("kind")
    parameter_name = "kind"
    known = TriggerKind.choices


@admin.register(Trigger)
class TriggerAdmin(NameColumns, BoundedAdmin[Trigger]):
    """Saved by `services` alone, which makes the person who saves its owner (`reach-trigger-edited`)."""

    form = TriggerForm
    fieldsets = (
        (
            None,
            {
                "description": _(
                    "Whoever saves a change of what a trigger does becomes its owner: "
                    "from then on its turns read as that person."
                ),
                "fields": (*_WHAT_IT_DOES, "workspace", "owner"),
            },
        ),
    )
    readonly_fields = ("workspace", "owner")
    # Not a list of names to choose from: agents of several workspaces may have the same.
    raw_id_fields = ("agent",)
    list_display = ("own_name", "kind", "agent_name", "workspace_name", "owner_name")
    list_select_related = ("agent", "workspace", "owner")
    list_filter = (KindFilter,)
    search_fields = ("name",)

    def save_model(self, request: HttpRequest, obj: Trigger, form: Any, change: bool) -> None:
        """Write all that the form showed: nobody comes to own instructions that they have not seen."""
        shown = {name: form.cleaned_data[name] for name in _WHAT_IT_DOES}
        if not change:
            obj.pk = services.create_trigger(**shown, by=request.user).pk
        elif form.has_changed():
            services.edit_trigger(obj, by=request.user, **shown)
        obj.refresh_from_db()
