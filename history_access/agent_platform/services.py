"""The writes that keep numbers, counts and times right, whoever else writes at the same time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import router, transaction
from django.db.models import F, Max, QuerySet
from django.db.models.functions import Greatest
from django.utils import timezone

from history_access.agent_platform.models import Account, Agent, Message, Session, Trigger, Turn
from history_access.models import Role
from history_access.models.text import REPLACEMENT
from history_access.references import end_references

MAX_TITLE = 300


class SessionClosedError(Exception):
    """The session is deleted or was never there; nothing was written."""


class TurnRefusedError(ValueError):
    """A turn, session or trigger was asked for that mixes workspaces, or has no one reader."""


class ErasedSourceError(ValueError):
    """A summary draws on what an erasure took; it was not written."""


def storable(text: str) -> str:
    """The text with NUL and lone surrogates replaced: no database keeps both (`tool-text-is-hostile`)."""
    return text.replace("\0", REPLACEMENT).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def storable_json(value: Any) -> Any:
    """A JSON value with every text in it made `storable`, the names of its fields too."""
    match value:
        case str():
            return storable(value)
        case list() | tuple():
            return [storable_json(one) for one in value]
        case dict():
            return {storable_json(name): storable_json(one) for name, one in value.items()}
    return value


def is_readable(role: str, *, hidden: bool) -> bool:
    """Whether an entry is read and counted (`tool-count`): `Message.readable`, of one not yet stored."""
    return role in (Role.PERSON, Role.AGENT) and not hidden


def open_session(
    agent: Agent,
    *,
    account: Account | None = None,
    person: Any = None,
    title: str = "",
    started_at: datetime | None = None,
    pk: Any = None,
) -> Session:
    """Open a conversation; its workspace, agent and account are fixed from now on (`reach-fixed-session`).

    A TurnRefusedError where the account is another workspace's. A title is cut at 300 characters.
    """
    if account is not None and account.workspace_id != agent.workspace_id:
        raise TurnRefusedError("the account belongs to another workspace than the agent")
    started_at = started_at or timezone.now()
    given = {} if pk is None else {"pk": pk}
    return Session.objects.create(
        workspace_id=agent.workspace_id,
        agent=agent,
        account=account,
        person=person,
        title=storable(title)[:MAX_TITLE],
        started_at=started_at,
        last_moved_at=started_at,
        **given,
    )


def add_message(
    session: Session,
    role: str,
    text: str = "",
    *,
    hidden: bool = False,
    tool_calls: Sequence[dict[str, Any]] = (),
    at: datetime | None = None,
) -> Message:
    """Append an entry, with the next number, and move the session; `last_moved_at` never goes back.

    A SessionClosedError where the session is deleted.
    """
    if role not in Role.values:
        raise ValueError(f"role: {role!r} is not one of {', '.join(Role.values)}")
    at = at or timezone.now()
    readable = is_readable(role, hidden=hidden)
    with transaction.atomic(using=_using()):
        _lock(session, message_count=F("message_count") + int(readable), last_moved_at=_later(at))
        return Message.objects.using(_using()).create(
            workspace_id=session.workspace_id,
            session=session,
            number=_next_number(session),
            role=role,
            hidden=hidden,
            text=storable(text),
            tool_calls=storable_json(list(tool_calls)),
            created_at=at,
        )


def start_turn(
    session: Session, *, sender: Any = None, trigger: Trigger | None = None, at: datetime | None = None
) -> Turn:
    """Start a run of the agent, for a person or for a trigger of this agent, never both; now, or `at` a time.

    A TurnRefusedError where that is not so; a SessionClosedError where the session is deleted.
    """
    if (sender is None) == (trigger is None):
        raise TurnRefusedError("a turn has a sender or a trigger, and not both")
    kind = "" if trigger is None else _kind_running(trigger, session)
    if kind is None:
        raise TurnRefusedError("the trigger runs another agent than the session's")
    if not _open(session).exists():
        raise SessionClosedError(f"session {session.pk} is deleted")
    return Turn.objects.using(_using()).create(
        workspace_id=session.workspace_id,
        session=session,
        sender=sender,
        trigger=trigger,
        trigger_kind=kind,
        started_at=at or timezone.now(),
    )


def end_turn(turn: Turn, *, at: datetime | None = None) -> None:
    """End a run; from now on it reads nothing (`reach-live-turn`), whatever `at` says for the time of it.

    It never ends before it started. Ending it twice changes nothing.
    """
    running = Turn.objects.using(_using()).filter(pk=turn.pk, ended_at__isnull=True)
    with transaction.atomic(using=_using()):
        running.update(ended_at=Greatest(F("started_at"), at or timezone.now()))
        end_references([turn], at=at)


def delete_session(session: Session) -> None:
    """Delete a conversation, and what was written about it: its summary goes along (`tool-summary`).

    Its turns read nothing from now on, and what was handed to them has ended.
    """
    with transaction.atomic(using=_using()):
        _open(session).update(deleted_at=timezone.now(), summary=None, summary_through=None)
        running = Turn.objects.using(_using()).filter(session=session, ended_at__isnull=True)
        end_references(running.values_list("pk", flat=True))


def summarize_session(session: Session, text: str, *, through: int, first: int = 1) -> None:
    """Keep the summary that the platform's compaction wrote of the messages from `first` to `through`.

    `first` is the lowest number of a message that it draws on, also by way of an earlier summary. Where an
    erasure took that message meanwhile, an ErasedSourceError: the summary would bring back what has to go
    (`tool-summary`). A SessionClosedError where the session is deleted. Then nothing is written.
    """
    written = _open(session).filter(erased_before__lte=first)
    if written.update(summary=storable(text), summary_through=through):
        return
    if _open(session).exists():
        raise ErasedSourceError("first: an erasure took messages that the summary draws on; write it anew")
    raise SessionClosedError(f"session {session.pk} is deleted")


def trim_session(session: Session, *, before: int, erasure: bool = False) -> None:
    """Remove the entries below number `before` (at most all that there are), and count anew.

    Numbers are never given out again. With `erasure` the summary goes too, since it repeats what has to go
    (`tool-summary`), and none that draws on those entries is taken any more; trimming to save room keeps it.
    """
    with transaction.atomic(using=_using()):
        _lock(session, trimmed_before=F("trimmed_before"))
        before = min(before, _next_number(session))
        _open(session).update(trimmed_before=Greatest(F("trimmed_before"), before))
        if erasure:
            erased = Greatest(F("erased_before"), before)
            _open(session).update(erased_before=erased, summary=None, summary_through=None)
        messages = Message.objects.using(_using()).filter(session=session)
        messages.filter(number__lt=before).delete()
        _open(session).update(message_count=messages.filter(Message.readable()).count())


def create_trigger(agent: Agent, *, kind: str, name: str, instructions: str = "", by: Any) -> Trigger:
    """Set up a schedule or a webhook; whoever sets it up owns it."""
    return Trigger.objects.using(_using()).create(
        workspace_id=agent.workspace_id,
        agent=agent,
        kind=kind,
        name=name,
        instructions=instructions,
        owner=by,
    )


def edit_trigger(trigger: Trigger, *, by: Any, **changes: Any) -> Trigger:
    """Change a trigger's `agent`, `kind`, `name` or `instructions`; `by` becomes its owner.

    So nobody makes it run as a third person (`reach-trigger-edited`). A ValueError for another field or for
    nobody in `by`, a TurnRefusedError for an agent of another workspace.
    """
    if by is None:
        raise ValueError("by: an edit is somebody's, who becomes the trigger's owner")
    for field in changes.keys() - {"agent", "kind", "name", "instructions"}:
        raise ValueError(f"{field}: cannot be changed; an edit changes agent, kind, name or instructions")
    agent = changes.get("agent")
    if agent is not None and agent.workspace_id != trigger.workspace_id:
        raise TurnRefusedError("the agent belongs to another workspace than the trigger")
    with transaction.atomic(using=_using()):
        rows = Trigger.objects.using(_using()).filter(pk=trigger.pk)
        rows.update(owner=by, edition=F("edition") + 1, **changes)
        return rows.get()


def _using() -> str:
    return router.db_for_write(Session)


def _open(session: Session) -> "QuerySet[Session]":
    return Session.objects.using(_using()).filter(Session.not_deleted(), pk=session.pk)


def _kind_running(trigger: Trigger, session: Session) -> str | None:
    """The kind of a trigger that runs the session's agent now, whatever the object at hand remembers."""
    rows = Trigger.objects.using(_using()).filter(pk=trigger.pk, agent_id=session.agent_id)
    return rows.values_list("kind", flat=True).first()


def _lock(session: Session, **changes: Any) -> None:
    """Change a session, and hold its row until the transaction ends: the others wait, on both databases."""
    if not _open(session).update(**changes):
        raise SessionClosedError(f"session {session.pk} is deleted")


def _later(at: datetime) -> Greatest:
    return Greatest(F("last_moved_at"), at)


def _next_number(session: Session) -> int:
    """One above the last number ever given out; the caller holds the session's row."""
    kept = Message.objects.using(_using()).filter(session=session).aggregate(last=Max("number"))["last"]
    trimmed = _open(session).values_list("trimmed_before", flat=True).get() - 1
    return max(kept or 0, trimmed) + 1
