"""The example platform's settings, without a throttle, without debugging, and with prepared statements."""

from demo.settings import *  # noqa: F403
from demo.settings import DATABASES
from demo.settings import REST_FRAMEWORK as DEMO

DEBUG = False
ALLOWED_HOSTS = ["testserver"]
REST_FRAMEWORK = {**DEMO, "DEFAULT_THROTTLE_RATES": {"history_access_audit": None}}
if DATABASES["default"]["ENGINE"].endswith("postgresql"):
    # As an operator sets it who has no connection pooler in between: Django leaves it off.
    DATABASES["default"]["OPTIONS"] = {**DATABASES["default"].get("OPTIONS", {}), "prepare_threshold": 1}
