"""Settings of the tests: the example platform's, on the database that `TEST_DATABASE` names."""

import os

from demo.settings import *  # noqa: F403
from demo.settings import INSTALLED_APPS as DEMO_APPS
from tests.databases import chosen

DATABASES = {"default": chosen()}
INSTALLED_APPS = [*DEMO_APPS, "tests"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGGING = {"version": 1, "disable_existing_loggers": False}
# People of one test come back under the same keys in the next, within the same minute.
REST_FRAMEWORK = {**REST_FRAMEWORK, "DEFAULT_THROTTLE_RATES": {"history_access_audit": None}}  # noqa: F405
# `make plain`: every query is built anew.
SETTINGS_CATALOG_COMPILED_QUERIES = os.environ.get("COMPILED_QUERIES") != "no"
