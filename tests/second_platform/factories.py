"""What the contract suite needs of the help desk: its rows, written as the desk writes them."""

import itertools
from datetime import datetime
from typing import Any

from django.db.models import F, Max
from django.db.models.functions import Coalesce, Greatest

from history_access.testing import Part, PlatformFactories
from tests.second_platform.desk import ROLES
from tests.second_platform.desk import text as words
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

ROLE_FOR = {
    "sessions:read": "lead",
    "settings:write": "head",
    "reads:audit": "auditor",
    "runs:read": "agent",
}
_KEYS = itertools.count(100)


class DeskFactories(PlatformFactories):
    """Rights are roles in teams; nothing keeps counts and times but the desk's own code, which is this."""

    lacks = {
        Part.ERASURE: "The desk removes whole threads.",
        Part.FIXED_SESSIONS: "Tables that were there before; the desk's code moves no thread.",
    }

    brought_along = {
        "sessions:read": frozenset({"runs:read"}),
        "settings:write": frozenset({"runs:read"}),
    }

    def workspace(self, time_zone: str) -> Firm:
        self.roles()
        return Firm.objects.create(firm_no=next(_KEYS), label="A firm", zone=time_zone)

    def roles(self) -> None:
        for role, rights in ROLES.items():
            if not RoleRight.objects.filter(role=role).exists():
                for right in rights:
                    RoleRight.objects.create(right_no=next(_KEYS), role=role, name=right)

    def agent(self, workspace: Firm) -> Bot:
        return Bot.objects.create(bot_no=next(_KEYS), workspace=workspace, nick="Otter")

    def account(self, workspace: Firm, name: str) -> Client:
        return Client.objects.create(client_no=next(_KEYS), firm=workspace, label=name)

    def person(self) -> Staff:
        key = next(_KEYS)
        given = {"login": f"staff-{key}", "full_name": "Somebody", "password": "!", "state": "here"}
        return Staff.objects.create(staff_no=key, **given)

    def deactivate(self, person: Staff) -> None:
        Staff.objects.filter(pk=person.pk).update(state="left")

    def grant(self, person: Staff, permission: str, workspace: Firm, agent: Bot | None = None) -> None:
        team = Team.objects.create(team_no=next(_KEYS), firm=workspace, bot=agent)
        Member.objects.create(member_no=next(_KEYS), team=team, staff=person, role=ROLE_FOR[permission])

    def revoke(self, person: Staff, permission: str, workspace: Firm, agent: Bot | None = None) -> None:
        rows = Member.objects.filter(staff=person, team__firm=workspace, team__bot=agent)
        rows.filter(role=ROLE_FOR[permission]).delete()

    def session(
        self, agent: Bot, *, account: Client | None, person: Staff | None, title: str, at: datetime
    ) -> Thread:
        return Thread.objects.create(
            thread_no=next(_KEYS),
            workspace=agent.workspace,
            agent=agent,
            account=account,
            person=person,
            title=title,
            started_at=at,
            last_moved_at=at,
        )

    def say(self, session: Thread, speaker: str, text: str, *, at: datetime) -> None:
        self.enter(session, {"person": "user", "agent": "assistant"}[speaker], [words(text)], at)
        Thread.objects.filter(pk=session.pk).update(message_count=F("message_count") + 1)

    def say_unseen(self, session: Thread, text: str, *, at: datetime) -> None:
        for kind in ("system", "tool", "note"):
            self.enter(session, kind, [words(text)], at)
        self.enter(session, "assistant", [words(text)], at, internal=True)

    def say_calling(self, session: Thread, text: str, tool: str, argument: str, *, at: datetime) -> None:
        call = {"type": "call", "name": tool, "arguments": {"type": "text", "text": argument}}
        self.enter(session, "assistant", [words(text), call], at)
        Thread.objects.filter(pk=session.pk).update(message_count=F("message_count") + 1)

    def enter(self, thread: Thread, kind: str, parts: list[Any], at: datetime, **flags: Any) -> None:
        kept = Entry.objects.filter(session_id=thread.pk)
        last = kept.aggregate(last=Coalesce(Max("number"), 0))["last"]
        Entry.objects.create(
            entry_no=next(_KEYS),
            session_id=thread.pk,
            workspace_id=thread.workspace_id,
            number=last + 1,
            role=kind,
            parts=parts,
            flags=flags,
            created_at=at,
        )
        Thread.objects.filter(pk=thread.pk).update(last_moved_at=Greatest(F("last_moved_at"), at))

    def delete_session(self, session: Thread) -> None:
        Thread.objects.filter(pk=session.pk).update(status="deleted")

    def turn(self, session: Thread, *, sender: Staff | None = None, trigger: Rule | None = None) -> Run:
        return Run.objects.create(
            run_no=next(_KEYS),
            workspace=session.workspace,
            session=session,
            sender=sender,
            trigger=trigger,
            started_at=session.started_at,
        )

    def end_turn(self, turn: Run) -> None:
        Run.objects.filter(pk=turn.pk).update(state="done")

    def trigger(self, agent: Bot, owner: Staff, *, hooked: bool = False) -> Rule:
        return Rule.objects.create(
            rule_no=next(_KEYS), agent=agent, label="Every morning", hooked=hooked, owner=owner
        )

    def webhook(self, agent: Bot, owner: Staff) -> Rule:
        return self.trigger(agent, owner, hooked=True)

    def edit_trigger(self, trigger: Rule, by: Staff) -> None:
        Rule.objects.filter(pk=trigger.pk).update(label="Every evening", owner=by)

    def disown_trigger(self, trigger: Rule) -> None:
        Rule.objects.filter(pk=trigger.pk).update(owner=None)

    def summarize(self, session: Thread, text: str, through: int) -> None:
        Thread.objects.filter(pk=session.pk).update(summary=text, summary_through=through)

    def trim(self, session: Thread, before: int) -> None:
        Entry.objects.filter(session_id=session.pk, number__lt=before).delete()
        left = Entry.objects.filter(Entry.readable(), session_id=session.pk).count()
        Thread.objects.filter(pk=session.pk).update(trimmed_before=before, message_count=left)


class PlainFactories(DeskFactories):
    """The same over views: no clients, no digests, no rules."""

    lacks = {
        **DeskFactories.lacks,
        Part.ACCOUNTS: "The desk serves whoever writes.",
        Part.TRIGGERS: "Nothing starts a bot by itself.",
        Part.WEBHOOKS: "Nothing starts a bot by itself.",
        Part.SUMMARIES: "Threads are short.",
        Part.TRIMMING: "Entries are kept.",
    }
