"""From suspects to comparisons: what a replica would have written into a snapshot, producer by producer."""

from collections.abc import Iterator, Sequence

import numpy as np

from kaudit.analysis.scan.chunk_plan import OpenSource
from kaudit.analysis.sidefiles.replica_state import ReplicaState, replica_state
from kaudit.analysis.sidefiles.snapshot_states import Suspects, read_snapshot, unexplained
from kaudit.broker.producer_state.rebuild import snapshot_entry
from kaudit.broker.releases.profile import VersionRange
from kaudit.model.batch_fields import NO_OFFSET, NO_SEQUENCE
from kaudit.model.producer_snapshot import LogBeforeSnapshot, SnapshotComparison, SnapshotEntry
from kaudit.source.layout import PartitionDirectory


def compare_snapshots(
    directory: PartitionDirectory,
    suspects: Sequence[Suspects],
    open_source: OpenSource,
    versions: VersionRange,
    *,
    holes: bool,
) -> list[SnapshotComparison]:
    """Read the log again for the suspects; return the comparisons.

    `holes`: compaction, damage or a lost segment took batches from the log.
    """
    found: list[SnapshotComparison] = []
    for suspect in suspects:
        try:
            found += _compare(directory, suspect, open_source, versions, holes=holes)
        except OSError:
            continue  # deleted by the broker while we read; unreadable segments were listed by the first pass
    return found


def _compare(
    directory: PartitionDirectory, suspect: Suspects, open_source: OpenSource, versions: VersionRange, *, holes: bool
) -> Iterator[SnapshotComparison]:
    rows = read_snapshot(suspect.file)
    if rows is None:
        return
    chosen = suspect.producer_ids
    kept = rows[np.isin(rows["producer_id"], np.array(chosen, dtype=np.int64))]
    stored = {int(row["producer_id"]): SnapshotEntry(*row.tolist()) for row in kept}
    asked = frozenset((entry.producer_id, entry.last_offset) for entry in stored.values())
    state = replica_state(directory, open_source, suspect.file.offset, chosen, versions, asked)
    if state.first_offset is None:
        return
    log_before = LogBeforeSnapshot(state.first_offset, not holes, directory.log_start_offset or 0)
    expected = _expected(state)
    lost = [producer_id for producer_id in expected if producer_id not in stored]
    newest = [expected[producer_id][-1] for producer_id in lost]
    late = unexplained(
        rows,
        np.array([entry.last_offset for entry in newest], dtype=np.int64),
        np.array([entry.timestamp for entry in newest], dtype=np.int64),
        suspect.file.modified_ms,
    )
    cannot = {producer_id for producer_id, flag in zip(lost, late.tolist(), strict=True) if flag}
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
            present=entry is not None and (producer_id, entry.last_offset) in state.present,
            names_marker=entry is not None and (producer_id, entry.last_offset) in state.markers,
            may_expire=producer_id not in cannot or marker_only,
            log=log_before,
        )


def _expected(state: ReplicaState) -> dict[int, tuple[SnapshotEntry, ...]]:
    """Return what each kind of version writes, the same entries once."""
    first, *others = state.versions
    return {
        producer_id: tuple(
            dict.fromkeys(
                [
                    snapshot_entry(producer_id, own),
                    *(snapshot_entry(producer_id, other.get(producer_id)) for other in others),
                ]
            )
        )
        for producer_id, own in first.states.items()
    }
