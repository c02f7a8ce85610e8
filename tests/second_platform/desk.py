"""A small help desk: two firms, their bots, clients and people, and threads with entries in parts."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from history_access.tools import toolset_for
from settings_catalog import changes
from tests.second_platform.models import (
    Bot,
    Client,
    Entry,
    Firm,
    Member,
    RoleRight,
    Rule,
    Run,
    Staff,
    Team,
    Thread,
)

NOON = datetime(2026, 11, 29, 11, 0, tzinfo=UTC)
"""Sunday noon in Oslo."""

ROLES = {
    "agent": ["answer"],
    "lead": ["answer", "see every thread"],
    "head": ["set up bots", "answer"],
    "auditor": ["audit"],
    "owner": ["settings_catalog.change_platform_settings", "history_access.audit_reads"],
}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


class Desk:
    """Fjord & Co. with the bot Otter, two clients, its head Ingrid and Nils, who answers."""

    def __init__(self) -> None:
        self.keys = count(7)
        for role, rights in ROLES.items():
            for right in rights:
                RoleRight.objects.create(right_no=self.key(), role=role, name=right)
        self.firm = Firm.objects.create(firm_no=self.key(), label="Fjord & Co.", zone="Europe/Oslo")
        self.otter = self.bot("Otter")
        self.ferry = Client.objects.create(client_no=self.key(), firm=self.firm, label="The ferry")
        self.mill = Client.objects.create(client_no=self.key(), firm=self.firm, label="The mill")
        self.everywhere = Team.objects.create(team_no=self.key())
        self.team = Team.objects.create(team_no=self.key(), firm=self.firm)
        self.ingrid = self.staff("ingrid", "head")
        self.member(self.ingrid, self.everywhere, "owner")
        self.nils = self.staff("nils", "agent")

    def key(self) -> int:
        return next(self.keys)

    def bot(self, nick: str, firm: Firm | None = None) -> Bot:
        return Bot.objects.create(bot_no=self.key(), workspace=firm or self.firm, nick=nick)

    def staff(self, login: str, role: str | None = None, team: Team | None = None) -> Staff:
        person = Staff.objects.create(
            staff_no=self.key(), login=login, full_name=f"{login.title()} Berg", password="!", state="here"
        )
        if role:
            self.member(person, team or self.team, role)
        return person

    def member(self, person: Staff, team: Team, role: str) -> Member:
        return Member.objects.create(member_no=self.key(), staff=person, team=team, role=role)

    def thread(self, *entries: Any, bot: Bot | None = None, at: datetime = NOON, **given: Any) -> Thread:
        """A thread in which person and bot take turns: each entry a text, or a list of parts."""
        bot = bot or self.otter
        given = {"moved": at, "title": "A thread", **given}
        thread = Thread.objects.create(
            thread_no=self.key(),
            workspace=bot.workspace,
            agent=bot,
            started_at=at,
            last_moved_at=given.pop("moved"),
            message_count=len(entries),
            **given,
        )
        for place, entry in enumerate(entries, start=1):
            self.entry(thread, place, entry, "user" if place % 2 else "assistant")
        return thread

    def entry(self, thread: Thread, place: int, entry: Any, kind: str, **flags: Any) -> Entry:
        return Entry.objects.create(
            entry_no=self.key(),
            session=thread,
            workspace=thread.workspace,
            number=place,
            role=kind,
            parts=[text(entry)] if isinstance(entry, str) else entry,
            flags=flags,
            created_at=NOON + timedelta(minutes=place),
        )

    def rule(self, owner: Staff | None, **given: Any) -> Rule:
        given = {"hooked": False, "label": "Every morning", "agent": self.otter, **given}
        return Rule.objects.create(rule_no=self.key(), owner=owner, **given)

    def run(self, sender: Staff | None = None, trigger: Rule | None = None, **given: Any) -> Run:
        """A run in a thread of its own."""
        thread = self.thread("now?", person=sender, **given)
        return Run.objects.create(
            run_no=self.key(),
            workspace=thread.workspace,
            session=thread,
            sender=sender,
            trigger=trigger,
            started_at=NOON,
        )

    def allow(self, value: str = "all_accounts", key: str = "history_access", bot: Bot | None = None) -> None:
        most = {"history_access": "all_accounts", "conversation_references": "conversations"}[key]
        changes.set_value(key, platform=True, ceiling=most, by=self.ingrid, why="a test")
        changes.set_value(key, agent=bot or self.otter, value=value, by=self.ingrid, why="a test")

    def tools(self, sender: Staff | None = None, **given: Any) -> Any:
        return toolset_for(self.run(sender, **given))
