"""Progress of a long run on stderr - a bar on a terminal; elsewhere nothing, or with -v a line now and then - and its end by a signal."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING

from kaudit.cli.loading import loaded
from kaudit.engines.progress import Progress, SilentProgress
from kaudit.report.console import visible
from kaudit.results.scope import size

if TYPE_CHECKING:  # numpy comes with them
    from kaudit.capture.capture import CaptureProgress
    from kaudit.cli.bars import Bars
    from kaudit.simulate.search.search import SearchProgress

LINE_SECONDS = 30.0
"""Seconds between two lines of progress in a log file."""


@contextmanager
def progress_on_stderr(*, quiet: bool, verbose: bool = False) -> Iterator[Progress]:
    """Show a bar with bytes, rate and time left while the body runs; it is gone when the report is printed.

    Where stderr is no terminal, `verbose` gets a line every LINE_SECONDS instead. With `verbose`, what the engine logs is shown.
    """
    bars = _bars(quiet=quiet)
    if bars is None:
        lines = verbose and not quiet
        with _log_lines(sys.stderr.write) if lines else nullcontext():
            yield ProgressLines() if lines else SilentProgress()
        return
    with bars.scan() as bar, _log_lines(bar.write_above) if verbose else nullcontext():
        yield bar


@contextmanager
def capture_progress(*, quiet: bool, verbose: bool) -> "Iterator[CaptureProgress]":
    """Show how many offsets of those there were are captured, bytes and rate, while the body runs."""
    bars = _bars(quiet=quiet)
    if bars is None:
        yield CaptureLines(verbose=verbose and not quiet)
        return
    with bars.capture() as bar:
        yield bar


@contextmanager
def search_progress(*, quiet: bool, tries: int) -> "Iterator[SearchProgress]":
    """Show on a terminal how many of `tries` schedules were tried."""
    bars = _bars(quiet=quiet)
    if bars is None:
        yield lambda *_: None
        return
    with bars.search(tries) as bar:
        yield bar.tried


def _bars(*, quiet: bool) -> "Bars | None":
    """Return the bars, where stderr is a terminal that may be drawn on."""
    if quiet or not sys.stderr.isatty():
        return None
    bars: Bars = loaded("bars", "Bars")()  # rich takes 80 ms
    return bars


@contextmanager
def _log_lines(write: Callable[[str], object]) -> Iterator[None]:
    """Write what kaudit logs while the body runs, a line each."""
    import logging  # 2 ms, and --verbose is rare

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            write(f"{visible(record.getMessage())}\n")

    logger, handler = logging.getLogger("kaudit"), Lines()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class ProgressLines:
    """A line of progress every LINE_SECONDS, for logs that people read afterwards."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the clock, in seconds."""
        self._clock = clock
        self._began = self._reported_at = clock()
        self._total = self._read = 0

    def start(self, total_bytes: int) -> None:
        """Take the number of bytes to read."""
        self._total = total_bytes

    def advance(self, read_bytes: int) -> None:
        """Count, and report when it is time."""
        self._read += read_bytes
        now = self._clock()
        if now - self._reported_at < LINE_SECONDS:
            return
        self._reported_at = now
        rate = self._read / (now - self._began)
        left = round((self._total - self._read) / rate) if rate else 0
        share = 100 * self._read // self._total if self._total else 100
        sys.stderr.write(
            f"kaudit: {size(self._read)} of {size(self._total)} read ({share}%), "
            f"{size(round(rate))}/s, about {left} s left\n"
        )


class CaptureLines:
    """A line for every problem, and with `verbose` one of progress every LINE_SECONDS."""

    def __init__(self, *, verbose: bool) -> None:
        """Begin to count."""
        self._verbose = verbose
        self._total = self._done = self._bytes = 0
        self._reported_at = time.monotonic()

    def start(self, offsets: int) -> None:
        """Take the number of offsets to capture."""
        self._total += offsets

    def advance(self, offsets: int, size_in_bytes: int) -> None:
        """Count, and report when it is time."""
        self._done += offsets
        self._bytes += size_in_bytes
        if self._verbose and time.monotonic() > self._reported_at + LINE_SECONDS:
            self._reported_at = time.monotonic()
            sys.stderr.write(f"kaudit: {self._done:,} of {self._total:,} offsets captured, {size(self._bytes)}\n")

    @staticmethod
    def problem(partition: str, reason: str) -> None:
        """Report it."""
        sys.stderr.write(f"kaudit: {visible(f'{partition}: {reason}')}\n")


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
