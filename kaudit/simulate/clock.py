"""Simulated time: actions in order of time, then of scheduling. No threads, no real clock."""

from collections.abc import Callable
from heapq import heappop, heappush

BASE_TIMESTAMP = 1_700_000_000_000
"""Default wall clock at time 0, ms since 1970: fixed, so that a scenario always gives the same log."""

Action = Callable[[], None]


class Clock:
    """A queue of actions. Times are whole milliseconds since the run began."""

    def __init__(self, base: int = BASE_TIMESTAMP) -> None:
        self.base = base
        """The wall clock at time 0."""
        self.now = 0
        self.events = 0
        """How many actions have run."""
        self._queue: list[tuple[int, int, Action]] = []
        self._number = 0

    @property
    def timestamp(self) -> int:
        """The wall clock, ms since 1970."""
        return self.base + self.now

    def at(self, when: int, action: Action) -> None:
        """Run `action` at time `when`, or now if that has passed."""
        self._number += 1
        heappush(self._queue, (max(when, self.now), self._number, action))

    def after(self, delay: int, action: Action) -> None:
        """Run `action` in `delay` (>= 0) ms."""
        self.at(self.now + delay, action)

    def run(self, until: int, after_each: Action | None = None) -> None:
        """Run every action due up to and including `until`, and `after_each` after each; time then stands at the last one."""
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, _, action = heappop(queue)
            self.events += 1
            action()
            if after_each is not None:
                after_each()
