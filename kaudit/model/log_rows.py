"""The rows that a log is compressed to: runs of data batches, the batches at their ends, markers, gaps.

Each is defined once. Timestamps are in ms since 1970, positions and sizes in bytes of the segment file; `segment` is
the index of the segment among the partition's. `present_before` counts the partition's offsets that earlier batches
cover.
"""

from typing import NamedTuple

from kaudit.model.schema import Bool, Int8, Int16, Int32, Int64, UInt32


class BoundaryBatch(NamedTuple):
    """One data batch at the beginning or end of a run."""

    base_offset: Int64
    last_offset: Int64
    first_sequence: Int32
    last_sequence: Int32
    record_count: Int32
    crc: UInt32
    max_timestamp: Int64
    present_before: Int64
    position: Int64
    size: Int32
    leader_epoch: Int32
    segment: Int32


class EndTxnMarker(NamedTuple):
    """One transaction end marker. `record_count` 0: compaction emptied it; `type`: ABORT_MARKER, COMMIT_MARKER or unknown."""

    offset: Int64
    producer_id: Int64
    producer_epoch: Int16
    coordinator_epoch: Int32
    type: Int8
    timestamp: Int64
    leader_epoch: Int32
    present_before: Int64
    position: Int64
    size: Int32
    record_count: Int32
    segment: Int32


class Run(NamedTuple):
    """Consecutive data batches of one producer id, one epoch and kind, each in sequence with the one before."""

    producer_id: Int64
    producer_epoch: Int16
    is_transactional: Bool
    first_sequence: Int32
    last_sequence: Int32
    first_offset: Int64
    last_offset: Int64
    first_position: Int64
    batches: Int64
    records: Int64
    bytes: Int64
    min_timestamp: Int64
    max_timestamp: Int64
    first_leader_epoch: Int32
    last_leader_epoch: Int32
    partial_batches: Int64
    """Batches of which compaction removed records."""
    present_before_first: Int64
    present_before_last: Int64
    """`present_before` of its last batch."""
    last_max_timestamp: Int64
    """`max_timestamp` of its last batch."""
    boundary_start: Int64
    """Index of its first batch among the chunk's boundary batches."""
    boundary_count: Int32
    """How many of those are its own, in offset order: its first five and its last five, all of them if that is all."""
    head_count: Int32
    """How many of these are its first ones."""
    segment: Int32


class OffsetGap(NamedTuple):
    """Offsets that are missing before the batch at `position`, inclusive."""

    first_missing: Int64
    last_missing: Int64
    position: Int64
    segment: Int32


class LeaderEpochStart(NamedTuple):
    """The first batch with a leader epoch other than that of the batch before it."""

    leader_epoch: Int32
    base_offset: Int64
    last_offset: Int64
    position: Int64
    segment: Int32


class BatchStart(NamedTuple):
    """Where a batch begins."""

    position: Int64
    base_offset: Int64
    segment: Int32


class TailBatch(NamedTuple):
    """One of the last data batches of an epoch, outside transactions, before its producer raised it."""

    producer_id: Int64
    producer_epoch: Int16
    since: Int64
    """From this position of the segment on all such batches are listed."""
    position: Int64
    size: Int32
    segment: Int32


class NonIdempotentBatch(NamedTuple):
    """A data batch without a producer id."""

    ordinal: Int64
    """How many such batches of the chunk come before it."""
    base_offset: Int64
    last_offset: Int64
    crc: UInt32
    records_crc: UInt32
    """CRC of its records alone: equal when the client sends them again under another timestamp."""
    size: Int32
    record_count: Int32
    base_timestamp: Int64
    max_timestamp: Int64
    position: Int64
    segment: Int32
    regresses: Bool
    """Its base timestamp is lower than that of the one before it."""
