"""Batches of producers to runs, their boundary batches and markers: a chunk with its consecutive batches summed up."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.model.batch import Batches, last_sequences
from kaudit.model.batch_fields import (
    ABORT_MARKER,
    COMMIT_MARKER,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    TRANSACTIONAL_FLAG,
    UNREPORTED_CONTROL,
)
from kaudit.model.columns import Column, Columns, no_rows
from kaudit.model.producer_state import NUM_BATCHES_TO_RETAIN
from kaudit.model.sequence import MAX_SEQUENCE
from kaudit.reading.producer_grouping import group, merge
from kaudit.reading.rows import (
    BOUNDARY_BATCH,
    MARKER,
    NO_TAILS,
    RUN,
    SILENCE_MS,
    TAIL_BATCH,
    TAIL_BATCHES,
    Rows,
    assemble,
)

Indexes = NDArray[np.intp]
MOST_TAILS = 100
"""Epochs of a chunk whose last batches are listed."""


class ChunkBatches(NamedTuple):
    """The batches of a chunk in file order, and columns computed of them (int64, shape (n,) each)."""

    batches: Batches
    last_offsets: NDArray[np.int64]
    present_before: NDArray[np.int64]
    """How many offsets of the chunk earlier batches cover."""
    segment: NDArray[np.int32] | int
    """Index of the chunk's segment in the partition; of each batch's, shape (n,), where the chunk has several."""

    def gathered(self, dtype: np.dtype[Any], chosen: Indexes, computed: dict[str, NDArray[Any]]) -> Columns:
        """Return rows of `dtype`, one for each chosen batch: its columns are those `computed`, else the batches' own."""
        columns: dict[str, Column] = {"segment": self.segments(chosen)}
        for name in dtype.names or ():
            if name not in columns:
                columns[name] = (computed[name] if name in computed else self.batches[name]).take(chosen)
        return Columns(dtype, len(chosen), columns)

    def segments(self, chosen: Indexes) -> NDArray[np.int32] | int:
        """Return the segment of each chosen batch, or the number of all."""
        return self.segment if isinstance(self.segment, int) else self.segment.take(chosen)


class ProducerRows(NamedTuple):
    """The rows of a chunk's producers, each table by producer id and then in the order of the log."""

    runs: Columns
    boundary_batches: Columns
    markers: Columns
    tails: Rows


def producer_rows(chunk: ChunkBatches) -> ProducerRows:
    """Return runs, their boundary batches, and markers."""
    batches = chunk.batches
    # Brokers take any producer id below 0 as none, whatever epoch and sequence come with it.
    mine = np.flatnonzero((batches["producer_id"] >= 0) & (batches["magic"] == CURRENT_MAGIC))
    if not len(mine):
        return ProducerRows(no_rows(RUN), no_rows(BOUNDARY_BATCH), no_rows(MARKER), NO_TAILS)
    all_of_them = len(mine) == len(batches)
    order, ids = group(batches["producer_id"] if all_of_them else batches["producer_id"][mine])
    if not all_of_them:
        order = mine[order]
    sequences = last_sequences(batches)
    control = batches["attributes"] & CONTROL_FLAG != 0
    starts = _run_starts(batches, sequences, order)
    starts[1:] |= ids[1:] != ids[:-1]
    if not isinstance(chunk.segment, int):  # a run is read again in one segment
        starts[1:] |= chunk.segment.take(order[1:]) != chunk.segment.take(order[:-1])
    if not control.any():
        indexes, markers = RunIndexes.of(order, starts), no_rows(MARKER)
    else:
        is_control = control[order]
        data = ~is_control
        indexes, markers = RunIndexes.of(order[data], starts[data]), _markers(chunk, order[is_control])
    runs, boundary_batches = _runs_of(chunk, sequences, indexes)
    return ProducerRows(runs, boundary_batches, markers, _tails(chunk, indexes, runs))


def _run_starts(batches: Batches, sequences: NDArray[np.int64], order: Indexes) -> NDArray[np.bool_]:
    """Return for each batch in `order` whether it starts a run, unless its producer id alone says so.

    A batch goes on with the one before it if it has the next sequence, the same epoch and the same flags. Nothing follows a
    control batch or a batch without a sequence, nor the highest sequence: a batch at 0 starts a run, so that its CRC is kept
    (`start_crc` of the producer's state).
    """
    first, last = batches["base_sequence"].take(order), sequences.take(order)
    epochs, times = batches["producer_epoch"].take(order), batches["max_timestamp"]
    flags = batches["attributes"].take(order) & (TRANSACTIONAL_FLAG | CONTROL_FLAG)
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = (first[1:] != last[:-1] + 1) | (last[:-1] < 0) | (last[:-1] == MAX_SEQUENCE)
    starts[1:] |= (epochs[1:] != epochs[:-1]) | (flags[1:] != flags[:-1]) | (flags[:-1] & CONTROL_FLAG != 0)
    if int(times.max()) - int(times.min()) >= SILENCE_MS:
        starts[1:] |= np.diff(times.take(order)) >= SILENCE_MS
    return starts


def _markers(chunk: ChunkBatches, control: Indexes) -> Columns:
    batches = chunk.batches
    kind, count = batches["control_type"].take(control), batches["record_count"].take(control)
    # other control types are not the transaction logic's: it would raise on them
    ends = (kind == ABORT_MARKER) | (kind == COMMIT_MARKER) | (kind == UNREPORTED_CONTROL) | (count == 0)
    computed = {
        "offset": batches["base_offset"],
        "type": batches["control_type"],
        "timestamp": batches["max_timestamp"],
        "present_before": chunk.present_before,
    }
    return chunk.gathered(MARKER, control if ends.all() else control.compress(ends), computed)


class RunIndexes(NamedTuple):
    """The batches that make up runs; int64 arrays, shape (runs,) unless said otherwise."""

    data: Indexes
    """Indexes of the data batches by producer id, shape (batches,)."""
    starts: Indexes
    """Index in `data` of each run's first batch."""
    lengths: Indexes
    boundary_counts: Indexes
    boundary_stops: Indexes
    """Index after each run's last one among all boundary batches."""

    @classmethod
    def of(cls, data: Indexes, starts_run: NDArray[np.bool_]) -> "RunIndexes":
        """Make them from the data batches and from which of them starts a run."""
        starts = np.flatnonzero(starts_run)
        lengths = np.append(starts[1:], len(data))[: len(starts)] - starts
        counts = np.minimum(lengths, 2 * NUM_BATCHES_TO_RETAIN)
        return cls(data, starts, lengths, counts, np.cumsum(counts))

    @property
    def boundary_starts(self) -> Indexes:
        """Index of each run's first one among all boundary batches."""
        return self.boundary_stops - self.boundary_counts

    def boundary_batches(self) -> Indexes:
        """Return the indexes of each run's first and last NUM_BATCHES_TO_RETAIN batches, of all if there are no more."""
        counts = self.boundary_counts
        rank = np.arange(int(self.boundary_stops[-1])) - np.repeat(self.boundary_starts, counts)
        skipped = np.repeat(self.lengths - counts, counts)
        return self.data.take(
            np.repeat(self.starts, counts) + rank + np.where(rank < NUM_BATCHES_TO_RETAIN, 0, skipped)
        )

    def sums(self, values: NDArray[np.int32] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum of these values, one a batch of the chunk, over each run."""
        sums: NDArray[np.int64] = np.add.reduceat(values.take(self.data), self.starts, dtype=np.int64)
        return sums

    def earliest(self, batches: Batches) -> NDArray[np.int64]:
        """Return the least timestamp of each run in ms."""
        # base_timestamp holds the delete horizon where that flag is set
        has_horizon = batches["attributes"] & DELETE_HORIZON_FLAG != 0
        times = np.where(has_horizon, batches["max_timestamp"], batches["base_timestamp"])
        least: NDArray[np.int64] = np.minimum.reduceat(times.take(self.data), self.starts)
        return least


def _tails(chunk: ChunkBatches, indexes: RunIndexes, runs: Columns) -> Rows:
    """Return the last TAIL_BATCHES batches of epochs before their producers raised them, of the first MOST_TAILS of the chunk."""
    ids, epochs, plain = runs["producer_id"], runs["producer_epoch"], ~runs["is_transactional"]
    raised = (ids[1:] == ids[:-1]) & (epochs[1:] > epochs[:-1]) & (runs["first_sequence"][1:] == 0)
    chosen = np.flatnonzero(raised & plain[1:] & plain[:-1]) + 1
    places = chunk.batches["position"]
    # of a pair of batches that were swapped the order is not that of their positions
    if not len(chosen) or not isinstance(chunk.segment, int) or (places[1:] < places[:-1]).any():
        return NO_TAILS
    chosen = chosen[np.argsort(runs["first_offset"].take(chosen))[:MOST_TAILS], None]
    at = indexes.starts[chosen] + np.arange(-TAIL_BATCHES, 0)
    batches = indexes.data.take(at, mode="clip")
    own = (at >= 0) & (chunk.batches["producer_id"].take(batches) == ids[chosen])
    since = np.where(own[:, :1], places.take(batches[:, :1]), places[0])
    own &= chunk.batches["producer_epoch"].take(batches) == epochs[chosen - 1]
    own &= chunk.batches["attributes"].take(batches) & TRANSACTIONAL_FLAG == 0
    tails = chunk.batches[batches[own]]
    columns = {name: tails[name] for name in ("producer_id", "producer_epoch", "position", "size")}
    since = np.repeat(since[:, 0], own.sum(axis=1))
    return assemble(TAIL_BATCH, len(since), columns | {"since": since, "segment": chunk.segment})


def _runs_of(chunk: ChunkBatches, sequences: NDArray[np.int64], indexes: RunIndexes) -> tuple[Columns, Columns]:
    """Return runs and their boundary batches; `sequences` are the last ones of the chunk's batches."""
    if not len(indexes.starts):
        return no_rows(RUN), no_rows(BOUNDARY_BATCH)
    computed = {
        "last_offset": chunk.last_offsets,
        "first_sequence": chunk.batches["base_sequence"],
        "last_sequence": sequences,
        "present_before": chunk.present_before,
    }
    boundary = chunk.gathered(BOUNDARY_BATCH, indexes.boundary_batches(), computed)
    return _run_columns(chunk, indexes, boundary), boundary


def _run_columns(chunk: ChunkBatches, indexes: RunIndexes, boundary: Columns) -> Columns:
    batches = chunk.batches
    heads = indexes.data.take(indexes.starts)
    columns: dict[str, Column] = {
        "producer_id": batches["producer_id"].take(heads),
        "producer_epoch": batches["producer_epoch"].take(heads),
        "is_transactional": batches["attributes"].take(heads) & TRANSACTIONAL_FLAG != 0,
        "batches": indexes.lengths,
        "records": indexes.sums(batches["record_count"]),
        "bytes": indexes.sums(batches["size"]),
        "min_timestamp": indexes.earliest(batches),
        "max_timestamp": np.maximum.reduceat(batches["max_timestamp"].take(indexes.data), indexes.starts),
        "partial_batches": indexes.sums((batches["record_count"] - batches["last_offset_delta"] < 1).astype(np.int32)),
    }
    return Columns(RUN, len(heads), columns | columns_of_boundaries(boundary, indexes.lengths))


def columns_of_boundaries(boundary: Columns, lengths: NDArray[np.int64]) -> "dict[str, NDArray[Any]]":
    """Return the columns of runs that the first and the last of their boundary batches say.

    `boundary` are those of all runs in order, `lengths` the number of batches of each run, shape (runs,).
    """
    counts = np.minimum(lengths, 2 * NUM_BATCHES_TO_RETAIN)
    stops = np.cumsum(counts)
    starts, lasts = stops - counts, stops - 1
    columns: dict[str, NDArray[Any]] = {
        name: boundary[source].take(lasts if name in _OF_LAST else starts) for name, source in _OF_BOUNDARIES.items()
    }
    heads = np.minimum(lengths, NUM_BATCHES_TO_RETAIN)
    return columns | {"boundary_start": starts, "boundary_count": counts, "head_count": heads}


def goes_on(runs: Columns, boundary: Columns, markers: Columns) -> NDArray[np.bool_]:
    """Return for each run but the first whether it goes on with the run before it, by the rule of `compress`.

    All three are by producer id and then in the order of the log.
    """
    follows: NDArray[np.bool_] = runs["producer_id"][1:] == runs["producer_id"][:-1]
    follows &= runs["producer_epoch"][1:] == runs["producer_epoch"][:-1]
    follows &= runs["is_transactional"][1:] == runs["is_transactional"][:-1]
    sequences = runs["last_sequence"][:-1].astype(np.int64)
    first = runs["first_sequence"][1:]
    follows &= (sequences >= 0) & (first > 0) & (first == (sequences + 1) & MAX_SEQUENCE)
    times = boundary["max_timestamp"].take(runs["boundary_start"][1:])
    follows &= times - runs["last_max_timestamp"][:-1] < SILENCE_MS
    if len(markers):
        follows &= np.diff(merge(runs, markers).run_rows) == 1
    return follows


_OF_LAST = ("last_sequence", "last_offset", "last_max_timestamp", "last_leader_epoch", "present_before_last")
_OF_BOUNDARIES = {
    "first_sequence": "first_sequence",
    "last_sequence": "last_sequence",
    "first_offset": "base_offset",
    "last_offset": "last_offset",
    "first_position": "position",
    "last_max_timestamp": "max_timestamp",
    "first_leader_epoch": "leader_epoch",
    "last_leader_epoch": "leader_epoch",
    "present_before_first": "present_before",
    "present_before_last": "present_before",
    "segment": "segment",
}
"""Columns of runs, and what they are called of a boundary batch."""
