"""Addresses of the settings' admin pages."""

from urllib.parse import urlencode

from django.urls import reverse

from settings_catalog.places import Level, Place


def list_url(site_name: str) -> str:
    """The list of settings."""
    return _url(site_name, "settingvalue_changelist")


def place_url(site_name: str, key: str, place: Place) -> str:
    """The page of one setting at one place."""
    named: dict[str, str | None] = {"entry": key}
    if place.level is Level.WORKSPACE:
        named["workspace"] = place.workspace_id
    elif place.level is Level.AGENT:
        named["agent"] = place.agent_id
    return f"{_url(site_name, 'settingvalue_add')}?{urlencode(named)}"


def log_url(site_name: str, key: str, place: Place) -> str:
    """The changes of one setting at one place."""
    named = {"entry": key, "level": place.level.value}
    if place.level is not Level.PLATFORM:
        named["q"] = place.agent_id or place.workspace_id or ""
    return f"{_url(site_name, 'settingchange_changelist')}?{urlencode(named)}"


def _url(site_name: str, page: str) -> str:
    return reverse(f"admin:settings_catalog_{page}", current_app=site_name)
