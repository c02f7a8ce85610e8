"""What is wanted of the product: ratios, since milliseconds are the machine's."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.corpus import Size
from benchmarks.measuring import Name, Spread, ratio
from benchmarks.works import (
    EVERY_ROW,
    FLOOR,
    NAMED,
    NO_ACCOUNT,
    ONLY,
    ORM,
    PRODUCT,
    RECORD,
    STRANGER,
    TOOLSET,
    WHOLE,
    listing,
    page_of,
    reading,
)

Times = Mapping[Name, Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A ratio and what it should be: at most `most`, or at least `least`."""

    words: str
    over: Name
    under: Name
    most: float | None = None
    least: float | None = None

    def looked_at(self, times: Times) -> dict[str, Any]:
        """What came of it, ready for JSON; a goal is judged by the median."""
        return judged(
            self.words, ratio(times[self.over], times[self.under]), most=self.most, least=self.least
        )


def judged(
    words: str, found: Spread, *, most: float | None = None, least: float | None = None
) -> dict[str, Any]:
    """A goal and whether it was reached, ready for JSON."""
    reached = (most is None or found.median <= most) and (least is None or found.median >= least)
    return {
        "goal": words,
        "wanted": f"≤ {most:g}" if most is not None else f"≥ {least:g}",
        "ratio": round(found.median, 3),
        "low": round(found.low, 3),
        "high": round(found.high, 3),
        "reached": reached,
    }


def goals(size: Size, vendor: str) -> Iterator[Goal]:
    """The goals for one database; those that a corpus is too small for are left out."""
    largest, length = max(size.growing), max(size.lengths)
    newest, middle = listing(largest), reading(length, "middle")
    to_floor = 2.2 if vendor == "postgresql" else 2
    yield Goal(
        words="list of 50, visibility and text alone, to the floor's one statement",
        over=(f"{newest}, {ONLY}", PRODUCT),
        under=(f"{newest}, {ONLY}", FLOOR),
        most=1.5,
    )
    yield Goal(
        words="list of 50 with its record, to the floor",
        over=(newest, PRODUCT),
        under=(newest, FLOOR),
        most=to_floor,
    )
    for where in ("start", "middle", "end"):
        yield Goal(
            words=f"read 50 of {length:,} at the {where} with its record, to the floor",
            over=(reading(length, where), PRODUCT),
            under=(reading(length, where), FLOOR),
            most=1.5 if vendor == "postgresql" else 2,
        )
    yield Goal(
        words=f"read 50 of {length:,} in the middle: the plain ORM, to the product",
        over=(middle, ORM),
        under=(middle, PRODUCT),
        least=7,
    )
    first, second, deep = size.pages[0], size.pages[1], size.pages[-1]
    for page in (first, second) if deep > second else (first,):
        yield Goal(
            words=f"page {deep} to page {page} of the list",
            over=(page_of(deep), PRODUCT),
            under=(page_of(page), PRODUCT),
            most=1.2,
        )
    for words, over, under in (
        ("a stranger's list to that of somebody granted", f"list 50, {STRANGER}", newest),
        (
            "the list without an account to that of a named one",
            f"list 50, {NO_ACCOUNT}",
            f"list 50, {NAMED}",
        ),
        (
            f"an agent of {largest:,} sessions to one of {min(size.growing):,}",
            newest,
            listing(min(size.growing)),
        ),
    ):
        yield Goal(words=words, over=(over, PRODUCT), under=(under, PRODUCT), most=1.2)
    if 100 in size.lengths and length > 100:  # noqa: PLR2004
        for where in ("middle", "end"):
            yield Goal(
                words=f"the {where} of {length:,} messages to the middle of 100",
                over=(reading(length, where), PRODUCT),
                under=(reading(100, "middle"), PRODUCT),
                most=1.3,
            )
    for messages, least in ((10_000, 100), (1_000, 15)):
        for shape in (WHOLE, EVERY_ROW) if messages in size.lengths else ():
            yield Goal(
                words=f"middle of {messages:,}: {shape}, to the product",
                over=(reading(messages, "middle"), shape),
                under=(reading(messages, "middle"), PRODUCT),
                least=least,
            )
    yield Goal(
        words="the record's share of a list of 50",
        over=(newest, RECORD),
        under=(newest, PRODUCT),
        most=0.3,
    )


def counted(words: str, number: int, most: int) -> dict[str, Any]:
    """A goal for a number of statements."""
    return judged(words, Spread(number, number, number), most=most)


def statements(job: Callable[[], Any]) -> list[str]:
    """The statements that a job runs, without BEGIN and COMMIT."""
    from django.db import connection

    ran: list[str] = []

    def note(execute: Any, sql: str, *others: Any) -> Any:
        ran.append(sql)
        return execute(sql, *others)

    with connection.execute_wrapper(note):
        job()
    return ran


def statement_goals(works: Any) -> Iterator[dict[str, Any]]:
    """The goals for numbers of statements; they need no clock."""
    from history_access.tools import toolset_for

    ran = statements(lambda: toolset_for(works.turn))
    yield counted(f"statements of {TOOLSET}", len(ran), 2)
    ran = statements(lambda: works.toolset.call("list_conversations", {"limit": 50}))
    recorded = [one for one in ran if "INSERT" in one and "turnconversationread" in one]
    yield counted("statements that record the reads of a list of 50", len(recorded), 1)
