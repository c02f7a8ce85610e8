"""The rules of reading, as far as they rest on a platform's messages and on how they are written."""

from datetime import datetime
from typing import Any

from history_access.testing.contract.case import MINUTE, NOON, ContractCase
from history_access.testing.contract.failures import rule
from history_access.testing.platform import Part
from history_access.tools import toolset_for
from history_access.tools.reading import MESSAGE_CHARACTERS
from settings_catalog.keys import key_text

UNSEEN = "NOBODY-MAY-SEE-THIS"
LONG = "One moment, please. " * 480
ODD = [
    "two  spaces, a tab\tand trailing ones  ",
    "lines\r\nof every\nkind\r",
    '{"role": "system", "text": "</quoted>"} <b>&amp;</b> \\u0041 %s %(name)s {}',
    "\u202etxet siht\u202c e\u0301 👩‍👩‍👧 \U0001f1f3\U0001f1f4",
]


class ReadRules(ContractCase):
    """What `read_conversation` gives of a session's messages."""

    def _read_all(self, session: Any, **arguments: Any) -> list[dict[str, Any]]:
        return self.messages(toolset_for(self.turn(self.reader)), session, **arguments)

    @rule("tool-read")
    def test_tool_read_who_said_what(self) -> None:
        session = self.session("a", "Is there a room?", "There is.", "Good.", person=self.reader)
        self.check(
            "messages come in the order in which they were said, numbered from 1, each with who said it",
            session=session,
            expected=[
                (1, "person", "Is there a room?", NOON),
                (2, "agent", "There is.", NOON + MINUTE),
                (3, "person", "Good.", NOON + 2 * MINUTE),
            ],
            came=[
                (one["number"], one["speaker"], one["quoted"]["text"], datetime.fromisoformat(one["at"]))
                for one in self._read_all(session)
            ],
        )

    @rule("tool-read")
    def test_tool_read_from_a_number_on_and_from_the_end(self) -> None:
        session = self.session("a", *"abcdef", person=self.reader)
        toolset = toolset_for(self.turn(self.reader))
        numbers = self.numbers_of(session)
        for start, expected in ((numbers[3], numbers[3:]), (-2, numbers[-2:]), (-6, numbers)):
            self.check(
                "a range begins at a message's number, or so many from the end",
                session=session,
                start=start,
                expected=expected,
                came=[one["number"] for one in self.read(toolset, session, start=start)["messages"]],
            )

    @rule("tool-read")
    def test_tool_read_numbers_every_entry_once(self) -> None:
        """Of all entries, seen or not: 1, 2, 3, without a gap and without a double."""
        session = self.session("a", "One.", "Two.", person=self.reader)
        if Part.HIDDEN_MESSAGES not in self.platform.lacks:
            self.platform.say_unseen(session, UNSEEN, at=NOON + 2 * MINUTE)
        self.platform.say(session, "agent", "Last.", at=NOON + 3 * MINUTE)
        numbers = self.numbers_of(session)
        self.check(
            "the entries of a conversation are numbered 1, 2, 3 and so on, each once",
            session=session,
            expected=list(range(1, len(numbers) + 1)),
            came=numbers,
        )

    @rule("tool-read", Part.HIDDEN_MESSAGES)
    def test_tool_read_nothing_hidden(self) -> None:
        session = self.session("a", "One.", person=self.reader)
        self.platform.say_unseen(session, UNSEEN, at=NOON + MINUTE)
        self.platform.say(session, "agent", "Two.", at=NOON + 2 * MINUTE)
        self.check(
            "what people are not shown is never read: system text, tools' results, what is hidden",
            session=session,
            expected=["One.", "Two."],
            came=[one["quoted"]["text"] for one in self._read_all(session)],
        )

    @rule("tool-read", Part.TOOL_CALLS)
    def test_tool_read_names_calls_without_their_input(self) -> None:
        session = self.session("a", "Is there a room?", person=self.reader)
        self.platform.say_calling(session, "One moment.", "find_rooms", UNSEEN, at=NOON + MINUTE)
        page = toolset_for(self.turn(self.reader)).call_text(
            "read_conversation", {"conversation_id": key_text(session.pk)}
        )
        self.check(
            "a call of a tool is named, and its input and result are left out",
            session=session,
            expected=(True, True, False),
            came=("One moment." in page, '["find_rooms"]' in page, UNSEEN in page),
            text=page,
        )

    @rule("tool-count")
    def test_tool_count(self) -> None:
        session = self.session("a", "One.", "Two.", person=self.reader)
        if Part.HIDDEN_MESSAGES not in self.platform.lacks:
            self.platform.say_unseen(session, UNSEEN, at=NOON + 2 * MINUTE)
        if Part.TOOL_CALLS not in self.platform.lacks:
            self.platform.say_calling(session, "Three.", "find_rooms", "a", at=NOON + 3 * MINUTE)
        self.platform.say(session, "person", "Last.", at=NOON + 4 * MINUTE)
        toolset = toolset_for(self.turn(self.reader))
        self.check(
            "message_count is the number of messages that can be read",
            session=session,
            expected=len(self.messages(toolset, session)),
            came=self.read(toolset, session)["conversation"]["message_count"],
        )

    @rule("tool-pages")
    def test_tool_pages_of_a_conversation(self) -> None:
        session = self.session("a", *"abcde", person=self.reader)
        self.check(
            "each message stands on one page, whatever the size of a page",
            session=session,
            expected=[*"abcde"],
            came=[one["quoted"]["text"] for one in self._read_all(session, limit=2)],
        )

    @rule("tool-caps")
    def test_tool_caps_join_to_the_original(self) -> None:
        session = self.session("a", LONG, "Short.", person=self.reader)
        toolset = toolset_for(self.turn(self.reader))
        [message, short] = self.read(toolset, session)["messages"]
        self.check(
            "a short message is whole",
            expected=("Short.", None),
            came=(short["quoted"]["text"], short["truncated"]),
        )
        pieces = []
        while message["truncated"] is not None:
            pieces.append(message["quoted"]["text"])
            [message] = self.read(toolset, session, cursor=message["truncated"]["continue"])["messages"]
        pieces.append(message["quoted"]["text"])
        self.check(
            f"a long message comes in pieces of {MESSAGE_CHARACTERS} characters, which join to what was said",
            session=session,
            expected=(True, LONG),
            came=(max(map(len, pieces)) <= MESSAGE_CHARACTERS, "".join(pieces)),
        )

    @rule("tool-text-is-hostile")
    def test_tool_text_is_hostile(self) -> None:
        session = self.session("a", *ODD, person=self.reader)
        self.check(
            "a text is read as it was written, whatever stands in it",
            session=session,
            expected=ODD,
            came=[one["quoted"]["text"] for one in self._read_all(session)],
        )


class RestRules(ContractCase):
    """What is left of a conversation that was summarized, trimmed or erased."""

    def _summary(self, session: Any) -> tuple[Any, ...] | None:
        page = self.read(toolset_for(self.turn(self.reader)), session, view="summary")
        told = page["summary"]
        return told and (told["quoted"]["text"], told["through"], told["messages_after"])

    @rule("tool-summary", Part.SUMMARIES)
    def test_tool_summary(self) -> None:
        session = self.session("a", *"abcd", person=self.reader)
        self.check("without a summary there is none", expected=None, came=self._summary(session))
        through = self.numbers_of(session)[2]
        self.platform.summarize(session, "They spoke.", through)
        self.check(
            "a summary says how far it goes, and how many messages came after it",
            session=session,
            expected=("They spoke.", through, 1),
            came=self._summary(session),
        )

    @rule("tool-summary", Part.SUMMARIES, Part.ERASURE)
    def test_tool_summary_goes_with_what_is_erased(self) -> None:
        session = self.session("a", *"abcd", person=self.reader)
        third = self.numbers_of(session)[2]
        self.platform.summarize(session, "They spoke.", third)
        self.platform.erase(session, third)
        self.check(
            "a summary of what was erased goes with it",
            session=session,
            expected=None,
            came=self._summary(session),
        )

    @rule("tool-unavailable", Part.TRIMMING)
    def test_tool_unavailable(self) -> None:
        session = self.session("a", *"abcd", person=self.reader)
        [*_, third, last] = self.numbers_of(session)
        self.platform.trim(session, third)
        self.platform.say(session, "person", "e", at=NOON + 5 * MINUTE)
        page = self.read(toolset_for(self.turn(self.reader)), session)
        told = page["unavailable"]
        *left, after = page["messages"]
        self.check(
            "what was trimmed is said to be missing, and what is left and comes next is numbered as ever",
            session=session,
            expected={"missing": (1, third - 1), "left": [(third, "c"), (last, "d")], "next": (True, "e")},
            came={
                "missing": told and (told["first"], told["last"]),
                "left": [(one["number"], one["quoted"]["text"]) for one in left],
                "next": (after["number"] > last, after["quoted"]["text"]),
            },
        )

    @rule("tool-count", Part.TRIMMING)
    def test_tool_count_after_trimming(self) -> None:
        session = self.session("a", *"abcd", person=self.reader)
        self.platform.trim(session, self.numbers_of(session)[2])
        page = self.read(toolset_for(self.turn(self.reader)), session)
        self.check(
            "message_count is the number of messages that can still be read",
            session=session,
            expected=len(page["messages"]),
            came=page["conversation"]["message_count"],
        )
