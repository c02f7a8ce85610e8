"""Every reach rule at once: setting × account × person × turn × session, against a written expectation.

reach-agent, reach-account-exact, reach-person, reach-trigger-owner, reach-not-self, reach-not-deleted: the
list, a read of each session, the door and the explanation must agree in every cell.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from history_access import door
from history_access.agent_platform import services
from history_access.agent_platform.models import Account, Agent, Authority, Session, Turn, Workspace
from history_access.reach import reach_of
from history_access.tools import Toolset
from tests.worlds import NOON, World

SETTINGS = ["none", "same_account", "all_accounts"]
PEOPLE = ["own", "granted here", "granted everywhere", "granted elsewhere", "nothing", "inactive"]
TURNS = ["sender", "schedule", "webhook", "no owner"]
SESSIONS = ["live", "deleted", "other agent", "other workspace"]
ACCOUNTS = ["Acme", "Brightside", None]


@dataclass(frozen=True)
class Cell:
    """One session, by what the rules ask of it."""

    session: Session
    kind: str
    account: str | None
    whose: str


def expected(setting: str, person: str, turn: str, turn_account: str | None, cell: Cell) -> bool:
    """The rules in plain words: may this turn read that session?"""
    if setting == "none":
        return False
    if turn == "no owner":
        return False
    if person == "inactive":
        return False
    if cell.kind != "live":
        return False
    if setting == "same_account" and cell.account != turn_account:
        return False
    if person in ("granted here", "granted everywhere"):
        return True
    return cell.whose == "reader"


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("turn", TURNS)
def test_reach_in_every_cell(world: World, person: str, turn: str) -> None:
    reader = make_reader(world, person)
    cells = make_cells(world, reader)
    running = {account: start(world, turn, reader, account) for account in ("Acme", None)}
    whose = "reader" if turn == "sender" else "nobody"
    own = {account: Cell(one.session, "live", account, whose) for account, one in running.items()}
    for setting in SETTINGS:
        world.allow(setting)
        for account, one in running.items():
            others = [*cells, *(cell for cell in own.values() if cell.session != one.session)]
            wanted = {c.session.pk for c in others if expected(setting, person, turn, account, c)}
            assert listed(one) == wanted
            check_each(one, account, [*others, own[account]], wanted)


def check_each(running: Turn, account: str | None, cells: list[Cell], wanted: set[Any]) -> None:
    """The door's own query over all sessions, and a read and the explanation of each, say the same."""
    reach = reach_of(running)
    assert set(reach.sessions().values_list("pk", flat=True)) == wanted
    for cell in telling(cells, account, closed=bool(reach.closed_because)):
        found = cell.session.pk in wanted
        read = Toolset(running.pk, ()).call("read_conversation", {"conversation_id": str(cell.session.pk)})
        assert (read["kind"] == "quoted_conversation") is found, (cell, read)
        assert (reach.explain(cell.session) == []) is found, (cell, reach.explain(cell.session))


def telling(cells: list[Cell], account: str | None, *, closed: bool) -> list[Cell]:
    """The sessions that are worth a read each: the live ones, and those that only their kind keeps out.

    A closed reach is so before any session is looked for: there one of each kind stands for all.
    """
    told = [cell for cell in cells if cell.kind == "live" or cell.account == account]
    return list({cell.kind: cell for cell in told}.values()) if closed else told


def listed(running: Turn) -> set[Any]:
    """The listed sessions, by the tool and by the door, which must be the same."""
    result = Toolset(running.pk, ()).call("list_conversations", {"limit": 50})
    by_tool = {one["id"] for one in result.get("conversations", ())}
    by_door = {row.id for row in door.newest(reach_of(running), door.Span(), after=None, most=50)}
    assert by_tool == {str(key) for key in by_door}
    return by_door


def make_reader(world: World, kind: str) -> Any:
    reader = world.person("reader", is_active=kind != "inactive")
    other_agent = Agent.objects.create(workspace=world.hollowbrook, name="Other")
    elsewhere = Workspace.objects.create(name="Elsewhere")
    if kind == "granted here":
        world.grant(reader, agent=world.agent)
    if kind in ("granted everywhere", "inactive"):
        world.grant(reader)
    if kind == "granted elsewhere":
        world.grant(reader, agent=other_agent)
        Authority.objects.create(workspace=elsewhere, person=reader, permission="sessions:read")
        world.grant(reader, "reads:audit")
    return reader


def make_cells(world: World, reader: Any) -> list[Cell]:
    """A session of each kind, account and person; "nobody" is a session that has no person."""
    people = {"reader": reader, "somebody else": world.mara, "nobody": None}
    accounts = {account: make_account(world.hollowbrook, account) for account in ACCOUNTS}
    foreign = {
        account: make_account(Workspace.objects.get(name="Elsewhere"), account) for account in ACCOUNTS
    }
    agents = {
        "live": (world.agent, accounts),
        "deleted": (world.agent, accounts),
        "other agent": (Agent.objects.get(name="Other"), accounts),
        "other workspace": (Agent.objects.create(workspace=foreign_workspace(), name="Digest"), foreign),
    }
    cells = []
    for kind in SESSIONS:
        agent, named = agents[kind]
        for account in ACCOUNTS:
            for whose in people if kind == "live" else ("reader",):
                session = services.open_session(
                    agent, account=named[account], person=people[whose], title=kind, started_at=NOON
                )
                services.add_message(session, "person", "words", at=NOON)
                if kind == "deleted":
                    services.delete_session(session)
                cells.append(Cell(session, kind, account, whose))
    return cells


def foreign_workspace() -> Workspace:
    return Workspace.objects.get(name="Elsewhere")


def make_account(workspace: Workspace, name: str | None) -> Account | None:
    return None if name is None else Account.objects.get_or_create(workspace=workspace, name=name)[0]


def start(world: World, kind: str, reader: Any, account: str | None) -> Turn:
    given = {"account": make_account(world.hollowbrook, account)}
    if kind == "sender":
        return world.turn(reader, **given)
    trigger = services.create_trigger(
        world.agent,
        kind="webhook" if kind == "webhook" else "schedule",
        name=kind,
        by=None if kind == "no owner" else reader,
    )
    return world.turn(trigger=trigger, **given)
