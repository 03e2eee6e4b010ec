"""Producer snapshots: one producer's entry, and the entry compared with what the log says."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from kaudit.model.schema import Int16, Int32, Int64


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
    """What the log before a snapshot's offset still holds.

    `first_offset`: of its first batch. `whole`: nothing is missing from there on, by compaction, damage or a lost
    segment. `log_start`: offsets below may be forgotten.
    """

    first_offset: int
    whole: bool
    log_start: int

    @property
    def known_from(self) -> int:
        """The first offset the log still says everything about."""
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
