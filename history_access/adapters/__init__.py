"""The tools for agent frameworks, from the one definition; each module is imported on use, with its extra."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def from_extra(extra: str) -> Iterator[None]:
    """Around the imports of a framework: where it is missing, an ImportError that says what to install."""
    try:
        yield
    except ImportError as error:
        message = f"{error}. This adapter needs an extra: pip install 'history-access[{extra}]'"
        raise ImportError(message, name=error.name) from error
