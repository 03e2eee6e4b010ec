"""What rich draws: on stderr bars of a scan, a capture and a search, at most ten times a second; on stdout the table of a watch."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import progress as rich_progress
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, ProgressColumn, TextColumn

from kaudit.model.watch_status import WatchStatus
from kaudit.report.console import visible
from kaudit.report.text.live_table import live_table
from kaudit.results.scope import size

if TYPE_CHECKING:  # the simulator comes with it
    from kaudit.simulate.search.schedule import Schedule

_REDRAW_SECONDS = 0.1


class _Bar:
    """One task of a rich progress display."""

    def __init__(
        self, progress: rich_progress.Progress, total: float | None = None, captured: str = "", found: str = ""
    ) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total, captured=captured, found=found)
        self._drawn = 0.0

    def write_above(self, line: str) -> None:
        """Write a line, as it is, above the bar."""
        self._progress.console.print(line, end="", markup=False, highlight=False, soft_wrap=True)

    def _draw(self) -> None:
        if time.monotonic() - self._drawn >= _REDRAW_SECONDS:
            self._drawn = time.monotonic()
            self._progress.refresh()


class _ScanBar(_Bar):
    def start(self, total_bytes: int) -> None:
        """Give the bar its length."""
        self._progress.update(self._task, total=total_bytes)
        self._progress.refresh()

    def advance(self, read_bytes: int) -> None:
        """Move the bar."""
        self._progress.advance(self._task, read_bytes)
        self._draw()


class _CaptureBar(_Bar):
    _total = 0
    _bytes = 0

    def start(self, offsets: int) -> None:
        """Make the bar longer."""
        self._total += offsets
        self._progress.update(self._task, total=self._total)
        self._progress.refresh()

    def advance(self, offsets: int, size_in_bytes: int) -> None:
        """Move the bar."""
        self._bytes += size_in_bytes
        self._progress.update(self._task, advance=offsets, captured=size(self._bytes))
        self._draw()

    def problem(self, partition: str, reason: str) -> None:
        """Report it above the bar."""
        self._progress.console.print(f"kaudit: {visible(f'{partition}: {reason}')}", markup=False, highlight=False)


class _SearchBar(_Bar):
    def tried(self, schedules: int, smallest: "Schedule | None") -> None:
        """Move the bar when it is time to draw it."""
        if time.monotonic() - self._drawn >= _REDRAW_SECONDS:
            found = "" if smallest is None else f", one with {smallest.events} events"
            self._progress.update(self._task, completed=schedules, found=found)
            self._draw()


class Bars:
    """The bars; each is gone when its body ends."""

    @staticmethod
    @contextmanager
    def scan() -> Iterator[_ScanBar]:
        """Show bytes, rate and time left."""
        columns = (
            rich_progress.DownloadColumn(),
            rich_progress.TransferSpeedColumn(),
            rich_progress.TimeRemainingColumn(),
        )
        with _display("reading", *columns) as progress:
            yield _ScanBar(progress)

    @staticmethod
    @contextmanager
    def capture() -> Iterator[_CaptureBar]:
        """Show offsets, bytes and time left."""
        columns = (
            rich_progress.MofNCompleteColumn(),
            TextColumn("offsets, {task.fields[captured]}"),
            rich_progress.TimeRemainingColumn(),
        )
        with _display("capturing", *columns) as progress:
            yield _CaptureBar(progress, 0, captured=size(0))

    @staticmethod
    @contextmanager
    def search(tries: int) -> Iterator[_SearchBar]:
        """Show schedules tried, the smallest found, and the time it took."""
        columns = (TextColumn("{task.completed:,} schedules{task.fields[found]}"), rich_progress.TimeElapsedColumn())
        with _display("searching", *columns) as progress:
            yield _SearchBar(progress, tries, found="")


@contextmanager
def _display(title: str, *columns: ProgressColumn) -> Iterator[rich_progress.Progress]:
    """Show a bar that is gone afterwards.

    It has no refresh thread of rich: the engine forks, and a fork beside a thread that holds a lock may hang.
    """
    console = Console(stderr=True)
    with rich_progress.Progress(
        TextColumn(title), BarColumn(), *columns, console=console, transient=True, auto_refresh=False
    ) as progress:
        yield progress


@contextmanager
def drawn_table(*, color: bool) -> Iterator[Callable[[WatchStatus], None]]:
    """Yield a function that draws the table of a watch, in place of the one before."""
    console = Console(no_color=not color, highlight=False)
    with Live(console=console, auto_refresh=False) as live:
        yield lambda status: live.update(live_table(status), refresh=True)
