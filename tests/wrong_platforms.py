"""Platforms that each break the contract in one way, and the rules that the contract suite has to name.

Most are our own tables with one fault of a kind that a platform's own code may have: in its authority, in
what its models say, or in how it writes. A few put a fault into the product, where our tables allow no other.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from django.conf import settings
from django.db.models import F, Q, TextField
from django.db.models.functions import Cast, Trim
from django.test.utils import override_settings
from django.utils import timezone

from history_access import door, reach, record
from history_access.agent_platform import services
from history_access.agent_platform.authority import PlatformAuthority
from history_access.agent_platform.models import Account, Message, Session, Trigger, Turn
from history_access.authority import READ_SESSIONS
from history_access.models import Role, What
from history_access.reach import NEVER, PersonReach
from history_access.signals import conversations_read
from history_access.testing import PlatformFactories, lift_guards
from history_access.testing.agent_platform import AgentPlatformFactories
from history_access.turns import settings_of
from tests import wrong_authorities as authorities


class AccountsAreFolded(AgentPlatformFactories):
    """One account for all names that a database without regard to case and accents takes for the same."""

    def account(self, workspace, name):
        found = Account.objects.filter(workspace=workspace, name__iexact=name).first()
        return found or super().account(workspace, name)


class AccountsAreNumbers(AgentPlatformFactories):
    def account(self, workspace, name):
        with suppress(ValueError):
            name = f"{float(name):g}"
        return Account.objects.get_or_create(workspace=workspace, name=name)[0]


class NoAccountIsEmpty(AgentPlatformFactories):
    def account(self, workspace, name):
        return super().account(workspace, name) if name else None


class OwnerIsFrozen(AgentPlatformFactories):
    """A triggered turn is sent by whoever owned the trigger when it started."""

    def turn(self, session, *, sender=None, trigger=None):
        if trigger is not None:
            trigger, sender = None, trigger.owner
        return super().turn(session, sender=sender, trigger=trigger)


class SomebodyAlways(AgentPlatformFactories):
    """A turn of nobody is the operator's, and one of a person and a trigger the person's."""

    def turn(self, session, *, sender=None, trigger=None):
        if sender is None and trigger is None:
            sender = self.person()
            self.grant(sender, READ_SESSIONS, session.workspace)
        return super().turn(session, sender=sender, trigger=None if sender else trigger)


class EditsKeepTheOwner(AgentPlatformFactories):
    def edit_trigger(self, trigger, by):
        Trigger.objects.filter(pk=trigger.pk).update(instructions="Else.", edition=F("edition") + 1)


def write(session: Session, number: int, role: str, text: str, at: Any) -> None:
    Message.objects.create(
        workspace_id=session.workspace_id, session=session, number=number, role=role, text=text, created_at=at
    )


class Says(AgentPlatformFactories):
    """Appends words by itself, in a way that a subclass gets wrong."""

    step = 1

    def moved(self, at: Any) -> Any:
        return services._later(at)

    def say(self, session, speaker, text, *, at):
        number = services._next_number(session)
        place = (number - 1 + self.step) if number > 1 else 1
        write(session, place, speaker, text, at)
        rows = Session.objects.filter(pk=session.pk)
        rows.update(message_count=self.counted(), last_moved_at=self.moved(at))

    def counted(self) -> Any:
        return F("message_count") + 1


class NumbersHaveGaps(Says):
    step = 2


class CountsNothing(Says):
    def counted(self):
        return F("message_count")


class CountsTheUnseen(AgentPlatformFactories):
    def say_unseen(self, session, text, *, at):
        super().say_unseen(session, text, at=at)
        Session.objects.filter(pk=session.pk).update(message_count=F("message_count") + 1)


class MovesBack(Says):
    def moved(self, at):
        return at


class NeverMoves(Says):
    def moved(self, at):
        return F("last_moved_at")


class ForgetsWhatWasTrimmed(AgentPlatformFactories):
    def trim(self, session, before):
        rows = Message.objects.filter(session=session)
        rows.filter(number__lt=before).delete()
        count = rows.filter(Message.readable()).count()
        Session.objects.filter(pk=session.pk).update(message_count=count)


class CountsWhatWasTrimmed(AgentPlatformFactories):
    def trim(self, session, before):
        count = Session.objects.get(pk=session.pk).message_count
        super().trim(session, before)
        Session.objects.filter(pk=session.pk).update(message_count=count)


class SummaryStays(AgentPlatformFactories):
    def erase(self, session, before):
        self.trim(session, before)


class SummaryGoesTooFar(AgentPlatformFactories):
    def summarize(self, session, text, through):
        super().summarize(session, text, through + 1)


class SessionsMove(AgentPlatformFactories):
    def workspace(self, time_zone):
        lift_guards()
        return super().workspace(time_zone)


class RunsAreSaidToBeGranted(AgentPlatformFactories):
    held_by_everybody = frozenset()


class ExcerptsGo(AgentPlatformFactories):
    def delete_session(self, session):
        from history_access.models import ExcerptText

        super().delete_session(session)
        ExcerptText.objects.all().update(content=None)


# What stands in for a part of the product.


def account_by_name(self: PersonReach) -> Q:
    if self.every_account:
        return Q()
    named = Account.objects.filter(pk=self.account_id).values("name")
    return Q(account_id__isnull=True) if self.account_id is None else Q(account__name__in=named)


def account_always(self: PersonReach) -> Q:
    return Q(account_id=self.account_id)


def no_account_is_any(self: PersonReach) -> Q:
    return Q() if self.every_account or self.account_id is None else Q(account_id=self.account_id)


def no_account_is_never(self: PersonReach) -> Q:
    return Q() if self.every_account else Q(account_id__in=[self.account_id])


def moves_what_is_read(sender: Any, given: Any, **kwargs: Any) -> None:
    keys = [one.session_id for one in given if one.what != What.TITLE]
    Session.objects.filter(pk__in=keys).update(last_moved_at=timezone.now())


def beyond_the_time(model: Any, moved: Any, key: Any) -> Q:
    return Q(last_moved_at__lt=moved)


def of_somebody(*args: Any, **kwargs: Any) -> list[Any]:
    return [row for row in newest(*args, **kwargs) if row.person_id is not None]


def one_further(*given: Any, start: int, **more: Any) -> list[Any]:
    return page(*given, start=start + 1 if start > 1 else start, **more)


def settings_once(place: Any, *, after: Any = None) -> Any:
    if after is not None:
        after.alone()
    return authorities.Cached.answers.setdefault(place, settings_of(place))


newest, page = door.newest, door.page

Patch = tuple[Any, str, Any]


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """One fault, and the tests of the suite that find it: at least one of each rule that it breaks."""

    red: set[str]
    platform: PlatformFactories = field(default_factory=AgentPlatformFactories)
    authority: type[PlatformAuthority] = PlatformAuthority
    patches: tuple[Patch, ...] = ()
    receiver: Callable[..., None] | None = None

    @contextmanager
    def in_place(self) -> Iterator[None]:
        path = f"{self.authority.__module__}.{self.authority.__qualname__}"
        with ExitStack() as stack:
            for target, name, value in self.patches:
                stack.enter_context(mock.patch.object(target, name, value))
            changed = {**settings.HISTORY_ACCESS, "AUTHORITY": path}
            stack.enter_context(override_settings(HISTORY_ACCESS=changed, SETTINGS_CATALOG_AUTHORITY=path))
            if self.receiver is not None:
                conversations_read.connect(self.receiver)
                stack.callback(conversations_read.disconnect, self.receiver)
            yield


WRONG: dict[str, Wrong] = {
    "everybody holds sessions:read": Wrong(
        authority=authorities.TooWide,
        red={
            "test_reach_now_a_right_goes_between_two_calls",
            "test_reach_person_reads_their_own",
            "test_reach_same_answer",
            "test_reach_trigger_edited",
            "test_reach_trigger_owner",
            "test_refs_discovery",
            "test_refs_within_reach",
        },
    ),
    "a right counts in every workspace": Wrong(
        authority=authorities.AnyWorkspace,
        red={
            "test_reach_person_by_no_right_elsewhere",
            "test_reach_person_audits_the_workspaces_of_their_right",
            "test_catalog_who",
        },
    ),
    "a right for one agent counts for all": Wrong(
        authority=authorities.AnyAgent, red={"test_reach_person_by_a_right_for_one_agent"}
    ),
    "anybody's right is everybody's": Wrong(
        authority=authorities.AnyPerson, red={"test_reach_person_holds_what_was_granted"}
    ),
    "any right opens everything": Wrong(
        authority=authorities.AnyPermission, red={"test_reach_person_by_no_other_right"}
    ),
    "two permissions are swapped": Wrong(
        authority=authorities.SwappedPermissions,
        red={
            "test_reach_person_reads_other_people_s_with_the_right",
            "test_catalog_who",
            "test_reach_now_a_right_goes_between_two_calls",
            "test_record_every_read",
            "test_record_label",
        },
    ),
    "wide for a row, not for a query": Wrong(
        authority=authorities.WideForARow,
        red={"test_reach_person_by_one_answer_for_rows_and_queries", "test_catalog_who"},
    ),
    "wide for a query, not for a row": Wrong(
        authority=authorities.WideForAQuery,
        red={
            "test_reach_person_by_one_answer_for_rows_and_queries",
            "test_reach_now_a_right_goes_before_the_statement_runs",
        },
    ),
    "wide for an OuterRef": Wrong(
        authority=authorities.AnyWorkspaceOfMany, red={"test_reach_person_by_one_answer_for_rows_and_queries"}
    ),
    "rights are looked at too early": Wrong(
        authority=authorities.AskedTooEarly, red={"test_reach_now_a_right_goes_before_the_statement_runs"}
    ),
    "a promise about SQL is broken": Wrong(
        authority=authorities.Looks, red={"test_reach_now_by_sql_that_is_kept"}
    ),
    "rights are cached": Wrong(
        authority=authorities.Cached,
        red={
            "test_reach_now_a_right_goes_between_two_calls",
            "test_reach_person_holds_what_was_granted",
            "test_catalog_who",
        },
    ),
    "inactive people are accepted": Wrong(
        authority=authorities.InactiveToo,
        red={
            "test_reach_person_who_is_not_active_reads_nothing",
            "test_reach_now_a_person_is_switched_off",
            "test_reach_trigger_owner_is_not_active",
            "test_catalog_who",
        },
    ),
    "runs:read is held by everybody": Wrong(
        platform=RunsAreSaidToBeGranted(),
        red={"test_refs_admission", "test_reach_person_holds_what_was_granted"},
    ),
    "soft deletion is forgotten": Wrong(
        patches=((Session, "not_deleted", lambda: Q()),),
        red={
            "test_reach_not_deleted",
            "test_reach_live_turn_goes_with_its_conversation",
            "test_reach_same_answer",
            "test_refs_discovery",
            "test_refs_within_reach_when_it_is_read",
        },
    ),
    "turns never end": Wrong(
        patches=((Turn, "live", lambda: authorities.EVERYBODY),), red={"test_reach_live_turn_ends"}
    ),
    "accounts are folded": Wrong(
        platform=AccountsAreFolded(), red={"test_reach_account_exact_among_look_alikes"}
    ),
    "accounts are compared as numbers": Wrong(
        platform=AccountsAreNumbers(), red={"test_reach_account_exact_among_look_alikes"}
    ),
    "accounts are compared by name": Wrong(
        patches=((PersonReach, "account", account_by_name),),
        red={"test_reach_account_exact_among_look_alikes"},
    ),
    "an account without a name is none": Wrong(
        platform=NoAccountIsEmpty(), red={"test_reach_account_exact_among_look_alikes"}
    ),
    "no account is any account": Wrong(
        patches=((PersonReach, "account", no_account_is_any),),
        red={"test_reach_account_exact", "test_reach_same_answer", "test_refs_within_reach"},
    ),
    "no account matches nothing": Wrong(
        patches=((PersonReach, "account", no_account_is_never),),
        red={
            "test_reach_account_exact",
            "test_refs_per_turn",
            "test_refs_two_kinds",
            "test_refs_within_reach_when_it_is_read",
        },
    ),
    "all accounts are one account": Wrong(
        patches=((PersonReach, "account", account_always),),
        red={
            "test_reach_account_exact_and_every_account_where_it_is_allowed",
            "test_record_every_read",
            "test_record_label",
        },
    ),
    "agents of one workspace are one": Wrong(
        patches=((PersonReach, "_agent", lambda self: Q(workspace_id=self.workspace_id)),),
        red={"test_reach_agent", "test_reach_same_answer", "test_refs_within_reach"},
    ),
    "a turn reads its own conversation": Wrong(
        patches=((PersonReach, "_not_self", lambda self: Q()),),
        red={"test_reach_not_self", "test_reach_same_answer"},
    ),
    "a session can move": Wrong(platform=SessionsMove(), red={"test_reach_fixed_session"}),
    "the list knows no sessions of nobody": Wrong(
        patches=((door, "newest", of_somebody),),
        red={"test_reach_one_door", "test_reach_person_reads_other_people_s_with_the_right"},
    ),
    "a trigger's owner is ignored": Wrong(
        patches=((Turn, "trigger_owner", None),),
        red={"test_reach_trigger_owner", "test_reach_trigger_edited", "test_record_every_read_of_a_trigger"},
    ),
    "a trigger's owner is frozen": Wrong(
        platform=OwnerIsFrozen(),
        red={
            "test_reach_trigger_owner_is_gone",
            "test_reach_trigger_edited",
            "test_record_every_read_of_a_trigger",
            "test_record_label_of_a_webhook",
        },
    ),
    "somebody is found for every turn": Wrong(
        platform=SomebodyAlways(),
        red={"test_reach_person_nobody_reads_nothing", "test_reach_trigger_owner_beside_a_sender"},
    ),
    "settings are cached": Wrong(
        patches=((reach, "settings_of", settings_once),), red={"test_reach_now_the_setting_is_lowered"}
    ),
    "an edit keeps the owner": Wrong(platform=EditsKeepTheOwner(), red={"test_reach_trigger_edited"}),
    "hidden messages are readable": Wrong(
        patches=((Message, "readable", lambda: Q(role__in=(Role.PERSON, Role.AGENT))),),
        red={"test_tool_read_nothing_hidden", "test_tool_count"},
    ),
    "system text and results are readable": Wrong(
        patches=((Message, "readable", lambda: Q(hidden=False)),),
        red={"test_tool_read_nothing_hidden", "test_tool_count"},
    ),
    "person and agent are swapped": Wrong(
        patches=((Message, "by_agent", lambda: Q(role=Role.PERSON)),), red={"test_tool_read_who_said_what"}
    ),
    "calls come with their input": Wrong(
        patches=((Message, "tool_names", lambda: Cast("tool_calls", TextField())),),
        red={"test_tool_read_names_calls_without_their_input"},
    ),
    "texts are trimmed": Wrong(
        patches=((Message, "words", lambda: Trim("text")),),
        red={"test_tool_caps_join_to_the_original", "test_tool_text_is_hostile"},
    ),
    "numbers have gaps": Wrong(platform=NumbersHaveGaps(), red={"test_tool_read_numbers_every_entry_once"}),
    "messages are not counted": Wrong(
        platform=CountsNothing(), red={"test_tool_count", "test_tool_list_tells_what_the_row_says"}
    ),
    "what is unseen is counted": Wrong(platform=CountsTheUnseen(), red={"test_tool_count"}),
    "a late message moves a session back": Wrong(
        platform=MovesBack(), red={"test_tool_list_moves_nothing_back"}
    ),
    "a message moves nothing": Wrong(platform=NeverMoves(), red={"test_tool_list_newest_first"}),
    "pages skip a message": Wrong(
        patches=((door, "page", one_further),),
        red={"test_tool_pages_of_a_conversation", "test_tool_read_from_a_number_on_and_from_the_end"},
    ),
    "pages forget ties": Wrong(
        patches=((door.conversations, "beyond", beyond_the_time),), red={"test_tool_pages_of_a_list"}
    ),
    "the time zone is not the workspace's": Wrong(
        patches=((Session, "time_zone", "workspace__name"),), red={"test_tool_list_by_days_of_the_workspace"}
    ),
    "the account's name is the agent's": Wrong(
        patches=((Session, "account_name", "agent__name"),), red={"test_tool_list_tells_what_the_row_says"}
    ),
    "reading moves a conversation": Wrong(receiver=moves_what_is_read, red={"test_tool_read_only"}),
    "what was trimmed is forgotten": Wrong(platform=ForgetsWhatWasTrimmed(), red={"test_tool_unavailable"}),
    "what was trimmed is still counted": Wrong(
        platform=CountsWhatWasTrimmed(), red={"test_tool_count_after_trimming"}
    ),
    "a summary outlives what was erased": Wrong(
        platform=SummaryStays(), red={"test_tool_summary_goes_with_what_is_erased"}
    ),
    "a summary goes too far": Wrong(platform=SummaryGoesTooFar(), red={"test_tool_summary"}),
    "a webhook leaves no trace": Wrong(
        patches=((Turn, "started_by_webhook", lambda: NEVER),), red={"test_record_label_of_a_webhook"}
    ),
    "nothing is recorded": Wrong(
        patches=((record, "_record", lambda *given: None),),
        red={
            "test_record_every_read_by_the_platform_s_keys",
            "test_record_both_ways_when_the_rest_is_gone",
            "test_record_label",
        },
    ),
    "excerpts go with their source": Wrong(platform=ExcerptsGo(), red={"test_refs_two_kinds"}),
}
