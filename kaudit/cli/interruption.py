"""Ending a long run in good order when a signal asks for it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ends_on_signals(stop: threading.Event) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a run after what it is about; a second one ends it at once."""
    previous = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - what signal calls with
        stop.set()
        signal.signal(number, previous[number])

    for number in previous:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
