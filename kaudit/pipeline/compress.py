"""Batches of one chunk to rows: runs, markers, gaps, leader epoch steps, counts."""

import numpy as np
from numpy.typing import NDArray

from kaudit.model.batch import (
    ABORT_MARKER,
    COMMIT_MARKER,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    Batches,
    last_offsets,
    last_sequences,
)
from kaudit.pipeline.rows import (
    EDGE,
    EPOCH_STEP,
    GAP,
    MARKER,
    RUN,
    SILENCE_MS,
    WINDOW,
    ChunkRows,
    Counts,
    Rows,
)

_CURRENT_MAGIC = 2


def compress(
    batches: Batches,
    *,
    segment: int,
    start: int,
    read_to: int,
    stop: int,
    log_start_offset: int | None,
    latest_timestamp: int,
) -> ChunkRows:
    """Compress the sound batches of one chunk, in file order; those wholly below the log start offset are only counted.

    Batches whose offsets do not ascend make the chunk `ordered` False: its order is for the caller to settle.
    """
    counts = _count(batches, latest_timestamp)
    if log_start_offset is not None and len(batches):
        batches = batches[last_offsets(batches) >= log_start_offset]
    lasts = last_offsets(batches)
    bases = _first_offsets(batches, lasts)
    ordered = bool((bases[1:] > lasts[:-1]).all()) if len(batches) > 1 else True
    present = np.cumsum(lasts - bases + 1) if len(batches) else np.empty(0, dtype=np.int64)
    rows = ChunkRows(
        segment=segment,
        start=start,
        read_to=read_to,
        stop=stop,
        runs=np.empty(0, dtype=RUN),
        edges=np.empty(0, dtype=EDGE),
        markers=np.empty(0, dtype=MARKER),
        gaps=np.empty(0, dtype=GAP),
        leader_epochs=np.empty(0, dtype=EPOCH_STEP),
        counts=counts,
        ordered=ordered,
    )
    if not len(batches):
        return rows
    rows.first_offset, rows.last_offset = int(bases[0]), int(lasts[-1])
    rows.wrapper_first = int(batches["record_count"][0]) < 0
    rows.first_position = int(batches["position"].min())
    rows.last_end = int((batches["position"] + batches["size"]).max())
    if not ordered:
        return rows
    rows.offsets_present = int(present[-1])
    before = present - (lasts - bases + 1)
    rows.gaps = _gaps(batches, bases, lasts, segment)
    rows.leader_epochs = _leader_epoch_steps(batches, bases, lasts, segment)
    _producer_rows(rows, batches, lasts, before, segment)
    return rows


def _first_offsets(batches: Batches, lasts: NDArray[np.int64]) -> NDArray[np.int64]:
    """First offset of each batch; a compressed wrapper of magic 0 or 1 names its last only: it follows its neighbour."""
    bases: NDArray[np.int64] = batches["base_offset"]
    wrapper = batches["record_count"] < 0
    if not wrapper.any():
        return bases
    bases = bases.copy()
    index = np.flatnonzero(wrapper)
    previous = np.where(index > 0, lasts[index - 1] + 1, bases[index])
    bases[index] = np.minimum(bases[index], np.maximum(previous, 0))
    return bases


def _count(batches: Batches, latest_timestamp: int) -> Counts:
    attributes = batches["attributes"]
    count, delta = batches["record_count"], batches["last_offset_delta"]
    current = batches["magic"] == _CURRENT_MAGIC
    timestamps = batches["max_timestamp"]
    known = timestamps[(timestamps >= 0) & (timestamps <= latest_timestamp)]
    return Counts(
        batches=len(batches),
        records=int(count[count > 0].sum(dtype=np.int64)),
        bytes=int(batches["size"].sum()),
        legacy_batches=int((~current).sum()),
        compressed_legacy=int((count < 0).sum()),
        without_producer=int((current & (batches["producer_id"] < 0)).sum()),
        partial_batches=int((current & (count != delta + 1)).sum()),
        empty_batches=int((current & (count == 0)).sum()),
        delete_horizons=int((current & (attributes & DELETE_HORIZON_FLAG != 0)).sum()),
        markers=int((attributes & CONTROL_FLAG != 0).sum()),
        log_append_time=int((attributes & LOG_APPEND_TIME_FLAG != 0).sum()),
        max_timestamp=int(known.max()) if len(known) else -1,
        min_timestamp=int(known.min()) if len(known) else -1,
    )


def _gaps(batches: Batches, bases: NDArray[np.int64], lasts: NDArray[np.int64], segment: int) -> Rows:
    index = np.flatnonzero(bases[1:] > lasts[:-1] + 1) + 1
    gaps = np.empty(len(index), dtype=GAP)
    gaps["first_missing"] = lasts[index - 1] + 1
    gaps["last_missing"] = bases[index] - 1
    gaps["position"] = batches["position"][index]
    gaps["segment"] = segment
    return gaps


def _leader_epoch_steps(batches: Batches, bases: NDArray[np.int64], lasts: NDArray[np.int64], segment: int) -> Rows:
    epochs = batches["leader_epoch"]
    known = np.flatnonzero((batches["magic"] == _CURRENT_MAGIC) & (epochs >= 0))
    changed = np.ones(len(known), dtype=bool)
    changed[1:] = epochs[known[1:]] != epochs[known[:-1]]
    index = known[changed]
    steps = np.empty(len(index), dtype=EPOCH_STEP)
    steps["leader_epoch"] = epochs[index]
    steps["base_offset"] = bases[index]
    steps["last_offset"] = lasts[index]
    steps["position"] = batches["position"][index]
    steps["segment"] = segment
    return steps


def _producer_rows(
    rows: ChunkRows, batches: Batches, lasts: NDArray[np.int64], before: NDArray[np.int64], segment: int
) -> None:
    # Brokers take any producer id below 0 as none, whatever epoch and sequence come with it.
    mine = np.flatnonzero((batches["producer_id"] >= 0) & (batches["magic"] == _CURRENT_MAGIC))
    if not len(mine):
        return
    order = mine[np.argsort(batches["producer_id"][mine], kind="stable")]
    own = batches[order]
    own_last, own_before = lasts[order], before[order]
    sequences = last_sequences(own)
    control = own["attributes"] & CONTROL_FLAG != 0
    rows.markers = _markers(own, own_before, control, segment)
    data = ~control
    first = _run_starts(own, sequences, data)
    index = np.flatnonzero(data)
    if not len(index):
        return
    rows.runs, rows.edges = _runs(
        own[index], own_last[index], own_before[index], sequences[index], first[index], segment
    )


def _run_starts(own: Batches, sequences: NDArray[np.int64], data: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell for each batch, sorted by producer id and offset, whether it starts a run."""
    transactional = own["attributes"] & TRANSACTIONAL_FLAG
    starts = np.ones(len(own), dtype=bool)
    following = (sequences[:-1] + 1) & 0x7FFFFFFF
    starts[1:] = ~(
        (own["producer_id"][1:] == own["producer_id"][:-1])
        & (own["producer_epoch"][1:] == own["producer_epoch"][:-1])
        & (transactional[1:] == transactional[:-1])
        & data[1:]
        & data[:-1]
        & (own["base_sequence"][1:] == following)
        & (sequences[:-1] >= 0)
        & (own["max_timestamp"][1:] - own["max_timestamp"][:-1] < SILENCE_MS)
    )
    return starts


def _markers(own: Batches, before: NDArray[np.int64], control: NDArray[np.bool_], segment: int) -> Rows:
    ends = (own["control_type"] == ABORT_MARKER) | (own["control_type"] == COMMIT_MARKER)
    # other control types are not the transaction logic's: it would raise on them
    index = np.flatnonzero(control & (ends | (own["record_count"] == 0)))
    markers = np.empty(len(index), dtype=MARKER)
    chosen = own[index]
    markers["offset"] = chosen["base_offset"]
    for name in ("producer_id", "producer_epoch", "coordinator_epoch", "leader_epoch", "position", "record_count"):
        markers[name] = chosen[name]
    markers["type"] = chosen["control_type"]
    markers["timestamp"] = chosen["max_timestamp"]
    markers["size"] = chosen["size"]
    markers["present_before"] = before[index]
    markers["segment"] = segment
    return markers


def _runs(
    data: Batches,
    lasts: NDArray[np.int64],
    before: NDArray[np.int64],
    sequences: NDArray[np.int64],
    first: NDArray[np.bool_],
    segment: int,
) -> tuple[Rows, Rows]:
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(data)) - 1
    lengths = ends - starts + 1
    runs = np.empty(len(starts), dtype=RUN)
    heads, tails = data[starts], data[ends]
    for name in ("producer_id", "producer_epoch"):
        runs[name] = heads[name]
    runs["is_transactional"] = heads["attributes"] & TRANSACTIONAL_FLAG != 0
    runs["first_sequence"] = heads["base_sequence"]
    runs["last_sequence"] = sequences[ends]
    runs["first_offset"] = heads["base_offset"]
    runs["last_offset"] = lasts[ends]
    runs["first_position"] = heads["position"]
    runs["batches"] = lengths
    runs["records"] = np.add.reduceat(data["record_count"], starts, dtype=np.int64)
    runs["bytes"] = np.add.reduceat(data["size"], starts, dtype=np.int64)
    # base_timestamp holds the delete horizon where that flag is set
    horizon = data["attributes"] & DELETE_HORIZON_FLAG != 0
    earliest = np.where(horizon, data["max_timestamp"], data["base_timestamp"])
    runs["min_timestamp"] = np.minimum.reduceat(earliest, starts)
    runs["max_timestamp"] = np.maximum.reduceat(data["max_timestamp"], starts)
    runs["last_max_timestamp"] = tails["max_timestamp"]
    runs["first_leader_epoch"] = heads["leader_epoch"]
    runs["last_leader_epoch"] = tails["leader_epoch"]
    partial = (data["record_count"] != data["last_offset_delta"] + 1).astype(np.int64)
    runs["partial_batches"] = np.add.reduceat(partial, starts)
    runs["present_before_first"] = before[starts]
    runs["present_before_last"] = before[ends]
    runs["segment"] = segment

    rank = np.arange(len(data)) - np.repeat(starts, lengths)
    remaining = np.repeat(lengths, lengths) - rank
    kept = np.flatnonzero((rank < WINDOW) | (remaining <= WINDOW))
    edges = np.empty(len(kept), dtype=EDGE)
    chosen = data[kept]
    edges["base_offset"] = chosen["base_offset"]
    edges["last_offset"] = lasts[kept]
    edges["first_sequence"] = chosen["base_sequence"]
    edges["last_sequence"] = sequences[kept]
    for name in ("record_count", "crc", "max_timestamp", "position", "size", "leader_epoch"):
        edges[name] = chosen[name]
    edges["present_before"] = before[kept]
    edges["segment"] = segment
    runs["edges"] = np.minimum(lengths, 2 * WINDOW)
    runs["edges_start"] = np.concatenate(([0], np.cumsum(runs["edges"])[:-1]))
    runs["head"] = np.minimum(lengths, WINDOW)
    return runs, edges
