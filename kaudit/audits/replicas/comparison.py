"""The copies of one partition compared: what `diff` shows of them, and what a scan reports."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from kaudit.audits.replicas.missing_records import MissingCounts, with_records
from kaudit.audits.replicas.replica_reader import ReplicaReader
from kaudit.audits.replicas.replica_set import compare_partition
from kaudit.audits.sidefiles.log_facts import SideFileReader
from kaudit.formats.sidefiles.checkpoints import (
    LeaderEpochCheckpoint,
    parse_leader_epoch_checkpoint,
    parse_offset_checkpoint,
)
from kaudit.model.digests import PartitionDigest
from kaudit.model.replicas import BrokerReplicas, Relation, ReplicaEvidence
from kaudit.reading.digest_tree import widened
from kaudit.source.file_kinds import HIGH_WATERMARK_CHECKPOINT, LEADER_EPOCH_CHECKPOINT
from kaudit.source.layout import PartitionDirectory


def compare_copies(  # noqa: PLR0913 - independent inputs
    readers: Mapping[str, ReplicaReader],
    copies: Sequence[BrokerReplicas],
    missing_on: Sequence[str],
    files: SideFileReader,
    *,
    says_compacted: bool,
    who_led: Callable[[], Mapping[int, int]] = dict,
) -> ReplicaEvidence | None:
    """Compare the copies of a partition, by their names; None where not all could be read whole.

    `copies` says which of `readers` are of one broker, `missing_on` which replicas lack the partition. `files` reads what lies beside
    the logs, and the logs again where they differ. `who_led` as `compare_partition` has it.
    """
    open_source = files.open_source
    holders = {name: reader.directory for name, reader in readers.items()}
    checkpoints = _leader_epochs(holders, files)
    comparison, last = compare_partition(
        readers, checkpoints, missing_on, copies, says_compacted=says_compacted, who_led=who_led
    )
    if any(reader.unreadable for reader in readers.values()):
        return None
    marks = _high_watermarks(holders, files)
    counted = MissingCounts(holders, marks, open_source)
    comparison = replace(
        comparison,
        copy_changes=[counted.of_copy(change) for change in comparison.copy_changes],
        gaps=[with_records(gap, holders, open_source) for gap in comparison.gaps],
    )
    return ReplicaEvidence(
        comparison,
        marks,
        last,
        [name for name, reader in readers.items() if reader.ends_damaged],
        {name: entry.topic_id for name, entry in holders.items() if entry.topic_id is not None},
        counted.of_replicas(comparison),
    )


def without_lag(found: ReplicaEvidence) -> ReplicaEvidence | None:
    """Return what is no lag of a follower, None for nothing: copies are made while brokers run, and one after another.

    A replica that agrees with the reference as far as it goes has only not fetched the rest yet. What no other copy holds then is
    the end of the newest leader's log.
    """
    comparison = found.comparison
    earlier = {change.earlier for change in comparison.copy_changes}
    kept = replace(
        comparison,
        relations={name: how for name, how in comparison.relations.items() if how is not Relation.BEHIND},
        only_on={name: offsets for name, offsets in comparison.only_on.items() if name in earlier},
    )
    is_told = kept.only_on or kept.gaps or Relation.DIVERGED in kept.relations.values() or kept.first_difference
    return replace(found, comparison=kept) if is_told else None


def ranges_to_read(logs: Iterable[PartitionDigest]) -> list[range]:
    """Return the ranges of offsets in which copies of a partition may differ by the digests of their audits, ascending and apart.

    Each begins an offset early, so that the batch before it is read too.
    """
    held = [(log, log.ranges) for log in logs if log.ranges is not None]
    if len(held) < 2:
        return []
    width = max(ranges.width for _, ranges in held)
    first = min(log.start_offset for log, _ in held) // width * width
    found: list[range] = []
    for start in range(first, max(log.end_offset for log, _ in held), width):
        within = [
            (max(log.start_offset, start), min(log.end_offset, start + width), widened(ranges, start, width))
            for log, ranges in held
            if log.start_offset < start + width and log.end_offset > start
        ]
        if len(set(within)) < 2:
            continue
        if found and found[-1].stop == start:
            found[-1] = range(found[-1].start, start + width)
        else:
            found.append(range(max(start - 1, 0), start + width))
    return found


def _leader_epochs(
    holders: Mapping[str, PartitionDirectory], files: SideFileReader
) -> dict[str, LeaderEpochCheckpoint]:
    found = {}
    for name, directory in holders.items():
        for file in directory.side_files:
            if file.name == LEADER_EPOCH_CHECKPOINT:
                data = files.read(file)
                if data is not None:
                    found[name] = parse_leader_epoch_checkpoint(data)
    return found


def _high_watermarks(holders: Mapping[str, PartitionDirectory], files: SideFileReader) -> dict[str, int]:
    """Return the partition's high watermark as each replica's broker last saved it; the real one may be higher."""
    found: dict[str, int] = {}
    for name, directory in holders.items():
        for file in directory.checkpoints:
            data = files.read(file) if file.name == HIGH_WATERMARK_CHECKPOINT else None
            for row in parse_offset_checkpoint(data).rows if data is not None else ():
                if (row.topic, row.partition) == (directory.topic, directory.partition):
                    found[name] = row.offset
    return found
