"""How far a capture is, on stderr: a bar on a terminal; elsewhere problems only, or with -v a line now and then."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kaudit.cli.progress import LINE_SECONDS, REDRAW_SECONDS
from kaudit.report.console import visible
from kaudit.report.text.formatting import size

if TYPE_CHECKING:
    from rich import progress as bars

    from kaudit.capture.capture import CaptureProgress


@contextmanager
def capture_progress(*, quiet: bool, verbose: bool) -> "Iterator[CaptureProgress]":
    """Show how many offsets of those there were are captured, bytes and rate, while the body runs."""
    if quiet or not sys.stderr.isatty():
        yield ProgressLines(verbose=verbose and not quiet)
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn("capturing"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("offsets, {task.fields[captured]}"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        yield _Bar(progress)


class ProgressLines:
    """A line for every problem, and with `verbose` one of progress every LINE_SECONDS."""

    def __init__(self, *, verbose: bool) -> None:
        """Begin to count."""
        self._verbose = verbose
        self._total = self._done = self._bytes = 0
        self._reported_at = time.monotonic()

    def start(self, offsets: int) -> None:
        """Take what is to be captured."""
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


class _Bar:
    """One task of a rich progress display, drawn at most ten times a second."""

    def __init__(self, progress: "bars.Progress") -> None:
        self._progress = progress
        self._task = progress.add_task("capturing", total=0, captured=size(0))
        self._total = self._bytes = 0
        self._drawn = 0.0

    def start(self, offsets: int) -> None:
        """Make the bar longer."""
        self._total += offsets
        self._progress.update(self._task, total=self._total)
        self._progress.refresh()

    def advance(self, offsets: int, size_in_bytes: int) -> None:
        """Move the bar."""
        self._bytes += size_in_bytes
        self._progress.update(self._task, advance=offsets, captured=size(self._bytes))
        if time.monotonic() - self._drawn >= REDRAW_SECONDS:
            self._drawn = time.monotonic()
            self._progress.refresh()

    def problem(self, partition: str, reason: str) -> None:
        """Report it above the bar."""
        self._progress.console.print(f"kaudit: {visible(f'{partition}: {reason}')}", markup=False, highlight=False)
