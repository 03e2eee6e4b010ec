"""Runs as reports show them: consecutive runs are merged, since chunks may cut a run anywhere."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kaudit.model.batch_fields import ABORT_MARKER, COMMIT_MARKER
from kaudit.model.columns import Columns
from kaudit.model.dtypes import dtype_of
from kaudit.model.schema import Bool, Int8, Int16, Int32, Int64
from kaudit.model.sequence import next_sequence
from kaudit.model.timeline import OUTCOMES
from kaudit.reading.rows import SILENCE_MS

NO_MARKER = -1
_OPEN, _COMMITTED, _ABORTED, _UNKNOWN = range(len(OUTCOMES))


class MergedRun(NamedTuple):
    """Consecutive data batches of one producer id, without an end marker or an hour of silence between them.

    `next_marker` is the index among the partition's markers of the first one of this producer after it, NO_MARKER
    without one. `transaction_first_offset` is where the transaction it is part of began, and `transaction_outcome` how that
    ended, an index into OUTCOMES; both are -1 where it is part of none.
    """

    producer_id: Int64
    producer_epoch: Int16
    is_transactional: Bool
    first_sequence: Int32
    last_sequence: Int32
    first_offset: Int64
    last_offset: Int64
    batches: Int64
    records: Int64
    bytes: Int64
    min_timestamp: Int64
    max_timestamp: Int64
    last_max_timestamp: Int64
    """`max_timestamp` of its last batch."""
    first_leader_epoch: Int32
    last_leader_epoch: Int32
    next_marker: Int64
    transaction_first_offset: Int64
    transaction_outcome: Int8


MERGED_RUN = dtype_of(MergedRun)

_OF_FIRST = (
    "producer_id",
    "producer_epoch",
    "is_transactional",
    "first_sequence",
    "first_offset",
    "first_leader_epoch",
)
_OF_LAST = ("last_sequence", "last_offset", "last_leader_epoch", "last_max_timestamp")
_SUMS = ("batches", "records", "bytes")


def merged_runs(runs: Columns, markers: Columns) -> Columns:
    """Return the runs of a partition as MERGED_RUN. All three are sorted by producer id and then offset."""
    if not len(runs):
        return Columns(MERGED_RUN, 0, {name: np.empty(0, MERGED_RUN[name]) for name in MERGED_RUN.names or ()})
    before = _markers_before(runs, markers)
    firsts = np.flatnonzero(_starts(runs, before))
    lasts = np.append(firsts[1:], len(runs)) - 1
    columns: dict[str, NDArray[np.generic]] = {name: runs[name][firsts] for name in _OF_FIRST}
    columns |= {name: runs[name][lasts] for name in _OF_LAST}
    columns |= {name: np.add.reduceat(runs[name], firsts) for name in _SUMS}
    columns["min_timestamp"] = np.minimum.reduceat(runs["min_timestamp"], firsts)
    columns["max_timestamp"] = np.maximum.reduceat(runs["max_timestamp"], firsts)
    before = before[firsts]
    columns["next_marker"] = _next_markers(columns["producer_id"], before, markers)
    columns["transaction_first_offset"] = _transaction_starts(columns, before)
    columns["transaction_outcome"] = _outcomes(columns, markers)
    return Columns(MERGED_RUN, len(firsts), columns)


def _markers_before(runs: Columns, markers: Columns) -> NDArray[np.int64]:
    """Return for each run how many markers come before its first offset, by producer id and then offset."""
    if not len(markers):
        return np.zeros(len(runs), dtype=np.int64)
    ids = np.concatenate([runs["producer_id"], markers["producer_id"]])
    offsets = np.concatenate([runs["first_offset"], markers["offset"]])
    is_marker = np.repeat([False, True], [len(runs), len(markers)])
    order = np.lexsort((is_marker, offsets, ids))
    counted = np.cumsum(is_marker[order])
    before: NDArray[np.int64] = counted[~is_marker[order]]
    return before


def _starts(runs: Columns, before: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which runs do not continue the one before them."""
    starts = np.ones(len(runs), dtype=bool)
    starts[1:] = before[1:] != before[:-1]
    for name in ("producer_id", "producer_epoch", "is_transactional"):
        starts[1:] |= runs[name][1:] != runs[name][:-1]
    last = runs["last_sequence"][:-1]
    first = runs["first_sequence"][1:]
    starts[1:] |= (last < 0) | (next_sequence(last) != first) | (first == 0)
    earlier, later = runs["last_max_timestamp"][:-1], runs["min_timestamp"][1:]
    # unsigned: timestamps of damaged batches may be further apart than int64 holds
    starts[1:] |= (later > earlier) & ((later - earlier).view(np.uint64) >= SILENCE_MS)
    return starts


def _next_markers(producer_ids: NDArray[np.generic], before: NDArray[np.int64], markers: Columns) -> NDArray[np.int64]:
    following = np.append(markers["producer_id"], NO_MARKER)[before]
    return np.where((before < len(markers)) & (following == producer_ids), before, NO_MARKER)


def _transaction_starts(columns: dict[str, NDArray[np.generic]], before: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first offset of each run's transaction: runs up to the same marker are one transaction."""
    chosen = np.flatnonzero(columns["is_transactional"])
    first_offsets = np.full(len(before), -1, dtype=np.int64)
    if len(chosen):
        ids, rank = columns["producer_id"][chosen], before[chosen]
        begins = np.append(True, (ids[1:] != ids[:-1]) | (rank[1:] != rank[:-1]))
        first = chosen[np.flatnonzero(begins)][np.cumsum(begins) - 1]
        first_offsets[chosen] = columns["first_offset"][first]
    return first_offsets


def _outcomes(columns: dict[str, NDArray[np.generic]], markers: Columns) -> NDArray[np.int8]:
    """Return how the transaction of each run ended, by the type of the next marker; -1 for runs outside transactions."""
    marker = columns["next_marker"]
    kind = np.append(markers["type"], 0)[marker]  # NO_MARKER takes the last one
    outcome = np.where(kind == COMMIT_MARKER, _COMMITTED, np.where(kind == ABORT_MARKER, _ABORTED, _UNKNOWN))
    outcome = np.where(marker == NO_MARKER, _OPEN, outcome)
    return np.where(columns["is_transactional"], outcome, -1).astype(np.int8)
