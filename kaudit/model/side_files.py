"""What is wrong with the files beside a partition's segments.

`file` is a file's name, `segment` the index of the segment it belongs to, `position` a byte in the file; `detail` a sentence
with the values seen.
"""

import enum
from collections.abc import Sequence

from msgspec import Struct

from kaudit.model.json_record import JsonRecord


class CorruptSnapshot(Struct, frozen=True):
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


class IndexFault(Struct, frozen=True):
    """The first thing wrong with an index. `row` counts from 0, None where the file ends inside a row."""

    kind: IndexKind
    file: str
    segment: int
    position: int
    detail: str
    row: int | None = None


class MissingIndexes(Struct, frozen=True):
    """Indexes of one kind that are not there: (name, segment) of each, at least one."""

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


class TransactionIndexMismatch(Struct, frozen=True):
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


class CheckpointBeyondLogEnd(Struct, frozen=True):
    """An offset checkpoint's row for the partition: its offset lies beyond the log's end (exclusive)."""

    file: str
    offset: int
    log_end_offset: int


class UnparsableLeaderEpochs(Struct, frozen=True):
    """A leader-epoch-checkpoint of `size` bytes that does not parse."""

    file: str
    position: int
    size: int
    reason: str
    detail: str


class WrongLeaderEpochs(Struct, frozen=True):
    """The first contradiction in a leader-epoch-checkpoint, at `offset`: to `segment`, None if it contradicts itself."""

    file: str
    offset: int
    segment: int | None
    detail: str
