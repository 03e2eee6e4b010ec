"""What a partition's producers wrote over time, in buckets that those of other partitions can be added to."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.model.columns import Columns

_BUCKETS = 256
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_WIDTHS = (
    *(1, 5, 10, 50, 100, 500),
    *(_SECOND * number for number in (1, 5, 10, 30)),
    *(_MINUTE * number for number in (1, 5, 10, 30)),
    *(_HOUR * number for number in (1, 3, 6, 12)),
    *(_DAY * number for number in (1, 7, 28, 364, 3_640, 36_400)),
)
"""Widths of buckets in ms; each divides the next, so that narrow ones can be added up to wide ones."""
_LATEST = 253_402_300_799_999
"""The last ms of the year 9999: what is later is not a time."""


class ActivityOverTime(Struct, frozen=True):
    """Bucket i covers `bucket_ms` (one of _WIDTHS) from `start_ms + i * bucket_ms` on; `start_ms` is a multiple of it.

    `bytes` are those of each run, spread evenly from its first to its last timestamp; `began` and `ended` count the
    producer ids whose first and last batch is in the bucket.
    """

    start_ms: int
    bucket_ms: int
    bytes: list[int]
    began: list[int]
    ended: list[int]

    @property
    def active(self) -> list[int]:
        """How many producer ids were between their first and their last batch, by bucket."""
        ended_before = np.cumsum([0, *self.ended])[:-1]
        active: list[int] = (np.cumsum(self.began) - ended_before).tolist()
        return active


def activity_over_time(runs: Columns) -> ActivityOverTime | None:
    """Return it for the runs (MERGED_RUN) of a partition; None where none of them has a time."""
    first, last, size = runs["min_timestamp"], runs["max_timestamp"], runs["bytes"]
    timed = (first >= 0) & (first <= last) & (last <= _LATEST)
    if not timed.any():
        return None
    first, last, size, ids = first[timed], last[timed], size[timed], runs["producer_id"][timed]
    bucket = _bucket(int(first.min()), int(last.max()))
    start = int(first.min()) // bucket * bucket
    edges = start + bucket * np.arange((int(last.max()) - start) // bucket + 2)
    begins = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    count = len(edges) - 1
    return ActivityOverTime(
        start_ms=start,
        bucket_ms=bucket,
        bytes=np.diff(_written_before(edges, first, last, size)).tolist(),
        began=_counts((np.minimum.reduceat(first, begins) - start) // bucket, count),
        ended=_counts((np.maximum.reduceat(last, begins) - start) // bucket, count),
    )


def added(parts: list[ActivityOverTime]) -> ActivityOverTime | None:
    """Add up several partitions'; None without any."""
    if not parts:
        return None
    low = min(part.start_ms for part in parts)
    high = max(part.start_ms + len(part.bytes) * part.bucket_ms for part in parts) - 1
    bucket = max(_bucket(low, high), *(part.bucket_ms for part in parts))
    start = low // bucket * bucket
    count = (high - start) // bucket + 1
    sums = {name: np.zeros(count, dtype=np.int64) for name in ("bytes", "began", "ended")}
    for part in parts:
        places = (part.start_ms + part.bucket_ms * np.arange(len(part.bytes)) - start) // bucket
        for name, total in sums.items():
            np.add.at(total, places, np.array(getattr(part, name), dtype=np.int64))
    return ActivityOverTime(start, bucket, **{name: total.tolist() for name, total in sums.items()})


def _bucket(first: int, last: int) -> int:
    """Return the least width that cuts the range, both ends inclusive, into at most so many aligned buckets."""
    return next(width for width in _WIDTHS if last // width - first // width < _BUCKETS)


def _written_before(
    edges: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64], size: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the bytes written before each edge: none before the first, all before the last. A run lasts at least 1 ms."""
    rate = size / (last - first + 1)
    times = np.concatenate([first, last + 1])
    order = np.argsort(times, kind="stable")
    times = times[order]
    rates = np.cumsum(np.concatenate([rate, -rate])[order])
    written = np.append(0.0, np.cumsum(rates[:-1] * np.diff(times)))
    total = int(size.sum())
    before: NDArray[np.int64] = np.rint(np.interp(edges, times, written)).clip(0, total).astype(np.int64)
    before[-1] = total  # sums of rates are off by a byte or two after years
    return np.maximum.accumulate(before)


def _counts(places: NDArray[np.int64], buckets: int) -> list[int]:
    counted: list[int] = np.bincount(places, minlength=buckets).tolist()
    return counted
