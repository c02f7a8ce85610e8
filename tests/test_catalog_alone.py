"""catalog-resolve, catalog-who, catalog-change-log: in a project that has the settings catalog alone."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

MODELS = """
from django.db import models

class Tenant(models.Model):
    name = models.CharField(max_length=50)

class Bot(models.Model):
    workspace = models.ForeignKey(Tenant, models.CASCADE)
"""

APPS = """
from django.apps import AppConfig

class CrmConfig(AppConfig):
    name = "crm"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self):
        from settings_catalog import catalog

        choices = tuple(catalog.Choice(value, value, value) for value in ("none", "read", "write"))
        catalog.register(
            catalog.Entry(
                key="files", title="Files", help="", choices=choices, default="none", starting_ceiling=None
            )
        )
"""

AUTHORITY = """
from settings_catalog.authority import SettingsAuthority

class Everybody(SettingsAuthority):
    def may_write_settings(self, person, workspace_id):
        return True
"""

PROJECT = """
import sys
import django
from django.conf import settings
from django.contrib import admin
from django.urls import path

settings.configure(
    SECRET_KEY="s" * 50,
    ROOT_URLCONF="__main__",
    ALLOWED_HOSTS=["testserver"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "crm.sqlite3"}},
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        "crm",
        "settings_catalog",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    MIGRATION_MODULES={"crm": None},
    STATIC_URL="static/",
    USE_TZ=True,
    SETTINGS_CATALOG_WORKSPACE_MODEL="crm.Tenant",
    SETTINGS_CATALOG_AGENT_MODEL="crm.Bot",
    SETTINGS_CATALOG_AUTHORITY="crm.authority.Everybody",
)
django.setup()
admin.autodiscover()
urlpatterns = [path("admin/", admin.site.urls)]

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client

from crm.models import Bot, Tenant
from settings_catalog import changes, resolver
from settings_catalog.models import SettingChange

call_command("migrate", run_syncdb=True, verbosity=0)
call_command("makemigrations", check=True, verbosity=0)
call_command("check", databases=["default"], fail_level="WARNING")

bot = Bot.objects.create(workspace=Tenant.objects.create(name="One"))
person, operator = get_user_model().objects.create_user("p"), get_user_model().objects.create_superuser("o")
assert resolver.resolve("files", bot).value == "none"
changes.set_value("files", agent=bot, value="write", by=person, why="w")
changes.set_value("files", platform=True, ceiling="read", by=operator, why="w")
print(resolver.resolve("files", bot))
try:
    changes.set_value("files", platform=True, ceiling=None, by=person, why="w")
except changes.SettingForbiddenError as error:
    print(error.permission)
assert SettingChange.objects.count() == 2

client = Client()
client.force_login(operator)
for page in ("settingvalue/", "settingvalue/catalog/", f"settingvalue/add/?entry=files&agent={bot.pk}",
             "settingchange/"):
    assert client.get(f"/admin/settings_catalog/{page}").status_code == 200, page
print([name for name in ("history_access", "rest_framework", "pydantic") if name in sys.modules])
"""


def test_the_catalog_works_in_a_project_of_its_own(tmp_path: Path) -> None:
    """Migrations, checks, resolving, changing and the admin, with integer keys; no history is loaded."""
    if connection.vendor != "sqlite":
        pytest.skip("the project has a SQLite file of its own")
    (tmp_path / "crm").mkdir()
    for name, text in {"__init__": "", "models": MODELS, "apps": APPS, "authority": AUTHORITY}.items():
        (tmp_path / "crm" / f"{name}.py").write_text(text)
    (tmp_path / "project.py").write_text(PROJECT)
    here = Path(__file__).resolve().parent.parent
    done = subprocess.run(
        [sys.executable, "-W", "error", "project.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(here), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == [
        "Asked for write on the agent; held at read, because the platform allows nothing above read.",
        "settings_catalog.change_platform_settings",
        "[]",
    ]
