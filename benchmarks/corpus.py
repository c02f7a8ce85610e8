"""The conversations that are measured: always the same ones for a size, by a fixed seed."""

import json
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

SEED = 20_261_201
BEGAN = datetime(2025, 1, 1, tzinfo=UTC)
TOOL = "tool"
_ROLES = ("person", "agent", TOOL, "agent", TOOL, "person", "agent", TOOL, "person", "agent")
"""Ten entries in a row: three in ten are results of tools, which nobody reads again."""

ACCOUNTS, PEOPLE, _OWN = 200, 50, 60
"""How many accounts and people there are, and how many sessions a stranger has with the largest agent."""

_SHORT_RESULT, _LONG_RESULT = 800, 6_000
_LONG = 100
"""Conversations of this length and more have the large results of tools."""

Row = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much there is.

    `growing` are agents with so many sessions, all of whose accounts may be read; `lined` is one agent more,
    that reads one account's only; `others` are agents with `each_other` sessions. Sessions have `messages`
    entries, but for `copies` conversations of each of the `lengths`.
    """

    growing: tuple[int, ...]
    lined: int
    others: int
    each_other: int
    messages: int
    lengths: tuple[int, ...]
    copies: int
    pages: tuple[int, ...]
    rounds: int

    @property
    def sessions(self) -> int:
        """How many sessions there are in all."""
        long = self.copies * len(self.lengths)
        return sum(self.growing) + self.lined + self.others * self.each_other + long

    @property
    def entries(self) -> int:
        """How many messages there are in all."""
        long = self.copies * len(self.lengths)
        return (self.sessions - long) * self.messages + self.copies * sum(self.lengths)


SIZES = {
    "tiny": Size(
        growing=(60, 130),
        lined=320,
        others=1,
        each_other=10,
        messages=2,
        lengths=(10, 100),
        copies=1,
        pages=(1, 2),
        rounds=1,
    ),
    "small": Size(
        growing=(100, 1_000, 10_000),
        lined=20_000,
        others=20,
        each_other=500,
        messages=5,
        lengths=(10, 100, 1_000, 10_000),
        copies=1,
        pages=(1, 10, 100, 200),
        rounds=15,
    ),
    "medium": Size(
        growing=(100, 1_000, 10_000, 50_000),
        lined=20_000,
        others=20,
        each_other=500,
        messages=2,
        lengths=(10, 100, 1_000, 10_000),
        copies=1,
        pages=(1, 10, 100, 500),
        rounds=15,
    ),
    "full": Size(
        growing=(100, 1_000, 10_000, 50_000),
        lined=50_000,
        others=88,
        each_other=1_000,
        messages=20,
        lengths=(10, 100, 1_000, 10_000),
        copies=5,
        pages=(1, 10, 100, 500),
        rounds=25,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Where things are: the keys that a measurement asks for.

    `agents` by their number of sessions, `turns` by what they are there for, `conversations` by their length.
    """

    size: Size
    agents: dict[int, uuid.UUID] = field(default_factory=dict)
    turns: dict[Any, uuid.UUID] = field(default_factory=dict)
    conversations: dict[int, uuid.UUID] = field(default_factory=dict)


def key(moment: datetime, number: int, chance: random.Random) -> str:
    """A key of version 7 for a moment, as the 32 digits that both databases take."""
    milliseconds = int(moment.timestamp() * 1000)
    return f"{milliseconds:012x}7{number & 0xFFF:03x}8{chance.getrandbits(60):015x}"


@dataclass(frozen=True, kw_only=True)
class SessionPlan:
    """One session before it is written; `kept` tells whether the shapes of others have it too."""

    id: str
    agent: str
    account: str | None
    person: int
    title: str
    started_at: datetime
    length: int
    kept: bool = False

    @property
    def last_moved_at(self) -> datetime:
        """When its last message came."""
        return self.started_at + timedelta(seconds=20 * self.length)

    def row(self, workspace: str) -> Row:
        """As its table takes it; see `SESSION_COLUMNS`."""
        times = (written(self.started_at), written(self.last_moved_at))
        readable = sum(is_readable(number) for number in range(1, self.length % 10 + 1))
        count = self.length // 10 * (10 - _ROLES.count(TOOL)) + readable
        return (
            *(self.id, workspace, self.agent, self.account, self.person, self.title, *times, count),
            *(1, 1),
        )


SESSION_COLUMNS = (
    *("id", "workspace_id", "agent_id", "account_id", "person_id", "title", "started_at", "last_moved_at"),
    *("message_count", "trimmed_before", "erased_before"),
)
MESSAGE_COLUMNS = (
    *("id", "workspace_id", "session_id", "number", "role", "hidden", "text", "tool_calls", "created_at"),
)


def written(moment: datetime) -> str:
    """A moment as both databases take it, in UTC."""
    return str(moment.replace(tzinfo=None))


def is_readable(number: int) -> bool:
    """Whether the message with a number is one that is read again."""
    return _ROLES[(number - 1) % 10] != TOOL


def sessions(
    size: Size,
    *,
    growing: list[str],
    lined: str,
    others: list[str],
    accounts: list[str],
    people: list[int],
    stranger: int,
) -> Iterator[SessionPlan]:
    """Every session, agent by agent.

    `stranger` is a person with a few sessions of the largest agent, and of the one with the account line.
    """
    chance = random.Random(SEED)
    named, largest = accounts[0], max(size.growing)
    crowds = [*zip(growing, size.growing, strict=True), (lined, size.lined)]
    crowds += [(agent, size.each_other) for agent in others]
    for agent, number in crowds:
        own = set(range(0, number, max(number // _OWN, 1))) if number == largest else set[int]()
        for nth in range(number):
            started = BEGAN + timedelta(seconds=(nth // 2) * (80_000_000 // number))  # two share a moment
            # Three in ten have no account; of the agent with the line, as many have the one that is named.
            share = chance.random()
            account = None if share < 0.3 else chance.choice(accounts)  # noqa: PLR2004
            if agent == lined and share > 0.7:  # noqa: PLR2004
                account = named
            yield SessionPlan(
                id=key(started, nth, chance),
                agent=agent,
                account=account,
                person=stranger if nth in own else chance.choice(people),
                title=f"Conversation {nth} about {chance.choice(_WORDS)} and {chance.choice(_WORDS)}",
                started_at=started,
                length=size.messages,
            )
    for length in size.lengths:
        for copy in range(size.copies):
            started = BEGAN - timedelta(days=30 + copy, seconds=length)
            yield SessionPlan(
                id=key(started, copy, chance),
                agent=growing[-1],
                account=None,
                person=people[0],
                title=f"A conversation of {length} messages",
                started_at=started,
                length=length,
                kept=copy == 0,
            )


def messages(plan: SessionPlan, workspace: str, texts: "Texts") -> Iterator[Row]:
    """The messages of one session, as their table takes them; see `MESSAGE_COLUMNS`."""
    chance = random.Random(plan.id)
    long = plan.length >= _LONG
    for number in range(1, plan.length + 1):
        role = _ROLES[(number - 1) % 10]
        calls = role == "agent" and _ROLES[number % 10] == TOOL
        at = plan.started_at + timedelta(seconds=20 * number)
        text = texts.result(chance, long=long) if role == TOOL else texts.words(chance)
        tool_calls = texts.call(chance) if calls else "[]"
        yield (
            *(key(at, number, chance), workspace, plan.id, number, role, False, text),
            *(tool_calls, written(at)),
        )


class Texts:
    """Texts made once by the seed, from which messages take theirs: making millions would take longer."""

    def __init__(self) -> None:
        chance = random.Random(SEED)
        self._words = [_sentence(chance, chance.randint(40, 600)) for _ in range(500)]
        self._short = [_table(chance, _SHORT_RESULT) for _ in range(50)]
        self._long = [_table(chance, _LONG_RESULT) for _ in range(50)]
        self._calls = [
            json.dumps([{"name": name, "arguments": {"query": _sentence(chance, 200)}}])
            for name in ("search", "read_file", "book_room", "send_mail")
        ]

    def words(self, chance: random.Random) -> str:
        """What a person or the agent said: 300 characters on average, so that 50 fit on a page."""
        return chance.choice(self._words)

    def result(self, chance: random.Random, *, long: bool) -> str:
        """What a tool answered."""
        return chance.choice(self._long if long else self._short)

    def call(self, chance: random.Random) -> str:
        """A call of a tool, as JSON."""
        return chance.choice(self._calls)


_WORDS = (
    *("the", "a", "room", "key", "guest", "table", "morning", "booking", "price", "night", "breakfast"),
    *("boat", "window", "garden", "late", "early", "invoice", "deposit", "cancel", "change", "confirm"),
    *("north", "south", "pillow", "towel", "parking", "bicycle", "river", "station", "please", "thanks"),
)


def _sentence(chance: random.Random, characters: int) -> str:
    words, length = [], 0
    while length < characters:
        words.append(chance.choice(_WORDS))
        length += len(words[-1]) + 1
    return " ".join(words)[:characters].strip()


def _table(chance: random.Random, characters: int) -> str:
    return json.dumps(
        [
            {"room": chance.randint(1, 400), "price": chance.random(), "note": _sentence(chance, 40)}
            for _ in range(characters // 90)
        ]
    )
