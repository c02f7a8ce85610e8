"""Three refusals, each shown by trying. The model has no say in any: the tools and their reach refuse."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Count
from pydantic_ai.models import Model

from demo.claims import expect, expect_nothing_read
from demo.digest import account_label, counted
from demo.loop import run_schedule
from demo.report import heading, totals
from demo.world import World, confine_front_desk, grant, hold_at, revoke
from history_access.agent_platform import services
from history_access.agent_platform.models import Account, Agent, Permission, Session, Turn
from history_access.tools import Toolset, toolset_for
from settings_catalog.resolver import resolve

_NOBODYS = str(uuid.uuid5(uuid.NAMESPACE_DNS, "no-such-conversation.hollowbrook.example"))


def one_customer_only(world: World, now: datetime) -> Iterator[str]:
    """The guests' agent under `same_account`: asked by a person who may open everything, and by a guest."""
    yield from heading(
        "5. Refused: another customer's conversations",
        "Front desk has same_account: whoever asks, it reads conversations of the turn's own account alone.",
    )
    confine_front_desk(world)
    sessions = Session.objects.filter(agent=world.front_desk)
    total, customer = sessions.count(), _busiest_account(world.front_desk)
    foreign = sessions.exclude(account=customer).order_by("started_at", "pk").first()
    name = account_label(customer.name if customer else None)
    yield f"Of its {counted(total, 'conversation')} it lists, asked in a new one with {name}:"
    guest = _busiest_guest(world.front_desk, customer)
    for reader, what in ((world.innkeeper, "all of them"), (guest, "their own")):
        if reader is not None:
            with running(world.front_desk, now, account=customer, sender=reader) as turn:
                yield f"  {_listing(toolset_for(turn), name)}, for {reader}, who may open {what}"
    with running(world.front_desk, now, account=customer, sender=world.innkeeper) as turn:
        yield from _by_id(toolset_for(turn), foreign)


def without_the_right(world: World, now: datetime, model: Model | str) -> Iterator[str]:
    """The same schedule, run after its owner lost `sessions:read`."""
    yield from heading(
        "6. Refused: everything, to a schedule whose owner lost the right",
        f"{world.innkeeper} has just lost sessions:read. The same schedule, run again, replies:",
    )
    revoke(world, world.innkeeper, Permission.READ_SESSIONS)
    turn, reply = run_schedule(world.schedule, model=model, now=now)
    grant(world, world.innkeeper, Permission.READ_SESSIONS)
    yield from (f"  {line}" for line in reply.splitlines())
    expect_nothing_read(turn)
    yield totals(turn)


def switched_off(world: World, now: datetime, model: Model | str) -> Iterator[str]:
    """A turn that was offered the tools calls them after the operator switched history off."""
    yield from heading(
        "7. Refused: any call, once the operator holds the setting at none",
        "What a turn was offered counts for nothing: each call is checked when it runs.",
    )
    with running(world.digest, now, trigger=world.schedule) as turn:
        toolset = toolset_for(turn)
        yield f"A turn is offered {' and '.join(toolset.names)}. Then the operator acts:"
        hold_at(world, "none", why="Switched off while an incident is looked into.")
        yield f"  {resolve('history_access', world.digest)}"
        yield "The turn calls list_conversations anyway:"
        yield f"  {_refused(toolset.call('list_conversations', {}))}"
        expect_nothing_read(turn)
        yield totals(turn)
    _, reply = run_schedule(world.schedule, model=model, now=now)
    yield "The next run is offered no tool, and replies:"
    yield from (f"  {line}" for line in reply.splitlines())


@contextmanager
def running(agent: Agent, now: datetime, *, account: Account | None = None, **reader: Any) -> Iterator[Turn]:
    """A turn in a new conversation, with a `sender` or a `trigger`; it ends with the block."""
    session = services.open_session(agent, account=account, person=reader.get("sender"), started_at=now)
    turn = services.start_turn(session, at=now, **reader)
    try:
        yield turn
    finally:
        services.end_turn(turn, at=now)


def _busiest_account(agent: Agent) -> Account | None:
    """The account with most of an agent's conversations; None where none has an account."""
    accounts = Account.objects.filter(session__agent=agent).annotate(count=Count("session"))
    return accounts.order_by("-count", "name").first()


def _busiest_guest(agent: Agent, account: Account | None) -> Any:
    """The person with most of an agent's conversations for an account; None where none has a person."""
    people = get_user_model().objects.filter(session__agent=agent, session__account=account)
    return people.annotate(count=Count("session")).order_by("-count", "username").first()


def _listing(toolset: Toolset, account: str) -> str:
    """How many conversations the tools list, over all pages; a NotShownError where one is not `account`'s."""
    names, arguments = [], {"limit": 50}
    while arguments:
        page = toolset.call("list_conversations", arguments)
        expect(page["kind"] == "conversation_list", f"a list was refused with {page.get('error')}")
        names += [account_label(one["quoted"]["account"]) for one in page["conversations"]]
        arguments = {**arguments, "cursor": page["next_cursor"]} if page["next_cursor"] else {}
    foreign = sorted(set(names) - {account})
    expect(not foreign, f"a turn of {account} was shown conversations of {' and '.join(foreign)}")
    return f"{len(names):3,} of {account if names else 'nobody'}"


def _by_id(toolset: Toolset, foreign: Session | None) -> Iterator[str]:
    """What comes of the id of another customer's conversation, and of one that nobody has."""
    if foreign is None:
        return
    answer = toolset.call("read_conversation", {"conversation_id": str(foreign.pk)})
    yield "The id of one with another customer:"
    yield f"  {_refused(answer)}"
    same = answer == toolset.call("read_conversation", {"conversation_id": _NOBODYS})
    expect(same, "an id that nobody has got another answer than one with another customer")
    yield "An id that nobody has: the same answer, to the letter."


def _refused(result: dict[str, Any]) -> str:
    """An error as its code and sentence; a NotShownError for anything else."""
    expect(result["kind"] == "error", f"a call that is refused returned a {result['kind']}")
    return f"{result['error']['code']}: {result['error']['message']}"
