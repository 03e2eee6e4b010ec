"""When a watch looks and when it ends, by a clock of the test."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.cli import watching
from kaudit.cli.watching import _Times, _times
from kaudit.errors import UsageError
from kaudit.model.finding import Finding
from kaudit.model.severity import Confidence, Severity, Status
from kaudit.watch.watcher import Round


@dataclass
class Watch:
    """A watcher and the event that stops it: round N takes `took` s and has read `changed[N]` partitions on."""

    changed: list[int]
    took: float = 0.0
    new: dict[int, list[Finding]] = field(default_factory=dict)
    stops_at: float = 1e9
    now: float = 1000.0
    rounds: list[tuple[float, bool]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    published: list[float] = field(default_factory=list)

    def round(self, *, last: bool) -> Round:
        number = len(self.rounds)
        self.rounds.append((round(self.now - 1000, 3), last))
        self.now += self.took
        return Round(self.new.get(number, []), (self.changed + [0] * 99)[number], None)

    def is_set(self) -> bool:
        return self.now >= self.stops_at

    def wait(self, seconds: float) -> None:
        self.waits.append(round(seconds, 3))
        self.now += seconds

    def run(self, monkeypatch, interval: float, until_idle: float | None, for_: float | None) -> Severity | None:
        """Go round until the watch ends."""
        monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: self.now))
        me: Any = self
        return watching._rounds(
            me, _Times(interval, until_idle, for_), me, lambda _, seconds: self.published.append(round(seconds, 3))
        )


def test_pauses_double_up_to_the_interval_and_begin_anew_after_a_change(monkeypatch):
    watch = Watch([1, 0, 0, 0, 1, 0], stops_at=1002.5)
    assert watch.run(monkeypatch, 0.5, None, None) is None
    assert watch.waits == [0.1, 0.2, 0.4, 0.5, 0.1, 0.2, 0.4, 0.5, 0.5]
    assert {last for _, last in watch.rounds} == {False}


def test_at_most_half_of_the_time_is_spent_on_looking(monkeypatch):
    watch = Watch([1] * 9, took=3.0, stops_at=1010.0)
    watch.run(monkeypatch, 1.0, None, None)
    assert (watch.waits, watch.published) == ([3.0, 3.0], [3.0, 3.0])
    assert watch.rounds == [(0.0, False), (6.0, False)]


def test_a_watch_that_is_idle_looks_once_more_and_ends(monkeypatch):
    """Nothing changed for a second behind the round at 0.1: at 1.1 or later it is idle, and the next round is the last."""
    watch = Watch([1, 1, 0])
    watch.run(monkeypatch, 0.4, 1.0, None)
    assert watch.waits == [0.1, 0.1, 0.2, 0.4, 0.4]
    assert watch.rounds == [
        (0.0, False),
        (0.1, False),
        (0.2, False),
        (0.4, False),
        (0.8, False),
        (1.2, False),
        (1.2, True),
    ]


def test_a_watch_is_idle_at_the_very_second(monkeypatch):
    watch = Watch([1], took=0.5)
    watch.run(monkeypatch, 0.5, 1.0, None)
    assert watch.rounds == [(0.0, False), (1.0, False), (1.5, True)]


def test_a_watch_ends_when_its_time_is_over(monkeypatch):
    watch = Watch([1, 0, 0, 0, 0], took=0.25)
    watch.run(monkeypatch, 10.0, None, 1.5)
    assert watch.rounds == [(0.0, False), (0.5, False), (1.0, False), (1.5, False)]
    assert watch.waits == [0.25, 0.25, 0.25]


def test_the_last_pause_ends_with_the_time(monkeypatch):
    watch = Watch([])
    watch.run(monkeypatch, 10.0, None, 1.0)
    assert watch.waits == [0.2, 0.4, 0.4]
    assert watch.rounds[-1] == (1.0, False)


def test_a_watch_without_time_looks_once(monkeypatch):
    watch = Watch([1])
    watch.run(monkeypatch, 1.0, None, 0.0)
    assert (watch.rounds, watch.waits) == ([(0.0, False)], [])


def test_a_watch_that_was_stopped_before_it_began_does_not_look(monkeypatch):
    watch = Watch([1], stops_at=1000.0)
    assert watch.run(monkeypatch, 1.0, None, None) is None
    assert (watch.rounds, watch.published) == ([], [])


def finding(severity: Severity, status: Status = Status.NEW) -> Finding:
    return Finding("KA104", "", severity, Confidence.CERTAIN, "", topic="t", partition=0, status=status)


@pytest.mark.parametrize(
    ("new", "worst"),
    [
        ({0: [finding(Severity.WARNING)], 2: [finding(Severity.NOTE)]}, Severity.WARNING),
        ({1: [finding(Severity.WARNING), finding(Severity.ERROR)]}, Severity.ERROR),
        ({0: [finding(Severity.ERROR, Status.KNOWN)], 1: [finding(Severity.NOTE)]}, Severity.NOTE),
        ({0: [finding(Severity.ERROR, Status.SUPPRESSED)]}, None),
    ],
)
def test_the_worst_of_what_is_new_decides(monkeypatch, new, worst):
    assert Watch([1, 1, 1], new=new, stops_at=1001.0).run(monkeypatch, 0.1, None, None) is worst


@pytest.mark.parametrize("interval", ["1m", "2s"])
@pytest.mark.parametrize("until_idle", [None, "3s"])
@pytest.mark.parametrize("for_", [None, "0s"])
def test_times_are_given_with_units(interval, until_idle, for_):
    seconds = {None: None, "1m": 60.0, "2s": 2.0, "3s": 3.0, "0s": 0.0}
    run: Any = SimpleNamespace(interval=interval, until_idle=until_idle, for_=for_)
    assert _times(run) == _Times(*(seconds[text] for text in (interval, until_idle, for_)))  # type: ignore[arg-type]


def test_an_interval_takes_time():
    run: Any = SimpleNamespace(interval="0s", until_idle=None, for_=None)
    with pytest.raises(UsageError, match=r"^--interval 0s: not long enough to look$"):
        _times(run)
