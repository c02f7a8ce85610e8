from django.apps import AppConfig

from settings_catalog.catalog import Choice, Entry, Lowered, register

WEATHER_CHOICES = tuple(
    Choice(value, value.title(), f"Up to {value}.") for value in ("calm", "breeze", "storm")
)


def _guarded(agent_id: str, value: str) -> Lowered | None:
    """Holds a "sheltered" agent's value at breeze; to a "wild" one it offers more, which must not count."""
    from history_access.agent_platform.models import Agent

    name = Agent.objects.get(pk=agent_id).name
    if name == "sheltered":
        return Lowered("breeze", "the agent is sheltered")
    return Lowered("storm", "the agent is wild") if name == "wild" else None


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
