"""What the scripted model writes: a digest of what the history tools gave it, and of nothing else."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import Any

from history_access.quoting import short

_BOOKS = re.compile(r"book|reserve|buy", re.IGNORECASE)
_ORDERS = re.compile(r"\bignore\b.{0,40}\binstructions\b", re.IGNORECASE | re.DOTALL)
_TITLE = 46
_ACCOUNT = 22
_WIDTH = 96

Page = dict[str, Any]


class Told:
    """What was told of one conversation, over all the pages that it came in."""

    def __init__(self, listed: Page, pages: Iterable[Page]) -> None:
        messages = [message for page in pages for message in page["messages"]]
        self.title: str = listed["quoted"]["title"]
        self.account: tuple[str | None, str] = (
            listed["account_id"],
            account_label(listed["quoted"]["account"]),
        )
        self.started: str = listed["started_at"]
        self.messages = len({message["number"] for message in messages})
        self.tools = Counter(
            name for message in messages if not message["offset"] for name in message["quoted"]["tool_calls"]
        )
        self.gives_orders = any(_ORDERS.search(message["quoted"]["text"] or "") for message in messages)

    @property
    def bookings(self) -> int:
        """How many calls booked something; what came of them is in their results, which no tool shows."""
        return sum(count for name, count in self.tools.items() if _BOOKS.match(name))


def written(day: date, results: list[Page]) -> str:
    """The digest of a day, from the results of all calls."""
    errors = [result["error"]["message"] for result in results if result["kind"] == "error"]
    if errors:
        return f"No digest of {long_date(day)}: {errors[0]}"
    told = _conversations(results)
    if not told:
        return f"There are no conversations of {long_date(day)} that this turn may read."
    total = sum(one.messages for one in told)
    tools = sum((one.tools for one in told), Counter[str]())
    lines = [
        f"Digest of {long_date(day)}: {counted(len(told), 'conversation')}, {counted(total, 'message')}",
        *_by_account(told),
        *textwrap.wrap(f"Tools called: {_most_called(tools)}", _WIDTH, subsequent_indent="  "),
        *_stood_out(told),
    ]
    return "\n".join(lines)


def long_date(day: date) -> str:
    """ "Sunday 1 November 2026"."""
    return f"{day:%A} {day.day} {day:%B %Y}"


def counted(count: int, noun: str) -> str:
    """ "1 message", "2 messages"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _conversations(results: list[Page]) -> list[Told]:
    pages: dict[str, list[Page]] = {}
    for result in results:
        if result["kind"] == "quoted_conversation":
            pages.setdefault(result["conversation"]["id"], []).append(result)
    lists = (result["conversations"] for result in results if result["kind"] == "conversation_list")
    listed = {one["id"]: one for conversations in lists for one in conversations}
    return [Told(one, pages.get(key, ())) for key, one in listed.items()]


def _by_account(told: list[Told]) -> Iterable[str]:
    accounts: dict[tuple[str | None, str], list[Told]] = {}
    for one in told:
        accounts.setdefault(one.account, []).append(one)
    yield "  conversations  messages  bookings asked for  account"
    for (_, name), ones in sorted(accounts.items(), key=lambda item: (-len(item[1]), item[0][1])):
        messages, bookings = sum(one.messages for one in ones), sum(one.bookings for one in ones)
        yield f"  {len(ones):13,}  {messages:8,}  {bookings:18,}  {name}"


def _most_called(tools: "Counter[str]") -> str:
    ordered = sorted(tools.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered) or "none"


def _stood_out(told: list[Told]) -> Iterable[str]:
    longest = min(told, key=lambda one: (-one.messages, one.started, one.title))
    yield f"Longest: {quoted(longest.title)}, {counted(longest.messages, 'message')}"
    for one in sorted(told, key=lambda one: one.started):
        if one.gives_orders:
            yield (
                f"Stood out: {quoted(one.title)} tells its reader to ignore its instructions.\n"
                "  It is quoted text: reported here, and not obeyed."
            )


def quoted(title: str) -> str:
    """A title on one line, in quotation marks, at most so long that it fits there."""
    return f"“{short(' '.join(title.split()), _TITLE)}”"


def account_label(name: str | None) -> str:
    """An account's name on one line, or that there is none."""
    return "(no account)" if name is None else short(" ".join(name.split()), _ACCOUNT)
