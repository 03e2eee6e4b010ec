"""Producer state read out of a real log, as a broker does when it loads one.

Source: UnifiedLog.rebuildProducerState and LogSegment.recover.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch, ProducerStateEntry
from kaudit.formats.log.record_batch import batch_crc_holds, decode_headers, walk
from kaudit.model.batch import Batches
from kaudit.model.batch_fields import (
    ABORT_MARKER,
    COMMIT_MARKER,
    CONTROL_FLAG,
    NO_OFFSET,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)
from kaudit.model.sequence import add as add_sequence
from kaudit.model.side_files import SnapshotEntry


class LogEnd(NamedTuple):
    """Where reading stopped: the next offset, and whether something unreadable lies there."""

    offset: int
    damaged: bool


class LogReader:
    """The batches of a partition's segments, in order, up to the first one that is damaged.

    `end` is the log's end once the iteration is over.
    """

    def __init__(self, segments: Iterable[memoryview]) -> None:
        self._segments = segments
        self.end = LogEnd(0, damaged=False)

    def __iter__(self) -> Iterator[DataBatch | MarkerBatch]:
        """Yield the batches with a producer id; markers whose record was cleaned away do not count."""
        for buffer in self._segments:
            size = len(buffer)
            found = walk(buffer, 0, size, size)
            valid = [at for at in found.positions if batch_crc_holds(buffer, at, _size(buffer, at))]
            damaged = not found.valid or found.stop < size or len(valid) < len(found.positions)
            if len(valid) < len(found.positions):
                valid = valid[: next(i for i, at in enumerate(found.positions) if i >= len(valid) or valid[i] != at)]
            rows = decode_headers(buffer, np.array(valid, dtype=np.int64), 0)
            for row in producer_rows(rows):
                batch = producer_batch(row)
                self.end = LogEnd(row[0] + row[1] + 1, damaged=False)
                if batch is not None:
                    yield batch
            if damaged:
                self.end = self.end._replace(damaged=True)
                return


def _size(buffer: memoryview, at: int) -> int:
    return int.from_bytes(buffer[at + 8 : at + 12], "big") + 12


FIELDS = (
    "base_offset",
    "last_offset_delta",
    "attributes",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
    "control_type",
    "coordinator_epoch",
)


def producer_rows(batches: Batches) -> Iterator[tuple[int, ...]]:
    """Yield the fields FIELDS of each batch."""
    return zip(*(batches[name].tolist() for name in FIELDS), strict=True)


def producer_batch(row: tuple[int, ...]) -> DataBatch | MarkerBatch | None:
    """Return the fields FIELDS of a batch as what a producer state is made of; None for all else in a log."""
    base, delta, attributes, timestamp, producer_id, epoch, sequence, count, control, coordinator = row
    if producer_id < 0:
        return None
    if attributes & CONTROL_FLAG:
        if count == 0 or control not in (ABORT_MARKER, COMMIT_MARKER):
            return None
        return MarkerBatch(producer_id, epoch, coordinator, base, timestamp, control == COMMIT_MARKER)
    last = NO_SEQUENCE if sequence == NO_SEQUENCE else add_sequence(sequence, delta)
    transactional = bool(attributes & TRANSACTIONAL_FLAG)
    return DataBatch(producer_id, epoch, sequence, last, base, base + delta, timestamp, transactional)


def snapshot_entry(producer_id: int, state: ProducerStateEntry) -> SnapshotEntry:
    """Return what a broker writes into a snapshot for a producer: its newest batch only."""
    newest = state.batches[-1] if state.batches else None
    return SnapshotEntry(
        producer_id,
        state.epoch,
        NO_SEQUENCE if newest is None else newest.last_sequence,
        NO_OFFSET if newest is None else newest.last_offset,
        0 if newest is None else newest.offset_delta,
        state.last_timestamp,
        state.coordinator_epoch,
        state.current_txn_first_offset,
    )
