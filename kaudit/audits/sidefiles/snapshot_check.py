"""The entries that a replica would have written into a producer snapshot, for producers whose entry did not fit.

The log is read again for these producers, as a replica reads it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.audits.sidefiles.snapshot_states import SHORTEST_EXPIRATION_MS, Suspects, read_snapshot, unexplained
from kaudit.broker.producer_state.producer_state_entry import MarkerBatch
from kaudit.broker.producer_state.producer_state_manager import ProducerStateManager
from kaudit.broker.producer_state.rebuild import FIELDS, producer_batch, producer_rows, snapshot_entry
from kaudit.broker.releases.profile import Profile, VersionRange
from kaudit.model.batch import Batches
from kaudit.model.batch_fields import NO_OFFSET, NO_SEQUENCE
from kaudit.model.side_files import LogBeforeSnapshot, SnapshotComparison, SnapshotEntry
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.small_segments import batches_in_order
from kaudit.source.bytes import ByteSource
from kaudit.source.layout import PartitionDirectory, SegmentFile

_MAGIC_2 = 2


class ReplicaState(Struct):
    """States that replicas of the versions in question have at an offset, and which of `asked` batch ends are in the log."""

    versions: tuple[ProducerStateManager, ...]
    forgetful: tuple[ProducerStateManager, ...]
    """The same, had each forgotten a producer whenever it was idle for long enough, and what lies below the log start.

    That may have been all but a marker, when the log start was lower and a broker rebuilt its state from there.
    """
    log_start: int
    asked: frozenset[tuple[int, int]]
    """(producer id, last offset) of the batches a snapshot names."""
    present: set[tuple[int, int]] = field(default_factory=set)
    markers: set[tuple[int, int]] = field(default_factory=set)
    """Members of `present` that are markers."""
    first_offset: int | None = None
    begun: set[int] = field(default_factory=set)
    """Producer ids with a batch from the log start on."""

    def take(self, batches: Batches) -> None:
        """Replicate these batches."""
        rows = [(row, batch) for row in producer_rows(batches) if (batch := producer_batch(row)) is not None]
        batches_of_all = [batch for _, batch in rows]
        for producers in self.versions:
            producers.replicate(batches_of_all)
        for row, batch in rows:
            key = (row[_PRODUCER_ID], row[_BASE_OFFSET] + row[_LAST_OFFSET_DELTA])
            if key in self.asked:
                self.present.add(key)
                if isinstance(batch, MarkerBatch):
                    self.markers.add(key)
            is_deleted = key[1] < self.log_start
            if is_deleted and not isinstance(batch, MarkerBatch):
                continue
            for producers in self.forgetful:
                if is_deleted or batch.producer_id not in self.begun:
                    producers.forget_producer(batch.producer_id)
                producers.expire_producer(batch.producer_id, row[_MAX_TIMESTAMP], SHORTEST_EXPIRATION_MS)
                producers.replicate((batch,))
            if not is_deleted:
                self.begun.add(batch.producer_id)


_BASE_OFFSET, _LAST_OFFSET_DELTA, _MAX_TIMESTAMP, _PRODUCER_ID = (
    FIELDS.index(name) for name in ("base_offset", "last_offset_delta", "max_timestamp", "producer_id")
)


def replica_states(  # noqa: PLR0913, PLR0917 - independent inputs, named at each call
    directory: PartitionDirectory,
    open_source: Callable[[SegmentFile], ByteSource],
    offsets: Sequence[int],
    producer_ids: Iterable[int],
    versions: VersionRange,
    asked: frozenset[tuple[int, int]],
) -> Iterator[ReplicaState]:
    """Read the log once for these producers, and yield the state at each of `offsets`, which ascend: one object that grows.

    Raises OSError.
    """
    profiles = _distinct(versions)
    state = ReplicaState(_managers(profiles), _managers(profiles), directory.log_start_offset or 0, asked)
    wanted = np.fromiter(producer_ids, dtype=np.int64)
    left = deque(offsets)
    for base_offset, batches in batches_in_order(directory.segments, open_source):
        while left and left[0] <= base_offset:
            left.popleft()
            yield state
        if state.first_offset is None and len(batches):
            state.first_offset = int(batches["base_offset"][0])
        rest = _of(batches, wanted)
        while left and len(batches) and left[0] <= batches["base_offset"][-1]:
            stop = int(np.searchsorted(rest["base_offset"], left.popleft()))
            state.take(rest[:stop])
            rest = rest[stop:]
            yield state
        if not left:
            return
        state.take(rest)
    yield from (state for _ in left)


def _of(batches: Batches, producer_ids: NDArray[np.int64]) -> Batches:
    chosen: NDArray[np.bool_] = (batches["magic"] == _MAGIC_2) & np.isin(batches["producer_id"], producer_ids)
    return batches[chosen]


def _managers(profiles: Iterable[Profile]) -> tuple[ProducerStateManager, ...]:
    return tuple(map(ProducerStateManager, profiles))


def _distinct(versions: VersionRange) -> list[Profile]:
    """One profile of each kind that writes other snapshots than the rest."""
    found: dict[tuple[object, ...], Profile] = {}
    for profile in versions.profiles():
        key = (
            profile.marker_replaces_last_batch,
            profile.marker_sets_timestamp,
            profile.offset_delta_from_sequences,
        )
        found.setdefault(key, profile)
    return list(found.values())


def compare_snapshots(
    directory: PartitionDirectory,
    suspects: Sequence[Suspects],
    open_source: OpenSource,
    versions: VersionRange,
    *,
    holes: bool,
) -> list[SnapshotComparison]:
    """Read the log again, once for all suspects; return the comparisons.

    `holes`: compaction, damage or a lost segment took batches from the log.
    """
    found: list[SnapshotComparison] = []
    try:
        for compared in _compared(directory, suspects, open_source, versions, holes=holes):
            found += compared
    except OSError:
        return found  # noted by whoever opens the files
    return found


def _compared(
    directory: PartitionDirectory,
    suspects: Sequence[Suspects],
    open_source: OpenSource,
    versions: VersionRange,
    *,
    holes: bool,
) -> Iterator[Iterator[SnapshotComparison]]:
    files = [file for suspect in suspects if (file := _file(suspect, open_source)) is not None]
    states = replica_states(
        directory,
        open_source,
        [file.suspect.file.base_offset for file in files],
        dict.fromkeys(producer_id for file in files for producer_id in file.suspect.producer_ids),
        versions,
        frozenset(end for file in files for end in file.batch_ends()),
    )
    for file, state in zip(files, states, strict=True):
        if state.first_offset is not None:
            log = LogBeforeSnapshot(state.first_offset, not holes, directory.log_start_offset or 0)
            yield _compare(file, state, log, open_source)


class _File(NamedTuple):
    """A snapshot, and its rows of the producers in question."""

    suspect: Suspects
    stored: NDArray[Any]

    def batch_ends(self) -> Iterable[tuple[int, int]]:
        """Return the producer id and the last offset of the batches that it names."""
        return zip(self.stored["producer_id"].tolist(), self.stored["last_offset"].tolist(), strict=True)


def _file(suspect: Suspects, open_source: OpenSource) -> _File | None:
    rows = read_snapshot(suspect.file, open_source)
    if rows is None:
        return None
    chosen = np.array(suspect.producer_ids, dtype=np.int64)
    return _File(suspect, rows[np.isin(rows["producer_id"], chosen)])


def _compare(
    file: _File, state: ReplicaState, log: LogBeforeSnapshot, open_source: OpenSource
) -> Iterator[SnapshotComparison]:
    suspect = file.suspect
    stored = {int(row["producer_id"]): SnapshotEntry(*row.tolist()) for row in file.stored}
    expected = _entries(state.versions, suspect.producer_ids)
    forgotten = _entries(state.forgetful, suspect.producer_ids)
    lost = {producer_id: entries[-1] for producer_id, entries in expected.items() if producer_id not in stored}
    cannot = _never_expired(suspect.file, lost, open_source) if lost else ()
    for producer_id in sorted(stored.keys() | expected.keys()):
        entry = stored.get(producer_id)
        ours = expected.get(producer_id, ())
        marker_only = bool(ours) and ours[0].last_sequence == NO_SEQUENCE and ours[0].last_offset == NO_OFFSET
        yield SnapshotComparison(
            file=suspect.file.name,
            offset=suspect.file.base_offset,
            producer_id=producer_id,
            stored=entry,
            expected=ours,
            forgotten=forgotten.get(producer_id, ()),
            present=entry is not None and (producer_id, entry.last_offset) in state.present,
            names_marker=entry is not None and (producer_id, entry.last_offset) in state.markers,
            may_expire=producer_id not in cannot or marker_only,
            log=log,
        )


def _never_expired(file: SegmentFile, lost: Mapping[int, SnapshotEntry], open_source: OpenSource) -> set[int]:
    """Return which of the producers that a snapshot lacks cannot have expired; `lost`: what it should say of them."""
    rows = read_snapshot(file, open_source)
    if rows is None:
        return set()
    late = unexplained(
        rows,
        np.array([entry.last_offset for entry in lost.values()], dtype=np.int64),
        np.array([entry.timestamp for entry in lost.values()], dtype=np.int64),
        file.modified_ms,
    )
    return {producer_id for producer_id, flag in zip(lost, late.tolist(), strict=True) if flag}


def _entries(
    managers: Sequence[ProducerStateManager], producer_ids: Iterable[int]
) -> dict[int, tuple[SnapshotEntry, ...]]:
    """Return what each of them writes about the producers it knows, the same entries once."""
    return {
        producer_id: tuple(dict.fromkeys(snapshot_entry(producer_id, manager.get(producer_id)) for manager in managers))
        for producer_id in producer_ids
        if producer_id in managers[0].states
    }
