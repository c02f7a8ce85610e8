"""System checks: what a platform must have for history access to be right.

Those that open the database run with `manage.py check --database default` and before each `migrate`.
"""

from history_access.checks.answers import check_answers
from history_access.checks.database import check_guards, check_one_database, check_postgresql, check_sqlite
from history_access.checks.indexes import check_indexes
from history_access.checks.models import check_models
from history_access.checks.settings import check_authority, check_settings
from history_access.checks.tables import check_tables
from history_access.danger_checks import check_danger, check_danger_settings

__all__ = [
    "check_answers",
    "check_authority",
    "check_danger",
    "check_danger_settings",
    "check_guards",
    "check_indexes",
    "check_models",
    "check_one_database",
    "check_postgresql",
    "check_settings",
    "check_sqlite",
    "check_tables",
]
