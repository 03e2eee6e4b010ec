"""Remote segments compared with the partitions on disks: what is remote, what is in both places, and whether they meet."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kaudit.audits.sidefiles.leader_epoch_audit import lineage_of
from kaudit.audits.sidefiles.log_facts import SideFileReader
from kaudit.audits.sidefiles.snapshot_states import entries_at
from kaudit.audits.tiered.boundary import LocalLog, by_newest_epoch, findings_of, orphans_of, tiers_of
from kaudit.model.coverage import Coverage, OffsetClass, OffsetRange
from kaudit.model.grouping import grouped
from kaudit.model.internal_topics import REMOTE_LOG
from kaudit.model.remote_segments import OrphanKind, RemoteAccount, RemoteLog, RemoteLogFault, RemoteState
from kaudit.partition.audit import PartitionAudit
from kaudit.scanning.group_logs import GroupLog
from kaudit.source.layout import PartitionDirectory, list_snapshots


def evidence_of_remote_logs(
    parts: Sequence[PartitionAudit], logs: Sequence[GroupLog], files: SideFileReader
) -> list[list[RemoteLogFault]]:
    """Return for each partition what is wrong with its remote log; the account of its offsets gets what is there.

    A partition's findings are those of the replica with the newest leader epoch.
    """
    found: list[list[RemoteLogFault]] = [[] for _ in parts]
    places = grouped(
        ((part.directory.topic, part.directory.partition), number)
        for number, part in enumerate(parts)
        if part.directory.whole_directory and not part.directory.is_fetched
    )
    for log in logs:
        for remote in log.remote:
            numbers = places.get((remote.topic, remote.partition), [])
            own = [number for number in numbers if parts[number].directory.topic_id in (None, remote.topic_id)]
            if numbers and not own:
                found[numbers[0]] += _of_former_topic(remote)
            known = {number: local for number in own if (local := _local(parts[number], files)) is not None}
            for number, local in known.items():
                part = parts[number]
                if part.coverage is not None:
                    part.coverage = _accounted(part.coverage, remote, local)
            if known:
                ordered = by_newest_epoch(known.values())
                first = next(number for number, local in known.items() if local is ordered[0])
                found[first] += findings_of(remote, ordered, complete=log.remote_complete)
    return found


def _of_former_topic(log: RemoteLog) -> Iterator[RemoteLogFault]:
    left = (segment for segment in log.segments if segment.state is not RemoteState.DELETE_FINISHED)
    return orphans_of((OrphanKind.FORMER_TOPIC, segment) for segment in left)


def _local(part: PartitionAudit, files: SideFileReader) -> LocalLog | None:
    """Return what a replica has on its disk, None where its end is not known."""
    directory = part.directory
    end = part.log_end_offset if part.coverage is None else part.coverage.log_end_offset
    if not directory.segments or end is None or part.unreadable:
        return None
    start = max(directory.log_start_offset or 0, directory.segments[0].base_offset)
    on_disk = [segment.base_offset for segment in directory.segments[directory.remote_segments :]]
    rows = lineage_of(directory, files)
    return LocalLog(
        directory.replica,
        directory.log_start_offset,
        start,
        max([start, *on_disk[:1]]),
        max(start, end),
        rows,
        directory.is_stopped,
        not part.counts.markers and _has_no_transactions(directory, files),
    )


def _has_no_transactions(directory: PartitionDirectory, files: SideFileReader) -> bool:
    """Whether the newest producer snapshot knows no producer with a marker: a coordinator's epoch comes with the first one."""
    newest = list_snapshots(directory)[-1:]
    known = [entries_at(directory, snapshot.base_offset, files) for snapshot in newest]
    return any(rows is not None and bool((rows["coordinator_epoch"] < 0).all()) for rows in known)


def _accounted(account: Coverage, log: RemoteLog, local: LocalLog) -> Coverage:
    """Return the account with what is in remote storage below the log on the disk, and what is nowhere."""
    tiers = tiers_of(log, local)
    holes = sum(last - first + 1 for first, last in tiers.holes)
    readable = log.readable
    remote = RemoteAccount(
        len(readable),
        sum(segment.size for segment in readable),
        tiers.remote_ranges[0][0] if tiers.remote_ranges else None,
        tiers.remote_ranges[-1][1] if tiers.remote_ranges else None,
        local.disk_offset,
        tiers.remote_offsets(local.disk_offset, local.end_offset),
        holes,
        sum(segment.state is RemoteState.COPY_STARTED for segment in log.segments),
    )
    below = {OffsetClass.REMOTE.value, OffsetClass.RETENTION.value}
    offsets = {kind: number for kind, number in account.offsets.items() if kind not in below}
    ranges = [found for found in account.ranges if found.last_offset is None or found.last_offset >= local.start_offset]
    for gone in account.ranges:
        if gone not in ranges:
            offsets[gone.kind.value] = offsets[gone.kind.value] - gone.offsets
    start = tiers.retained_from
    offsets[OffsetClass.RETENTION.value] = start
    offsets[OffsetClass.REMOTE.value] = tiers.remote_offsets(start, local.start_offset)
    account = replace(
        account,
        log_start_offset=start,
        log_start_source=account.log_start_source if start == account.log_start_offset else REMOTE_LOG,
        offsets={kind: number for kind, number in offsets.items() if number},
        ranges=ranges,
        all_accounted=not ranges,
        remote=remote,
    )
    return account.with_ranges(
        [
            OffsetRange(
                first,
                last,
                last - first + 1,
                OffsetClass.MISSING,
                "they are neither on this disk nor in a segment in remote storage",
            )
            for first, last in tiers.holes
        ]
    )
