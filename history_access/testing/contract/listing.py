"""The rules of the list, as far as they rest on what a platform's sessions say of themselves."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings

from history_access.models.platform import session_model
from history_access.testing.contract.case import MINUTE, NOON, OWN_TITLE, ZONE, ContractCase
from history_access.testing.contract.failures import rule
from history_access.testing.platform import Part
from history_access.tools import toolset_for
from settings_catalog.keys import key_text


class ListRules(ContractCase):
    """What `list_conversations` shows of a session's row."""

    @rule("tool-list")
    def test_tool_list_newest_first(self) -> None:
        early = self.session("early", person=self.reader, at=NOON + timedelta(hours=1))
        self.session("late", person=self.reader, at=NOON + timedelta(hours=2))
        toolset = toolset_for(self.turn(self.reader))
        that = "the list is in the order in which conversations last moved, newest first"
        self.check(that, expected=["late", "early"], came=self._titles(toolset))
        self.platform.say(early, "agent", "Later.", at=NOON + timedelta(hours=3))
        self.check(
            f"{that}; a message moves its own",
            session=early,
            expected=["early", "late"],
            came=self._titles(toolset),
        )

    def _titles(self, toolset: Any, **arguments: Any) -> list[str]:
        """The titles of the list, without the turn's own conversation: it is another rule's."""
        titles = [one["quoted"]["title"] for one in self.listed(toolset, **arguments)]
        return [title for title in titles if title != OWN_TITLE]

    @rule("tool-list")
    def test_tool_list_moves_nothing_back(self) -> None:
        session = self.session("a", person=self.reader, at=NOON)
        self.platform.say(session, "person", "Now.", at=NOON + timedelta(hours=3))
        self.platform.say(session, "agent", "Said before, written later.", at=NOON + timedelta(hours=1))
        self.check(
            "a message that is written late does not set back when its conversation last moved",
            session=session,
            expected=NOON + timedelta(hours=3),
            came=self._row(session)["last_moved_at"],
        )

    @rule("tool-list")
    def test_tool_list_by_days_of_the_workspace(self) -> None:
        toolset = toolset_for(self.turn(self.reader))
        zone = toolset.call("list_conversations", {}).get("time_zone")
        kept = session_model().time_zone is not None
        self.check("the list is in its time zone", expected=ZONE if kept else settings.TIME_ZONE, came=zone)
        midnight = datetime(2026, 11, 20, tzinfo=ZoneInfo(str(zone)))
        for title, moment in [
            ("a minute before the day", -MINUTE),
            ("at its midnight", timedelta()),
            ("in its last minute", timedelta(hours=24) - MINUTE),
            ("at the next midnight", timedelta(hours=24)),
        ]:
            self.session(title, "One.", person=self.reader, at=midnight + moment)
        self.check(
            "a date is that day from midnight to midnight where the workspace is",
            zone=zone,
            expected=["in its last minute", "at its midnight"],
            came=self._titles(toolset, after="2026-11-20", before="2026-11-20"),
        )

    @rule("tool-list")
    def test_tool_list_tells_what_the_row_says(self) -> None:
        account = None
        if Part.ACCOUNTS not in self.platform.lacks:
            account = self.platform.account(self.workspace, "Acme")
        session = self.session("A room", "One.", "Two.", person=self.reader, account=account)
        shown = self.listed(toolset_for(self.turn(self.reader, account=account)))
        [came] = [one for one in shown if one["id"] == key_text(session.pk)]
        named = session_model().account_name is not None and account is not None
        self.check(
            "the list shows the title, the account, the times and the number of messages of a conversation",
            session=session,
            expected={
                "title": "A room",
                "account": "Acme" if named else None,
                "account_id": account and key_text(account.pk),
                "started": NOON,
                "last moved": NOON + MINUTE,
                "messages": 2,
            },
            came={
                "title": came["quoted"]["title"],
                "account": came["quoted"]["account"],
                "account_id": came["account_id"],
                "started": datetime.fromisoformat(came["started_at"]),
                "last moved": datetime.fromisoformat(came["last_moved_at"]),
                "messages": came["message_count"],
            },
        )

    @rule("tool-pages")
    def test_tool_pages_of_a_list(self) -> None:
        """Ties in time are broken by the key: each comes once, whatever the size of a page."""
        sessions = {key_text(self.session("tie", person=self.reader).pk) for _ in range(5)}
        found = [one["id"] for one in self.listed(toolset_for(self.turn(self.reader)), limit=2)]
        self.check(
            "each conversation stands on one page, also of those that moved at the same time",
            expected=sorted(sessions),
            came=sorted(key for key in found if key in sessions),
        )

    @rule("tool-read-only")
    def test_tool_read_only(self) -> None:
        session = self.session("a", "One.", "Two.", person=self.reader)
        before = self._row(session)
        toolset = toolset_for(self.turn(self.reader))
        self.listed(toolset)
        self.read(toolset, session)
        self.read(toolset, session, view="summary")
        self.check("reading changes nothing that was read", expected=before, came=self._row(session))

    @staticmethod
    def _row(session: Any) -> dict[str, Any]:
        model: Any = session_model()
        found: dict[str, Any] = model._base_manager.filter(pk=session.pk).values().get()
        return found
