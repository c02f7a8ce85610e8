"""Families of column types: those within one can stand for each other where conversations are read."""

from typing import Any, TypeAlias

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

AnyField: TypeAlias = "models.Field[Any, Any]"

INTEGER, TEXT, MOMENT, BOOLEAN = "integer", "text", "moment", "boolean"
NAIVE = "moment without time zone"

_ANYWHERE = {
    INTEGER: "smallint integer int int2 int4 int8 bigint mediumint tinyint serial bigserial smallserial",
    TEXT: "text varchar char character bpchar citext clob nvarchar nchar",
    BOOLEAN: "boolean bool",
    "uuid": "uuid",
    "json": "json",
    "jsonb": "jsonb",
    "number": "numeric decimal real float double",
    "date": "date",
    "time": "time",
    "bytes": "bytea blob",
    MOMENT: "timestamptz datetime",
}
_FAMILIES = {word: family for family, words in _ANYWHERE.items() for word in words.split()}

_ALIKE_ON_SQLITE = {
    frozenset(pair)
    for pair in ((TEXT, "json"), (TEXT, "jsonb"), ("json", "jsonb"), (TEXT, "uuid"), (BOOLEAN, INTEGER))
}
"""SQLite has few kinds of values; Django keeps others in them: JSON and UUIDs in text, truth in 0 and 1."""

_OF_FIELDS: "tuple[tuple[type[AnyField], str], ...]" = (
    (models.DateTimeField, MOMENT),
    (models.IntegerField, INTEGER),
    (models.CharField, TEXT),
    (models.TextField, TEXT),
)


def family(connection: BaseDatabaseWrapper, declared: str | None) -> str | None:
    """The family of a declared type; None of one that is not known, of which nothing can be said."""
    words = (declared or "").lower().partition("(")[0].split()
    if not words:
        return None
    if words[0] == "timestamp":
        zoned = connection.vendor == "sqlite" or "with time zone" in (declared or "").lower()
        return MOMENT if zoned else NAIVE
    return _FAMILIES.get(words[0])


def alike(connection: BaseDatabaseWrapper, one: str | None, other: str | None) -> bool:
    """Whether columns of two families can be compared, as far as is known."""
    if one is None or other is None or one == other:
        return True
    return connection.vendor == "sqlite" and frozenset((one, other)) in _ALIKE_ON_SQLITE


def family_of_field(field: Any) -> str | None:
    """The family of one of our own fields."""
    return next((name for kind, name in _OF_FIELDS if isinstance(field, kind)), None)
