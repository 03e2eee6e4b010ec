"""The activity of every producer id of a partition, as columns, and the state a broker would rebuild from it.

Kept beside the audit's own state, which leaves bad batches out: a broker that loads a log or replicates it adopts all of
it (origin REPLICATION), so this is what its DescribeProducers would answer after a restart.
"""

from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.audits.sequences.producer_table import ProducerTable
from kaudit.broker.producer_state.rules import begins_transaction
from kaudit.model.batch_fields import NO_COORDINATOR_EPOCH, NO_OFFSET, NO_SEQUENCE, NO_TIMESTAMP
from kaudit.model.columns import Columns
from kaudit.model.dtypes import default_rows, dtype_of
from kaudit.model.schema import Bool, Int16, Int32, Int64
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.producer_grouping import Merged, of
from kaudit.reading.rows import Rows, pick, put

_NO_EPOCH = -2
"""Below any epoch a log can hold: a real producer may carry -1."""


class ProducerActivity(NamedTuple):
    """A producer id's activity in a partition. Offsets and timestamps (ms) cover batches and markers."""

    first_offset: Int64 = NO_OFFSET
    last_offset: Int64 = NO_OFFSET
    first_timestamp: Int64 = NO_TIMESTAMP
    last_timestamp: Int64 = NO_TIMESTAMP
    batches: Int64 = 0
    records: Int64 = 0
    first_epoch: Int16 = _NO_EPOCH
    highest_epoch: Int16 = _NO_EPOCH
    epochs: Int32 = 0
    """How often the highest epoch rose, the first epoch included."""
    is_transactional: Bool = False
    state_epoch: Int16 = _NO_EPOCH
    state_sequence: Int32 = NO_SEQUENCE
    state_offset: Int64 = NO_OFFSET
    state_data_timestamp: Int64 = NO_TIMESTAMP
    """Of the newest batch; which of the two a broker remembers depends on its version."""
    state_timestamp: Int64 = NO_TIMESTAMP
    """Of the newest batch or marker."""
    state_coordinator_epoch: Int32 = NO_COORDINATOR_EPOCH
    state_txn_offset: Int64 = NO_OFFSET


PRODUCER_ACTIVITY = dtype_of(ProducerActivity)
_UNKNOWN = default_rows(ProducerActivity)
_SPARE_ROWS = 1 << 13
_PART_ROWS = 1 << 14
"""Rows processed at a time: large enough for numpy, small enough for temporary columns."""


class ActivityRows:
    """Rows of PRODUCER_ACTIVITY in the order of a ProducerTable's rows; only the table has the ids.

    Takes the rows of chunks in offset order; `clear` begins again.
    """

    def __init__(self) -> None:
        self._rows: Rows = np.empty(0, dtype=PRODUCER_ACTIVITY)
        self._count = 0

    @property
    def rows(self) -> Rows:
        """One row for each of the table's; a view."""
        return self._rows[: self._count]

    def clear(self) -> None:
        """Drop all rows: the partition is read again."""
        self._rows = np.empty(0, dtype=PRODUCER_ACTIVITY)
        self._count = 0

    def add(self, chunk: ChunkRows, merged: Merged, table: ProducerTable) -> None:  # noqa: ARG002 - `merged` has its rows
        """Take one chunk's rows; `table` knows their producer ids. Markers that compaction emptied do nothing."""
        slots = table.slots(merged.producer_ids)
        self._grow(len(table))
        for part, groups in merged.parts(_PART_ROWS):
            own = pick(self._rows, slots[groups])
            _count(part, own)
            _rebuild(part, own)
            put(self._rows, slots[groups], own)

    def _grow(self, count: int) -> None:
        if count > len(self._rows):
            # realloc moves large blocks by remapping pages: no second copy of a million rows
            self._rows.resize(count + _SPARE_ROWS, refcheck=False)
        as_one = np.dtype((np.void, PRODUCER_ACTIVITY.itemsize))  # copied at once, not field by field
        self._rows[self._count : count].view(as_one)[:] = _UNKNOWN.view(as_one)
        self._count = count


def _count(merged: Merged, own: Rows) -> None:
    """Add the activity of these rows to `own`, the producers' rows so far."""
    runs, markers, starts = merged.runs, merged.markers, merged.starts
    fresh = own["first_offset"] == NO_OFFSET
    first = merged.interleaved(runs["first_offset"], markers["offset"])
    own["first_offset"] = np.where(fresh, first.take(starts), own["first_offset"])
    last = merged.interleaved(runs["last_offset"], markers["offset"])
    own["last_offset"] = np.maximum(own["last_offset"], np.maximum.reduceat(last, starts))
    _count_times(merged, own)
    own["batches"] += np.add.reduceat(merged.interleaved(runs["batches"], 0), starts)
    own["records"] += np.add.reduceat(merged.interleaved(runs["records"], 0), starts)
    transactional = merged.interleaved(runs["is_transactional"], 1)  # a producer with markers is transactional
    own["is_transactional"] |= np.logical_or.reduceat(transactional, starts)
    own["first_epoch"] = np.where(fresh, merged.epochs.take(starts), own["first_epoch"])
    own["epochs"] += _rises(merged, own["highest_epoch"].astype(np.int64))
    own["highest_epoch"] = np.maximum(own["highest_epoch"], np.maximum.reduceat(merged.epochs, starts))


def _count_times(merged: Merged, own: Rows) -> None:
    never, times = np.iinfo(np.int64).max, merged.markers["timestamp"]
    low = merged.interleaved(merged.runs["min_timestamp"], times)
    least = np.minimum.reduceat(np.where(low >= 0, low, never), merged.starts)
    least = np.minimum(least, np.where(own["first_timestamp"] >= 0, own["first_timestamp"], never))
    own["first_timestamp"] = np.where(least == never, NO_TIMESTAMP, least)
    high = np.maximum.reduceat(merged.interleaved(merged.runs["max_timestamp"], times), merged.starts)
    own["last_timestamp"] = np.maximum(own["last_timestamp"], high)


def _rises(merged: Merged, highest: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count for each producer how often its highest epoch rises."""
    # one running maximum over all producers: each producer's epochs are shifted above those of the one before
    counts = merged.ends - merged.starts + 1
    base = np.arange(len(counts)) * (1 << 17)
    value = np.maximum(merged.epochs, np.repeat(highest, counts)) + np.repeat(base, counts)
    reached = np.maximum.accumulate(value)
    before = merged.before_rows(reached, highest + base)
    return np.add.reduceat((reached > before).astype(np.int64), merged.starts)


def _rebuild(merged: Merged, own: Rows) -> None:
    """Move each producer's state to the end of these rows as a broker does that loads the log: it adopts all of it."""
    runs, markers, epochs, has_run = merged.runs, merged.markers, merged.epochs, merged.has_run
    changes = np.flatnonzero(epochs != merged.before_rows(epochs, own["state_epoch"]))
    last_change = np.append(-1, changes).take(np.searchsorted(changes, merged.ends, side="right"))
    # another epoch empties the memory; data after it fills it again
    remembers = has_run & (of(merged.run_rows, merged.last_run) >= last_change)
    keeps = ~has_run & (last_change < merged.starts)
    for name, column, none in (
        ("state_sequence", "last_sequence", NO_SEQUENCE),
        ("state_offset", "last_offset", NO_OFFSET),
    ):
        own[name] = np.where(remembers, of(runs[column], merged.last_run), np.where(keeps, own[name], none))
    times = of(runs["last_max_timestamp"], merged.last_run)
    own["state_data_timestamp"] = np.where(has_run, times, own["state_data_timestamp"])
    own["state_timestamp"] = np.where(
        merged.is_run.take(merged.ends), times, of(markers["timestamp"], merged.last_marker)
    )
    coordinator = of(markers["coordinator_epoch"], merged.last_marker)
    own["state_coordinator_epoch"] = np.where(merged.has_marker, coordinator, own["state_coordinator_epoch"])
    own["state_epoch"] = epochs.take(merged.ends)
    # an open transaction began with the first transactional batch after the last marker
    held = np.where(merged.has_marker, NO_OFFSET, own["state_txn_offset"])
    begun = of(runs["first_offset"], np.minimum(merged.opening_runs, max(len(runs) - 1, 0)))
    begins = begins_transaction(held != NO_OFFSET, merged.opening_runs < merged.run_stops)
    own["state_txn_offset"] = np.where(begins, begun, held)


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
"""The last ms of the year 9999: later values are not times."""


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
    """Return the activity over time of a partition's runs (MERGED_RUN); None where no run has a time."""
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
    """Add up the activity of several partitions; None without any."""
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
    """Return the least width that cuts the range, both ends inclusive, into at most _BUCKETS aligned buckets."""
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
