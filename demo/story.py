"""The demo from its first line to its last, each line told as it happens."""

import os
from collections.abc import Iterator
from pathlib import Path

from pydantic_ai.models import Model
from pydantic_ai.models.function import FunctionModel

from demo import claims, refusals, report, world
from demo.handing_over import handed_over
from demo.loop import run_schedule


def told(model: Model | str, given: Path | None) -> Iterator[str]:
    """All that happens, on an empty database; `given` is a file for both agents, else each has its own.

    A CommandError where a line of the file is at fault, or something came out otherwise than is said; an
    AgentRunError where the model fails.
    """
    inn = world.build("UTC" if given else "America/New_York")
    world.load(inn.digest, given or world.OWN_CONVERSATIONS / "digest.jsonl")
    world.load(inn.front_desk, given or world.OWN_CONVERSATIONS / "front-desk.jsonl")
    now = world.morning(inn)
    yield from report.conversations(inn, now)
    yield from report.opening(inn, world.open_history(inn))
    turn, reply = run_schedule(inn.schedule, model=model, now=now)
    yield from report.digest(inn, reply, os.environ.get("DEMO_MODEL") or "a script")
    claims.expect_reads(turn)
    if isinstance(model, FunctionModel):  # a real model may read what it likes
        claims.expect_whole_day(inn, turn, now)
    yield from report.record(turn)
    yield from report.storage(turn)
    yield from refusals.one_customer_only(inn, now)
    yield from refusals.without_the_right(inn, now, model)
    yield from refusals.switched_off(inn, now, model)
    yield from handed_over(inn, now)
