"""The evidence of one partition: what was kept of it, and what another reading of some of it shows."""

from collections.abc import Iterable, Sequence

from kaudit.audits.coordinator.decision_history import DecisionHistory
from kaudit.audits.sequences.expired_producers import evicted_producers
from kaudit.audits.sequences.step_patterns import step_mismatches
from kaudit.audits.transactions.marker_outcomes import compare_outcomes
from kaudit.broker.releases.profile import VersionRange
from kaudit.checks.check import Evidence
from kaudit.model.producer_patterns import EvictedProducer
from kaudit.model.side_files import SnapshotComparison
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.open_at_end import remembered
from kaudit.reading.chunk_plan import OpenSource


def partition_evidence(
    part: PartitionAudit, found: Iterable[object], open_source: OpenSource, versions: VersionRange
) -> Evidence:
    """Gather the evidence; `found` is what comparing partitions with one another shows of this one."""
    return Evidence(
        found,
        part.unreadable,
        part.observations,
        step_mismatches(part.observations),
        part.missing,
        part.damages,
        part.regressions,
        part.directory.leftover_files,
        part.malformed,
        part.side_facts,
        _snapshots(part, open_source, versions),
        part.repeats.repeated,
        part.repeats.reordered,
        part.repeated_sessions,
        part.repeated_epochs,
        part.leader_changes,
        remembered(part.opened, versions.newest),
        part.idle,
        _evicted(part, open_source, versions),
        [] if part.empty_marker is None else [part.empty_marker],
    )


def transaction_evidence(parts: Sequence[PartitionAudit], history: DecisionHistory) -> list[list[object]]:
    """Return, for each partition, what contradicts the coordinator's decisions, and what its own log contradicts."""
    found: list[list[object]] = [
        [transition for path, transition in history.transitions if path == part.directory.directory] for part in parts
    ]
    with_markers = [(own, part.markers) for own, part in zip(found, parts, strict=True) if part.markers is not None]
    mismatched = compare_outcomes([markers for _, markers in with_markers], history.decisions)
    for (own, _), markers in zip(with_markers, mismatched, strict=True):
        own.extend(markers)
    return found


def _snapshots(part: PartitionAudit, open_source: OpenSource, versions: VersionRange) -> list[SnapshotComparison]:
    # what damage did to the log it also did to this comparison: one damage, one finding
    if part.damages or not part.suspects:
        return []
    # imported here: the brokers' rules come with it, and few logs have a suspicious snapshot
    from kaudit.audits.sidefiles.snapshot_check import compare_snapshots  # noqa: PLC0415

    holes = part.compacted or bool(part.missing)
    return compare_snapshots(part.directory, part.suspects, open_source, versions, holes=holes)


def _evicted(part: PartitionAudit, open_source: OpenSource, versions: VersionRange) -> list[EvictedProducer]:
    """Look for producers that were forgotten, where every version in question forgets them."""
    if not versions.all(lambda profile: profile.forgets_on_log_start_advance):
        return []
    try:
        return evicted_producers(part.directory, open_source)
    except OSError:
        return []  # reported when the segment was read for the audit
