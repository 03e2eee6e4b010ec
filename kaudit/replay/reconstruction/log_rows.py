"""The batches of one partition's segments, with what attempts need of them and where each lies."""

from collections.abc import Iterator
from contextlib import closing

from msgspec import Struct

from kaudit.audits.log_events.placement import LoggedBatch
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.model.batch_fields import (
    ABORT_MARKER,
    COMMIT_MARKER,
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)
from kaudit.model.sequence import add as add_sequence
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory, SegmentFile
from kaudit.source.text import SegmentText

_FIELDS = (
    "position", "base_offset", "last_offset_delta", "leader_epoch", "magic", "attributes", "max_timestamp", "producer_id",
    "producer_epoch", "base_sequence", "control_type", "coordinator_epoch",
)  # fmt: skip


class LogRow(Struct, frozen=True, gc=False):
    """One batch; `commit` is None unless it is a transaction marker. Times are ms, `modified_ms` is the segment's."""

    source: str
    """Its segment and position, or the line that it follows from."""
    base_offset: int
    last_offset: int
    leader_epoch: int
    timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    log_append_time: bool
    commit: bool | None
    coordinator_epoch: int
    modified_ms: int

    @property
    def record_count(self) -> int:
        """How many records it had when it was appended."""
        return self.last_offset - self.base_offset + 1

    @property
    def logged(self) -> LoggedBatch:
        """The same as events are placed by."""
        data = self.producer_id != NO_PRODUCER_ID and self.commit is None and self.base_sequence != NO_SEQUENCE
        last = add_sequence(self.base_sequence, self.last_offset - self.base_offset) if data else NO_SEQUENCE
        return LoggedBatch(
            self.base_offset,
            self.last_offset,
            self.timestamp,
            self.producer_id,
            self.producer_epoch,
            last,
            self.leader_epoch,
        )


class LogRows:
    """Reads a partition's batches, in order, past damage; memory is one window. `damages` counts ranges that are not valid batches."""

    def __init__(self, directory: PartitionDirectory, open_source: OpenSource) -> None:
        self._directory = directory
        self._open = open_source
        self.damages = 0
        self.unreadable: list[str] = []
        """Segments that cannot be read, with the reason."""

    def __iter__(self) -> Iterator[LogRow]:
        """Yield every batch."""
        end = 0
        for segment in self._directory.segments:
            try:
                for row in self._rows(segment, end):
                    end = row.last_offset + 1
                    yield row
            except OSError as error:
                self.unreadable.append(f"{segment.path}: {error.strerror or type(error).__name__}")

    def _rows(self, segment: SegmentFile, end: int) -> Iterator[LogRow]:
        with closing(self._open(segment)) as source:
            size = segment.size if isinstance(source, SegmentText) else min(segment.size, source.size())
            for piece in stream_batches(source, ByteRange(0, size, size), expected_offset=segment.base_offset):
                self.damages += len(piece.damages)
                columns = [piece.batches[name].tolist() for name in _FIELDS]
                for fields in zip(*columns, strict=True):
                    row = _row(segment, end, fields)
                    end = row.last_offset + 1
                    yield row


def _row(segment: SegmentFile, end: int, fields: tuple[int, ...]) -> LogRow:
    position, base, delta, leader_epoch, magic, attributes, timestamp, *producer, control, coordinator_epoch = fields
    producer_id, epoch, sequence = producer
    last = base + max(delta, 0)
    if magic < CURRENT_MAGIC:  # the offset of a compressed wrapper is that of its last message
        base, leader_epoch, producer_id = min(base, max(end, segment.base_offset)), NO_LEADER_EPOCH, NO_PRODUCER_ID
    commit: bool | None = None
    if attributes & CONTROL_FLAG:
        if control in (ABORT_MARKER, COMMIT_MARKER) and producer_id != NO_PRODUCER_ID:
            commit = control == COMMIT_MARKER
        else:  # its record was cleaned away, or it is not a transaction marker
            producer_id = NO_PRODUCER_ID
    return LogRow(
        f"{segment.path}@{position}",
        base,
        last,
        leader_epoch,
        timestamp,
        producer_id,
        epoch,
        sequence,
        bool(attributes & TRANSACTIONAL_FLAG),
        bool(attributes & LOG_APPEND_TIME_FLAG),
        commit,
        coordinator_epoch,
        segment.modified_ms,
    )
