"""How far a scan is, on stderr: a bar on a terminal, nothing elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kaudit.pipeline.options import Progress, SilentProgress

if TYPE_CHECKING:
    from rich import progress as bars


_REDRAW_SECONDS = 0.1


@contextmanager
def progress_on_stderr(*, quiet: bool) -> Iterator[Progress]:
    """Show a bar with bytes, rate and time left while the body runs; it is gone when the report is printed."""
    if quiet or not sys.stderr.isatty():
        yield SilentProgress()
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
    with bars.Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        yield _Bar(progress)


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
        if time.monotonic() - self._drawn >= _REDRAW_SECONDS:
            self._drawn = time.monotonic()
            self._progress.refresh()
