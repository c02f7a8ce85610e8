"""Settings of a project whose tables history access has to fit; the documented steps are below the line."""

import os

from tests.databases import chosen

SECRET_KEY = "a-help-desk-in-tests-has-no-secret-to-keep-from-anybody"
ALLOWED_HOSTS = ["testserver"]
USE_TZ = True
TIME_ZONE = "Atlantic/Reykjavik"
AUTH_USER_MODEL = "desk.Staff"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "tests.second_platform",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
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
ROOT_URLCONF = "tests.second_platform.urls"
DATABASES = {"default": chosen()}
if DATABASES["default"]["ENGINE"].endswith("postgresql"):
    DATABASES["default"]["TEST"] = {"NAME": f"second_platform_{os.getpid()}"}

# What history access takes.

INSTALLED_APPS += [
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "settings_catalog",
    "history_access",
]

SETTINGS_CATALOG_WORKSPACE_MODEL = "desk.Firm"
SETTINGS_CATALOG_AGENT_MODEL = "desk.Bot"
SETTINGS_CATALOG_AUTHORITY = "tests.second_platform.authority.DeskAuthority"

HISTORY_ACCESS = {
    "SESSION_MODEL": "desk.Thread",
    "MESSAGE_MODEL": "desk.Entry",
    "TURN_MODEL": "desk.Run",
    "AUTHORITY": "tests.second_platform.authority.DeskAuthority",
    "CONVERSATION_URL": "https://desk.example/threads/{id}",
    "REFERENCE_URLS": [
        "https://desk.example/threads/{id}",
        "https://bots.example/{agent}/threads/{id}",
    ],
    "TRIGGER_MODEL": "desk.Rule",
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_RATES": {"history_access_audit": None, "history_access_references": None},
}
