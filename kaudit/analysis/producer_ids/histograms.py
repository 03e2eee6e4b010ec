"""How producer ids spread: by what they wrote, how long they lived, how long they have been silent, when they came."""

from collections.abc import Mapping, Sequence

import numpy as np
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


def histogram(values: NDArray[np.integer], bounds: Sequence[int]) -> list[Mapping[str, int | None]]:
    """Count `values` between ascending `bounds`: `from` and `to`, both inclusive, the last without an end.

    Begins with the first bucket that is not empty and ends with the last one; values below all bounds are not counted.
    """
    buckets = np.searchsorted(np.array(bounds), values, side="right") - 1
    counts = np.bincount(buckets[buckets >= 0], minlength=len(bounds))
    held = np.flatnonzero(counts).tolist()
    ends = [*(bound - 1 for bound in bounds[1:]), None]
    if not held:
        return []
    return [{"from": bounds[at], "to": ends[at], "ids": int(counts[at])} for at in range(held[0], held[-1] + 1)]


def steps_of_time(timestamps: NDArray[np.int64]) -> list[Mapping[str, int]]:
    """Count timestamps (ms) in at most 16 equal steps of a natural length; steps nobody began in are counted as 0."""
    if not len(timestamps):
        return []
    first, last = int(timestamps.min()), int(timestamps.max())
    fitting = (step for step in _STEPS_MS if last // step - first // step < _MOST_STEPS)
    step = next(fitting, (last - first) // (_MOST_STEPS - 1) + 1)
    start = first // step
    counts = np.bincount(timestamps // step - start)
    return [{"start_timestamp": (start + at) * step, "ids": int(count)} for at, count in enumerate(counts.tolist())]
