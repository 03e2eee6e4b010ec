"""What a scan did not audit, and why: one line a reason, not one a partition."""

from collections.abc import Iterable, Iterator, Sequence

from kaudit.model.damage import DamageKind
from kaudit.model.result import CoverageGap, NotAudited
from kaudit.partition.audit import PartitionAudit
from kaudit.source.layout import INTERNAL_TOPICS


def partitions_not_audited(
    parts: Sequence[PartitionAudit],
    *,
    log_start_given: bool,
    without_coordinator: Sequence[Sequence[PartitionAudit]],
    other_coordinators: bool,
) -> Iterator[NotAudited]:
    """Yield what could not be checked in the partitions.

    `log_start_given`: the user passed --log-start-offset. `without_coordinator`: partitions without a __transaction_state beside
    them, in groups of one cluster copied at one time; `other_coordinators`: another group has one.
    """
    users = [part for part in parts if part.directory.topic not in INTERNAL_TOPICS]
    yield from _reason(
        (part for part in users if not part.directory.has_checkpoints and not log_start_given),
        "the log start offset is not known: no checkpoint beside the partition (pass --log-start-offset)",
    )
    yield from _reason(
        (part for part in parts if part.counts.legacy_batches),
        "magic 0 and 1: no producer ids, sequences are not checkable",
    )
    yield from _reason(
        (part for part in users if part.compacted),
        "compacted: missing offsets and the sequences they held are not reported",
    )
    yield from _reason((part for part in parts if part.still_growing), "the last batch was still being written")
    for part in parts:
        if part.removed:
            oldest, more = part.removed[0], f" and {len(part.removed) - 1} more" if len(part.removed) > 1 else ""
            yield NotAudited(oldest.path + more, oldest.reason)
    yield from _reason(
        (part for part in users if part.restarts_compared),
        "producers that begin after others ended: only whole batches were compared (KA701; --depth records compares records)",
    )
    for kind in CoverageGap:
        yield from _reason((part for part in parts if kind in part.coverage_gaps), kind.value)
    for part in parts:
        yield from _left_out(part)
    for together in without_coordinator:
        there = _log_directories(together) if other_coordinators or len(without_coordinator) > 1 else "among the inputs"
        yield from _reason(
            (part for part in together if part.opened),
            f"open transactions could not be compared with their coordinator: no __transaction_state {there}",
        )


def without_digest(parts: Iterable[PartitionAudit]) -> Iterator[NotAudited]:
    """Yield the partitions whose batches no digest names, though that was asked for."""
    missing = [part for part in parts if part.digest is None]
    unread = [part for part in missing if part.unreadable]
    yield from _reason(unread, "no digest: not all of it could be read")
    of_text = [part for part in missing if not part.unreadable]
    yield from _reason(of_text, "no digest: a text of kafka-dump-log is not the bytes of a log")


def anomalies_not_listed(parts: Iterable[PartitionAudit]) -> Iterator[NotAudited]:
    """Yield the partitions with more anomalies than are kept."""
    for part in parts:
        more = part.unlisted + part.dropped_observations
        if more:
            yield NotAudited(part.directory.name, f"{more:,} more anomalies are counted here, not listed")
        if part.snapshots_not_compared:
            reason = f"older producer snapshots were not compared with the log: {part.snapshots_not_compared:,}"
            yield NotAudited(part.directory.name, reason)
        if part.bumps_not_compared:
            reason = f"{part.bumps_not_compared:,} more epoch bumps were not searched for repeated records (KA704)"
            yield NotAudited(part.directory.name, reason)
        if part.restarts_not_compared:
            reason = f"{part.restarts_not_compared:,} more producers were not compared with those before them (KA701)"
            yield NotAudited(part.directory.name, reason)


def _log_directories(parts: Iterable[PartitionAudit]) -> str:
    """Say in which log directories these partitions are."""
    first, *others = dict.fromkeys(part.directory.log_dir or part.directory.directory for part in parts)
    return f"in {first}" + (f" and {len(others)} more" if others else "")


def _left_out(part: PartitionAudit) -> Iterator[NotAudited]:
    """What a text in place of the segments leaves out."""
    found = [placed for placed in part.damages if placed.damage.kind is DamageKind.LEFT_OUT]
    if found:
        first = found[0]
        more = f", and {len(found) - 1} more such places" if len(found) > 1 else ""
        segment = part.directory.segments[first.segment].name
        reason = f"{segment}: {first.damage.detail}: what lies there is not audited{more}"
        yield NotAudited(part.directory.name, reason)


def _reason(parts: Iterable[PartitionAudit], reason: str) -> Iterator[NotAudited]:
    names = [part.directory.name for part in parts]
    if names:
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        yield NotAudited(names[0] + more, reason)
