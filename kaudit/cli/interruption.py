"""Ending a long run in good order when a signal asks for it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType


@contextmanager
def ends_on_signals(stop: threading.Event) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a run after what it is about; a second one ends it at once."""
    previous = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # Event.set would wait for ever for a lock that the interrupted Event.wait holds; SimpleQueue.put waits for none
    received: SimpleQueue[bool] = SimpleQueue()

    def relay() -> None:
        if received.get():
            stop.set()

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - what signal calls with
        received.put(True)
        signal.signal(number, previous[number])

    threading.Thread(target=relay, daemon=True).start()
    for number in previous:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        received.put(False)
