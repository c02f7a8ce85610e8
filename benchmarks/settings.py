"""The example platform's settings, without a throttle and without debugging."""

from demo.settings import *  # noqa: F403
from demo.settings import REST_FRAMEWORK as DEMO

DEBUG = False
ALLOWED_HOSTS = ["testserver"]
REST_FRAMEWORK = {**DEMO, "DEFAULT_THROTTLE_RATES": {"history_access_audit": None}}
