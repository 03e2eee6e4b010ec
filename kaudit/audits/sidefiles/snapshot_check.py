"""From suspects to comparisons: what a replica would have written into a snapshot, producer by producer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kaudit.audits.sidefiles.replica_state import ReplicaState, replica_states
from kaudit.audits.sidefiles.snapshot_states import Suspects, read_snapshot, unexplained
from kaudit.broker.producer_state.producer_state_manager import ProducerStateManager
from kaudit.broker.producer_state.rebuild import snapshot_entry
from kaudit.broker.releases.profile import VersionRange
from kaudit.model.batch_fields import NO_OFFSET, NO_SEQUENCE
from kaudit.model.side_files import LogBeforeSnapshot, SnapshotComparison, SnapshotEntry
from kaudit.reading.chunk_plan import OpenSource
from kaudit.source.layout import PartitionDirectory
from kaudit.source.snapshots import SnapshotFile


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
    files = [file for suspect in suspects if (file := _file(suspect)) is not None]
    states = replica_states(
        directory,
        open_source,
        [file.suspect.file.offset for file in files],
        dict.fromkeys(producer_id for file in files for producer_id in file.suspect.producer_ids),
        versions,
        frozenset(end for file in files for end in file.batch_ends()),
    )
    found: list[SnapshotComparison] = []
    try:
        for file, state in zip(files, states, strict=True):
            if state.first_offset is not None:
                log = LogBeforeSnapshot(state.first_offset, not holes, directory.log_start_offset or 0)
                found += _compare(file, state, log)
    except OSError:
        return found  # deleted by the broker while we read; unreadable segments were listed by the first pass
    return found


class _File(NamedTuple):
    """A snapshot, and its rows of the producers in question."""

    suspect: Suspects
    stored: NDArray[Any]

    def batch_ends(self) -> Iterable[tuple[int, int]]:
        """Return the producer id and the last offset of the batches that it names."""
        return zip(self.stored["producer_id"].tolist(), self.stored["last_offset"].tolist(), strict=True)


def _file(suspect: Suspects) -> _File | None:
    rows = read_snapshot(suspect.file)
    if rows is None:
        return None
    chosen = np.array(suspect.producer_ids, dtype=np.int64)
    return _File(suspect, rows[np.isin(rows["producer_id"], chosen)])


def _compare(file: _File, state: ReplicaState, log: LogBeforeSnapshot) -> Iterator[SnapshotComparison]:
    suspect = file.suspect
    stored = {int(row["producer_id"]): SnapshotEntry(*row.tolist()) for row in file.stored}
    expected = _entries(state.versions, suspect.producer_ids)
    forgotten = _entries(state.forgetful, suspect.producer_ids)
    lost = {producer_id: entries[-1] for producer_id, entries in expected.items() if producer_id not in stored}
    cannot = _never_expired(suspect.file, lost) if lost else ()
    for producer_id in sorted(stored.keys() | expected.keys()):
        entry = stored.get(producer_id)
        ours = expected.get(producer_id, ())
        marker_only = bool(ours) and ours[0].last_sequence == NO_SEQUENCE and ours[0].last_offset == NO_OFFSET
        yield SnapshotComparison(
            file=suspect.file.name,
            offset=suspect.file.offset,
            producer_id=producer_id,
            stored=entry,
            expected=ours,
            forgotten=forgotten.get(producer_id, ()),
            present=entry is not None and (producer_id, entry.last_offset) in state.present,
            names_marker=entry is not None and (producer_id, entry.last_offset) in state.markers,
            may_expire=producer_id not in cannot or marker_only,
            log=log,
        )


def _never_expired(file: SnapshotFile, lost: Mapping[int, SnapshotEntry]) -> set[int]:
    """Return which of the producers that a snapshot lacks cannot have expired; `lost`: what it should say of them."""
    rows = read_snapshot(file)
    if rows is None:  # deleted by now
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
