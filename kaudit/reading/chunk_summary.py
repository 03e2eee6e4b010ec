"""The batches of a chunk compressed to rows: runs, markers, gaps, leader epochs, counts."""

import numpy as np
from numpy.typing import NDArray

from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.model.batch import Batches, last_offsets
from kaudit.model.batch_fields import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_LEADER_EPOCH,
)
from kaudit.reading.batch_starts import batch_starts
from kaudit.reading.chunk_rows import ChunkRange, ChunkRows, Counts, LastBatch
from kaudit.reading.digest_leaves import range_leaves
from kaudit.reading.non_idempotent_rows import non_idempotent_rows
from kaudit.reading.rows import GAP, LEADER_EPOCH_START, Rows
from kaudit.reading.run_rows import ChunkBatches, producer_rows


def compress(  # noqa: PLR0913 - independent inputs
    batches: Batches,
    chunk: ChunkRange,
    *,
    log_start_offset: int | None,
    latest_timestamp: int,
    segments: NDArray[np.int32] | None = None,
    digests: bool = False,
) -> ChunkRows:
    """Compress the valid batches of one chunk, in file order; those wholly below the log start offset are only counted.

    Batches whose offsets do not ascend make the chunk `ordered` False: its order is for the caller to settle. Timestamps
    beyond `latest_timestamp` (ms) are not counted. `segments`: the segment of each batch, shape (n,), where they are of several;
    none of them may lie below the log start offset then. `digests` are asked for: the rows have what they need.
    """
    segment = chunk.segment if segments is None else segments
    rows = ChunkRows(*chunk, counts=_count(batches, latest_timestamp), batch_starts=batch_starts(batches, segment))
    lasts = last_offsets(batches)
    if len(batches):
        rows.last_batch = last_batch_of(batches, lasts)
        beyond = batches["max_timestamp"][batches["max_timestamp"] > latest_timestamp]
        rows.least_beyond = int(beyond.min()) if len(beyond) else None
    if log_start_offset is not None and len(batches) and int(lasts.min()) < log_start_offset:
        batches = batches[(lasts >= log_start_offset) | (lasts < 0)]  # no batch that was deleted lies below 0
        lasts = last_offsets(batches)
    if not len(batches):
        return rows
    bases = _first_offsets(batches, lasts)
    rows.first_offset, rows.last_offset = int(bases[0]), int(lasts[-1])
    rows.wrapper_first = int(batches["record_count"][0]) < 0
    rows.first_position = int(batches["position"].min())
    rows.last_position = int(batches["position"].max())
    steps = bases[1:] - lasts[:-1]
    rows.ordered = bool((steps > 0).all())
    if not rows.ordered:
        return rows
    if digests:
        rows.leaves = range_leaves(batches["base_offset"], lasts, batches["leader_epoch"], batches["crc"])
    present = np.cumsum(lasts - bases + 1)
    before = present - (lasts - bases + 1)
    rows.offsets_present = int(present[-1])
    rows.gaps = _gaps(batches, bases, lasts, chunk.segment)
    _classify_offsets(rows, batches, bases, lasts)
    rows.leader_epochs = _leader_epoch_starts(batches, bases, lasts, segment)
    summed = ChunkBatches(batches, lasts, before, segment)
    rows.runs, rows.boundary_batches, rows.markers, rows.tails = producer_rows(summed)
    if rows.counts.without_producer:
        rows.non_idempotent = non_idempotent_rows(summed)
    return rows


def _first_offsets(batches: Batches, lasts: NDArray[np.int64]) -> NDArray[np.int64]:
    """First offset of each batch; a compressed wrapper of magic 0 or 1 names its last only: it follows its neighbour."""
    bases: NDArray[np.int64] = batches["base_offset"]
    if not len(bases) or int(batches["record_count"].min()) >= 0:
        return bases
    wrapper = batches["record_count"] < 0
    bases = bases.copy()
    index = np.flatnonzero(wrapper)
    previous = np.where(index > 0, lasts[index - 1] + 1, bases[index])
    bases[index] = np.minimum(bases[index], np.maximum(previous, 0))
    return bases


def _classify_offsets(rows: ChunkRows, batches: Batches, bases: NDArray[np.int64], lasts: NDArray[np.int64]) -> None:
    """Count the offsets of control batches, and those whose records the log cleaner removed (MemoryRecords.filterTo)."""
    control = batches["attributes"] & CONTROL_FLAG != 0
    rows.marker_offsets = int((lasts - bases + 1)[control].sum())
    counts = rows.counts
    if not (counts.partial_batches or counts.empty_batches or counts.delete_horizons):
        return
    lacking = lasts - bases + 1 - batches["record_count"]
    lacking[(batches["magic"] != CURRENT_MAGIC) | control] = 0
    rows.cleaned_offsets = int(np.maximum(lacking, 0).sum())
    cleaned = lasts[
        (batches["magic"] == CURRENT_MAGIC) & (lasts - bases + 1 > batches["record_count"]) | _horizons(batches)
    ]
    rows.cleaned_to = int(cleaned.max()) if len(cleaned) else -1


def _horizons(batches: Batches) -> NDArray[np.bool_]:
    """Which batches have a delete horizon: the cleaner's lies ahead of the records, a client that sets the bit leaves it there."""
    flagged = batches["attributes"] & DELETE_HORIZON_FLAG != 0
    found: NDArray[np.bool_] = flagged & (batches["magic"] == CURRENT_MAGIC)
    return found & (batches["base_timestamp"] > batches["max_timestamp"])


def _count(batches: Batches, latest_timestamp: int) -> Counts:
    if not len(batches):
        return Counts()
    count = batches["record_count"]
    times = batches["max_timestamp"]
    known = times[(times >= 0) & (times <= latest_timestamp)]
    counts = Counts(
        batches=len(batches),
        records=int(np.maximum(count, 0).sum(dtype=np.int64)),
        bytes=int(batches["size"].sum()),
        compressed=_flagged(batches["attributes"], CODEC_MASK),
        largest_batch=int(batches["size"].max()),
        max_timestamp=int(known.max()) if len(known) else -1,
        min_timestamp=int(known.min()) if len(known) else -1,
        dated_ahead=int(np.count_nonzero(times > latest_timestamp)),
    )
    current, partial = batches["magic"] == CURRENT_MAGIC, count - batches["last_offset_delta"] < 1
    counts.legacy_batches = int(np.count_nonzero(~current))
    counts.compressed_legacy = int(np.count_nonzero(~current & (count < 0)))
    counts.without_producer = int(np.count_nonzero(current & (batches["producer_id"] < 0)))
    counts.partial_batches = int(np.count_nonzero(current & partial))
    counts.empty_batches = int(np.count_nonzero(current & (count == 0)))
    counts.delete_horizons = int(np.count_nonzero(_horizons(batches)))
    counts.markers = _flagged(batches["attributes"], CONTROL_FLAG)
    counts.log_append_time = _flagged(batches["attributes"], LOG_APPEND_TIME_FLAG)
    of_broker = times.compress(batches["attributes"] & (CONTROL_FLAG | LOG_APPEND_TIME_FLAG) != 0)
    counts.broker_timestamps = len(of_broker)
    counts.broker_timestamp = int(of_broker.max(where=of_broker <= latest_timestamp, initial=-1))
    return counts


def last_batch_of(batches: Batches, lasts: NDArray[np.int64]) -> LastBatch:
    """Describe the last of `batches`, at least one; `lasts` are their last offsets."""
    last = batches[len(batches) - 1]
    names = ("position", "size", "base_offset", "leader_epoch", "crc")
    position, size, base_offset, leader_epoch, crc = (int(last[name]) for name in names)
    return LastBatch(position, size, base_offset, int(lasts[-1]), leader_epoch, crc)


def _flagged(attributes: NDArray[np.int16], flag: int) -> int:
    return int(np.count_nonzero(attributes & flag))


def _gaps(batches: Batches, bases: NDArray[np.int64], lasts: NDArray[np.int64], segment: int) -> Rows:
    index = np.flatnonzero(bases[1:] > lasts[:-1] + 1) + 1
    gaps = np.empty(len(index), dtype=GAP)
    gaps["first_missing"] = lasts[index - 1] + 1
    gaps["last_missing"] = bases[index] - 1
    gaps["position"] = batches["position"][index]
    gaps["segment"] = segment
    return gaps


def _leader_epoch_starts(
    batches: Batches, bases: NDArray[np.int64], lasts: NDArray[np.int64], segment: NDArray[np.int32] | int
) -> Rows:
    epochs = batches["leader_epoch"]
    index = _epoch_changes(batches)
    steps = np.empty(len(index), dtype=LEADER_EPOCH_START)
    steps["leader_epoch"] = epochs[index]
    steps["base_offset"] = bases[index]
    steps["last_offset"] = lasts[index]
    steps["position"] = batches["position"][index]
    steps["segment"] = segment if isinstance(segment, int) else segment[index]
    return steps


def _epoch_changes(batches: Batches) -> NDArray[np.intp]:
    epochs = batches["leader_epoch"]
    known = np.flatnonzero((batches["magic"] == CURRENT_MAGIC) & (epochs != NO_LEADER_EPOCH))
    changed = np.ones(len(known), dtype=bool)
    changed[1:] = epochs[known[1:]] != epochs[known[:-1]]
    return known[changed]
