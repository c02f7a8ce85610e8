"""Ending a command where it wants to be ended: SIGTERM and SIGINT are noted, not obeyed at once."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INTERRUPTED = 130
_TICK = 0.1


class Ending:
    """Whether somebody asked this process to end."""

    asked = False

    def sleep(self, seconds: float) -> None:
        """Wait, but no longer than until the process is asked to end, to within a tenth of a second."""
        until = time.monotonic() + seconds
        while not self.asked and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _TICK))


@contextmanager
def noted_interrupts() -> Iterator[Ending]:
    """A block in which SIGTERM and SIGINT are only noted; Python allows that in the main thread alone."""
    ending = Ending()
    if threading.current_thread() is not threading.main_thread():
        yield ending
        return

    def note(*_: Any) -> None:
        ending.asked = True

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
