"""What is measured: each piece of work, in every shape that does it."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any

from django.conf import settings
from django.db import connection

from benchmarks import orm
from benchmarks.corpus import Corpus
from benchmarks.floor import LIMIT, Floor
from benchmarks.measuring import Contender
from benchmarks.shapes import Shapes
from history_access import door, record
from history_access.agent_platform.models import Agent, Session
from history_access.reach import TurnReach, reach_of
from history_access.tools import Toolset, toolset_for
from history_access.turns import settings_of
from settings_catalog.places import Place

FLOOR, PRODUCT, ANEW, ORM = "floor", "product", "product, compiled anew", "plain ORM"
WHOLE, EVERY_ROW = "whole conversation in one row", "every row from the start"
WALKED, OFFSET, COUNTED = "every session walked", "OFFSET", "OFFSET and a total count"
RECORD = "product, its record alone"
GRANTED, STRANGER, NEWCOMER = "granted", "stranger", "newcomer"
NAMED, NO_ACCOUNT = "named account", "no account"
CAPS = door.Caps(messages=50, message_characters=4_000, page_characters=20_000)


def listing(number: int) -> str:
    """The work of listing the newest of an agent with so many sessions."""
    return f"list 50 of {number:,}"


def page_of(page: int) -> str:
    """The work of listing a page further down."""
    return f"list page {page}"


def reading(length: int, where: str) -> str:
    """The work of reading from a conversation of so many messages."""
    return f"read 50 of {length:,}, {where}"


def middle_of(length: int) -> int:
    """From where on the 50 in the middle are read: seven in ten entries are readable."""
    return max(1, length // 2 - LIMIT * 7 // 10 + 1)


ONLY = "visibility and text alone"
TOOLSET = "toolset_for"


class Works:
    """Every contender for a corpus in Django's database, beside a floor with a connection of its own."""

    def __init__(self, corpus: Corpus, floor: Floor) -> None:
        self.corpus = corpus
        self.floor = floor
        self.largest = max(corpus.size.growing)
        self.turn = corpus.turns[self.largest]
        self.toolset = toolset_for(self.turn)
        agent = Agent.objects.select_related("workspace").get(pk=corpus.agents[self.largest])
        person = Session.objects.get(pk=next(iter(corpus.conversations.values()))).person
        own = Session.objects.get(turns__id=self.turn)
        self.keys = (agent.workspace_id, agent.pk, own.pk)
        adapted = (lambda key: key.hex) if connection.vendor == "sqlite" else (lambda key: key)
        self.shapes = Shapes(
            _execute,
            adapted,
            agent_name=agent.name,
            person_name=person.username,
            zone=agent.workspace.time_zone,
        )

    def all(self) -> Iterator[Contender]:
        """Everything that is measured."""
        yield from self.lists()
        yield from self.pages()
        yield from self.whose()
        yield from self.reads()
        yield from self.alone()
        yield from self.others()

    def lists(self) -> Iterator[Contender]:
        """The newest 50, of agents that grow."""
        for number in self.corpus.size.growing:
            turn = self.corpus.turns[number]
            keys = self._keys(number)
            yield Contender(listing(number), PRODUCT, _listing(toolset_for(turn)))
            yield Contender(listing(number), FLOOR, lambda turn=turn: self.floor.list_newest(turn))
            yield Contender(listing(number), ORM, lambda turn=turn: orm.list_newest(turn))
            yield Contender(listing(number), WALKED, lambda keys=keys: self.shapes.every_session_walked(keys))
            yield Contender(listing(number), COUNTED, lambda keys=keys: self.shapes.with_a_count(keys, 1))
        call = _listing(self.toolset)
        yield Contender(listing(self.largest), ANEW, lambda: _anew(call))
        yield Contender(listing(self.largest), RECORD, call, lambda: _seconds_in_record(call))

    def pages(self) -> Iterator[Contender]:
        """Pages further and further down the largest agent's list."""
        wanted = set(self.corpus.size.pages)
        for page, cursor, last in self._walked(max(wanted)):
            if page not in wanted:
                continue
            arguments = {"limit": LIMIT} | ({"cursor": cursor} if cursor else {})
            yield Contender(page_of(page), PRODUCT, _listing(self.toolset, **arguments))
            yield Contender(page_of(page), FLOOR, lambda last=last: self.floor.list_newest(self.turn, last))
            yield Contender(page_of(page), OFFSET, lambda page=page: self.shapes.by_offset(self.keys, page))
            yield Contender(
                page_of(page), COUNTED, lambda page=page: self.shapes.with_a_count(self.keys, page)
            )

    def _walked(self, pages: int) -> Iterator[tuple[int, str | None, tuple[datetime, Any] | None]]:
        """Each page's number, its cursor, and where the page before ended."""
        cursor, last = None, None
        for page in range(1, pages + 1):
            yield page, cursor, last
            found = self.toolset.call("list_conversations", {"limit": LIMIT, "cursor": cursor})
            end = found["conversations"][-1]
            moved, key = datetime.fromisoformat(end["last_moved_at"]), door.key_of(end["id"])
            cursor, last = found["next_cursor"], (moved, key)

    def whose(self) -> Iterator[Contender]:
        """The same list for others than who may read everything, and under the account line."""
        for name in (STRANGER, NEWCOMER, NAMED, NO_ACCOUNT):
            turn = self.corpus.turns[name]
            yield Contender(f"list 50, {name}", PRODUCT, _listing(toolset_for(turn)))
            yield Contender(f"list 50, {name}", FLOOR, lambda turn=turn: self.floor.list_newest(turn))

    def reads(self) -> Iterator[Contender]:
        """50 messages of conversations that grow."""
        for length, session in self.corpus.conversations.items():
            for where, start in (("start", 1), ("middle", middle_of(length)), ("end", -LIMIT)):
                work = reading(length, where)
                call = _reading(self.toolset, session, start)
                yield Contender(work, PRODUCT, call)
                for shape, run in (
                    (FLOOR, lambda s=session, n=start: self.floor.read(self.turn, s, n)),
                    (ORM, lambda s=session, n=start: orm.read(self.turn, s, n)),
                    (WHOLE, lambda s=session, n=start: self.shapes.whole_conversation(s, n)),
                    (EVERY_ROW, lambda s=session, n=start: self.shapes.every_row(s, n)),
                ):
                    yield Contender(work, shape, run)
                if length == max(self.corpus.conversations) and where == "middle":
                    yield Contender(work, ANEW, lambda call=call: _anew(call))

    def alone(self) -> Iterator[Contender]:
        """Without turn, setting and record: one statement that looks at visibility and fetches text."""
        reach, (facts, setting) = reach_of(self.turn), self.floor.look_up(self.turn)
        length = max(self.corpus.conversations)
        session, start = self.corpus.conversations[length], middle_of(length)
        everything = door.Span()
        for work, product, floor in (
            (
                f"{listing(self.largest)}, {ONLY}",
                lambda: door.newest(reach, everything, after=None, most=LIMIT + 1),
                lambda: self.floor.only_list(facts, setting),
            ),
            (
                f"{reading(length, 'middle')}, {ONLY}",
                lambda: door.page(reach, session, start=start, offset=0, caps=CAPS),
                lambda: self.floor.only_read(facts, setting, session, start),
            ),
        ):
            yield Contender(work, PRODUCT, product, lambda product=product: _seconds_as_in_a_call(product))
            yield Contender(work, FLOOR, floor)
        yield Contender("look up turn, setting, reader", PRODUCT, lambda: reach_of(self.turn))
        yield Contender("look up turn, setting, reader", FLOOR, lambda: self.floor.look_up(self.turn))

    def others(self) -> Iterator[Contender]:
        """What a turn is offered."""
        yield Contender(TOOLSET, PRODUCT, lambda: toolset_for(self.turn))
        yield Contender(TOOLSET, FLOOR, lambda: self.floor.look_up(self.turn))
        yield Contender(TOOLSET, ANEW, lambda: _anew(lambda: toolset_for(self.turn)))

    def _keys(self, number: int) -> tuple[Any, ...]:
        own = Session.objects.get(turns__id=self.corpus.turns[number])
        return (own.workspace_id, own.agent_id, own.pk)


def _listing(toolset: Toolset, **arguments: Any) -> Callable[[], Any]:
    arguments = {"limit": LIMIT, **arguments}
    return lambda: _given(toolset.call("list_conversations", arguments))


def _reading(toolset: Toolset, session: Any, start: int) -> Callable[[], Any]:
    arguments = {"conversation_id": str(session), "start": start}
    return lambda: _given(toolset.call("read_conversation", arguments))


def _given(result: dict[str, Any]) -> dict[str, Any]:
    """A result that is no refusal, which would be quick for the wrong reason."""
    if result["kind"] == "error":
        raise RuntimeError(result["error"]["message"])
    return result


def _execute(statement: str, given: list[Any]) -> list[dict[str, Any]]:
    """The rows of a statement, by name, through Django's connection and past its cursor's bookkeeping."""
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _anew(call: Callable[[], Any]) -> Any:
    """The product without the SQL that it keeps."""
    settings.SETTINGS_CATALOG_COMPILED_QUERIES = False
    try:
        return call()
    finally:
        settings.SETTINGS_CATALOG_COMPILED_QUERIES = True


def _seconds_as_in_a_call(job: Callable[[], Any]) -> float:
    """How long a part of a call takes with what PostgreSQL is told when a call begins."""
    told = ("enable_sort", "off"), ("plan_cache_mode", "force_generic_plan")
    with connection.cursor() as cursor:
        for name, value in told if connection.vendor == "postgresql" else ():
            cursor.execute(f"SET {name} TO {value}")
        began = time.perf_counter()
        job()
        taken = time.perf_counter() - began
        for name, _ in told if connection.vendor == "postgresql" else ():
            cursor.execute(f"RESET {name}")
    return taken


def _seconds_in_record(call: Callable[[], Any]) -> float:
    """How long of a call its record takes: the setting is looked at in the same statement, which counts for
    as long as such a look takes alone.
    """
    with _watched(record, "_record") as made, _watched(TurnReach, "still_holds") as written:
        call()
    return made[0] + written[0] - _seconds_to_look()


@cache
def _seconds_to_look() -> float:
    """The median time of a look at the setting by itself."""
    place = Agent.objects.get(name__startswith="Agent with")
    at, taken = Place.agent(place.workspace_id, place.pk), []
    for _ in range(30):
        began = time.perf_counter()
        settings_of(at)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


@contextmanager
def _watched(owner: Any, name: str) -> Iterator[list[float]]:
    run, seconds = getattr(owner, name), [0.0]

    def watched(*given: Any, **named: Any) -> Any:
        began = time.perf_counter()
        result = run(*given, **named)
        seconds[0] += time.perf_counter() - began
        return result

    setattr(owner, name, watched)
    try:
        yield seconds
    finally:
        setattr(owner, name, run)


def flat(result: Any) -> list[dict[str, Any]]:
    """The rows of any shape's result in one form, to see that they are the same."""
    if not isinstance(result, dict):
        return [dict(row) for row in result]
    if result["kind"] == "conversation_list":
        kept = ("id", "account_id", "started_at", "last_moved_at", "message_count")
        return [{**{name: one[name] for name in kept}, **one["quoted"]} for one in result["conversations"]]
    return [
        {
            **{name: one[name] for name in ("number", "speaker", "at")},
            **one["quoted"],
            "truncated": one["truncated"] is not None,
        }
        for one in result["messages"]
    ]
