"""Producers that brokers forget: those idle longest, and those that end below the log start."""

from contextlib import closing

import numpy as np
from msgspec import Struct, field

from kaudit.model.batch import Batches, last_offsets, last_sequences
from kaudit.model.batch_fields import CONTROL_FLAG, NO_OFFSET, NO_TIMESTAMP
from kaudit.model.producer_patterns import EvictedProducer, IdleProducer
from kaudit.model.producer_state import NO_SEGMENT, NUM_BATCHES_TO_RETAIN
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.rows import Rows
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory

MAX_IDLE = 20
"""Producers reported per partition: the longest idle."""
MAX_EVICTED = 10_000
"""Producers remembered from below the log start."""


def idle_longest(rows: Rows) -> list[IdleProducer]:
    """Return the producers without an open transaction whose newest record is oldest, oldest first."""
    chosen = np.flatnonzero(
        rows["known"] & (rows["txn_first_offset"] == NO_OFFSET) & (rows["last_timestamp"] > NO_TIMESTAMP)
    )
    times = rows["last_timestamp"][chosen]
    if len(chosen) > MAX_IDLE:
        chosen = chosen[np.argpartition(times, MAX_IDLE)[:MAX_IDLE]]
    ordered = chosen[np.argsort(rows["last_timestamp"][chosen], kind="stable")]
    return [_idle(rows[slot]) for slot in ordered.tolist()]


def _idle(row: Rows) -> IdleProducer:
    has_last = bool(row["has_last"]) and row["last"]["segment"] != NO_SEGMENT
    return IdleProducer(
        producer_id=int(row["producer_id"]),
        producer_epoch=int(row["epoch"]),
        last_offset=int(max(row["marker_offset"], row["last"]["last_offset"] if has_last else NO_OFFSET)),
        last_timestamp=int(row["last_timestamp"]),
        segment=int(row["last"]["segment"]) if has_last else None,
        position=int(row["last"]["position"]) if has_last else None,
    )


class _Below(Struct):
    """A producer's newest batch below the log start, the CRCs of its last five, and its first batch above."""

    epoch: int
    last_offset: int
    last_sequence: int
    position: int
    crcs: list[int] = field(default_factory=list)
    above: tuple[int, int, int, int] | None = None
    """Its first batch above: offset, epoch, first sequence, CRC."""


def evicted_producers(directory: PartitionDirectory, open_source: OpenSource) -> list[EvictedProducer]:
    """Read the segment the log start lies in, and return who ended below it and did not simply go on above.

    Raises OSError.
    """
    start = directory.log_start_offset
    around = [index for index, segment in enumerate(directory.segments) if start and segment.base_offset < start]
    if start is None or not around:
        return []
    segment = directory.segments[around[-1]]
    below: dict[int, _Below] = {}
    with closing(open_source(segment)) as source:
        for piece in stream_batches(source, ByteRange(0, segment.size, segment.size), expected_offset=None):
            _take(below, piece.batches, start)
    return [found for pid, state in below.items() if (found := _as_evicted(pid, state, around[-1])) is not None]


def _take(below: dict[int, _Below], batches: Batches, start: int) -> None:
    data = (batches["producer_id"] >= 0) & (batches["attributes"] & CONTROL_FLAG == 0)
    ends, sequences = last_offsets(batches), last_sequences(batches)
    for index in np.flatnonzero(data).tolist():
        row = batches[index]
        pid, epoch, crc = int(row["producer_id"]), int(row["producer_epoch"]), int(row["crc"])
        known = below.get(pid)
        if ends[index] >= start:
            if known is not None and known.above is None:
                known.above = (int(row["base_offset"]), epoch, int(row["base_sequence"]), crc)
        elif known is not None or len(below) < MAX_EVICTED:
            crcs = [] if known is None else known.crcs[1 - NUM_BATCHES_TO_RETAIN :]
            below[pid] = _Below(epoch, int(ends[index]), int(sequences[index]), int(row["position"]), [*crcs, crc])


def _as_evicted(producer_id: int, state: _Below, segment: int) -> EvictedProducer | None:
    again, repeated = None, False
    if state.above is not None:
        offset, epoch, sequence, crc = state.above
        repeated = epoch == state.epoch and crc in state.crcs
        if not repeated and (epoch != state.epoch or sequence != 0):
            return None  # it went on, or raised its epoch: nothing shows that it was forgotten
        again = offset
    return EvictedProducer(
        producer_id, state.epoch, state.last_offset, state.last_sequence, segment, state.position, again, repeated
    )
