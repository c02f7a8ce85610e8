"""Django settings of Hollowbrook, the example platform. Copy what the comments point at, not the rest."""

from pathlib import Path

from demo.databases import OWN_FILE, database

BASE_DIR = Path(__file__).resolve().parent

SECRET_KEY = "hollowbrook-is-an-example-and-this-is-no-secret"  # noqa: S105
DEBUG = True
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    # The two apps, and tables of an agent platform for those who have none of their own.
    "settings_catalog",
    "history_access",
    "history_access.agent_platform",
    "demo",
]

# Which models are the workspaces and the agents, and who may change their settings.
SETTINGS_CATALOG_WORKSPACE_MODEL = "agent_platform.Workspace"
SETTINGS_CATALOG_AGENT_MODEL = "agent_platform.Agent"
SETTINGS_CATALOG_AUTHORITY = "history_access.agent_platform.authority.PlatformAuthority"

# Which models are the conversations, and what a person may open.
HISTORY_ACCESS = {
    "SESSION_MODEL": "agent_platform.Session",
    "MESSAGE_MODEL": "agent_platform.Message",
    "TURN_MODEL": "agent_platform.Turn",
    "AUTHORITY": "history_access.agent_platform.authority.PlatformAuthority",
    "CONVERSATION_URL": "https://hollowbrook.example/conversations/{id}",
    # What to warn of: an agent that reads all accounts and is started by a webhook, or writes shared files.
    "TRIGGER_MODEL": "agent_platform.Trigger",
    "SHARED_FILES_SETTING": ("workspace_files", "write"),
}

# How people are known to the REST of auditors, and how it stands in an OpenAPI schema.
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}

DATABASES = {"default": database(default=BASE_DIR / OWN_FILE)}

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "demo.urls"
TEMPLATES = [
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
]
STATIC_URL = "static/"
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
