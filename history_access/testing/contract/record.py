"""The rules of the record, as far as they rest on a platform's keys and triggers."""

from typing import Any

from history_access.authority import READ_SESSIONS
from history_access.models import TurnConversationRead
from history_access.models.platform import primary
from history_access.record import conversations_drawn_on, drawn_on, turns_drawing_on
from history_access.testing.contract.case import ContractCase
from history_access.testing.contract.failures import rule
from history_access.testing.platform import Part
from history_access.tools import toolset_for
from settings_catalog.keys import key_text, optional_key_text


class RecordRules(ContractCase):
    """What is recorded of what a turn was given."""

    def _two_accounts(self) -> list[Any]:
        """Two accounts, or twice none; the reader may read everybody's conversations."""
        self.platform.grant(self.reader, READ_SESSIONS, self.workspace)
        if Part.ACCOUNTS in self.platform.lacks:
            return [None, None]
        return [self.platform.account(self.workspace, name) for name in ("Acme", "Brightside")]

    def _rows(self, turn: Any, *columns: str) -> list[tuple[Any, ...]]:
        rows = TurnConversationRead.objects.using(primary()).filter(turn_id=key_text(turn.pk))
        return list(rows.order_by("id").values_list(*columns))

    @rule("record-every-read")
    def test_record_every_read(self) -> None:
        account, another = self._two_accounts()
        session = self.session("A room", "One.", "Two.", person=self.other, account=account)
        turn = self.turn(self.reader, account=another)
        toolset = toolset_for(turn)
        given = {one["id"] for one in self.listed(toolset)}
        numbers = [one["number"] for one in self.read(toolset, session)["messages"]]
        came = self._rows(turn, "session_id", "what", "first_number", "last_number", "characters")
        self.check(
            "each title that was listed and each page that was read is on record, and nothing else",
            turn=turn,
            expected=({*given}, [(key_text(session.pk), "messages", *numbers, len("One.Two."))]),
            came=({row[0] for row in came[:-1] if row[1] == "title"}, came[-1:]),
        )

    @rule("record-every-read")
    def test_record_every_read_by_the_platform_s_keys(self) -> None:
        account, another = self._two_accounts()
        session = self.session("A room", person=self.other, account=account)
        turn = self.turn(self.reader, account=another)
        self.read(toolset_for(turn), session)
        columns = ("workspace_id", "agent_id", "reader_id", "turn_account_id", "session_account_id")
        accounts = [one and one.pk for one in (another, account)]
        keys = [self.workspace.pk, self.agent.pk, self.reader.pk, *accounts, self.other.pk, None]
        self.check(
            "a read is recorded under the keys of its workspace, agent, reader, accounts, person and trigger",
            turn=turn,
            session=session,
            expected=[tuple(map(optional_key_text, keys))],
            came=self._rows(turn, *columns, "session_person_id", "trigger_id"),
        )

    @rule("record-every-read", Part.TRIGGERS)
    def test_record_every_read_of_a_trigger(self) -> None:
        session = self.session("A room", person=self.reader)
        trigger = self.platform.trigger(self.agent, self.reader)
        turn = self.turn(trigger=trigger)
        self.read(toolset_for(turn), session)
        self.check(
            "a triggered turn's read is recorded with its trigger, under the owner that it read as",
            turn=turn,
            expected=[(key_text(self.reader.pk), key_text(trigger.pk))],
            came=self._rows(turn, "reader_id", "trigger_id"),
        )

    @rule("record-both-ways")
    def test_record_both_ways_when_the_rest_is_gone(self) -> None:
        session = self.session("A room", person=self.reader)
        turn = self.turn(self.reader)
        self.read(toolset_for(turn), session)
        self.platform.end_turn(turn)
        self.platform.delete_session(session)
        self.check(
            "the record tells what a turn drew on and which turns drew on a conversation, by their keys",
            expected=([key_text(session.pk)], [key_text(turn.pk)]),
            came=(
                [row["session_id"] for row in conversations_drawn_on(turn.pk)],
                [row["turn_id"] for row in turns_drawing_on(session.pk)],
            ),
        )

    @rule("record-label")
    def test_record_label(self) -> None:
        account, another = self._two_accounts()
        own = self.session("own", person=self.reader, account=account)
        theirs = self.session("theirs", person=self.other, account=another)
        turn = self.turn(self.reader, account=account)
        toolset = toolset_for(turn)
        seen = []
        for session in (None, own, theirs):
            if session is not None:
                self.read(toolset, session)
            label = drawn_on(turn)
            seen.append((set(label.accounts), set(label.people), label.other_account, label.other_person))
        accounts = [one and key_text(one.pk) for one in (account, another)]
        people = [key_text(one.pk) for one in (self.reader, self.other)]
        self.check(
            "a turn's label names the accounts and people that it drew on, and whether any was not its own",
            turn=turn,
            expected=[
                (set(), set(), False, False),
                ({accounts[0]}, {people[0]}, False, False),
                ({*accounts}, {*people}, account is not None, True),
            ],
            came=seen,
        )

    @rule("record-label", Part.WEBHOOKS)
    def test_record_label_of_a_webhook(self) -> None:
        hook = self.platform.webhook(self.agent, self.reader)
        hooked, plain = self.turn(trigger=hook), self.turn(self.reader)
        drawing = self.turn(self.reader)
        self.check(
            "a label tells that a webhook started the turn",
            turn=hooked,
            expected=(True, False, False),
            came=tuple(drawn_on(one).webhook for one in (hooked, plain, drawing)),
        )
        heard = self.session("heard", person=self.reader)
        self.platform.turn(heard, trigger=hook)
        self.read(toolset_for(drawing), heard)
        self.check(
            "a label tells that a webhook started a turn of a conversation that was drawn on",
            turn=drawing,
            session=heard,
            expected=True,
            came=drawn_on(drawing).webhook,
        )
