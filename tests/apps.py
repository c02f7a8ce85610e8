from collections.abc import Mapping

from django.apps import AppConfig

from settings_catalog.catalog import Choice, Entry, Lowered, register
from settings_catalog.places import Place

WEATHER_CHOICES = tuple(
    Choice(value, value.title(), f"Up to {value}.") for value in ("calm", "breeze", "storm")
)


def _guarded(values: Mapping[Place, str]) -> dict[Place, Lowered]:
    """Holds "sheltered" agents at breeze; to "wild" ones it offers more, which must not count."""
    from history_access.agent_platform.models import Agent

    answers = {
        "sheltered": Lowered("breeze", "the agent is sheltered"),
        "wild": Lowered("storm", "the agent is wild"),
    }
    named = Agent.objects.filter(pk__in=[place.agent_id for place in values], name__in=answers)
    return {Place.of(agent=agent): answers[agent.name] for agent in named}


class TestsConfig(AppConfig):
    name = "tests"

    def ready(self) -> None:
        register(
            Entry(
                key="weather",
                title="Weather",
                help="How rough it may get.",
                choices=WEATHER_CHOICES,
                default="calm",
                starting_ceiling=None,
            )
        )
        register(
            Entry(
                key="guarded_weather",
                title="Guarded weather",
                help="How rough it may get, with a guard.",
                choices=WEATHER_CHOICES,
                default="calm",
                starting_ceiling=None,
                guard=_guarded,
            )
        )
