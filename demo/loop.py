"""The agent loop: all that a platform writes to give its agents their history. Copy this file.

The history tools come from `toolset_for(turn)`, and the framework is told of them as of any others. Who is
reading, how far, and what is recorded is none of this loop's business.
"""

from datetime import datetime

from asgiref.sync import async_to_sync
from pydantic_ai import Agent
from pydantic_ai.models import Model

from history_access.adapters.pydantic_ai import history_tools
from history_access.agent_platform import services
from history_access.agent_platform.models import Trigger, Turn
from history_access.models import Role
from history_access.tools import toolset_for


def run_schedule(trigger: Trigger, *, model: Model | str, now: datetime) -> tuple[Turn, str]:
    """Run a schedule once, in a conversation of its own; the turn, which has ended, and what it replied."""
    session = services.open_session(trigger.agent, title=trigger.name, started_at=now)
    asked = f"It is {now:%H:%M} on {now:%A}, {now:%Y-%m-%d}. {trigger.instructions}"
    services.add_message(session, Role.SYSTEM, asked, at=now)
    turn = services.start_turn(session, trigger=trigger, at=now)
    try:
        reply = answer(turn, asked, model)
        services.add_message(session, Role.AGENT, reply, at=now)
    finally:
        services.end_turn(turn, at=now)
    return turn, reply


def answer(turn: Turn, asked: str, model: Model | str) -> str:
    """What the model replies, with the history tools that this turn may use, or with none."""
    name, workspace = turn.session.agent.name, turn.workspace.name
    instructions = f"You are {name}, an agent of {workspace}."
    agent = Agent(model, instructions=instructions, toolsets=[history_tools(toolset_for(turn))])
    return async_to_sync(_run)(agent, asked)


async def _run(agent: Agent, asked: str) -> str:
    async with agent:  # closes a real model's connections
        result = await agent.run(asked)
    return result.output
