"""SQL for text that other people wrote: the same answer on PostgreSQL and on SQLite."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.models import F, Func, IntegerField, JSONField, TextField, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Length, Substr

REPLACEMENT = "\ufffd"
_COMBINING = "\u0300-\u036f"
_FOLDED_LETTERS = {"ß": "ss", "ς": "σ"}
_WITHOUT_NUL = "history_access_without_nul"
_STORABLE_JSON = "history_access_storable_json"
_FOLDED = "history_access_folded"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_KIND = re.compile(r"[A-Za-z0-9_-]+")

_ESCAPES = re.compile(
    r"(?<!\\)(?P<before>(?:\\\\)*)"  # an even number of backslashes escape each other
    r"(?:(?P<pair>\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u(?:0000|[dD][89a-fA-F]..))"
)


def without_nul(text: str | None) -> str | None:
    """The text with each NUL replaced: SQLite's LENGTH and SUBSTR stop at one."""
    return None if text is None else text.replace("\0", REPLACEMENT)


def storable_json(text: str | None) -> str | None:
    """JSON with each escaped NUL and each half of a surrogate pair replaced: they are in no text."""
    return None if text is None else _ESCAPES.sub(_storable_escape, text)


def _storable_escape(found: "re.Match[str]") -> str:
    return found[0] if found["pair"] else f"{found['before']}\\ufffd"


class Text(Func):
    """A column of text, never NULL, in which SQLite too reaches every character (`tool-text-is-hostile`).

    Elsewhere a text holds no NUL, and the column stands for itself.
    """

    arity = 1
    template = "%(expressions)s"
    output_field = TextField()

    def __init__(self, expression: Combinable | str) -> None:
        super().__init__(Coalesce(expression, Value(""), output_field=TextField()))

    def as_sqlite(self, compiler: Any, connection: BaseDatabaseWrapper, **extra: Any) -> tuple[str, Any]:
        """Call the function below for the few texts that need it."""
        column, parameters = compiler.compile(self.source_expressions[0])
        sql = (
            f"CASE WHEN INSTR(CAST({column} AS BLOB), X'00') > 0 "
            f"THEN {_WITHOUT_NUL}({column}) ELSE {column} END"
        )
        return sql, (*parameters, *parameters, *parameters)


def characters(expression: Combinable | str) -> Func:
    """How many characters (code points) a text has."""
    return Length(Text(expression), output_field=IntegerField())


def piece(expression: Combinable | str, offset: int | Combinable, length: int) -> Func:
    """At most `length` characters of a text from `offset` (from 0) on; the database sends no others."""
    position = offset + Value(1) if isinstance(offset, Combinable) else Value(offset + 1)
    return Substr(Text(expression), position, length)


class _Elements(Func):
    """SQL over the objects in a column of JSON (`jsonb` on PostgreSQL) that is a list; others hold none.

    Of each object that has text at `path` (with a `kind`: and has that text under "type"), the text. On
    SQLite what JSON can write and no text can hold is replaced first: JSON_EXTRACT would stop at a NUL, and
    make half a surrogate pair into text that nobody can read. What is no JSON there is empty.
    """

    arity = 1

    def __init__(
        self, expression: Combinable | str, *, path: Sequence[str], kind: str | None, **extra: Any
    ) -> None:
        for word in path:
            if not _NAME.fullmatch(word):
                raise ValueError(f"{word!r} is no name of a key: letters, digits, _ and -, no digit first")
        if kind is not None and not _KIND.fullmatch(kind):
            raise ValueError(f"{kind!r} is no kind: letters, digits, _ and -")
        super().__init__(F(expression) if isinstance(expression, str) else expression, **extra)
        self.path = tuple(path)
        self.kind = kind

    def _postgresql(self, column: str) -> str:
        """The rows (nth, found) of a column."""
        found = f"one.value #> '{{{','.join(self.path)}}}'"
        typed = "" if self.kind is None else f" AND one.value->'type' = '\"{self.kind}\"'"
        return (
            f"SELECT one.nth, {found.replace('#>', '#>>')} AS found FROM JSONB_ARRAY_ELEMENTS("
            f"CASE JSONB_TYPEOF({column}) WHEN 'array' THEN {column} ELSE '[]' END"
            f") WITH ORDINALITY AS one(value, nth) WHERE JSONB_TYPEOF({found}) = 'string'{typed}"
        )

    def _sqlite(self, column: str) -> str:
        """The same; it names the column six times."""
        path = "".join(f'."{name}"' for name in self.path)
        value = "CASE one.type WHEN 'object' THEN one.value ELSE '{}' END"
        typed = "" if self.kind is None else f" AND JSON_EXTRACT({value}, '$.type') = '{self.kind}'"
        return (
            f"SELECT one.key AS nth, JSON_EXTRACT({value}, '${path}') AS found FROM JSON_EACH("
            f"CASE WHEN JSON_VALID({column}) AND JSON_TYPE({column}) = 'array' THEN {_storable(column)} "
            f"ELSE '[]' END) AS one WHERE JSON_TYPE({value}, '${path}') = 'text'{typed}"
        )


def _storable(column: str) -> str:
    """A column of JSON in SQLite without what no text can hold; it names the column four times."""
    odd = f"INSTR({column}, '\\u0000') OR {column} GLOB '*\\u[dD]*'"
    return f"CASE WHEN {odd} THEN {_STORABLE_JSON}({column}) ELSE {column} END"


class ToolNames(_Elements):
    """The names in a JSON list of calls, as a JSON list; arguments stay in the database.

    At most `most` names, each at most `length` characters; a call without a name that is text has none. Where
    the list holds more than calls, `kind` is what a call has under "type"; `path` is where its name stands,
    as in `("function", "name")`.
    """

    output_field = JSONField()

    def __init__(
        self,
        expression: Combinable | str,
        *,
        most: int,
        length: int,
        path: Sequence[str] = ("name",),
        kind: str | None = None,
    ) -> None:
        super().__init__(expression, path=path, kind=kind)
        self.most = most
        self.length = length

    def as_postgresql(self, compiler: Any, connection: BaseDatabaseWrapper, **extra: Any) -> tuple[str, Any]:
        """A subquery over the elements of the list, in their order."""
        column, parameters = compiler.compile(self.source_expressions[0])
        sql = (
            "(SELECT COALESCE(JSONB_AGG(named.name ORDER BY named.nth), '[]') FROM ("
            f"SELECT call.nth, LEFT(call.found, {self.length}) AS name FROM ({self._postgresql(column)}) "
            f"AS call ORDER BY call.nth LIMIT {self.most}) AS named)"
        )
        return sql, (*parameters, *parameters)

    def as_sqlite(self, compiler: Any, connection: BaseDatabaseWrapper, **extra: Any) -> tuple[str, Any]:
        """The same."""
        column, parameters = compiler.compile(self.source_expressions[0])
        sql = (
            "(SELECT JSON_GROUP_ARRAY(named.name) FROM ("
            f"SELECT SUBSTR(call.found, 1, {self.length}) AS name FROM ({self._sqlite(column)}) AS call "
            f"ORDER BY call.nth LIMIT {self.most}) AS named)"
        )
        return sql, tuple(parameters) * 6


class PartsText(_Elements):
    """The words of a message that is kept as a JSON list of parts, as text: those of its text parts, joined.

    A text part has `kind` under "type" (None: whatever it has), and its text under `key`; every other part is
    passed over. A message may also be one JSON string. "" where there are no words.
    """

    output_field = TextField()

    def __init__(
        self,
        expression: Combinable | str,
        *,
        kind: str | None = "text",
        key: str = "text",
        separator: str = "\n",
    ) -> None:
        super().__init__(expression, path=(key,), kind=kind)
        self.separator = separator

    def as_postgresql(self, compiler: Any, connection: BaseDatabaseWrapper, **extra: Any) -> tuple[str, Any]:
        """A subquery over the parts, in their order."""
        column, parameters = compiler.compile(self.source_expressions[0])
        sql = (
            f"CASE JSONB_TYPEOF({column}) WHEN 'string' THEN {column} #>> '{{}}' ELSE "
            "(SELECT COALESCE(STRING_AGG(part.found, %s ORDER BY part.nth), '') "
            f"FROM ({self._postgresql(column)}) AS part) END"
        )
        return sql, (*parameters, *parameters, self.separator, *parameters, *parameters)

    def as_sqlite(self, compiler: Any, connection: BaseDatabaseWrapper, **extra: Any) -> tuple[str, Any]:
        """The same."""
        column, parameters = compiler.compile(self.source_expressions[0])
        sql = (
            f"CASE WHEN JSON_VALID({column}) AND JSON_TYPE({column}) = 'text' "
            f"THEN JSON_EXTRACT({_storable(column)}, '$') ELSE "
            "(SELECT COALESCE(GROUP_CONCAT(part.found, %s), '') "
            f"FROM (SELECT found FROM ({self._sqlite(column)}) ORDER BY nth) AS part) END"
        )
        parameters = tuple(parameters)
        return sql, (*parameters * 6, self.separator, *parameters * 6)


def folded(text: str | None) -> str | None:
    """The text without case and accents, to find it however it is typed."""
    if text is None or (text.isascii() and text.islower()):
        return text
    plain = re.sub(f"[{_COMBINING}]", "", unicodedata.normalize("NFKD", text)).lower()
    for letter, instead in _FOLDED_LETTERS.items():
        plain = plain.replace(letter, instead)
    return plain


class Folded(Func):
    """A text without case and accents, as `folded` makes it."""

    arity = 1
    output_field = TextField()

    def as_postgresql(self, compiler: Any, connection: BaseDatabaseWrapper, **extra: Any) -> tuple[str, Any]:
        """Built-in functions; a text that is all ASCII, as most are, only loses its case."""
        text, parameters = compiler.compile(self.source_expressions[0])
        text = f"CAST({text} AS text)"
        plain = f"LOWER(REGEXP_REPLACE(NORMALIZE({text}, NFKD), '[{_COMBINING}]', '', 'g'))"
        for letter, instead in _FOLDED_LETTERS.items():
            plain = f"REPLACE({plain}, '{letter}', '{instead}')"
        sql = f"CASE WHEN OCTET_LENGTH({text}) = LENGTH({text}) THEN LOWER({text}) ELSE {plain} END"
        return sql, (*parameters, *parameters, *parameters, *parameters)

    def as_sqlite(self, compiler: Any, connection: BaseDatabaseWrapper, **extra: Any) -> tuple[str, Any]:
        """The function itself."""
        text, parameters = compiler.compile(self.source_expressions[0])
        return f"{_FOLDED}({text})", parameters


def prepare_connection(sender: Any, connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    """Teach a new SQLite connection the functions that are called above."""
    if connection.vendor == "sqlite":
        functions = {_WITHOUT_NUL: without_nul, _STORABLE_JSON: storable_json, _FOLDED: folded}
        for name, function in functions.items():
            connection.connection.create_function(name, 1, function, deterministic=True)


def connect() -> None:
    """Prepare every connection that is opened from now on."""
    connection_created.connect(prepare_connection, dispatch_uid=_WITHOUT_NUL)
