"""A guest hands yesterday's conversation to today's turn: read by reference, in that one turn."""

from collections.abc import Iterator
from datetime import datetime

from demo.claims import expect, expect_nothing_read
from demo.digest import counted, quoted
from demo.report import heading, totals
from demo.world import World, open_references
from history_access.agent_platform import services
from history_access.agent_platform.models import Session, Turn
from history_access.models import TurnConversationRead
from history_access.record import conversations_drawn_on
from history_access.references import bind_references
from history_access.tools import toolset_for
from settings_catalog.resolver import resolve


def handed_over(world: World, now: datetime) -> Iterator[str]:
    """With history access at none: one turn reads what its sender gave it, and the next one reads nothing."""
    last = _last_of_a_guest(world)
    if last is None:
        return
    guest = last.person
    yield from heading(
        "8. Handed over: a guest gives one turn a conversation",
        f"History is off. {guest} writes to Front desk again, and gives it a conversation of their own.",
    )
    yield f"The setting conversation_references: {open_references(world)}"
    session = services.open_session(
        world.front_desk, account=last.account, person=guest, title="As I said", started_at=now
    )
    turn = services.start_turn(session, sender=guest, at=now)
    bind_references(turn, [str(last.pk)])
    yield f"Handed {quoted(last.title)}, {_offered(turn)}"
    result = toolset_for(turn).call("read_conversation", {"conversation_id": str(last.pk)})
    expect(result["kind"] == "quoted_conversation", "what was handed over could not be read")
    yield f"It reads {counted(len(result['messages']), 'message')}."
    expect(conversations_drawn_on(turn).count() == 1, "the turn read more than what was handed to it")
    yield totals(turn)
    for row in TurnConversationRead.objects.filter(turn_id=str(turn.pk)):
        yield f"  {row.what} {row.first_number} to {row.last_number}, by {row.how}"
    services.end_turn(turn)
    following = services.start_turn(session, sender=guest, at=now)
    yield f"The next turn of the same conversation: {_offered(following)} It calls anyway:"
    answer = toolset_for(following).call("read_conversation", {"conversation_id": str(last.pk)})
    expect(answer["kind"] == "error", "what was handed to one turn could be read in the next")
    yield f"  {answer['error']['code']}: {answer['error']['message']}"
    expect_nothing_read(following)
    yield totals(following)
    services.end_turn(following)
    expect(resolve("history_access", world.front_desk).value == "none", "history access was not at none")


def _last_of_a_guest(world: World) -> Session | None:
    """The newest conversation with the guests' agent in which a guest said something; None without any."""
    said = Session.objects.filter(agent=world.front_desk, person__isnull=False, message_count__gt=0)
    return said.select_related("person").order_by("-last_moved_at", "pk").first()


def _offered(turn: Turn) -> str:
    """Which tools a turn is offered, for the end of a sentence."""
    return f"it is offered {' and '.join(toolset_for(turn).names) or 'no tool'}."
