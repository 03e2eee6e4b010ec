"""Batches of producers to runs, their edges and markers: what remains of a chunk once its healthy stretches are summed up."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.model.batch import Batches, last_sequences
from kaudit.model.batch_fields import (
    ABORT_MARKER,
    COMMIT_MARKER,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    TRANSACTIONAL_FLAG,
    UNTOLD_CONTROL,
)
from kaudit.pipeline.grouping import group
from kaudit.pipeline.rows import EDGE, MARKER, RUN, SILENCE_MS, WINDOW, Rows, assemble, chosen_rows

_CURRENT_MAGIC = 2
_KEY = np.dtype([("sequence", np.int32), ("epoch", np.int16), ("flags", np.int16)])
"""A batch among those of its producer id; eight bytes, compared as one number."""
_NOTHING_FOLLOWS = -1
"""Flags no batch has."""

Indexes = NDArray[np.intp]


def producer_rows(
    batches: Batches, lasts: NDArray[np.int64], before: NDArray[np.int64], segment: int
) -> tuple[Rows, Rows, Rows]:
    """Return runs, their edges, and markers, each by producer id and then in the order of the log.

    `lasts` is each batch's last offset, `before` how many offsets of the chunk earlier batches cover.
    """
    # Brokers take any producer id below 0 as none, whatever epoch and sequence come with it.
    mine = np.flatnonzero((batches["producer_id"] >= 0) & (batches["magic"] == _CURRENT_MAGIC))
    if not len(mine):
        return np.empty(0, dtype=RUN), np.empty(0, dtype=EDGE), np.empty(0, dtype=MARKER)
    everyone = len(mine) == len(batches)
    order, ids = group(batches["producer_id"] if everyone else batches["producer_id"][mine])
    if not everyone:
        order = mine[order]
    sequences = last_sequences(batches)
    control = batches["attributes"] & CONTROL_FLAG != 0
    first = _run_starts(batches, sequences, control, order, ids)
    if not control.any():
        runs, edges = _runs(batches, lasts, before, sequences, order, first, segment)
        return runs, edges, np.empty(0, dtype=MARKER)
    own = control[order]
    markers = _markers(batches, before, order[own], segment)
    data = ~own
    runs, edges = _runs(batches, lasts, before, sequences, order[data], first[data], segment)
    return runs, edges, markers


def _run_starts(
    batches: Batches,
    sequences: NDArray[np.int64],
    control: NDArray[np.bool_],
    order: Indexes,
    ids: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Tell for each batch in `order` whether it starts a run.

    A batch goes on with the one before it if its own key - first sequence, epoch, flags - is the next key of that one:
    two columns to gather and compare instead of four. Nothing follows a control batch or a batch without a sequence.
    """
    own = np.empty(len(sequences), dtype=_KEY)
    own["sequence"] = batches["base_sequence"]
    own["epoch"] = batches["producer_epoch"]
    own["flags"] = batches["attributes"] & (TRANSACTIONAL_FLAG | CONTROL_FLAG)
    following = own.copy()
    following["sequence"] = (sequences + 1) & 0x7FFFFFFF
    following["flags"][(sequences < 0) | control] = _NOTHING_FOLLOWS
    own, following = own.view(np.int64), following.view(np.int64)
    starts = np.ones(len(order), dtype=bool)
    np.not_equal(own[order[1:]], following[order[:-1]], out=starts[1:])
    starts[1:] |= ids[1:] != ids[:-1]
    times = batches["max_timestamp"]
    if int(times.max()) - int(times.min()) >= SILENCE_MS:
        times = times[order]
        starts[1:] |= times[1:] - times[:-1] >= SILENCE_MS
    return starts


def _markers(batches: Batches, before: NDArray[np.int64], control: Indexes, segment: int) -> Rows:
    kind, count = batches["control_type"][control], batches["record_count"][control]
    # other control types are not the transaction logic's: it would raise on them
    index = control[(kind == ABORT_MARKER) | (kind == COMMIT_MARKER) | (kind == UNTOLD_CONTROL) | (count == 0)]
    copied = ("producer_id", "producer_epoch", "coordinator_epoch", "leader_epoch", "position", "record_count", "size")
    columns: dict[str, NDArray[Any] | int] = {name: batches[name] for name in copied}
    columns["offset"] = batches["base_offset"]
    columns["type"] = batches["control_type"]
    columns["timestamp"] = batches["max_timestamp"]
    columns["present_before"] = before
    columns["segment"] = segment
    return chosen_rows(MARKER, len(batches), columns, index)


def _runs(
    batches: Batches,
    lasts: NDArray[np.int64],
    before: NDArray[np.int64],
    sequences: NDArray[np.int64],
    data: Indexes,
    first: NDArray[np.bool_],
    segment: int,
) -> tuple[Rows, Rows]:
    """Runs and edges of the data batches `data`, in that order; a run begins where `first` is set."""
    starts = np.flatnonzero(first)
    if not len(starts):
        return np.empty(0, dtype=RUN), np.empty(0, dtype=EDGE)
    ends = np.append(starts[1:], len(data)) - 1
    lengths = ends - starts + 1
    heads, tails = data[starts], data[ends]
    attributes, times, earliest = batches["attributes"], batches["max_timestamp"], batches["base_timestamp"]
    horizon = attributes & DELETE_HORIZON_FLAG != 0
    if horizon.any():  # base_timestamp holds the delete horizon where that flag is set
        earliest = np.where(horizon, times, earliest)
    partial = (batches["record_count"] - batches["last_offset_delta"] < 1).astype(np.int32)
    edges = np.minimum(lengths, 2 * WINDOW)
    edge_ends = np.cumsum(edges)
    columns: dict[str, NDArray[Any] | int] = {
        "producer_id": batches["producer_id"][heads],
        "producer_epoch": batches["producer_epoch"][heads],
        "is_transactional": attributes[heads] & TRANSACTIONAL_FLAG != 0,
        "first_sequence": batches["base_sequence"][heads],
        "last_sequence": sequences[tails],
        "first_offset": batches["base_offset"][heads],
        "last_offset": lasts[tails],
        "first_position": batches["position"][heads],
        "batches": lengths,
        "records": _sums(batches["record_count"], data, starts, lengths),
        "bytes": _sums(batches["size"], data, starts, lengths),
        "min_timestamp": earliest[heads] if _ascends(earliest) else np.minimum.reduceat(earliest[data], starts),
        "max_timestamp": times[tails] if _ascends(times) else np.maximum.reduceat(times[data], starts),
        "last_max_timestamp": times[tails],
        "first_leader_epoch": batches["leader_epoch"][heads],
        "last_leader_epoch": batches["leader_epoch"][tails],
        "partial_batches": _sums(partial, data, starts, lengths),
        "present_before_first": before[heads],
        "present_before_last": before[tails],
        "edges_start": edge_ends - edges,
        "edges": edges,
        "head": np.minimum(lengths, WINDOW),
        "segment": segment,
    }
    kept = data[_edge_indexes(starts, lengths, edge_ends)]
    return assemble(RUN, len(starts), columns), _edges(batches, lasts, before, sequences, kept, segment)


def _ascends(values: NDArray[np.int64]) -> bool:
    """Tell whether the least of some of these values, in the order of the log, is always the first of them."""
    return bool((values[1:] >= values[:-1]).all())


def _sums(
    values: NDArray[np.int32] | NDArray[np.int64], data: Indexes, starts: Indexes, lengths: Indexes
) -> NDArray[np.int64]:
    least = int(values.min())
    if least == int(values.max()):  # nothing to gather: batches of one record, no partial ones
        return lengths * least
    sums: NDArray[np.int64] = np.add.reduceat(values[data], starts, dtype=np.int64)
    return sums


def _edge_indexes(starts: Indexes, lengths: Indexes, edge_ends: Indexes) -> Indexes:
    """Of each stretch the first WINDOW and the last WINDOW indexes; all of them if there are no more."""
    if len(starts) == int(edge_ends[-1]):
        return starts
    counts = np.minimum(lengths, 2 * WINDOW)
    rank = np.arange(int(edge_ends[-1])) - np.repeat(edge_ends - counts, counts)
    skipped = np.repeat(lengths - counts, counts)
    return np.repeat(starts, counts) + rank + np.where(rank < WINDOW, 0, skipped)


def _edges(
    batches: Batches,
    lasts: NDArray[np.int64],
    before: NDArray[np.int64],
    sequences: NDArray[np.int64],
    kept: Indexes,
    segment: int,
) -> Rows:
    copied = ("base_offset", "record_count", "crc", "max_timestamp", "position", "size", "leader_epoch")
    columns: dict[str, NDArray[Any] | int] = {name: batches[name] for name in copied}
    columns["last_offset"] = lasts
    columns["first_sequence"] = batches["base_sequence"]
    columns["last_sequence"] = sequences
    columns["present_before"] = before
    columns["segment"] = segment
    return chosen_rows(EDGE, len(batches), columns, kept)
