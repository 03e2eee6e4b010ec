"""Producer snapshots compared with the state of the log at their offset, while the log is read.

Between two chunks the producers' rows are that state, so that only producers that do not fit are read again
(snapshot_check.py). What the rows cannot distinguish from the broker's own state is accepted here.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from operator import attrgetter
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.audits.sequences.transition_audit import TransitionAudit
from kaudit.audits.sidefiles.log_facts import SideFileReader
from kaudit.formats.errors import WireError
from kaudit.formats.sidefiles.producer_snapshot import ENTRY, HEADER, parse_producer_snapshot
from kaudit.model.batch_fields import NO_OFFSET, NO_SEQUENCE, NO_TIMESTAMP
from kaudit.model.limits import SIDE_FILE_BYTES
from kaudit.model.observation import ObservationKind
from kaudit.model.side_files import SnapshotEntry
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.rows import Rows, pick
from kaudit.source.bytes import read_bytes
from kaudit.source.layout import PartitionDirectory, SegmentFile, Unreadable
from kaudit.source.listing import failure
from kaudit.source.schemes import open_segment

MAX_SUSPECTS = 1000
"""Producers of a snapshot that are looked at one by one: a file that is wrong throughout needs no longer list."""
_MAX_SNAPSHOT = SIDE_FILE_BYTES
"""Bytes: five million producers. A longer one is cut, and then corrupt."""
SHORTEST_EXPIRATION_MS = 5000
"""Nobody lets producers expire faster than this."""
_NOT_ADOPTED = frozenset(
    {
        ObservationKind.EXACT_DUPLICATE,
        ObservationKind.SAME_SEQUENCES,
        ObservationKind.BEHIND_WINDOW,
        ObservationKind.OVERLAP,
        ObservationKind.INSIDE,
        ObservationKind.STALE_BATCH,
        ObservationKind.STALE_MARKER,
        ObservationKind.COORDINATOR_EPOCH_REGRESSION,
    }
)
"""Kinds of observations after which the audit's state differs from a broker's, which adds invalid batches too."""


_OFFSET = attrgetter("base_offset")


class Suspects(Struct, frozen=True):
    """Producers of a snapshot that do not fit."""

    file: SegmentFile
    producer_ids: tuple[int, ...]


class OpenInSnapshot(Struct, frozen=True, eq=False):
    """The entries of a snapshot whose transaction is open, and the byte of each in the file."""

    file: SegmentFile
    rows: NDArray[Any]
    positions: NDArray[np.int64]

    def begun_before(self, offset: int, ended: NDArray[np.int64]) -> Iterator[tuple[SnapshotEntry, int]]:
        """Yield the entries whose transaction began before an offset, the oldest MAX_SUSPECTS, each with its byte.

        `ended`: producer ids without an open transaction.
        """
        first = self.rows["current_txn_first_offset"]
        chosen = np.flatnonzero((first < offset) & ~np.isin(self.rows["producer_id"], ended))
        for at in chosen[np.argsort(first[chosen], kind="stable")][:MAX_SUSPECTS].tolist():
            yield SnapshotEntry(*self.rows[at].tolist()), int(self.positions[at])


class SnapshotWatch(Struct):
    """Takes a partition's chunks in offset order."""

    files: Sequence[SegmentFile]
    """Snapshots still to come, by offset."""
    suspects: list[Suspects] = field(default_factory=list)
    newest: OpenInSnapshot | None = None
    """The newest readable snapshot so far."""
    unreadable: list[Unreadable] = field(default_factory=list)
    """Those that could not be read."""

    @property
    def offsets(self) -> list[int]:
        """Offsets of the snapshots still to come, ascending."""
        return [file.base_offset for file in self.files]

    def inside(self, chunk: ChunkRows) -> list[int]:
        """Return the offsets of snapshots at which `chunk` has to be cut, ascending: those between its batches."""
        if not self.files or chunk.first_offset is None or chunk.last_offset is None:
            return []
        first = bisect_right(self.files, chunk.first_offset, key=_OFFSET)
        stop = bisect_right(self.files, chunk.last_offset, first, key=_OFFSET)
        return sorted({file.base_offset for file in self.files[first:stop]})

    def compare_until(self, offset: int, transitions: TransitionAudit) -> None:
        """Compare the snapshots up to that of this offset, where a batch begins; `transitions` has the producers before it.

        One that ends inside of a batch ends after it.
        """
        while self.files and self.files[0].base_offset <= offset:
            file, self.files = self.files[0], self.files[1:]
            self._compare(file, transitions)

    def finish(self, log_end: int, transitions: TransitionAudit) -> None:
        """Compare the snapshot at the log's end. One beyond it was written before the log was cut back."""
        for file in self.files:
            if file.base_offset <= log_end:
                self._compare(file, transitions)
        self.files = ()

    def _compare(self, file: SegmentFile, transitions: TransitionAudit) -> None:
        try:
            stored = read_snapshot(file, open_segment)
        except FileNotFoundError:
            return  # deleted by the broker meanwhile
        except OSError as error:
            self.unreadable.append(Unreadable(file.path, failure(error)))
            return
        rows = transitions.table.rows
        if stored is None:
            return
        opened = np.flatnonzero(stored["current_txn_first_offset"] != NO_OFFSET)
        self.newest = OpenInSnapshot(file, stored[opened], HEADER.size + opened * ENTRY.size)
        if not len(rows):
            return
        slots, found = transitions.table.find(stored["producer_id"])
        mine = pick(rows, slots)
        differs = ~(found & mine["known"] & _agrees(stored, mine))
        left = rows["known"].copy()
        left[slots.compress(found)] = False
        apart = dict.fromkeys(
            observation.producer_id for observation in transitions.observations if observation.kind in _NOT_ADOPTED
        )
        lost = _lost(stored, pick(rows, left), file.modified_ms) if left.any() else ()
        chosen = dict.fromkeys([*stored["producer_id"][differs].tolist(), *lost, *apart])
        if chosen:
            self.suspects.append(Suspects(file, tuple(chosen)[:MAX_SUSPECTS]))


def entries_at(directory: PartitionDirectory, offset: int, files: SideFileReader) -> Rows | None:
    """Return the entries of the snapshot at an offset, None without a valid one: that is another check's business."""
    name = f"{offset:020d}.snapshot"
    data = next((files.read(file) for file in directory.side_files if file.name == name), None)
    try:
        return None if data is None else parse_producer_snapshot(data).rows
    except WireError:
        return None


def read_snapshot(file: SegmentFile, open_source: OpenSource) -> NDArray[Any] | None:
    """Return a snapshot's rows; None if it is corrupt, which is another check's business. Raises OSError."""
    with closing(open_source(file)) as source:
        data = read_bytes(source, 0, min(source.size(), _MAX_SNAPSHOT))
    try:
        return parse_producer_snapshot(data).rows
    except WireError:
        return None


def _lost(stored: NDArray[Any], left: Rows, written_ms: int) -> list[int]:
    """Return the ids of those of the producers left out of a snapshot that it should have, ascending."""
    lost = unexplained(stored, left["last"]["last_offset"], left["last_timestamp"], written_ms)
    lost |= left["txn_first_offset"] != NO_OFFSET
    lost &= left["last_sequence"] != NO_SEQUENCE
    return sorted(left["producer_id"][lost].tolist())


def unexplained(
    stored: NDArray[Any], last_offsets: NDArray[np.int64], timestamps: NDArray[np.int64], written_ms: int
) -> NDArray[np.bool_]:
    """Return for each producer missing from a snapshot whether it cannot have expired.

    Whoever expired did so at a sweep that drops everyone as old: not if an entry is kept that was older then, by its
    record's time, and has not changed since. Source: ProducerStateManager.removeExpiredProducers.
    """
    idle = stored[(stored["current_txn_first_offset"] == NO_OFFSET) & (stored["timestamp"] >= 0)]
    idle = idle[np.argsort(idle["last_offset"], kind="stable")]
    oldest = np.minimum.accumulate(np.append(np.iinfo(np.int64).max, idle["timestamp"]))
    kept = oldest[np.searchsorted(idle["last_offset"], last_offsets)]
    late: NDArray[np.bool_] = (kept < timestamps) | (written_ms - timestamps < SHORTEST_EXPIRATION_MS)
    return late


def _agrees(stored: NDArray[Any], mine: Rows) -> NDArray[np.bool_]:
    last = mine["last"]
    remembers = mine["last_sequence"] != NO_SEQUENCE
    length = last["last_offset"] - last["base_offset"]
    batch = (stored["last_offset"] == last["last_offset"]) & (stored["offset_delta"] == length)
    nothing = (stored["last_offset"] == NO_OFFSET) & (stored["offset_delta"] == 0)
    data_time = np.where(mine["has_last"], last["max_timestamp"], NO_TIMESTAMP)
    times = (stored["timestamp"] == mine["last_timestamp"]) | (stored["timestamp"] == data_time)
    same: NDArray[np.bool_] = (
        (stored["producer_epoch"] == mine["epoch"])
        & (stored["last_sequence"] == mine["last_sequence"])
        & np.where(remembers, batch, nothing)
        & times
        & (stored["coordinator_epoch"] == mine["coordinator_epoch"])
        & (stored["current_txn_first_offset"] == mine["txn_first_offset"])
    )
    return same
