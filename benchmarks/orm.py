"""The same work as somebody writes it with model instances: right, recorded, and without further thought."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import Q

from benchmarks.floor import (
    ENTRIES,
    LIMIT,
    MESSAGE_CHARACTERS,
    PAGE_CHARACTERS,
    Result,
    UnavailableError,
    resolved,
)
from history_access.agent_platform.models import Authority, Message, Session, Turn
from history_access.models import RecordedName, TurnConversationRead
from settings_catalog.keys import uuid7_at
from settings_catalog.models import SettingChange, SettingValue


def list_newest(turn_id: Any) -> Result:
    """The newest 50 conversations, recorded."""
    with transaction.atomic(durable=True):
        turn, reader, setting, trace = _look_up(turn_id)
        rows = list(_visible(turn, reader, setting).order_by("-last_moved_at", "-pk")[: LIMIT + 1])[:LIMIT]
        _record(turn, reader, setting, [(row, "title", None, None, len(row.title[:200])) for row in rows])
        _still_holds(turn, trace)
    zone = ZoneInfo(turn.workspace.time_zone)
    return [
        {
            "id": str(row.pk),
            "account_id": str(row.account_id) if row.account_id else None,
            "title": row.title[:200],
            "account": row.account.name if row.account else None,
            "started_at": row.started_at.astimezone(zone).isoformat(),
            "last_moved_at": row.last_moved_at.astimezone(zone).isoformat(),
            "message_count": row.message_count,
        }
        for row in rows
    ]


def read(turn_id: Any, session_id: Any, start: int) -> Result:
    """50 messages from a number on, or from the end where it is negative; recorded."""
    with transaction.atomic(durable=True):
        turn, reader, setting, trace = _look_up(turn_id)
        session = _visible(turn, reader, setting).get(pk=session_id)
        messages = Message.objects.filter(session=session, hidden=False, role__in=("person", "agent"))
        if start < 0:
            rows = list(messages.order_by("-number")[:-start])[::-1]
        else:
            rows = list(messages.filter(number__gte=start).order_by("number")[: LIMIT + 1])
        page = _page(rows, turn, session)
        characters = sum(len(one["text"] or "") for one in page)
        numbers = (page[0]["number"], page[-1]["number"]) if page else (None, None)
        _record(turn, reader, setting, [(session, "messages", *numbers, characters)])
        _still_holds(turn, trace)
    return page


def _page(rows: list[Message], turn: Turn, session: Session) -> Result:
    zone, page, taken = ZoneInfo(turn.workspace.time_zone), [], 0
    for row in rows[:LIMIT]:
        text = row.text[:MESSAGE_CHARACTERS]
        taken += len(text)
        if taken > PAGE_CHARACTERS:
            break
        by_agent = row.role == "agent"
        page.append(
            {
                "number": row.number,
                "speaker": "agent" if by_agent else "person",
                "name": turn.session.agent.name if by_agent else session.person.username,
                "at": row.created_at.astimezone(zone).isoformat(),
                "text": text or None,
                "tool_calls": [call["name"] for call in row.tool_calls],
                "truncated": len(text) < len(row.text),
            }
        )
    return page


def _look_up(turn_id: Any) -> tuple[Turn, Any, str, Any]:
    turn = Turn.objects.select_related(
        "workspace", "session__agent", "session__account", "sender", "trigger__owner"
    ).get(pk=turn_id)
    reader = turn.sender if turn.trigger is None else turn.trigger.owner
    trace = _trace(turn)
    setting = resolved([(one.entry, one.level, one.value, one.ceiling) for one in trace[0]])
    over = turn.ended_at is not None or turn.session.deleted_at is not None
    if over or reader is None or not reader.is_active or setting == "none":
        raise UnavailableError
    return turn, reader, setting, trace


def _trace(turn: Turn) -> tuple[list[SettingValue], int]:
    workspace, agent = str(turn.workspace_id), str(turn.session.agent_id)
    place = Q(level="platform") | Q(level="workspace", workspace_id=workspace)
    place |= Q(level="agent", workspace_id=workspace, agent_id=agent)
    values = SettingValue.objects.filter(place, entry__in=ENTRIES)
    return list(values), SettingChange.objects.filter(place, entry__in=ENTRIES).count()


def _still_holds(turn: Turn, trace: Any) -> None:
    values, changes = _trace(turn)
    if ([(v.pk, v.value, v.ceiling) for v in values], changes) != (
        [(v.pk, v.value, v.ceiling) for v in trace[0]],
        trace[1],
    ):
        raise UnavailableError


def _visible(turn: Turn, reader: Any, setting: str) -> Any:
    session = turn.session
    sessions = (
        Session.objects.select_related("account", "person")
        .filter(workspace=turn.workspace, agent=session.agent, deleted_at=None)
        .exclude(pk=session.pk)
    )
    granted = Authority.objects.filter(
        Q(agent=None) | Q(agent=session.agent),
        person=reader,
        workspace=turn.workspace,
        permission="sessions:read",
    ).exists()
    if not granted:
        sessions = sessions.filter(person=reader)
    return sessions.filter(account=session.account) if setting == "same_account" else sessions


def _record(turn: Turn, reader: Any, setting: str, given: list[tuple[Any, ...]]) -> None:
    now, session = datetime.now(UTC), turn.session
    keys = sorted(uuid7_at(now) for _ in given)
    workspace = str(turn.workspace_id)
    TurnConversationRead.objects.bulk_create(
        TurnConversationRead(
            id=key,
            workspace_id=workspace,
            agent_id=str(session.agent_id),
            turn_id=str(turn.pk),
            turn_account_id=str(session.account_id) if session.account_id else None,
            reader_id=str(reader.pk),
            trigger_id=str(turn.trigger_id) if turn.trigger_id else None,
            session_id=str(row.pk),
            session_account_id=str(row.account_id) if row.account_id else None,
            session_person_id=str(row.person_id) if row.person_id else None,
            setting=setting,
            how="history",
            what=what,
            first_number=first,
            last_number=last,
            characters=characters,
            read_at=now,
        )
        for key, (row, what, first, last, characters) in zip(keys, given, strict=True)
    )
    named = {("workspace", turn.workspace), ("agent", session.agent), ("account", session.account)}
    named |= {("person", reader), ("trigger", turn.trigger)}
    for row, *_ in given:
        named |= {("account", row.account), ("person", row.person)}
    RecordedName.objects.bulk_create(
        (
            RecordedName(
                workspace_id=workspace,
                kind=kind,
                key=str(one.pk),
                name=getattr(one, "username", "") or one.name,
            )
            for kind, one in named
            if one is not None
        ),
        ignore_conflicts=True,
    )
