"""What the tables refuse by themselves, whoever writes to them."""

from settings_catalog.guards import Guard, fixed_columns, not_while

_SESSION = "agent_platform_session"
_TURN = "agent_platform_turn"
_TRIGGER = "agent_platform_trigger"

_CHANGES_WHAT_IT_DOES = " OR ".join(
    f"NEW.{column} {{differs}} OLD.{column}" for column in ("agent_id", "kind", "instructions")
)
_GETS_AN_OWNER = "NEW.owner_id IS NOT NULL AND NEW.owner_id {differs} OLD.owner_id"

TABLE_GUARDS: tuple[Guard, ...] = (
    *fixed_columns("agent_platform_agent", ["workspace_id"], "an agent stays in its workspace"),
    *fixed_columns("agent_platform_account", ["workspace_id"], "an account stays in its workspace"),
    *fixed_columns(
        _SESSION,
        ["workspace_id", "agent_id", "account_id"],
        "a session keeps the workspace, agent and account that it was opened with",
    ),
    *fixed_columns(
        "agent_platform_message", ["workspace_id", "session_id", "number"], "a message stays in its session"
    ),
    *fixed_columns(
        _TURN,
        ["workspace_id", "session_id", "trigger_kind"],
        "a turn stays in its session, and keeps the kind of its trigger",
    ),
    not_while(
        _SESSION,
        {"agent_platform_message": "session_id", _TURN: "session_id"},
        "a session is not removed while its messages or turns are there",
    ),
    *fixed_columns(_TRIGGER, ["workspace_id"], "a trigger stays in its workspace, and keeps its key"),
    not_while(_TRIGGER, {_TURN: "trigger_id"}, "a trigger is not removed while its turns are there"),
    Guard(
        name=f"{_TURN}_same_reader",
        table=_TURN,
        event="UPDATE",
        when=(
            "(NEW.sender_id IS NOT NULL AND NEW.sender_id {differs} OLD.sender_id) OR "
            "(NEW.trigger_id IS NOT NULL AND NEW.trigger_id {differs} OLD.trigger_id)"
        ),
        message="a turn keeps the sender or the trigger that it was started with",
    ),
    Guard(
        name=f"{_TURN}_ended",
        table=_TURN,
        event="UPDATE",
        when="OLD.ended_at IS NOT NULL AND NEW.ended_at {differs} OLD.ended_at",
        message="a turn that has ended stays ended: a resume is a new turn",
    ),
    Guard(
        name=f"{_SESSION}_deleted",
        table=_SESSION,
        event="UPDATE",
        when="OLD.deleted_at IS NOT NULL AND NEW.deleted_at {differs} OLD.deleted_at",
        message="a deleted session stays deleted",
    ),
    Guard(
        name=f"{_TRIGGER}_edited",
        table=_TRIGGER,
        event="UPDATE",
        when=f"(({_CHANGES_WHAT_IT_DOES}) OR ({_GETS_AN_OWNER})) AND NEW.edition <> OLD.edition + 1",
        message=(
            "whoever changes what a trigger does becomes its owner: "
            "use history_access.agent_platform.services.edit_trigger"
        ),
    ),
)
