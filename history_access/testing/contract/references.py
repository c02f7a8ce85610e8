"""The rules of references, as far as they rest on a platform's authority and tables."""

from typing import Any

from history_access.authority import RUN_READS
from history_access.entries import CONVERSATION_REFERENCES
from history_access.references import (
    ReferencesError,
    attach_excerpt,
    bind_references,
    desk_in,
    offerable_conversations,
    references_block,
)
from history_access.testing.contract.case import ContractCase
from history_access.testing.contract.failures import rule
from history_access.testing.platform import Part
from history_access.tools import toolset_for
from settings_catalog.keys import key_text


class ReferenceRules(ContractCase):
    """What a person hands to a turn while history access is off."""

    def _allow_references(self) -> None:
        self.allow("conversations", CONVERSATION_REFERENCES.key)
        self.allow("none")
        self.platform.grant(self.reader, RUN_READS, self.workspace)

    def _bind(self, turn: Any, session: Any) -> str:
        """What became of handing a conversation over: "bound", or the code of the refusal."""
        try:
            bind_references(turn, [key_text(session.pk)])
        except ReferencesError as error:
            return error.code
        return "bound"

    def _reads(self, turn: Any, session: Any) -> bool:
        asked = {"conversation_id": key_text(session.pk)}
        return bool(toolset_for(turn).call("read_conversation", asked)["kind"] != "error")

    @rule("refs-per-turn")
    def test_refs_per_turn(self) -> None:
        self._allow_references()
        handed, beside = (self.session(name, person=self.reader) for name in ("handed over", "beside"))
        now = self.session("now", person=self.reader)
        turn, another = (self.platform.turn(now, sender=self.reader) for _ in range(2))
        self._bind(turn, handed)
        seen = [self._reads(turn, handed), self._reads(turn, beside), self._reads(another, handed)]
        self.platform.end_turn(turn)
        self.check(
            "a turn reads what was handed to it alone, no other turn does, and it ends with the turn",
            turn=turn,
            session=handed,
            expected=[True, False, False, False],
            came=[*seen, self._reads(turn, handed)],
        )

    @rule("refs-within-reach")
    def test_refs_within_reach(self) -> None:
        self._allow_references()
        beside = self.platform.agent(self.workspace)
        refused = {
            "another person's": self.session("theirs", person=self.other),
            "another agent's": self.session("a", person=self.reader, agent=beside),
        }
        if Part.ACCOUNTS not in self.platform.lacks:
            account = self.platform.account(self.workspace, "Acme")
            refused["another account's"] = self.session("a", person=self.reader, account=account)
        for name, session in refused.items():
            turn = self.turn(self.reader)
            self.check(
                f"nobody hands over a conversation that is {name}",
                turn=turn,
                session=session,
                expected=("conversation_unavailable", False),
                came=(self._bind(turn, session), self._reads(turn, session)),
            )

    @rule("refs-within-reach")
    def test_refs_within_reach_when_it_is_read(self) -> None:
        self._allow_references()
        handed, turn = self.session("handed over", person=self.reader), self.turn(self.reader)
        self._bind(turn, handed)
        before = self._reads(turn, handed)
        self.platform.delete_session(handed)
        self.check(
            "what was handed over is read while it is there, and not when it is deleted",
            turn=turn,
            session=handed,
            expected=(True, False),
            came=(before, self._reads(turn, handed)),
        )

    @rule("refs-admission")
    def test_refs_admission(self) -> None:
        self._allow_references()
        if RUN_READS in self.platform.held_by_everybody:
            self.skipTest("refs-admission: everybody holds runs:read")
        self.platform.revoke(self.reader, RUN_READS, self.workspace)
        own, turn = self.session("own", person=self.reader), self.turn(self.reader)
        refused = self._bind(turn, own)
        self.platform.grant(self.reader, RUN_READS, self.workspace)
        self.check(
            "handing over takes runs:read",
            turn=turn,
            expected=("not_permitted", "bound"),
            came=(refused, self._bind(turn, own)),
        )

    @rule("refs-two-kinds")
    def test_refs_two_kinds(self) -> None:
        self._allow_references()
        source, turn = self.session("source", "One.", "Two.", person=self.reader), self.turn(self.reader)
        attach_excerpt(turn, key_text(source.pk), messages=self.numbers_of(source)[1:])
        self.platform.delete_session(source)
        shown = [one.quoted.text for excerpt in references_block(turn).excerpts for one in excerpt.messages]
        self.check(
            "an excerpt stays as it was attached, and gives no right to read more",
            turn=turn,
            session=source,
            expected=(["Two."], False),
            came=(shown, self._reads(turn, source)),
        )

    @rule("refs-discovery")
    def test_refs_discovery(self) -> None:
        self._allow_references()
        now, own = (self.session(name, person=self.reader) for name in ("now", "own"))
        gone, theirs = self.session("deleted", person=self.reader), self.session("theirs", person=self.other)
        self.platform.delete_session(gone)
        desk = desk_in(self.reader, key_text(now.pk))
        offered = {one.id for one in offerable_conversations(self.reader, desk).offers}
        rows = {name: key_text(one.pk) for name, one in (("own", own), ("deleted", gone), ("theirs", theirs))}
        self.check(
            "a person is offered what they can open, and nothing that is deleted or another person's",
            person=self.reader.pk,
            expected={"own": True, "deleted": False, "theirs": False},
            came={name: key in offered for name, key in rows.items()},
        )
