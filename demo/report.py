"""What the demo prints: plain lines, the same in every run."""

import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Count

from demo import files
from demo.databases import FLEETING, own_url
from demo.digest import account_label, counted, long_date, quoted
from demo.world import LOGINS, PASSWORD, World
from history_access.agent_platform.models import Message, Session, Turn
from history_access.record import conversations_drawn_on
from settings_catalog import catalog
from settings_catalog.resolver import Resolution, resolve

MOST_ROWS = 15
"""How many conversations of the record are printed; the totals are of all."""

_DATABASES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
_JOINERS = "\u200c\u200d"


def plain(line: str) -> str:
    """A line without anything that a terminal would obey: titles are other people's text."""
    return "".join(map(_plain, line))


def _plain(one: str) -> str:
    if one.isprintable() or one in _JOINERS:
        return one
    return " " if one.isspace() else "\ufffd"


def heading(title: str, sentence: str = "") -> Iterator[str]:
    """The heading of a part and a sentence on what it shows and why, after an empty line."""
    yield from ("", title, "-" * len(title))
    if sentence:
        yield sentence


def conversations(world: World, now: datetime) -> Iterator[str]:
    """What there is to read, and what time it is."""
    yield f"Hollowbrook, an inn with two agents, on {_DATABASES[connection.vendor]}"
    yield from heading("1. The conversations")
    for agent, whose in ((world.digest, "the staff's agent"), (world.front_desk, "the guests' agent")):
        sessions = Session.objects.filter(agent=agent)
        said = Message.objects.filter(Message.readable(), session__in=sessions).count()
        accounts = sessions.aggregate(count=Count("account", distinct=True))["count"]
        yield (
            f"{agent.name}, {whose}: {counted(sessions.count(), 'conversation')}, "
            f"{counted(said, 'message')}, {counted(accounts, 'account')}"
        )
    yield f"It is {now:%H:%M} on {long_date(now.date())} in the inn's time zone, {world.workspace.time_zone}."


def opening(world: World, steps: Iterable[tuple[str, Resolution]]) -> Iterator[str]:
    """How the setting came to hold, each time in the resolver's own words."""
    yield from heading(
        "2. The setting history_access of Digest",
        "It takes two: somebody of the inn who asks for it, and the platform's operator who allows it.",
    )
    for what, resolution in steps:
        yield f"{what}: {resolution.value}"
        yield f"  {resolution}"
    others = [entry.key for entry in catalog.catalog if entry.key != "history_access"]
    values = ", ".join(f"{key} {resolve(key, world.digest).value}" for key in others)
    yield f"In the same catalog: {values}"


def digest(world: World, reply: str, model: str) -> Iterator[str]:
    """The reply of the agent; `model` is what wrote it."""
    yield from heading(
        f"3. The schedule “{world.schedule.name}”",
        f"It reads as its owner, {world.innkeeper} the innkeeper, who holds sessions:read. Model: {model}.",
    )
    yield from reply.splitlines()


def record(turn: Turn) -> Iterator[str]:
    """Which conversations a reply drew on: keys and counts from the record, titles from the platform."""
    yield from heading(
        "4. The record of that turn",
        "Which conversations the reply drew on: written while they were read, whatever the model says.",
    )
    drawn = list(conversations_drawn_on(turn))
    found = Session.objects.select_related("account").in_bulk([one["session_id"] for one in drawn])
    sessions = {str(key): session for key, session in found.items()}
    rows = sorted(_row(one, sessions.get(one["session_id"])) for one in drawn)
    yield "  reads  characters  account                 title as it is now"
    yield from (row for _, row in rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        yield f"  and {counted(len(rows) - MOST_ROWS, 'more conversation')}"
    yield totals(turn)


def storage(turn: Turn) -> Iterator[str]:
    """Where the digest may be written: the platform's own guard asks what the turn has drawn on."""
    for place in ("workspace/digest.md", "agent/digest.md"):
        try:
            files.write(turn, place)
        except files.RefusedPlaceError as refusal:
            yield f"Not written to {refusal}."
        else:
            yield f"Written to {place}, which the agent alone reads; the record notes the place."


def totals(turn: Turn) -> str:
    """The record of a turn in one line."""
    drawn = list(conversations_drawn_on(turn))
    reads, characters = sum(one["reads"] for one in drawn), sum(one["characters"] for one in drawn)
    return (
        f"On record: {counted(len(drawn), 'conversation')}, "
        f"{counted(reads, 'read')}, {counted(characters, 'character')}"
    )


def _row(drawn: dict[str, Any], session: Session | None) -> tuple[str, str]:
    """A line of the record, after the time by which it is sorted."""
    given = f"  {drawn['reads']:5,}  {drawn['characters']:10,}"
    if session is None:
        return "", f"{given}  (a conversation that is gone)"
    account = account_label(session.account.name if session.account else None)
    return session.started_at.isoformat(), f"{given}  {account:<22}  {quoted(session.title)}"


def next_steps() -> Iterator[str]:
    """Where to look further."""
    yield from heading("Next")
    if os.environ.get(FLEETING):
        looking = ["run the demo without --postgres: it leaves a database to look around in"]
    else:
        looking = list(_looking_around(own_url()))
    for index, line in enumerate(looking):
        yield f"{'' if index else 'Look around':<20}{line}"
    yield "Your conversations  CONVERSATIONS=FILE make demo"
    yield "A real model        DEMO_MODEL=PROVIDER:MODEL make demo"


def _looking_around(url: str | None) -> Iterator[str]:
    """How to serve the database that is left, and as whom to log in."""
    if url is not None:
        yield f"export DATABASE_URL={shlex.quote(url)}"
    yield f"{_python()} manage.py runserver"
    yield f"http://localhost:8000/ with the password {PASSWORD}, as one of"
    yield _logins()


def _logins() -> str:
    *most, last = (f"{name} ({holds})" for name, (holds, _) in LOGINS.items())
    return f"{', '.join(most)} or {last}"


def _python() -> str:
    """How to call the Python that runs this, from here; never a path of this machine."""
    path = os.path.relpath(sys.executable)
    return "python" if path.startswith(os.pardir) else path
