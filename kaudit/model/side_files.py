"""Faults of the files beside a partition's segments, and the entries of producer snapshots.

`file` is a file's name, `segment` the index of the segment it belongs to, `position` a byte in the file; `detail` a
sentence with the values seen.
"""

import enum
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from kaudit.model.json_record import JsonRecord
from kaudit.model.schema import Int16, Int32, Int64


class CorruptSnapshot(Struct, frozen=True, tag=True):
    """A producer snapshot of `size` bytes that does not decode; `older_snapshot` is the valid one before it, if any."""

    file: str
    segment: int | None
    position: int
    size: int
    reason: str
    detail: str
    older_snapshot: str | None


class IndexKind(enum.Enum):
    """The two indexes of a segment, by their suffix."""

    OFFSET = "index"
    TIME = "timeindex"


class IndexFault(Struct, frozen=True, tag=True):
    """The first fault of an index. `row` counts from 0, None where the file ends inside a row."""

    kind: IndexKind
    file: str
    segment: int
    position: int
    detail: str
    row: int | None = None


class IndexBeyondLogEnd(Struct, frozen=True, tag=True):
    """Rows of the last segment's index that know offsets up to `end_offset` (exclusive), beyond the log's end (exclusive).

    `row` is the first of them, at byte `position`. `lost`: the log was cut by something other than its broker, as the index has no
    room for more rows, so that its broker had closed it, or as the log breaks off where no append ends.
    """

    kind: IndexKind
    file: str
    segment: int
    row: int
    position: int
    end_offset: int
    log_end_offset: int
    lost: bool


class MissingIndexes(Struct, frozen=True, tag=True):
    """Missing indexes of one kind: (name, segment) of each, at least one."""

    kind: IndexKind
    files: Sequence[tuple[str, int]]


class WrongAbortedTxn(JsonRecord, frozen=True):
    """A row of a transaction index that the log contradicts; fields as `AbortedTxn` writes them."""

    position: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    reason: str


class MissingAbortedTxn(JsonRecord, frozen=True):
    """An aborted transaction without a row; `last_offset` is its marker's."""

    producer_id: int
    first_offset: int
    last_offset: int


class TransactionIndexMismatch(Struct, frozen=True, tag=True):
    """All that differs between a transaction index and its segment. `torn`: position and detail of a row cut short."""

    file: str
    segment: int
    wrong: Sequence[WrongAbortedTxn]
    missing: Sequence[MissingAbortedTxn]
    torn: tuple[int, str] | None


class UnparsableCheckpoint(Struct, frozen=True):
    """An offset checkpoint of a log directory that does not parse."""

    log_dir: str
    file: str
    position: int
    detail: str


class CheckpointBeyondLogEnd(Struct, frozen=True, tag=True):
    """An offset checkpoint's row for the partition: its offset lies beyond the log's end (exclusive).

    `not_later`: how it is known that the checkpoint was not copied later than the log; None where it may have been.
    `records`: of the offsets from the log's end on, those that are certain to have been records of the log.
    """

    file: str
    offset: int
    log_end_offset: int
    not_later: str | None = None
    records: int = 0


class UnparsableSideFile(Struct, frozen=True, tag=True):
    """A file of a partition, of `size` bytes, that does not parse. `kind` is the name of its kind (`source/file_kinds.py`)."""

    kind: str
    file: str
    position: int
    size: int
    reason: str
    detail: str


class WrongLeaderEpochs(Struct, frozen=True, tag=True):
    """The first contradiction in a leader-epoch-checkpoint, at `offset`: to `segment`, None if it contradicts itself."""

    file: str
    offset: int
    segment: int | None
    detail: str


class KnownBeyondLogEnd(Struct, frozen=True, tag=True):
    """Files of the partition that know offsets beyond the log's end (exclusive): each with the end that it knows.

    `records`: of the offsets from the log's end on, those that are certain to have been records of the log. `broken_off_at`: the size of the
    last segment if it was cut inside a batch by something other than its broker. `went_on`: the log may have been longer than these
    files know.
    """

    files: Sequence[tuple[str, int]]
    log_end_offset: int
    records: int = 0
    broken_off_at: int | None = None
    went_on: bool = False


SideFileFault = (
    KnownBeyondLogEnd
    | CorruptSnapshot
    | IndexFault
    | IndexBeyondLogEnd
    | MissingIndexes
    | TransactionIndexMismatch
    | UnparsableSideFile
    | WrongLeaderEpochs
)
"""What can be wrong with a file beside a partition's segments."""


class SnapshotEntry(NamedTuple):
    """The state of one producer id, sentinels as written; the fields in the order of the file.

    `last_sequence`, `last_offset` -1 and `offset_delta` 0: only a marker is remembered. `timestamp` in ms, -1 unknown;
    `coordinator_epoch` -1: no marker yet; `current_txn_first_offset` -1: no transaction open.
    """

    producer_id: Int64
    producer_epoch: Int16
    last_sequence: Int32
    last_offset: Int64
    offset_delta: Int32
    timestamp: Int64
    coordinator_epoch: Int32
    current_txn_first_offset: Int64


class LogBeforeSnapshot(Struct, frozen=True):
    """What the log below a snapshot's offset still holds. `first_offset` is that of its first batch.

    `whole`: nothing is missing after it, by compaction, damage or a lost segment. `log_start`: offsets below it may be
    forgotten.
    """

    first_offset: int
    whole: bool
    log_start: int

    @property
    def known_from(self) -> int:
        """The first offset from which the log still shows everything."""
        return max(self.first_offset, self.log_start)


class SnapshotComparison(Struct, frozen=True):
    """One producer in a snapshot: what is stored, and what a replica of each kind of version, oldest first, would write.

    `forgotten`: what they would write, had they forgotten the producer as early as may be and known it again by what came after.
    `offset` is the snapshot's, exclusive. `present`: the batch that ends at the stored last offset lies in the log.
    `names_marker`: that batch is a marker, as 0.11 writes it. `may_expire`: what is not stored may have been dropped for being idle.
    """

    file: str
    offset: int
    producer_id: int
    stored: SnapshotEntry | None
    expected: Sequence[SnapshotEntry]
    present: bool
    names_marker: bool
    may_expire: bool
    log: LogBeforeSnapshot
    forgotten: Sequence[SnapshotEntry] = ()
