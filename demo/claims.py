"""What the demo says, held against what happened: a run that did not show it fails."""

from datetime import datetime, time, timedelta

from django.core.management import CommandError

from demo.world import World
from history_access.agent_platform.models import Session, Turn
from history_access.models import Refusal
from history_access.record import conversations_drawn_on
from history_access.tools.errors import Code


class NotShownError(CommandError):
    """Something came out otherwise than the demo says."""


def expect(so: bool, otherwise: str) -> None:
    """Go on where it is so; a NotShownError that says what was `otherwise`."""
    if not so:
        raise NotShownError(f"The demo did not show what it says: {otherwise}.")


def expect_reads(turn: Turn) -> None:
    """Expect that no read of the turn failed; what a model asked for wrongly is its own affair."""
    failed = Refusal.objects.filter(turn_id=str(turn.pk), code=Code.HISTORY_UNAVAILABLE.value).first()
    expect(failed is None, f"{failed and failed.tool} of the schedule could not be read and recorded")


def expect_whole_day(world: World, turn: Turn, now: datetime) -> None:
    """Expect on record exactly the conversations that moved yesterday, as a plain query counts them."""
    today = datetime.combine(now.date(), time(), world.zone)
    yesterday = datetime.combine(now.date() - timedelta(days=1), time(), world.zone)
    sessions = Session.objects.filter(agent=world.digest, started_at__lt=today, last_moved_at__gte=yesterday)
    read, there = conversations_drawn_on(turn).count(), sessions.count()
    expect(read == there, f"the digest drew on {read} of the {there} conversations of yesterday")


def expect_nothing_read(turn: Turn) -> None:
    """Expect that the turn was given nothing."""
    read = conversations_drawn_on(turn).count()
    expect(read == 0, f"a turn that may read nothing was given something of {read} conversations")
