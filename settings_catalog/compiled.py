"""Queries that Django compiles once for each shape, and that run with bound values from then on.

Building a queryset and compiling it takes Django several times longer than a database takes to run it. The
SQL is still that of the one definition: a function builds the queryset, the first time for each shape with
opaque parameters in place of keys, times and texts; its SQL is kept, and the next values are bound to it.
"""

import logging
import re
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime
from functools import cache, wraps
from threading import Lock
from typing import Any, NoReturn, ParamSpec, Protocol, cast

from django.core.exceptions import EmptyResultSet
from django.db import InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    BigIntegerField,
    DateTimeField,
    Expression,
    JSONField,
    QuerySet,
    TextField,
    UUIDField,
)

from settings_catalog.conf import conf

logger = logging.getLogger("settings_catalog.compiled")

Rows = list[dict[str, Any]]
Question = tuple["QuerySet[Any, Any]", Mapping[str, Any]]
"""A queryset, and the columns to take from it by name, each an expression."""

Statement = tuple[str, Sequence[Any]]
"""SQL with its parameters."""

Arguments = ParamSpec("Arguments")


class First(Protocol):
    """What is written before a question is answered, in the same statement where that can be."""

    using: str

    def in_front(self) -> Statement | None:
        """What stands in front of the question's own statement; None where this database cannot do that."""

    def alone(self) -> None:
        """Write it in statements of its own."""


class Answers(Protocol[Arguments]):
    """A function that answers with rows."""

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Rows:
        """The rows."""

    def after(self, first: First | None, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Rows:
        """The rows as they are once this was written; a statement sees what was committed before it began."""


MOST_PLANS = 2_000
"""How many shapes are kept at most; the oldest go first."""

_FIELDS = {uuid.UUID: UUIDField, int: BigIntegerField, str: TextField, datetime: DateTimeField}
_LARGEST = 2**63 - 1
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d")


class OpaqueError(TypeError):
    """Code looked at a value that is only bound when the query runs."""


class Parameter(Expression):
    """Stands for a value of which nothing can be learnt in Python: code that branches on it fails at once."""

    def __init__(self, number: int, kind: type) -> None:
        super().__init__(output_field=_FIELDS[kind]())
        self.number = number

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper) -> Any:
        """A placeholder, whose value is found by the number."""
        return "%s", [self]

    def _opaque(self, *_: Any) -> NoReturn:
        raise OpaqueError("a key is put into a query here, and not looked at")

    def __eq__(self, other: object) -> bool:
        asked_by_django = other is None or other == "" or isinstance(other, Expression)
        return self is other if asked_by_django else self._opaque()

    def __hash__(self) -> int:
        return hash((Parameter, self.number))

    __str__ = __int__ = __index__ = __lt__ = __gt__ = _opaque


class _NotCompiledError(Exception):
    """Why the SQL of a query cannot be kept."""


@dataclass(frozen=True)
class _Plan:
    """Compiled SQL; `statement` is None where nothing can be found, which asks the database nothing."""

    statement: str | None
    given: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()
    converters: tuple[tuple[int, Any, Any], ...] = ()
    has_json: bool = False

    def bound(self, connection: BaseDatabaseWrapper, values: Sequence[Any]) -> list[Any]:
        """The statement's parameters, as the database's driver takes them."""
        adapted = _ADAPTED[connection.vendor]
        return [
            adapted(values[one.number], connection) if type(one) is Parameter else one for one in self.given
        ]

    def rows(
        self, connection: BaseDatabaseWrapper, values: Sequence[Any], before: Statement | None = None
    ) -> Rows:
        """What the statement finds with these values; `before` is put in front of it."""
        if self.statement is None:
            return []
        statement, given = self.statement, self.bound(connection, values)
        if before is not None:
            statement, given = f"{before[0]} {statement}", [*before[1], *given]
        with cursor_of(connection) as cursor:
            if self.has_json and connection.vendor == "postgresql":
                cursor.adapters.register_loader("jsonb", _json_text())
            cursor.execute(statement, given)
            found = cursor.fetchall()
        if self.converters and found:
            columns = list(zip(*found, strict=True))
            for place, converter, expression in self.converters:
                columns[place] = tuple([converter(one, expression, connection) for one in columns[place]])
            found = zip(*columns, strict=True)
        names = self.names
        return [dict(zip(names, row, strict=True)) for row in found]


_UNKNOWN = _Plan(statement=None)
_kept: dict[Hashable, _Plan | None] = {}
_one_at_a_time = Lock()


def forget() -> None:
    """Compile everything anew from now on: for tests that change what a query rests on."""
    _kept.clear()


def compiled(
    basis: Callable[[], tuple[str, Hashable] | None], *, literal: Sequence[str] = ()
) -> Callable[[Callable[Arguments, Question]], Answers[Arguments]]:
    """Make a function that builds a query into one that answers with its rows.

    `basis` says in which database it runs and what its SQL rests on besides the arguments, or None where that
    cannot be told: then the query is built anew each time. Arguments by name that are in `literal` become
    part of the SQL, such as limits; so do None, truth values and choices. All else in the arguments, and in
    frozen dataclasses among them, is bound.
    """

    def decorated(build: Callable[Arguments, Question]) -> Answers[Arguments]:
        def after(first: First | None, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Rows:
            rests_on = basis() if conf.compiled_queries else None
            if rests_on is not None:
                using, key = rests_on
                values: list[Any] = []
                placed = tuple([_shape(given, values) for given in args])
                named = tuple(
                    [
                        (name, given if name in literal else _shape(given, values))
                        for name, given in kwargs.items()
                    ]
                )
                shape = (build, using, key, placed, named)
                plan = _kept.get(shape, _UNKNOWN)
                if plan is _UNKNOWN:
                    plan = _made(build, using, args, kwargs, literal, values)
                    _keep(shape, plan)
                if plan is not None and _fit(values):
                    return _answered(plan, using, values, first)
            if first is not None:
                first.alone()
            return plain(*build(*args, **kwargs))

        @wraps(build)
        def answer(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Rows:
            return after(None, *args, **kwargs)

        answers = cast("Answers[Arguments]", answer)
        answers.after = after  # type: ignore[method-assign]
        return answers

    return decorated


def _answered(plan: _Plan, using: str, values: Sequence[Any], first: First | None) -> Rows:
    if first is None:
        return plan.rows(connections[using], values)
    before = first.in_front() if plan.statement is not None and first.using == using else None
    if before is None:
        first.alone()
    return plan.rows(connections[using], values, before)


def plain(query: "QuerySet[Any, Any]", columns: Mapping[str, Any]) -> Rows:
    """The rows of a query, built and compiled by Django for this one time.

    Unlike those of `values(name=…)`, a column's name may be that of one of the model's own fields.
    """
    names = tuple(columns)
    return [dict(zip(names, row, strict=True)) for row in query.values_list(*columns.values())]


def _keep(shape: Hashable, plan: _Plan | None) -> None:
    with _one_at_a_time:
        while len(_kept) >= MOST_PLANS:
            del _kept[next(iter(_kept))]
        _kept[shape] = plan


def _made(
    build: Callable[..., Question],
    using: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    literal: Sequence[str],
    values: Sequence[Any],
) -> _Plan | None:
    """The plan of a query; None where its SQL cannot be kept, which is logged.

    What the query itself or the database has against it passes through.
    """
    connection = connections[using]
    if connection.vendor not in _ADAPTED:
        return None
    real = _compile(build(*args, **kwargs), connection)
    try:
        numbers = iter(range(len(values)))
        opaque_args = [_opaque(given, numbers) for given in args]
        opaque_kwargs = {
            name: given if name in literal else _opaque(given, numbers) for name, given in kwargs.items()
        }
        plan = _compile(build(*opaque_args, **opaque_kwargs), connection)
        _verify(plan, real, connection, values)
    except (InterfaceError, OperationalError):
        raise
    except Exception as error:  # whatever a platform's own code raises over a parameter is the reason
        logger.warning("%s is built anew each time: %s", build.__qualname__, error)
        return None
    return plan


def _compile(question: Question, connection: BaseDatabaseWrapper) -> _Plan:
    query, columns = question
    compiler = query.values_list(*columns.values()).query.get_compiler(connection.alias)
    try:
        statement, given = compiler.as_sql()
    except EmptyResultSet:
        return _Plan(statement=None)
    selected = [one for one, _, _ in compiler.select]
    converters = compiler.get_converters(selected)
    return _Plan(
        statement=statement,
        given=tuple(given),
        names=tuple(columns),
        converters=tuple(
            (place, _sooner(one), expression)
            for place, (several, expression) in converters.items()
            for one in several
        ),
        has_json=any(isinstance(one.output_field, JSONField) for one in selected),
    )


def _sooner(converter: Any) -> Any:
    """The same as a converter of Django's, quicker for what it is asked most often."""
    made_by = getattr(converter, "__self__", None)
    if type(made_by) is not JSONField or made_by.decoder is not None or converter != made_by.from_db_value:
        return converter

    def decoded(value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        return [] if value == "[]" else converter(value, expression, connection)

    return decoded


def _verify(plan: _Plan, real: _Plan, connection: BaseDatabaseWrapper, values: Sequence[Any]) -> None:
    """That bound values give what Django gives for the real ones: a field may write its values in a way of
    its own, and code may look at a clock.
    """
    if _text(plan) != _text(real):
        raise _NotCompiledError("its SQL is another for other values")
    if plan.bound(connection, values) != list(real.given):
        raise _NotCompiledError("its values are changed before they are bound")
    constants = (one for one in plan.given if type(one) is not Parameter)
    if any(isinstance(one, date) or _MOMENT.match(str(one)) for one in constants):
        raise _NotCompiledError("it has a moment of its own in it; let the database ask its clock: Now()")


def _text(plan: _Plan) -> str | None:
    """The SQL to compare: Django puts an expression, which a parameter is, in brackets of its own."""
    return plan.statement and plan.statement.replace("(%s)", "%s")


def _shape(given: Any, values: list[Any]) -> Hashable:
    """The shape of an argument; what is bound goes to `values`."""
    kind: Any = type(given)
    if kind in _FIELDS:
        values.append(given)
        return cast("Hashable", kind)
    if kind is tuple:
        return tuple([_shape(one, values) for one in given])
    names = _field_names(kind)
    if names is None:
        return cast("Hashable", given)
    literal = getattr(kind, "compiled_as", None)
    if literal is not None:
        shape: Hashable = literal(given)
        return shape
    return (kind, *[_shape(getattr(given, name), values) for name in names])


def _opaque(given: Any, numbers: Iterator[int]) -> Any:
    """The argument with parameters for what is bound, in the same order."""
    kind: Any = type(given)
    if kind in _FIELDS:
        return Parameter(next(numbers), kind)
    if kind is tuple:
        return tuple(_opaque(one, numbers) for one in given)
    names = _field_names(kind)
    if names is None or hasattr(kind, "compiled_as"):
        return given
    return replace(given, **{name: _opaque(getattr(given, name), numbers) for name in names})


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass; None for every other type, whose values are part of the SQL."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


def _fit(values: Sequence[Any]) -> bool:
    """Whether the databases' drivers can bind the values: Django answers for numbers that no column holds."""
    return not any(type(one) is int and not -_LARGEST <= one <= _LARGEST for one in values)


def _for_postgresql(value: Any, connection: BaseDatabaseWrapper) -> Any:
    return value


def _for_sqlite(value: Any, connection: BaseDatabaseWrapper) -> Any:
    if type(value) is uuid.UUID:
        return value.hex
    if type(value) is datetime:
        return connection.ops.adapt_datetimefield_value(value)
    return value


_ADAPTED = {"postgresql": _for_postgresql, "sqlite": _for_sqlite}


def cursor_of(connection: BaseDatabaseWrapper) -> Any:
    """A cursor of Django's connection, as Django's own ones in all but what kept statements need.

    With psycopg it binds values in the server and takes results in binary, and prepares statements where the
    database's OPTIONS have a `prepare_threshold`: Django leaves it off, for connection poolers. With SQLite
    it puts the driver's placeholders into a statement once, which Django does at every execution.
    """
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    raw = connection.connection
    cursor = _cursor_of_driver(connection.vendor, raw)
    if cursor is None:
        return connection.cursor()
    connection.validate_thread_sharing()
    make = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    return make(cursor)


def _cursor_of_driver(vendor: str, raw: Any) -> Any:
    """Our own cursor for the connection of a driver that we know; None for every other."""
    if vendor == "sqlite":
        kept = _sqlite_cursor()
        return raw.cursor(factory=kept) if isinstance(raw, kept.connects) else None
    binary = _binary_cursor() if vendor == "postgresql" else None
    return binary(raw) if binary is not None and isinstance(raw, binary.connects) else None


@cache
def _sqlite_cursor() -> Any:
    """The class of such cursors."""
    import sqlite3

    from django.db.backends.sqlite3.base import SQLiteCursorWrapper

    placed_in: dict[str, str] = {}

    class SQLiteCursor(SQLiteCursorWrapper):
        """Keeps how statements look with the driver's placeholders."""

        connects = sqlite3.Connection

        def convert_query(self, query: str, *, param_names: Any = None) -> str:
            if param_names is not None:
                return super().convert_query(query, param_names=param_names)
            placed = placed_in.get(query)
            if placed is None:
                if len(placed_in) >= MOST_PLANS:
                    placed_in.clear()
                placed = placed_in[query] = super().convert_query(query)
            return placed

    return SQLiteCursor


@cache
def _binary_cursor() -> Any:
    """The class of such cursors; None without psycopg 3."""
    try:
        import psycopg
    except ImportError:
        return None

    class BinaryCursor(psycopg.Cursor[Any]):
        """Binds in the server; takes results in binary."""

        connects = psycopg.Connection

        def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
            return super().execute(query, params, binary=True, **options)

    return BinaryCursor


@cache
def _json_text() -> Any:
    """The class that gives psycopg's JSON as text: Django decodes it itself."""
    import psycopg
    from psycopg.adapt import Loader

    class JSONText(Loader):
        """Leaves out what stands before the text."""

        format = psycopg.pq.Format.BINARY

        def load(self, data: Any) -> str:
            return bytes(data)[1:].decode()  # behind the version of jsonb

    return JSONText
