"""Refused calls, kept apart from reads so that auditors see what was tried (`record-refusals`)."""

import logging
from typing import Any

from django.db import transaction
from django.utils import timezone

from history_access.models import AbstractTurn, Refusal
from history_access.models.platform import primary
from history_access.turns import NoTurnError, TurnFacts, turn_facts
from settings_catalog.keys import key_text, optional_key_text

logger = logging.getLogger("history_access.refused")

MOST_A_TURN = 100
"""How many refusals of one turn are kept: a model that tries every id cannot fill a disk."""


def note_refusal(turn: AbstractTurn | Any, *, tool: str, code: str, argument: str | None) -> None:
    """Keep that a call was refused, and log it; never what was asked for.

    It never raises: a refusal that cannot be kept is still logged, and still a refusal.
    """
    facts = None
    try:
        facts = turn_facts(turn)
        with transaction.atomic(using=primary()):
            _keep(facts, tool, code, argument)
    except NoTurnError:
        pass  # there is nothing to keep it with
    except Exception:  # the database, the platform's authority, or a call from async code
        logger.exception("A refusal could not be kept.")
    logger.info(
        "%s refused: %s",
        tool,
        code,
        extra={
            "turn_id": facts and key_text(facts.id),
            "agent_id": facts and key_text(facts.agent_id),
            "workspace_id": facts and key_text(facts.workspace_id),
            "argument": argument,
        },
    )


def _keep(turn: TurnFacts, tool: str, code: str, argument: str | None) -> None:
    rows = Refusal.objects.using(primary())
    kept = rows.filter(workspace_id=key_text(turn.workspace_id), turn_id=key_text(turn.id)).order_by()
    if kept[MOST_A_TURN - 1 : MOST_A_TURN].exists():
        return
    rows.create(
        workspace_id=key_text(turn.workspace_id),
        agent_id=key_text(turn.agent_id),
        turn_id=key_text(turn.id),
        reader_id=optional_key_text(turn.reader_id),
        trigger_id=optional_key_text(turn.trigger_id),
        tool=tool,
        code=code,
        argument=argument,
        refused_at=timezone.now(),
    )
