"""Side files as bytes: indexes, snapshots, checkpoints, by the Kafka classes that write them; nothing of kaudit is used."""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from crc32c import crc32c

from tests.differential.wire import MARKER_VALUE, Batch

HIGH_WATERMARK, RECOVERY_POINT, LOG_START, CLEANER = CHECKPOINTS = (
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
LEADER_EPOCHS = "t-0/leader-epoch-checkpoint"
INTERVAL_BYTES = 300
"""index.interval.bytes of these brokers."""
INDEX_ROWS = 24
"""Rows that an active segment's index has room for."""
_OFFSET_ROW, _TIME_ROW, _ABORTED = struct.Struct(">ii"), struct.Struct(">qi"), struct.Struct(">hqqqq")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")


@dataclass
class Rows:
    """An index as AbstractIndex has it: `count` valid rows in the slots of a mapped file, which truncation does not clear."""

    layout: struct.Struct
    slots: list[tuple[int, int]] = field(default_factory=list)
    count: int = 0

    def append(self, row: tuple[int, int]) -> None:
        del self.slots[self.count : self.count + 1]
        self.slots.insert(self.count, row)
        self.count += 1

    @property
    def last(self) -> tuple[int, int] | None:
        return self.slots[self.count - 1] if self.count else None

    def trim(self) -> None:
        """As AbstractIndex.trimToValidSize, when a segment is closed."""
        del self.slots[self.count :]

    def file(self, *, active: bool) -> bytes:
        rows = b"".join(self.layout.pack(*row) for row in self.slots)
        return rows.ljust(INDEX_ROWS * self.layout.size, b"\0") if active else rows


@dataclass
class Indexes:
    """The indexes of one segment, written as LogSegment.append does. Rows of `offsets` and `times` are as stored."""

    base: int
    offsets: Rows = field(default_factory=lambda: Rows(_OFFSET_ROW))
    times: Rows = field(default_factory=lambda: Rows(_TIME_ROW))
    size: int = 0
    since: int = 0
    latest: tuple[int, int] = (-1, -1)
    """The greatest timestamp so far, and the offset it has relative to the base."""

    def append(self, size: int, last: int, timestamp: int) -> None:
        """Take an append of `size` bytes, the last offset and the greatest timestamp in it."""
        if timestamp > self.latest[0]:
            self.latest = timestamp, last - self.base
        if self.since > INTERVAL_BYTES:
            self.offsets.append((last - self.base, self.size))
            self._time()
            self.since = 0
        self.size += size
        self.since += size

    def _time(self) -> None:
        if self.latest[0] > (self.times.last or (-1, -1))[0]:
            self.times.append(self.latest)

    def close(self) -> None:
        """As LogSegment.onBecomeInactiveSegment."""
        self._time()
        self.offsets.trim()
        self.times.trim()

    def truncate(self, batches: Iterable[Batch]) -> None:
        """As LogSegment.truncateTo, which leaves these batches: counts of rows fall, their bytes stay."""
        kept = list(batches)
        end = kept[-1].last + 1 - self.base if kept else 0
        self.offsets.count = sum(row[0] < end for row in self.offsets.slots[: self.offsets.count])
        self.times.count = sum(row[1] < end for row in self.times.slots[: self.times.count])
        self.size, self.since = sum(len(batch.raw) for batch in kept), 0
        self.latest = max(((batch.max_timestamp, batch.last - self.base) for batch in kept), default=(-1, -1))


def indexes_of(base: int, batches: Iterable[Batch]) -> Indexes:
    """Return the indexes that one append for each batch leaves."""
    made = Indexes(base)
    for batch in batches:
        made.append(len(batch.raw), batch.last, batch.max_timestamp)
    return made


@dataclass
class Producer:
    """A producer's entry in ProducerStateManager."""

    epoch: int
    last_sequence: int = -1
    last_offset: int = -1
    offset_delta: int = 0
    timestamp: int = -1
    coordinator_epoch: int = -1
    transaction: int = -1


def producers_after(batches: Iterable[Batch]) -> dict[int, Producer]:
    """Return the state of each producer id after these batches (ProducerAppendInfo)."""
    states: dict[int, Producer] = {}
    for batch in batches:
        if batch.producer_id < 0:
            continue
        state = states.setdefault(batch.producer_id, Producer(batch.producer_epoch))
        state.epoch, state.timestamp = batch.producer_epoch, batch.max_timestamp
        if batch.is_control:
            state.transaction = -1
            state.coordinator_epoch = MARKER_VALUE.unpack(batch.records[0].value or b"")[1]
            continue
        state.offset_delta = batch.last - batch.base
        state.last_sequence, state.last_offset = batch.sequence + state.offset_delta, batch.last
        if batch.is_transactional and state.transaction < 0:
            state.transaction = batch.base
    return states


def snapshot(states: Mapping[int, Producer]) -> bytes:
    """Return a producer snapshot (ProducerStateManager.writeSnapshot)."""
    entries = [
        _SNAPSHOT_ENTRY.pack(
            producer_id,
            state.epoch,
            state.last_sequence,
            state.last_offset,
            state.offset_delta,
            state.timestamp,
            state.coordinator_epoch,
            state.transaction,
        )
        for producer_id, state in states.items()
    ]
    body = struct.pack(">i", len(entries)) + b"".join(entries)
    return struct.pack(">hI", 1, crc32c(body)) + body


def aborted(producer_id: int, first: int, last: int, stable: int) -> bytes:
    """Return a row of a transaction index (AbortedTxn)."""
    return _ABORTED.pack(0, producer_id, first, last, stable)


def checkpoint(rows: Iterable[tuple[object, ...]]) -> bytes:
    """Return a checkpoint of version 0 (CheckpointFile)."""
    lines = [" ".join(map(str, row)) for row in rows]
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()


def offset_checkpoint(offset: int | None) -> bytes:
    """Return an OffsetCheckpointFile with one partition, None: with none."""
    return checkpoint([] if offset is None else [("t", 0, offset)])


def stated(files: Mapping[str, bytes], name: str) -> int | None:
    """Return what an offset checkpoint says of the partition, None if nothing."""
    lines = files.get(name, b"").decode().splitlines()[2:]
    return int(lines[0].split()[2]) if lines else None


def stated_epochs(files: Mapping[str, bytes]) -> list[tuple[int, int]]:
    """Return the leader epochs with their first offsets, as LeaderEpochCheckpointFile has them."""
    lines = files.get(LEADER_EPOCHS, b"").decode().splitlines()[2:]
    return [(int(epoch), int(start)) for epoch, start in (line.split() for line in lines)]
