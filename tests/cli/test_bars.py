"""Bars on a terminal: they stand where the work stands, and are drawn ten times a second at most."""

import io
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.cli.progress import capture_progress, progress_on_stderr, search_progress

BARS: dict[str, Any] = {
    "scan": (progress_on_stderr, {}, lambda bar, step: bar.advance(step), lambda bar: bar.start(1000)),
    "capture": (
        capture_progress, {"verbose": False}, lambda bar, step: bar.advance(step, 3 * step), lambda bar: bar.start(1000),
    ),
}  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """`time.monotonic`, as the test sets it."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def on_terminal(monkeypatch):
    """Make stderr a terminal; not in a fixture, as pytest has one stderr for those and another for the test."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


@pytest.fixture
def drawn(clock, monkeypatch):
    """How often the display was drawn."""
    from rich.progress import Progress

    count = []
    monkeypatch.setattr(Progress, "refresh", lambda _: count.append(clock.now))
    return count


@pytest.mark.parametrize("name", BARS)
def test_a_bar_stands_where_the_work_stands(name, clock, drawn, monkeypatch):
    terminal = on_terminal(monkeypatch)
    make, options, advance, start = BARS[name]
    with make(quiet=False, **options) as bar:
        start(bar)
        drawn.clear()
        for step in range(8):
            clock.now += 0.04
            advance(bar, 10 + step)
        # the first at once, then each a tenth of a second or more after the one before
        assert [round(at - 1000, 2) for at in drawn] == [0.04, 0.16, 0.28]
        (task,) = bar._progress.tasks
        assert (task.total, task.completed) == (1000, sum(range(10, 18)))
        if name == "capture":
            assert task.fields["captured"] == "324 B"
            start(bar)
            assert task.total == 2000
        drawn.clear()
    assert "\x1b[?25h" in terminal.getvalue()  # the cursor is back


def test_a_search_shows_the_smallest_schedule_so_far(clock, drawn, monkeypatch):
    on_terminal(monkeypatch)
    found: Any = SimpleNamespace(events=4)
    with search_progress(quiet=False, tries=500) as shown:
        tried: Any = shown
        drawn.clear()
        tried(10, None)
        (task,) = tried.__self__._progress.tasks
        assert (task.total, task.completed, task.fields["found"], len(drawn)) == (500, 10, "", 1)
        clock.now += 0.05
        tried(15, found)
        assert (task.completed, len(drawn)) == (10, 1)
        clock.now += 0.06
        tried(20, found)
        assert (task.completed, task.fields["found"], len(drawn)) == (20, ", one with 4 events", 2)


@pytest.mark.parametrize("quiet", [False, True])
def test_no_bar_where_nobody_looks(monkeypatch, quiet):
    """Quiet, or stderr is no terminal: nothing is drawn."""
    stderr = Terminal() if quiet else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    with progress_on_stderr(quiet=quiet) as scan, search_progress(quiet=quiet, tries=5) as search:
        scan.start(10)
        scan.advance(10)
        search(5, None)
    with capture_progress(quiet=quiet, verbose=True) as capture:
        capture.start(10)
        capture.advance(10, 10)
        capture.problem("orders-0", "gone\x1b[2J")
    assert stderr.getvalue() == "kaudit: orders-0: gone\\x1b[2J\n"


def test_a_bar_of_a_capture_is_drawn_by_nobody_else(clock, monkeypatch):
    on_terminal(monkeypatch)
    with capture_progress(quiet=False, verbose=False) as capture:
        assert not capture._progress.live.auto_refresh  # type: ignore[attr-defined]
        assert capture._progress.live.transient  # type: ignore[attr-defined]


def test_a_problem_stands_above_the_bar(clock, monkeypatch):
    terminal = on_terminal(monkeypatch)
    with capture_progress(quiet=False, verbose=False) as capture:
        capture.start(10)
        capture.problem("orders-0", "[red]gone\x1b[2J")
    assert "kaudit: orders-0: [red]gone\\x1b[2J" in terminal.getvalue()
