"""The admin of settings: who may look sees every page, who may change what is asked of the authority.

For a platform's own admin: `settings_panel` shows the settings of one of its agents or workspaces, and
`lists` has the lists that all pages here are made of.
"""

from settings_catalog.admin.log import SettingChangeAdmin
from settings_catalog.admin.panel import settings_panel
from settings_catalog.admin.values import SettingValueAdmin

__all__ = ["SettingChangeAdmin", "SettingValueAdmin", "settings_panel"]
