"""What commands say, in one line, when the database does not do what they ask."""

from django.apps import apps
from django.db import DatabaseError, connections

from history_access.models.platform import primary

_NO_TABLES = "the record's tables are not there yet; run `manage.py migrate`"


def reason(error: DatabaseError) -> str:
    """Why the database failed: that `migrate` never ran, or what the database says itself."""
    if _lacks_tables():
        return _NO_TABLES
    return " ".join(str(error).split())


def _lacks_tables() -> bool:
    wanted = {model._meta.db_table for model in apps.get_app_config("history_access").get_models()}
    try:
        return not wanted <= set(connections[primary()].introspection.table_names())
    except DatabaseError:
        return False
