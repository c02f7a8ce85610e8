"""What is dangerous about a value, for people who choose it. A warning holds nothing down; a guard does."""

from collections.abc import Callable, Iterable

from settings_catalog.catalog import Words
from settings_catalog.resolver import Resolution

Warner = Callable[[Resolution, str], Iterable[Words]]

_warners: list[Warner] = []


def warn_with(warner: Warner) -> None:
    """Ask `warner` too, before a value is chosen and while it holds; call it in `AppConfig.ready`.

    It is given what holds at a place, and a value of that setting: the one that holds, or one to choose.
    """
    _warners.append(warner)


def warnings_of(resolution: Resolution, value: str) -> tuple[Words, ...]:
    """What is dangerous about `value` at the place of the resolution."""
    return tuple(warning for warner in _warners for warning in warner(resolution, value))
