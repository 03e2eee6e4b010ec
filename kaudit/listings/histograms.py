"""How producer ids spread: by what they wrote, how long they lived, how long they have been silent, when they came."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

_SECOND_MS = 1000
_MINUTE_MS = 60 * _SECOND_MS
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS
COUNTS = (0, 1, 2, 10, 100, 1000, 10_000, 100_000, 1_000_000)
LIFETIMES_MS = (0, _SECOND_MS, _MINUTE_MS, _HOUR_MS, _DAY_MS, 7 * _DAY_MS)
IDLE_TIMES_MS = (0, _MINUTE_MS, _HOUR_MS, _DAY_MS, 7 * _DAY_MS)
"""Up to the default producer.id.expiration.ms, a day, and what it was before 3.4, seven."""
_STEPS_MS = (
    *(_SECOND_MS, 10 * _SECOND_MS, _MINUTE_MS, 10 * _MINUTE_MS, _HOUR_MS, 6 * _HOUR_MS),
    *(_DAY_MS, 7 * _DAY_MS, 30 * _DAY_MS, 365 * _DAY_MS),
)
_MOST_STEPS = 16


def counts_between(values: NDArray[np.integer], bounds: Sequence[int]) -> NDArray[np.int64]:
    """Count `values` from each of the ascending `bounds` on to the next; values below all of them are not counted."""
    buckets = np.searchsorted(np.array(bounds), values, side="right") - 1
    return np.bincount(buckets[buckets >= 0], minlength=len(bounds))


def histogram(counts: NDArray[np.int64], bounds: Sequence[int]) -> list[Mapping[str, int | None]]:
    """Return counts between `bounds` with the ends of each, `from` and `to`, both inclusive, the last without an end.

    Begins with the first bucket that is not empty and ends with the last one.
    """
    held = np.flatnonzero(counts).tolist()
    ends = [*(bound - 1 for bound in bounds[1:]), None]
    if not held:
        return []
    return [{"from": bounds[at], "to": ends[at], "ids": int(counts[at])} for at in range(held[0], held[-1] + 1)]


class TimeSteps(Struct, frozen=True):
    """At most 16 equal steps of a natural length, ms: the first is number `first` since the epoch."""

    step: int
    first: int
    count: int

    @classmethod
    def between(cls, first: int, last: int) -> "TimeSteps":
        """Return the steps that cover these times, ms."""
        fitting = (step for step in _STEPS_MS if last // step - first // step < _MOST_STEPS)
        step = next(fitting, (last - first) // (_MOST_STEPS - 1) + 1)
        return cls(step, first // step, last // step - first // step + 1)

    def counts(self, timestamps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count timestamps in each step."""
        return np.bincount(timestamps // self.step - self.first, minlength=self.count)

    def rows(self, counts: NDArray[np.int64]) -> list[Mapping[str, int]]:
        """Return the counts with the beginnings of their steps; steps nobody began in are counted as 0."""
        return [
            {"start_timestamp": (self.first + at) * self.step, "ids": count} for at, count in enumerate(counts.tolist())
        ]
