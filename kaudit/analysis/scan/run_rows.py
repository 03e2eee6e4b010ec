"""Batches of producers to runs, their boundary batches and markers: a chunk with its consecutive batches summed up."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kaudit.analysis.scan.grouping import group
from kaudit.analysis.scan.rows import BOUNDARY_BATCH, MARKER, RUN, SILENCE_MS
from kaudit.model.batch import Batches, last_sequences
from kaudit.model.batch_fields import (
    ABORT_MARKER,
    COMMIT_MARKER,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    TRANSACTIONAL_FLAG,
    UNTOLD_CONTROL,
)
from kaudit.model.columns import Column, Columns, no_rows
from kaudit.model.producer_state import NUM_BATCHES_TO_RETAIN

_CURRENT_MAGIC = 2
_KEY = np.dtype([("sequence", np.int32), ("epoch", np.int16), ("flags", np.int16)])
"""A batch among those of its producer id; eight bytes, compared as one number."""
_NOTHING_FOLLOWS = -1
"""Flags no batch has."""

Indexes = NDArray[np.intp]


def producer_rows(
    batches: Batches, lasts: NDArray[np.int64], before: NDArray[np.int64], segment: int
) -> tuple[Columns, Columns, Columns]:
    """Return runs, their boundary batches, and markers, each by producer id and then in the order of the log.

    `lasts` is each batch's last offset, `before` how many offsets of the chunk earlier batches cover.
    """
    # Brokers take any producer id below 0 as none, whatever epoch and sequence come with it.
    mine = np.flatnonzero((batches["producer_id"] >= 0) & (batches["magic"] == _CURRENT_MAGIC))
    if not len(mine):
        return no_rows(RUN), no_rows(BOUNDARY_BATCH), no_rows(MARKER)
    everyone = len(mine) == len(batches)
    order, ids = group(batches["producer_id"] if everyone else batches["producer_id"][mine])
    if not everyone:
        order = mine[order]
    sequences = last_sequences(batches)
    control = batches["attributes"] & CONTROL_FLAG != 0
    first = _run_starts(batches, sequences, control, order, ids)
    if not control.any():
        runs, boundary = _runs(batches, lasts, before, sequences, order, first, segment)
        return runs, boundary, no_rows(MARKER)
    own = control[order]
    markers = _markers(batches, before, order[own], segment)
    data = ~own
    runs, boundary = _runs(batches, lasts, before, sequences, order[data], first[data], segment)
    return runs, boundary, markers


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
    np.not_equal(own.take(order[1:]), following.take(order[:-1]), out=starts[1:])
    starts[1:] |= ids[1:] != ids[:-1]
    times = batches["max_timestamp"]
    if int(times.max()) - int(times.min()) >= SILENCE_MS:
        times = times[order]
        starts[1:] |= times[1:] - times[:-1] >= SILENCE_MS
    return starts


def _markers(batches: Batches, before: NDArray[np.int64], control: Indexes, segment: int) -> Columns:
    kind, count = batches["control_type"].take(control), batches["record_count"].take(control)
    # other control types are not the transaction logic's: it would raise on them
    told = (kind == ABORT_MARKER) | (kind == COMMIT_MARKER) | (kind == UNTOLD_CONTROL) | (count == 0)
    index = control if told.all() else control.compress(told)
    copied = ("producer_id", "producer_epoch", "coordinator_epoch", "leader_epoch", "position", "record_count", "size")
    columns: dict[str, NDArray[Any] | int] = {name: batches[name].take(index) for name in copied}
    columns["offset"] = batches["base_offset"].take(index)
    columns["type"] = batches["control_type"].take(index)
    columns["timestamp"] = batches["max_timestamp"].take(index)
    columns["present_before"] = before.take(index)
    columns["segment"] = segment
    return Columns(MARKER, len(index), columns)


def _runs(
    batches: Batches,
    lasts: NDArray[np.int64],
    before: NDArray[np.int64],
    sequences: NDArray[np.int64],
    data: Indexes,
    first: NDArray[np.bool_],
    segment: int,
) -> tuple[Columns, Columns]:
    """Runs and boundary batches of the data batches `data`, in that order; a run begins where `first` is set."""
    starts = np.flatnonzero(first)
    if not len(starts):
        return no_rows(RUN), no_rows(BOUNDARY_BATCH)
    ends = np.append(starts[1:], len(data)) - 1
    lengths = ends - starts + 1
    counts = np.minimum(lengths, 2 * NUM_BATCHES_TO_RETAIN)
    boundary_stops = np.cumsum(counts)
    every = len(data) == int(boundary_stops[-1])
    kept = data if every else data.take(_boundary_indexes(starts, lengths, boundary_stops))
    boundary = _boundary_batches(batches, lasts, before, sequences, kept, segment)
    # a run's first and last batch are boundary batches, gathered already; runs of one batch each are their boundary batches
    single = len(starts) == len(boundary)
    boundary_start = boundary_stops - counts

    def of_first(name: str) -> NDArray[Any]:
        return boundary[name] if single else boundary[name].take(boundary_start)

    def of_last(name: str) -> NDArray[Any]:
        return boundary[name] if single else boundary[name].take(boundary_stops - 1)

    heads = data if single else data.take(starts)
    attributes, times = batches["attributes"], batches["max_timestamp"]
    begun, sizes, counted, deltas = (
        batches[name] for name in ("base_timestamp", "size", "record_count", "last_offset_delta")
    )
    newest = of_last("max_timestamp")
    columns: dict[str, Column | int] = {
        "producer_id": batches["producer_id"].take(heads),
        "producer_epoch": batches["producer_epoch"].take(heads),
        "is_transactional": attributes.take(heads) & TRANSACTIONAL_FLAG != 0,
        "first_sequence": of_first("first_sequence"),
        "last_sequence": of_last("last_sequence"),
        "first_offset": of_first("base_offset"),
        "last_offset": of_last("last_offset"),
        "first_position": of_first("position"),
        "batches": lengths,
        "records": _sums(counted, data, starts, lengths),
        # only histories ask for these
        "bytes": lambda: _sums(sizes, data, starts, lengths),
        "min_timestamp": lambda: _earliest(begun, times, attributes, data, starts),
        "max_timestamp": lambda: newest if _ascends(times) else np.maximum.reduceat(times.take(data), starts),
        "partial_batches": lambda: _sums((counted - deltas < 1).astype(np.int32), data, starts, lengths),
        "last_max_timestamp": newest,
        "first_leader_epoch": of_first("leader_epoch"),
        "last_leader_epoch": of_last("leader_epoch"),
        "present_before_first": of_first("present_before"),
        "present_before_last": of_last("present_before"),
        "boundary_start": boundary_start,
        "boundary_count": counts,
        "head_count": np.minimum(lengths, NUM_BATCHES_TO_RETAIN),
        "segment": segment,
    }
    return Columns(RUN, len(starts), columns), boundary


def _earliest(
    times: NDArray[np.int64], latest: NDArray[np.int64], attributes: NDArray[np.int16], data: Indexes, starts: Indexes
) -> NDArray[np.int64]:
    horizon = attributes & DELETE_HORIZON_FLAG != 0
    if horizon.any():  # base_timestamp holds the delete horizon where that flag is set
        times = np.where(horizon, latest, times)
    if _ascends(times):
        return times.take(data.take(starts))
    least: NDArray[np.int64] = np.minimum.reduceat(times.take(data), starts)
    return least


def _ascends(values: NDArray[np.int64]) -> bool:
    """Tell whether the least of some of these values, in the order of the log, is always the first of them."""
    return bool((values[1:] >= values[:-1]).all())


def _sums(
    values: NDArray[np.int32] | NDArray[np.int64], data: Indexes, starts: Indexes, lengths: Indexes
) -> NDArray[np.int64]:
    least = int(values.min())
    if least == int(values.max()):  # nothing to gather: batches of one record, no partial ones
        return lengths * least
    own = values.take(data)
    if len(starts) == len(own):
        return own.astype(np.int64, copy=False)
    sums: NDArray[np.int64] = np.add.reduceat(own, starts, dtype=np.int64)
    return sums


def _boundary_indexes(starts: Indexes, lengths: Indexes, boundary_stops: Indexes) -> Indexes:
    """Return of each run the first and the last NUM_BATCHES_TO_RETAIN indexes; all of them if there are not more."""
    counts = np.minimum(lengths, 2 * NUM_BATCHES_TO_RETAIN)
    rank = np.arange(int(boundary_stops[-1])) - np.repeat(boundary_stops - counts, counts)
    skipped = np.repeat(lengths - counts, counts)
    return np.repeat(starts, counts) + rank + np.where(rank < NUM_BATCHES_TO_RETAIN, 0, skipped)


def _boundary_batches(
    batches: Batches,
    lasts: NDArray[np.int64],
    before: NDArray[np.int64],
    sequences: NDArray[np.int64],
    kept: Indexes,
    segment: int,
) -> Columns:
    copied = ("base_offset", "record_count", "crc", "max_timestamp", "position", "size", "leader_epoch")
    columns: dict[str, NDArray[Any] | int] = {name: batches[name].take(kept) for name in copied}
    columns["last_offset"] = lasts.take(kept)
    columns["first_sequence"] = batches["base_sequence"].take(kept)
    columns["last_sequence"] = sequences.take(kept)
    columns["present_before"] = before.take(kept)
    columns["segment"] = segment
    return Columns(BOUNDARY_BATCH, len(kept), columns)
