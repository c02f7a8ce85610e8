"""The rules of reach: which sessions a turn may read, by what the platform's tables and authority say."""

from typing import Any

from django.db import DatabaseError, connections, transaction
from django.test.utils import CaptureQueriesContext

from history_access.authority import READ_SESSIONS
from history_access.models.platform import primary, session_model
from history_access.reach import reach_of
from history_access.testing.contract.case import ContractCase
from history_access.testing.contract.failures import rule
from history_access.testing.platform import Part, Refused
from history_access.tools import toolset_for
from settings_catalog.keys import key_text

LOOK_ALIKES = ("1", "01", "1.0", "1 ", "a", "A", "á", "None", "null", "")


class ReachRules(ContractCase):
    """Which sessions: agent, account, person, deletion, and the turn's own."""

    @rule("reach-agent")
    def test_reach_agent(self) -> None:
        beside = self.platform.agent(self.workspace)
        elsewhere = self.platform.workspace("UTC")
        foreign = self.platform.agent(elsewhere)
        for workspace in (self.workspace, elsewhere):
            self.platform.grant(self.reader, READ_SESSIONS, workspace)
        self.check_reach(
            "a turn reads its own agent's conversations alone, also of somebody who may open the others",
            self.turn(self.reader),
            may=[self.session("here", person=self.reader)],
            may_not=[
                self.session("with another agent", person=self.reader, agent=beside),
                self.session("in another workspace", person=self.reader, agent=foreign),
            ],
        )

    @rule("reach-account-exact", Part.ACCOUNTS)
    def test_reach_account_exact(self) -> None:
        self.allow("same_account")
        accounts = [None, *(self.platform.account(self.workspace, name) for name in ("Acme", "Brightside"))]
        sessions = [self.session(f"of {one}", person=self.reader, account=one) for one in accounts]
        for place, account in enumerate(accounts[:2]):
            self.check_reach(
                "under same_account a turn reads the conversations of its own account alone, and without one "
                "those without one",
                self.turn(self.reader, account=account),
                may=[sessions[place]],
                may_not=sessions[:place] + sessions[place + 1 :],
            )

    @rule("reach-account-exact", Part.ACCOUNTS)
    def test_reach_account_exact_among_look_alikes(self) -> None:
        """By the list alone: what is listed is what is read, as the others show."""
        self.allow("same_account")
        names = [*LOOK_ALIKES] if self.platform.account_names_are_unique else [*LOOK_ALIKES, "1", "a"]
        accounts = [None, *(self.platform.account(self.workspace, name) for name in names)]
        titles = ["without one", *(f"of {name!r}, number {place}" for place, name in enumerate(names))]
        sessions = [
            self.session(title, person=self.reader, account=account)
            for title, account in zip(titles, accounts, strict=True)
        ]
        for place in (0, 1, names.index("a") + 1):
            turn = self.turn(self.reader, account=accounts[place])
            came = reach_of(turn).sessions().filter(pk__in=[one.pk for one in sessions])
            self.check(
                "accounts are equal to the letter, and names are no keys",
                turn=turn,
                session=sessions[place],
                expected=[titles[place]],
                came=list(came.values_list("title", flat=True)),
            )

    @rule("reach-account-exact", Part.ACCOUNTS)
    def test_reach_account_exact_and_every_account_where_it_is_allowed(self) -> None:
        accounts = [None, *(self.platform.account(self.workspace, name) for name in ("Acme", "Brightside"))]
        self.check_reach(
            "under all_accounts a turn reads conversations of every account, and of none",
            self.turn(self.reader, account=accounts[1]),
            may=[self.session(f"of {one}", person=self.reader, account=one) for one in accounts],
        )

    @rule("reach-person")
    def test_reach_person_reads_their_own(self) -> None:
        self.check_reach(
            "without sessions:read a turn reads its reader's own conversations; nobody's are other people's",
            self.turn(self.reader),
            may=[self.session("own", person=self.reader)],
            may_not=[self.session("theirs", person=self.other), self.session("nobody's", person=None)],
        )

    @rule("reach-person")
    def test_reach_person_reads_other_people_s_with_the_right(self) -> None:
        self.platform.grant(self.reader, READ_SESSIONS, self.workspace)
        self.check_reach(
            "with sessions:read for the workspace a turn reads everybody's conversations",
            self.turn(self.reader),
            may=[
                self.session("own", person=self.reader),
                self.session("theirs", person=self.other),
                self.session("nobody's", person=None),
            ],
        )

    @rule("reach-person")
    def test_reach_person_by_no_right_elsewhere(self) -> None:
        self.platform.grant(self.reader, READ_SESSIONS, self.platform.workspace("UTC"))
        self.platform.grant(self.other, READ_SESSIONS, self.workspace)
        self.check_reach(
            "sessions:read in another workspace, or another person's, opens nothing here",
            self.turn(self.reader),
            may_not=[self.session("theirs", person=self.other)],
        )

    @rule("reach-person", Part.AGENT_RIGHTS)
    def test_reach_person_by_a_right_for_one_agent(self) -> None:
        beside = self.platform.agent(self.workspace)
        self.platform.grant(self.reader, READ_SESSIONS, self.workspace, self.agent)
        self.check_reach(
            "sessions:read for one agent opens that agent's conversations",
            self.turn(self.reader),
            may=[self.session("theirs", person=self.other)],
        )
        self.check_reach(
            "sessions:read for one agent opens no other agent's conversations",
            self.turn(self.reader, agent=beside),
            may_not=[self.session("theirs", person=self.other, agent=beside)],
        )

    @rule("reach-person")
    def test_reach_person_who_is_not_active_reads_nothing(self) -> None:
        self.platform.grant(self.reader, READ_SESSIONS, self.workspace)
        turn = self.turn(self.reader)
        self.platform.deactivate(self.reader)
        self.check_reach(
            "a person who is not active reads nothing, not even their own",
            turn,
            may_not=[self.session("own", person=self.reader), self.session("theirs", person=self.other)],
        )

    @rule("reach-person")
    def test_reach_person_nobody_reads_nothing(self) -> None:
        try:
            turn = self.turn()
        except Refused:
            return  # as it may
        self.check_reach(
            "a turn with neither a sender nor a trigger reads nothing",
            turn,
            may_not=[self.session("nobody's", person=None), self.session("theirs", person=self.other)],
        )

    @rule("reach-not-deleted")
    def test_reach_not_deleted(self) -> None:
        turn, kept = self.turn(self.reader), self.session("kept", person=self.reader)
        gone = self.session("deleted", person=self.reader)
        toolset = toolset_for(turn)
        self.check_reach("what is there is read", turn, toolset=toolset, may=[kept, gone])
        self.platform.delete_session(gone)
        self.check_reach(
            "a deleted conversation is gone at once", turn, toolset=toolset, may=[kept], may_not=[gone]
        )

    @rule("reach-not-self")
    def test_reach_not_self(self) -> None:
        itself = self.session("itself", person=self.reader)
        self.check_reach(
            "a turn never reads the conversation that it is part of",
            self.platform.turn(itself, sender=self.reader),
            may_not=[itself],
        )

    @rule("reach-live-turn")
    def test_reach_live_turn_ends(self) -> None:
        turn, own = self.turn(self.reader), self.session("own", person=self.reader)
        toolset = toolset_for(turn)
        self.platform.end_turn(turn)
        self.check_reach("a turn that has ended reads nothing", turn, toolset=toolset, may_not=[own])

    @rule("reach-live-turn")
    def test_reach_live_turn_goes_with_its_conversation(self) -> None:
        itself, own = self.session("itself", person=self.reader), self.session("own", person=self.reader)
        turn = self.platform.turn(itself, sender=self.reader)
        toolset = toolset_for(turn)
        self.platform.delete_session(itself)
        self.check_reach(
            "a turn in a conversation that was deleted reads nothing", turn, toolset=toolset, may_not=[own]
        )

    @rule("reach-fixed-session", Part.FIXED_SESSIONS)
    def test_reach_fixed_session(self) -> None:
        session = self.session("own", person=self.reader)
        foreign = self.platform.workspace("UTC")
        moves = {"agent_id": self.platform.agent(self.workspace).pk, "workspace_id": foreign.pk}
        if Part.ACCOUNTS not in self.platform.lacks:
            moves["account_id"] = self.platform.account(self.workspace, "Acme").pk
        model: Any = session_model()
        for column, key in moves.items():
            try:
                with transaction.atomic(using=primary()):
                    model._base_manager.using(primary()).filter(pk=session.pk).update(**{column: key})
            except DatabaseError:
                continue
            raise self.broken(f"the tables refuse another {column}", session=session)

    @rule("reach-same-answer")
    def test_reach_same_answer(self) -> None:
        """In bytes and in the number of statements; a turn for each, since refusals are counted by turn."""
        self.allow("same_account")
        beside, elsewhere = self.platform.agent(self.workspace), self.platform.workspace("UTC")
        deleted = self.session("deleted", person=self.reader)
        self.platform.delete_session(deleted)
        asked = {
            "deleted": key_text(deleted.pk),
            "another person's": key_text(self.session("theirs", person=self.other).pk),
            "another agent's": key_text(self.session("a", person=self.reader, agent=beside).pk),
            "another workspace's": key_text(
                self.session("a", person=self.reader, agent=self.platform.agent(elsewhere)).pk
            ),
            "no key at all": "no-key",
        }
        if Part.ACCOUNTS not in self.platform.lacks:
            account = self.platform.account(self.workspace, "Acme")
            asked["another account's"] = key_text(self.session("a", person=self.reader, account=account).pk)
        unknown = [self._answer(self.platform.unknown_key()) for _ in range(2)][
            1
        ]  # the first may fill caches
        for name, key in asked.items():
            self.check(
                f"a conversation that is {name} answers as one that does not exist",
                key=key,
                expected=unknown,
                came=self._answer(key),
            )

    def _answer(self, key: str) -> list[str]:
        toolset = toolset_for(self.turn(self.reader))
        with CaptureQueriesContext(connections[primary()]) as statements:
            text = toolset.call_text("read_conversation", {"conversation_id": key})
        return [text, f"{len(statements)} statements"]

    @rule("reach-one-door")
    def test_reach_one_door(self) -> None:
        """Whatever is in reach: the list, the query, each read and the explanation say the same of it."""
        beside = self.platform.agent(self.workspace)
        some = [self.session("deleted", person=self.reader)]
        some += [self.session("a", person=person) for person in (self.reader, self.other, None)]
        some += [self.session("with another agent", person=self.other, agent=beside)]
        self.platform.delete_session(some[0])
        self.platform.grant(self.other, READ_SESSIONS, self.workspace)
        for sender in (self.reader, self.other):
            turn = self.turn(sender)
            found = set(reach_of(turn).sessions().values_list("pk", flat=True))
            self.check_reach(
                "the list, a read, the query and the explanation agree",
                turn,
                may=[one for one in some if one.pk in found],
                may_not=[one for one in some if one.pk not in found],
            )
