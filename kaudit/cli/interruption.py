"""Ending a long run in good order: the first Ctrl-C or SIGTERM asks for it, a second Ctrl-C does not wait."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """Yield what says whether to stop, while the body runs."""
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
