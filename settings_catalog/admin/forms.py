"""Forms of the admin: which setting and where, and what it shall be there."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib.admin import AdminSite
from django.contrib.admin.widgets import AdminRadioSelect, ForeignKeyRawIdWidget
from django.core.exceptions import ValidationError
from django.db.models import ManyToOneRel, Model
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from settings_catalog.admin.lists import as_key
from settings_catalog.admin.words import label
from settings_catalog.catalog import Choice, Entry, Words, catalog
from settings_catalog.changes import MAX_WHY, UNCHANGED, Asked, SettingError, set_at
from settings_catalog.conf import conf
from settings_catalog.dangers import warnings_of
from settings_catalog.places import Level, Place
from settings_catalog.resolver import Resolution

_KEPT = "(kept)"
"""Stands in the form for a stored value that the setting does not know."""


def _radio_list() -> AdminRadioSelect:
    """Choices below each other, as wide as the page."""
    return AdminRadioSelect(attrs={"class": "radiolist"})


class _KeyWidget(ForeignKeyRawIdWidget):
    """A key, with a button that looks it up in the admin of its model where there is one."""

    def __init__(self, model: type[Model], admin_site: AdminSite) -> None:
        field: Any = None
        super().__init__(ManyToOneRel(field, model, model._meta.pk.name), admin_site)

    def label_and_url_for_value(self, value: Any) -> tuple[str, str]:
        """The name of what was found; nothing for text that can be no key."""
        if as_key(self.rel.model._meta.pk, str(value)) is None:
            return "", ""
        return super().label_and_url_for_value(value)


class _RowField(forms.CharField):
    """A row of one model by its key, cleaned to the row; None where the field is left empty."""

    def __init__(self, model: type[Model], admin_site: AdminSite, *, label: Any) -> None:
        super().__init__(label=label, required=False, widget=_KeyWidget(model, admin_site))
        self._model = model

    def clean(self, value: Any) -> Any:
        """The row itself; a ValidationError where there is none."""
        text = super().clean(value)
        if not text:
            return None
        key = as_key(self._model._meta.pk, text)
        row = None if key is None else self._model._default_manager.filter(pk=key).first()
        if row is None:
            name = self._model._meta.verbose_name
            raise ValidationError(_("There is no %(name)s with this key."), params={"name": name})
        return row


class PlaceForm(forms.Form):
    """Which setting, and where; cleaned to a `place`."""

    entry = forms.ChoiceField(label=_("Setting"))

    def __init__(self, data: Any, *, admin_site: AdminSite) -> None:
        super().__init__(data)
        entry: Any = self.fields["entry"]
        entry.choices = [(one.key, one.title) for one in catalog]
        self.fields["workspace"] = _RowField(conf.workspace_model, admin_site, label=_("Workspace"))
        self.fields["agent"] = _RowField(conf.agent_model, admin_site, label=_("Agent"))

    def clean(self) -> dict[str, Any]:
        """Add the place: the agent or the workspace that is named, the platform where neither is."""
        super().clean()
        workspace, agent = self.cleaned_data.get("workspace"), self.cleaned_data.get("agent")
        if workspace is not None and agent is not None:
            self.add_error("workspace", _("Name a workspace or an agent, not both."))
        elif not self.errors:
            platform = workspace is None and agent is None
            self.cleaned_data["place"] = Place.of(workspace=workspace, agent=agent, platform=platform)
        return self.cleaned_data


class SettingForm(forms.Form):
    """What one setting shall be at one place, in the setting's own words.

    What was not touched is left as it is, even if somebody else has changed it since the form was opened:
    the form carries along what it showed. `save` writes through `settings_catalog.changes` alone.
    """

    value = forms.ChoiceField(
        label=_("Asks for"), required=False, widget=_radio_list(), show_hidden_initial=True
    )
    ceiling = forms.ChoiceField(
        label=_("Allows at most"), required=False, widget=_radio_list(), show_hidden_initial=True
    )
    why = forms.CharField(
        label=_("Why"),
        max_length=MAX_WHY,
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
        help_text=_("For those who read the change log later."),
    )

    def __init__(self, data: Any, *, resolution: Resolution) -> None:
        super().__init__(data)
        self._entry, self._place = resolution.entry, resolution.place
        self._words = [
            (one.value, _words(one, warnings_of(resolution, one.value))) for one in self._entry.choices
        ]
        stored = resolution.steps[0]
        self._offer("value", stored.value, nothing=_no_value(self._entry, self._place))
        if self._place.level is Level.AGENT:
            del self.fields["ceiling"]
        else:
            self._offer("ceiling", stored.ceiling, nothing=_no_ceiling(self._entry, self._place))

    def clean(self) -> dict[str, Any]:
        """Refuse a form in which nothing is changed."""
        super().clean()
        if not self.errors and not {"value", "ceiling"} & set(self.changed_data):
            raise ValidationError(_("Choose another value or another ceiling first."))
        return self.cleaned_data

    def save(self, *, by: Any) -> Resolution | None:
        """Make the change, and return what holds now; where it is refused, None, and the form says why."""
        value, ceiling, why = self._asked("value"), self._asked("ceiling"), self.cleaned_data["why"]
        try:
            return set_at(self._entry.key, self._place, value=value, ceiling=ceiling, by=by, why=why)
        except SettingError as error:
            self.add_error(error.field if error.field in self.fields else None, error.message)
            return None

    def _offer(self, name: str, stored: str | None, *, nothing: str) -> None:
        field: Any = self.fields[name]
        field.choices = [("", nothing), *self._words]
        if stored is not None and not self._entry.knows(stored):
            field.choices = [(_KEPT, label(self._entry.key, stored)), *field.choices]
            stored = _KEPT
        field.initial = stored or ""

    def _asked(self, name: str) -> Asked:
        return (self.cleaned_data[name] or None) if name in self.changed_data else UNCHANGED


def _words(choice: Choice, warnings: Iterable[Words]) -> SafeString:
    """What a choice allows, and what is dangerous about it here."""
    dangerous = format_html_join(
        "", '<strong class="dangerous">{}</strong>', ((capfirst(str(one)),) for one in warnings)
    )
    return format_html("<strong>{}</strong>: {}{}", choice.label, choice.allows, dangerous)


def _no_value(entry: Entry, place: Place) -> str:
    if place.level is Level.PLATFORM:
        default = entry.choice(entry.default).label
        return gettext("Nothing: the default counts, %(default)s") % {"default": default}
    return gettext("Nothing: what is asked for above counts")


def _no_ceiling(entry: Entry, place: Place) -> str:
    if place.level is Level.PLATFORM and entry.starting_ceiling is not None:
        ceiling = entry.choice(entry.starting_ceiling).label
        return gettext("Nothing: the starting ceiling holds, %(ceiling)s") % {"ceiling": ceiling}
    return gettext("Nothing: no ceiling here")
