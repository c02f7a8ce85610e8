"""Workspaces, agents, accounts, and who may do what in them."""

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from history_access.agent_platform.admin.columns import NameColumns
from history_access.agent_platform.models import Account, Agent, Authority, Permission, Workspace
from history_access.danger import dangers_of
from history_access.entries import HISTORY_ACCESS
from settings_catalog.admin import settings_panel
from settings_catalog.admin.lists import BoundedAdmin, KeySearchAdmin, KnownValues, Row
from settings_catalog.places import Place
from settings_catalog.resolver import resolve_many


class _StandingAdmin(NameColumns, BoundedAdmin[Row]):
    """Rows that conversations hang on; not deleted here, where Django would load all that is below them."""

    search_fields = ("name",)

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        """Nobody deletes a row here."""
        return False


class _OwnedAdmin(_StandingAdmin[Row]):
    """Rows of one workspace, in which they stay."""

    list_display = ("own_name", "workspace_name")
    list_select_related = ("workspace",)
    autocomplete_fields = ("workspace",)

    def get_readonly_fields(self, request: HttpRequest, obj: Row | None = None) -> tuple[str, ...]:
        """The workspace is chosen once: the table refuses to change it."""
        return (*self.readonly_fields, "workspace") if obj else tuple(self.readonly_fields)


@admin.register(Workspace)
class WorkspaceAdmin(_StandingAdmin[Workspace]):
    """Businesses, and the settings that hold for each."""

    list_display = ("own_name", "time_zone")
    readonly_fields = ("settings",)

    def get_fields(self, request: HttpRequest, obj: Workspace | None = None) -> tuple[str, ...]:
        """Its settings once it is there."""
        return ("name", "time_zone", "settings") if obj else ("name", "time_zone")

    @admin.display(description=_("settings"))
    def settings(self, workspace: Workspace) -> SafeString:
        """What each setting is for the workspace, and where to change it."""
        return settings_panel(Place.of(workspace=workspace), self.admin_site.name)


@admin.register(Agent)
class AgentAdmin(_OwnedAdmin[Agent]):
    """Agents, the settings that hold for each, and what is dangerous about them."""

    readonly_fields = ("settings", "dangers")

    def get_fields(self, request: HttpRequest, obj: Agent | None = None) -> tuple[str, ...]:
        """Its settings once it is there."""
        return ("workspace", "name", "settings", "dangers") if obj else ("workspace", "name")

    @admin.display(description=_("settings"))
    def settings(self, agent: Agent) -> SafeString:
        """What each setting is for the agent, and where to change it: history access among them."""
        return settings_panel(Place.of(agent=agent), self.admin_site.name)

    @admin.display(description=_("dangers"))
    def dangers(self, agent: Agent) -> SafeString:
        """The dangerous combinations that hold for the agent now (`danger-warned`)."""
        place = Place.of(agent=agent)
        found = dangers_of(resolve_many(HISTORY_ACCESS.key, [place]))[place]
        lines = format_html_join("", '<p class="dangerous">{}</p>', ((one.warning,) for one in found))
        return lines or format_html("{}", _("None."))


@admin.register(Account)
class AccountAdmin(_OwnedAdmin[Account]):
    """Customers of workspaces."""

    fields = ("workspace", "name")


class AuthorityForm(forms.ModelForm):  # type: ignore[type-arg]
    """A right for a whole workspace, or for one of its own agents."""

    def clean_agent(self) -> Agent | None:
        """Refuse an agent of another workspace: such a right would count nowhere."""
        agent: Agent | None = self.cleaned_data["agent"]
        workspace = self.cleaned_data.get("workspace")
        if agent is not None and workspace is not None and agent.workspace_id != workspace.pk:
            raise ValidationError(_("This agent belongs to another workspace."))
        return agent


class PermissionFilter(KnownValues):
    """Rights of one kind."""

    title = _("permission")
    parameter_name = "permission"
    known = Permission.choices


@admin.register(Authority)
class AuthorityAdmin(NameColumns, KeySearchAdmin[Authority]):
    """Who may do what in which workspace."""

    form = AuthorityForm
    fields = ("person", "permission", "workspace", "agent")
    raw_id_fields = ("person", "agent")
    autocomplete_fields = ("workspace",)
    list_display = ("person_name", "permission", "workspace_name", "agent_name")
    list_select_related = ("person", "workspace", "agent")
    list_filter = (PermissionFilter,)
    search_fields = ("person", "workspace", "agent")
    search_help_text = _("The whole key of a person, a workspace or an agent.")
    actions = ()
