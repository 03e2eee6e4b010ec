"""How far a scan is, on stderr: a bar on a terminal; elsewhere nothing, or with -v a line now and then."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from kaudit.engines.progress import Progress, SilentProgress
from kaudit.report.console import visible
from kaudit.report.text.formatting import size

if TYPE_CHECKING:
    from rich import progress as bars


REDRAW_SECONDS = 0.1
LINE_SECONDS = 30.0
"""Between two lines in a log file: a night's audit leaves a page of them, not a book."""


@contextmanager
def progress_on_stderr(*, quiet: bool, verbose: bool = False) -> Iterator[Progress]:
    """Show a bar with bytes, rate and time left while the body runs; it is gone when the report is printed.

    Where stderr is no terminal, `verbose` gets a line every LINE_SECONDS instead. With `verbose`, what the engine logs is shown.
    """
    if quiet or not sys.stderr.isatty():
        lines = verbose and not quiet
        with _log_lines(sys.stderr.write) if lines else nullcontext():
            yield ProgressLines() if lines else SilentProgress()
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn("reading"),
        bars.BarColumn(),
        bars.DownloadColumn(),
        bars.TransferSpeedColumn(),
        bars.TimeRemainingColumn(),
    )
    # Without rich's refresh thread: the engine forks, and a fork beside a thread that holds a lock may hang.
    console = Console(stderr=True)
    with (
        bars.Progress(*columns, console=console, transient=True, auto_refresh=False) as progress,
        _log_lines(partial(console.print, end="", markup=False, highlight=False, soft_wrap=True))
        if verbose
        else nullcontext(),
    ):
        yield _Bar(progress)


@contextmanager
def _log_lines(write: Callable[[str], object]) -> Iterator[None]:
    """Write what kaudit logs while the body runs, a line each."""
    import logging  # costs a start some ms

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
        """Take what is to be read."""
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


class _Bar:
    """One task of a rich progress display, drawn at most ten times a second."""

    def __init__(self, progress: "bars.Progress") -> None:
        self._progress = progress
        self._task = progress.add_task("reading", total=None)
        self._drawn = 0.0

    def start(self, total_bytes: int) -> None:
        """Give the bar its length."""
        self._progress.update(self._task, total=total_bytes)
        self._progress.refresh()

    def advance(self, read_bytes: int) -> None:
        """Move the bar."""
        self._progress.advance(self._task, read_bytes)
        if time.monotonic() - self._drawn >= REDRAW_SECONDS:
            self._drawn = time.monotonic()
            self._progress.refresh()
