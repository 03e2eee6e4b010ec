"""What every producer id of a partition did, as columns, and the state a broker would rebuild from it.

Kept beside the audit's own state, which leaves bad batches out: a broker that loads a log or replicates it adopts all of
it (origin REPLICATION), so this is what its DescribeProducers would answer after a restart.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.analysis.scan.partition_replay import by_producers
from kaudit.analysis.scan.rows import Rows
from kaudit.analysis.sequences.producer_table import ProducerTable
from kaudit.model.batch_fields import NO_COORDINATOR_EPOCH, NO_OFFSET, NO_SEQUENCE, NO_TIMESTAMP
from kaudit.model.columns import Columns

PRODUCER_ACTIVITY = np.dtype(
    [
        ("first_offset", np.int64),
        ("last_offset", np.int64),
        ("first_timestamp", np.int64),
        ("last_timestamp", np.int64),
        ("batches", np.int64),
        ("records", np.int64),
        ("first_epoch", np.int16),
        ("highest_epoch", np.int16),
        ("epochs", np.int32),
        ("is_transactional", np.bool_),
        ("state_epoch", np.int16),
        ("state_sequence", np.int32),
        ("state_offset", np.int64),
        ("state_data_timestamp", np.int64),
        ("state_timestamp", np.int64),
        ("state_coordinator_epoch", np.int32),
        ("state_txn_offset", np.int64),
    ]
)
"""Offsets and timestamps cover batches and markers; -1 where there is none. `epochs` counts how often a new highest
epoch came, the first one included. `state_data_timestamp` is that of the newest batch, `state_timestamp` of the newest
batch or marker: which of them a broker remembers depends on its version."""

_NO_EPOCH = -2
"""Below any epoch a log can hold: a real producer may carry -1."""

_UNKNOWN: NDArray[Any] = np.zeros(1, dtype=PRODUCER_ACTIVITY)
for _name, _value in (
    ("first_offset", NO_OFFSET),
    ("last_offset", NO_OFFSET),
    ("first_timestamp", NO_TIMESTAMP),
    ("last_timestamp", NO_TIMESTAMP),
    ("first_epoch", _NO_EPOCH),
    ("highest_epoch", _NO_EPOCH),
    ("state_epoch", _NO_EPOCH),
    ("state_sequence", NO_SEQUENCE),
    ("state_offset", NO_OFFSET),
    ("state_data_timestamp", NO_TIMESTAMP),
    ("state_timestamp", NO_TIMESTAMP),
    ("state_coordinator_epoch", NO_COORDINATOR_EPOCH),
    ("state_txn_offset", NO_OFFSET),
):
    _UNKNOWN[_name] = _value


_SPARE_ROWS = 1 << 13


class ActivityRows:
    """Rows of PRODUCER_ACTIVITY in the order of a ProducerTable's rows: the ids and how to find them are kept there once.

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
        """Forget everything: the partition is read again."""
        self._rows = np.empty(0, dtype=PRODUCER_ACTIVITY)
        self._count = 0

    def add(self, runs: Columns, markers: Columns, table: ProducerTable) -> None:
        """Take one chunk's runs and markers, each sorted by producer id and offset; `table` knows their ids."""
        markers = markers[markers["record_count"] > 0]
        for some_runs, some_markers in by_producers(runs, markers):
            if len(some_runs) or len(some_markers):
                self._add(_Chunk(some_runs, some_markers), table)

    def _add(self, chunk: "_Chunk", table: ProducerTable) -> None:
        slots = table.slots(chunk.producer_ids)
        self._grow(len(table))
        own = self._rows[slots]
        chunk.count(own)
        chunk.rebuild(own)
        self._rows[slots] = own

    def _grow(self, count: int) -> None:
        if count > len(self._rows):
            # realloc moves large blocks by remapping pages: no second copy of a million rows
            self._rows.resize(count + _SPARE_ROWS, refcheck=False)
        self._rows[self._count : count] = _UNKNOWN
        self._count = count


class _Chunk:
    """Runs and markers of a chunk as one table, by producer id and offset, with the bounds of each producer's rows."""

    def __init__(self, runs: Columns, markers: Columns) -> None:
        count, marks = len(runs), len(markers)
        ids = np.concatenate((runs["producer_id"], markers["producer_id"]))
        offsets = np.concatenate((runs["first_offset"], markers["offset"]))
        order = np.lexsort((offsets, ids))
        self.is_run = order < count
        ids = ids[order]
        starts = np.ones(len(ids), dtype=bool)
        starts[1:] = ids[1:] != ids[:-1]
        self.starts = np.flatnonzero(starts)
        self.ends = np.append(self.starts[1:], len(ids)) - 1
        self.group = np.cumsum(starts) - 1
        self.producer_ids: NDArray[np.int64] = ids[self.starts]
        none, zero = np.full(marks, NO_SEQUENCE, dtype=np.int64), np.zeros(marks, dtype=np.int64)
        self.first_offset = offsets[order]
        self.last_offset = np.concatenate((runs["last_offset"], markers["offset"]))[order]
        self.epoch = np.concatenate((runs["producer_epoch"], markers["producer_epoch"]))[order].astype(np.int64)
        self.low_time = np.concatenate((runs["min_timestamp"], markers["timestamp"]))[order]
        self.high_time = np.concatenate((runs["max_timestamp"], markers["timestamp"]))[order]
        self.end_time = np.concatenate((runs["last_max_timestamp"], markers["timestamp"]))[order]
        self.sequence = np.concatenate((runs["last_sequence"], none))[order]
        self.batches = np.concatenate((runs["batches"], zero))[order]
        self.records = np.concatenate((runs["records"], zero))[order]
        self.transactional = np.concatenate((runs["is_transactional"], np.zeros(marks, dtype=bool)))[order]
        self.coordinator = np.concatenate(
            (np.full(count, NO_COORDINATOR_EPOCH, dtype=np.int64), markers["coordinator_epoch"])
        )[order]

    def count(self, own: Rows) -> None:
        """Add what these rows say of activity; `own` are the producers' rows before, in the chunk's order."""
        starts = self.starts
        fresh = own["first_offset"] == NO_OFFSET
        own["first_offset"] = np.where(fresh, self.first_offset[starts], own["first_offset"])
        own["last_offset"] = np.maximum(own["last_offset"], np.maximum.reduceat(self.last_offset, starts))
        never = np.iinfo(np.int64).max
        low = np.minimum.reduceat(np.where(self.low_time >= 0, self.low_time, never), starts)
        known = np.where(own["first_timestamp"] >= 0, own["first_timestamp"], never)
        low = np.minimum(low, known)
        own["first_timestamp"] = np.where(low == never, NO_TIMESTAMP, low)
        own["last_timestamp"] = np.maximum(own["last_timestamp"], np.maximum.reduceat(self.high_time, starts))
        own["batches"] += np.add.reduceat(self.batches, starts)
        own["records"] += np.add.reduceat(self.records, starts)
        own["is_transactional"] |= np.logical_or.reduceat(self.transactional | ~self.is_run, starts)
        own["first_epoch"] = np.where(fresh, self.epoch[starts], own["first_epoch"])
        own["epochs"] += self._rises(own["highest_epoch"].astype(np.int64))
        highest = np.maximum.reduceat(self.epoch, starts)
        own["highest_epoch"] = np.maximum(own["highest_epoch"], highest)

    def _rises(self, highest: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count for each producer how often its highest epoch rises."""
        # one running maximum over all producers: each one's epochs lie above those of the one before
        base = self.group * (1 << 17)
        value = np.maximum(self.epoch, highest[self.group]) + base
        reached = np.maximum.accumulate(value)
        before = np.empty_like(reached)
        before[0] = 0
        before[1:] = reached[:-1]
        before[self.starts] = highest + base[self.starts]
        return np.add.reduceat((reached > before).astype(np.int64), self.starts)

    def rebuild(self, own: Rows) -> None:
        """Move each producer's state to the end of the chunk the way a broker loading the log does."""
        ends = self.ends
        rows = np.arange(len(self.epoch))
        previous = np.empty_like(self.epoch)
        previous[1:] = self.epoch[:-1]
        previous[self.starts] = own["state_epoch"]
        run_at = self._latest(rows, self.is_run)
        changed_at = self._latest(rows, self.epoch != previous)
        marker_at = self._latest(rows, ~self.is_run)
        has_run, has_marker = run_at >= 0, marker_at >= 0
        # another epoch empties the memory; data after it fills it again
        remembers = has_run & (run_at >= changed_at)
        keeps = ~has_run & (changed_at < 0)
        run, marker = np.maximum(run_at, 0), np.maximum(marker_at, 0)
        for name, values, none in (
            ("state_sequence", self.sequence, NO_SEQUENCE),
            ("state_offset", self.last_offset, NO_OFFSET),
        ):
            own[name] = np.where(remembers, values[run], np.where(keeps, own[name], none))
        own["state_data_timestamp"] = np.where(has_run, self.end_time[run], own["state_data_timestamp"])
        own["state_timestamp"] = self.end_time[ends]
        own["state_coordinator_epoch"] = np.where(has_marker, self.coordinator[marker], own["state_coordinator_epoch"])
        own["state_epoch"] = self.epoch[ends]
        self._transactions(own, marker_at)

    def _transactions(self, own: Rows, marker_at: NDArray[np.int64]) -> None:
        """An open transaction began with the first transactional batch after the last marker."""
        count = len(self.epoch)
        opening = np.where(self.transactional, np.arange(count), count)
        upcoming = np.append(np.minimum.accumulate(opening[::-1])[::-1], count)
        after = np.where(marker_at >= 0, marker_at + 1, self.starts)
        first = upcoming[after]
        opens = first <= self.ends
        held = np.where(marker_at >= 0, NO_OFFSET, own["state_txn_offset"])
        begun = self.first_offset[np.minimum(first, count - 1)]
        own["state_txn_offset"] = np.where(held != NO_OFFSET, held, np.where(opens, begun, NO_OFFSET))

    def _latest(self, rows: NDArray[np.int64], chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Row number of each producer's last chosen row, -1 without one."""
        newest = np.maximum.accumulate(np.where(chosen, rows, -1))[self.ends]
        return np.where(newest >= self.starts, newest, -1)
