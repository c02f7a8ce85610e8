"""What every test of the contract suite has: a small world made by the platform's factories, and checks."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from unittest import SkipTest

from django.test import TestCase

from history_access.entries import CONVERSATION_REFERENCES, HISTORY_ACCESS
from history_access.models.platform import message_model, primary
from history_access.reach import reach_of
from history_access.testing.contract.failures import broken
from history_access.testing.platform import PlatformFactories, Speaker
from history_access.tools import Toolset, toolset_for
from settings_catalog.keys import key_text
from settings_catalog.models import SettingValue
from settings_catalog.places import Place

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ZONE = "America/New_York"
MOST_PAGES = 50
OWN_TITLE = "now"
SPEAKERS: tuple[Speaker, Speaker] = ("person", "agent")


class ContractCase(TestCase):
    """A workspace with an agent, a reader and another person; history access is at `all_accounts`.

    Django's `TestCase`: the durable transactions in which the tools read run inside its own, as they may in
    tests alone, and nothing of the record is ever committed.
    """

    __test__ = False  # of the classes without a platform, for pytest
    databases = "__all__"
    platform: ClassVar[PlatformFactories]

    workspace: Any
    agent: Any
    reader: Any
    other: Any
    rule = ""

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls.__test__ = hasattr(cls, "platform")

    @classmethod
    def setUpClass(cls) -> None:
        """Skip what is only there to be subclassed; refuse factories that are not whole."""
        if not hasattr(cls, "platform"):
            raise SkipTest(f"{cls.__name__} is for subclasses that set `platform`")
        left_out = cls.platform.left_out()
        if left_out:
            raise TypeError(
                f"{type(cls.platform).__name__} lacks {', '.join(left_out)}: write it, or say in `lacks` "
                "why the platform has no such part"
            )
        super().setUpClass()

    @classmethod
    def setUpTestData(cls) -> None:
        """The world, once for all tests; each changes a copy."""
        cls.workspace = cls.platform.workspace(ZONE)
        cls.agent = cls.platform.agent(cls.workspace)
        cls.reader, cls.other = cls.platform.person(), cls.platform.person()
        most = {HISTORY_ACCESS.key: "all_accounts", CONVERSATION_REFERENCES.key: "conversations"}
        for key, ceiling in most.items():
            _set(key, Place.platform(), ceiling=ceiling)
            _set(key, cls.place_of(cls.workspace), value=ceiling if key == HISTORY_ACCESS.key else "none")

    @staticmethod
    def place_of(workspace: Any) -> Place:
        """Where the settings of a workspace stand."""
        return Place.workspace(workspace.pk)

    def allow(self, value: str, key: str = HISTORY_ACCESS.key) -> None:
        """From now on every agent of the workspace has this value.

        The row is written past the log of changes: the suite is nobody who may change settings.
        """
        _set(key, self.place_of(self.workspace), value=value)

    def session(
        self,
        title: str,
        *texts: str,
        person: Any | None,
        account: Any | None = None,
        agent: Any | None = None,
        at: datetime = NOON,
    ) -> Any:
        """A conversation in which person and agent take turns, a minute apart, in saying `texts`."""
        session = self.platform.session(
            self.agent if agent is None else agent, account=account, person=person, title=title, at=at
        )
        for place, text in enumerate(texts or (f"Words of {title}.",)):
            self.platform.say(session, SPEAKERS[place % 2], text, at=at + place * MINUTE)
        return session

    def turn(
        self,
        sender: Any | None = None,
        *,
        trigger: Any | None = None,
        account: Any | None = None,
        agent: Any | None = None,
    ) -> Any:
        """A running turn in a new conversation of its own."""
        agent = self.agent if agent is None else agent
        session = self.platform.session(agent, account=account, person=sender, title=OWN_TITLE, at=NOON)
        return self.platform.turn(session, sender=sender, trigger=trigger)

    def check(self, that: str, *, expected: object, came: object, **rows: object) -> None:
        """Fail, with the rows, unless what came is what was expected."""
        if expected != came:
            raise self.broken(that, **rows, expected=expected, came=came)

    def broken(self, that: str, **rows: object) -> AssertionError:
        """The failure of this test's rule, to raise; a `turn` and a `session` are shown as their rows."""
        return broken(self.rule, that, rows)

    def numbers_of(self, session: Any) -> list[int]:
        """The numbers of all entries of a conversation, in order."""
        model: Any = message_model()
        rows = model._base_manager.using(primary()).filter(session_id=session.pk)
        return list(rows.order_by("number").values_list("number", flat=True))

    def check_reach(
        self,
        that: str,
        turn: Any,
        *,
        may: Iterable[Any] = (),
        may_not: Iterable[Any] = (),
        toolset: Toolset | None = None,
    ) -> None:
        """That a turn reads these sessions and not those: the list, a read, the query and the explanation.

        Of several that it may read, one is read: the others are in the list and in the query.
        """
        toolset = toolset_for(turn) if toolset is None else toolset
        reach = reach_of(turn)
        found = {key_text(key) for key in reach.sessions().values_list("pk", flat=True)}
        listed = self.listed_or_refused(toolset)
        read_one = False
        for session, wanted in [*((one, True) for one in may), *((one, False) for one in may_not)]:
            key, reasons = key_text(session.pk), reach.explain(session.pk)
            seen = [key in listed, key in found, not reasons]
            told = [
                f"list_conversations: {'listed' if seen[0] else 'not listed'}",
                f"reach_of(turn).sessions(): {'in it' if seen[1] else 'not in it'}",
                f"reach_of(turn).explain(): {' '.join(reasons) or 'in reach'}",
            ]
            if not (wanted and read_one):
                read_one = wanted
                page = toolset.call("read_conversation", {"conversation_id": key})
                seen.append(page["kind"] != "error")
                told.append(f"read_conversation: {'given' if seen[-1] else page['error']['code']}")
            if set(seen) != {wanted}:
                raise self.broken(
                    that,
                    turn=turn,
                    session=session,
                    expected="in reach" if wanted else "out of reach",
                    came=told,
                )

    def listed_or_refused(self, toolset: Toolset) -> list[str]:
        """The ids on all pages of a list; none where the call is refused."""
        return [
            one["id"] for one in self.pages_of(toolset, "list_conversations", {"limit": 50}, strict=False)
        ]

    def listed(self, toolset: Toolset, **arguments: Any) -> list[dict[str, Any]]:
        """The conversations on all pages of a list."""
        return list(self.pages_of(toolset, "list_conversations", arguments))

    def read(self, toolset: Toolset, session: Any, **arguments: Any) -> dict[str, Any]:
        """One page of a conversation; a failure where it is refused."""
        page = toolset.call("read_conversation", {"conversation_id": key_text(session.pk), **arguments})
        if page["kind"] == "error":
            raise self.broken("a conversation in reach can be read", session=session, came=page["error"])
        return page

    def messages(self, toolset: Toolset, session: Any, **arguments: Any) -> list[dict[str, Any]]:
        """The messages on all pages of a conversation."""
        asked = {"conversation_id": key_text(session.pk), **arguments}
        return list(self.pages_of(toolset, "read_conversation", asked))

    def pages_of(
        self, toolset: Toolset, tool: str, arguments: Mapping[str, Any], *, strict: bool = True
    ) -> Iterable[dict[str, Any]]:
        """What stands on all pages of a call; a failure (`strict`) or nothing where it is refused."""
        cursor: str | None = ""
        for _ in range(MOST_PAGES):
            asked = {**arguments, **({"cursor": cursor} if cursor else {})}
            page = toolset.call(tool, asked)
            if page["kind"] == "error":
                if strict:
                    raise self.broken(f"{tool} gives a page", asked=asked, came=page["error"])
                return
            yield from page["conversations" if tool == "list_conversations" else "messages"]
            cursor = page["next_cursor"]
            if cursor is None:
                return
        raise self.broken(f"the pages of {tool} come to an end", asked=arguments)


def _set(key: str, place: Place, **given: str | None) -> None:
    SettingValue.objects.update_or_create(entry=key, **place._asdict(), defaults=given)
