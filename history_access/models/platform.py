"""The platform's own models, as its settings name them.

Whoever imports this can reach every conversation: only `door` and `reach` may (`reach-one-door`).
"""

from collections.abc import Hashable
from typing import Any, cast

from django.db import router
from django.db.models import F, Field, Model, Q, QuerySet, Value
from django.db.models.expressions import Combinable

from history_access.conf import conf
from history_access.models.conversations import AbstractMessage, AbstractSession, AbstractTurn
from settings_catalog.conf import named_model


def session_model() -> type[AbstractSession]:
    """The platform's sessions; a LookupError where the settings name no model."""
    return cast("type[AbstractSession]", _named("SESSION_MODEL", conf.session_model))


def message_model() -> type[AbstractMessage]:
    """The platform's messages; a LookupError where the settings name no model."""
    return cast("type[AbstractMessage]", _named("MESSAGE_MODEL", conf.message_model))


def turn_model() -> type[AbstractTurn]:
    """The platform's turns; a LookupError where the settings name no model."""
    return cast("type[AbstractTurn]", _named("TURN_MODEL", conf.turn_model))


def _named(key: str, label: str | None) -> type[Model]:
    return named_model(f"HISTORY_ACCESS[{key!r}]", label)


def webhooks() -> "QuerySet[Any] | None":
    """The platform's webhooks among its triggers; None where it names no triggers (`TRIGGER_MODEL`)."""
    if conf.trigger_model is None:
        return None
    return webhooks_of(_named("TRIGGER_MODEL", conf.trigger_model))


def webhooks_of(model: Any) -> "QuerySet[Any]":
    """The webhooks of a model of triggers: what its `webhooks()` says, or those of that `kind`."""
    which: Q = model.webhooks() if hasattr(model, "webhooks") else Q(kind="webhook")
    rows: QuerySet[Any] = model._base_manager.using(router.db_for_write(model)).filter(which)
    return rows


def kept(model: type[Model], name: str) -> bool:
    """Whether a platform keeps a column that it may do without: its subclass has no None there."""
    return any(field.name == name for field in model._meta.concrete_fields)


def column(model: type[Model], name: str, absent: Any, output_field: "Field[Any, Any]") -> Combinable:
    """A column that a platform may do without; where it does, what its `absent` value says."""
    return F(name) if kept(model, name) else Value(absent, output_field=output_field)


def primary() -> str:
    """The database in which rights are evaluated and reads are recorded, never a replica (`reach-now`)."""
    return router.db_for_write(session_model())


def compiled_basis() -> tuple[str, Hashable] | None:
    """What kept SQL rests on besides its values; None where the platform's authority makes no promise."""
    authority = conf.authority
    if not authority.compiled_once:
        return None
    sessions, messages, turns = session_model(), message_model(), turn_model()
    return primary(), (
        *(sessions, messages, turns, type(authority), id(authority.active), _definition(authority, "holds")),
        *(getattr(sessions, name) for name in _SESSION_NAMES),
        *(_definition(sessions, name) for name in _SESSION_CONDITIONS),
        *(_definition(messages, name) for name in _MESSAGE_CONDITIONS),
        *(_definition(turns, name) for name in _TURN_CONDITIONS),
        *(turns.trigger_owner, turns.trigger_name),
    )


_SESSION_NAMES = ("workspace_name", "agent_name", "account_name", "person_name", "time_zone")
_SESSION_CONDITIONS = ("not_deleted",)
_MESSAGE_CONDITIONS = ("readable", "by_agent", "words", "tool_names")
_TURN_CONDITIONS = ("live",)


def _definition(model: Any, name: str) -> Any:
    found = getattr(model, name)
    return getattr(found, "__func__", found)
