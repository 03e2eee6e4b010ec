"""What other copies of a partition show: whose they are, and which records a new leader began without.

Logs in directories that brokers have set aside - moved, deleted, not theirs any more - beside the copies that are in use.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from kaudit.audits.replicas.broker_copies import BrokerCopies, of_brokers
from kaudit.audits.replicas.copy_identities import contradictions, log_copy, of_one_log, recreated_logs
from kaudit.audits.sidefiles.log_facts import SideFileReader
from kaudit.deferred import Deferred
from kaudit.model.batch import last_offsets
from kaudit.model.copy_identities import LogCopy, SetAsideLog
from kaudit.model.digests import PartitionDigest
from kaudit.model.grouping import grouped
from kaudit.model.leader_epochs import EpochEntry, HeldRecords, OtherCopies
from kaudit.model.replicas import ReplicaEvidence
from kaudit.partition.audit import PartitionAudit
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.log_tail import batches_from, last_batches, producers_records
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import CLUSTER_METADATA, Layout, LeftoverFile, PartitionDirectory

if TYPE_CHECKING:
    from kaudit.audits.replicas import comparison, partition_leaders, replica_reader
else:
    comparison = Deferred("kaudit.audits.replicas.comparison")
    partition_leaders = Deferred("kaudit.audits.replicas.partition_leaders")
    replica_reader = Deferred("kaudit.audits.replicas.replica_reader")


def set_aside_logs(
    leftovers: Iterable[LeftoverFile],
    copies: Sequence[LogCopy],
    removed: Callable[[], Mapping[str, str]],
    created: Callable[[], Collection[str] | None],
    open_source: OpenSource,
) -> Iterator[SetAsideLog]:
    """Yield the logs that hold batches; `open_source` notes what cannot be read, and such a log ends before it.

    `removed` returns where deletions of topics are written, by topic id, and `created` the ids of all topics that ever were, None where
    that is not known; they are called only where a directory is set aside.
    """
    counted: dict[tuple[str, int, tuple[int, int]], str] = {}
    for leftover in leftovers:
        if leftover.log is None:
            continue
        end, leader_epoch = _end(leftover.log, open_source)
        own = log_copy(leftover.log, end, leader_epoch)
        if end is None or end <= own.start_offset:
            continue
        others = [copy for copy in copies if (copy.topic, copy.partition) == (own.topic, own.partition)]
        # retention may have removed the beginning elsewhere: what is missing after it is what counts
        ends = (copy.end_offset or 0 for copy in others if copy.start_offset <= end and not _contradict(copy, own))
        reached = max(ends, default=0)
        first = max(reached, own.start_offset)
        alone = (first, end - 1) if first < end else None
        ids = created()
        never = own.topic_id is not None and ids is not None and own.topic_id not in ids
        place = leftover.relative
        twin = place if alone is None else counted.setdefault((own.topic_id or place, own.partition, alone), place)
        deleted = removed().get(own.topic_id or "")
        yield SetAsideLog(place, own, alone, others, deleted, never, None if twin == place else twin)


def _contradict(copy: LogCopy, own: LogCopy) -> bool:
    """Whether ids show that the copies are not of one topic."""
    ids = (copy.topic_id, own.topic_id), (copy.cluster_id, own.cluster_id)
    return any(None not in pair and pair[0] != pair[1] for pair in ids)


def _end(log: PartitionDirectory, open_source: OpenSource) -> tuple[int | None, int]:
    """Return the end (exclusive) and leader epoch of the last batch that can be read, None and -1 without one."""
    for segment in reversed(log.segments):
        try:
            for batches in reversed([*last_batches(segment, open_source)]):
                return int(last_offsets(batches)[-1]) + 1, int(batches["leader_epoch"][-1])
        except OSError:
            continue  # `open_source` has noted it
    return None, -1


MAX_CHANGES = 1000
"""Leader changes compared in one log, the newest."""
MAX_READ = 100
"""Ends of other copies read for one log; more are not compared, so that logs without common batches do not take hours."""


def about_copies(
    options: ScanOptions,
    layout: Layout,
    parts: Sequence[PartitionAudit],
    removed_topics: Mapping[str, str],
    open_source: OpenSource,
) -> Iterator[object]:
    """Yield what the ids beside the copies contradict, and what lies in directories that brokers have set aside.

    `removed_topics`: the lines of logs that say that a topic was deleted, by topic id.
    """
    # an outline that a task made has no segments, the layout has them
    directories = {directory.directory: directory for directory in layout.partitions}
    copies = [
        log_copy(directory, part.log_end_offset, int(part.leader_epochs["leader_epoch"][-1:].max(initial=-1)))
        for part in parts
        if (directory := directories.get(part.directory.directory)) is not None
    ]
    yield from contradictions(copies)
    # those of partitions that were left out have nothing here to be compared with
    left = (file for file in layout.leftover_files if options.asks_for(file.topic, file.partition))
    metadata = [directory for directory in layout.everything if directory.topic == CLUSTER_METADATA]
    removed = cache(lambda: {**removed_topics, **partition_leaders.removed_topics(metadata, open_source)})
    created = cache(lambda: partition_leaders.created_topics(metadata, open_source))
    aside = [*set_aside_logs(left, copies, removed, created, open_source)]
    yield from aside
    yield from recreated_logs([*copies, *(log.log for log in aside)])


def other_copies(parts: Sequence[PartitionAudit], open_source: OpenSource) -> list[list[OtherCopies]]:
    """Return for each of `parts` its leader changes, in offset order; none for a log whose leader epochs descend.

    A leader epoch that the log begins with is no change. Other copies are read only from a change on, and only where
    their own leader epochs show that they went on under an older one. One that cannot be read is not compared.
    """
    copies = grouped(((part.directory.topic, part.directory.partition), part) for part in parts if _comparable(part))
    found: list[list[OtherCopies]] = []
    for part in parts:
        same = copies.get((part.directory.topic, part.directory.partition), ())
        others = [
            other for other in same if other is not part and len(of_one_log([part.directory, other.directory])) == 1
        ]
        found.append(_changes(part, others, open_source) if _comparable(part) else [])
    return found


def compared_replicas(
    parts: Sequence[PartitionAudit],
    copies: Sequence[BrokerCopies],
    open_source: OpenSource,
    who_led: Callable[[], Mapping[int, int]],
) -> ReplicaEvidence | None:
    """Compare the copies of one partition, those that can be compared; None where there are no two of them.

    What the digests of the audits show to be the same is not read again. Of several logs the one with the most copies counts.
    """
    comparable = {part.directory.directory: part for part in parts if _comparable(part)}
    logs = of_one_log(part.directory for part in comparable.values())
    same = [comparable[directory.directory] for directory in max(logs, key=len, default=())]
    if len(same) < 2:
        return None
    # a watch may have begun to read one before there was another: its digest is of what came after that
    digests = [
        part.digest
        for part in same
        if part.digest is not None and part.digest.batches == part.counts.batches and not part.damages
    ]
    ranges = comparison.ranges_to_read(digests) if len(digests) == len(same) else None
    readers = {
        part.directory.replica: replica_reader.ReplicaReader(
            part.directory,
            open_source,
            verify=True,
            log_start_offset=part.directory.log_start_offset,
            audited=None if ranges is None or part.digest is None else _audited(part, part.digest, ranges),
        )
        for part in same
    }
    names = {part.directory.log_dir: part.directory.replica for part in same}
    return comparison.compare_copies(
        readers,
        [of_brokers(entry, names) for entry in copies],
        [],
        SideFileReader(open_source),
        says_compacted=any(part.compacted for part in same),
        who_led=who_led,
    )


def _audited(part: PartitionAudit, digest: PartitionDigest, ranges: Sequence[range]) -> "replica_reader.AuditedReplica":
    epochs: list[EpochEntry] = []
    for step in part.leader_epochs:
        entry = EpochEntry(int(step["leader_epoch"]), int(step["base_offset"]))
        if entry.epoch > (epochs[-1].epoch if epochs else -1):
            epochs.append(entry)
    return replica_reader.AuditedReplica(digest.start_offset, digest.end_offset, epochs, ranges)


def _comparable(part: PartitionAudit) -> bool:
    # leader epochs that descend are damage, and a text has no CRCs
    return not part.regressions and not part.unreadable and not any(segment.text for segment in part.directory.segments)


def _changes(part: PartitionAudit, others: Sequence[PartitionAudit], open_source: OpenSource) -> list[OtherCopies]:
    changes: list[OtherCopies] = []
    read = 0
    for step in part.leader_epochs[1:][-MAX_CHANGES:]:
        epoch, offset = int(step["leader_epoch"]), int(step["base_offset"])
        compared: list[str] = []
        held: list[HeldRecords] = []
        for other in others:
            end = _older_until(other, epoch)
            if end > offset:
                read += 1
                if read > MAX_READ:
                    continue
            try:
                records = _held(part, other, epoch, range(offset, end), open_source)
            except OSError:
                continue
            compared.append(other.directory.replica)
            held += [] if records is None else [records]
        changes.append(OtherCopies(epoch, offset, tuple(compared), tuple(held)))
    return changes


def _older_until(other: PartitionAudit, epoch: int) -> int:
    """The offset at which a copy's first leader epoch from `epoch` on begins, else its log's end."""
    newer = other.leader_epochs[other.leader_epochs["leader_epoch"] >= epoch]
    return int(newer["base_offset"][0]) if len(newer) else other.log_end_offset or 0


def _held(
    part: PartitionAudit, other: PartitionAudit, epoch: int, offsets: range, open_source: OpenSource
) -> HeldRecords | None:
    """What `other` holds at `offsets` under leader epochs below `epoch`; None where it is nothing, or the same records."""
    if not offsets:
        return None
    count, timestamp, newest = 0, -1, -1
    first: int | None = None
    last = offsets.start
    for batches in batches_from(other.directory, open_source, offsets.start):
        older = batches[(batches["base_offset"] < offsets.stop) & (batches["leader_epoch"] < epoch)]
        if not len(older):
            break
        if first is None:
            first = int(older["base_offset"][0])
            if _same_batch(part, first, int(older["crc"][0]), open_source):
                return None
        count += int(producers_records(older).sum())
        timestamp = max(timestamp, int(older["max_timestamp"].max()))
        newest = max(newest, int(older["leader_epoch"].max()))
        last = int(last_offsets(older)[-1])
    if first is None or not count:
        return None
    return HeldRecords(other.directory.replica, other.directory.directory, first, last, count, newest, timestamp)


def _same_batch(part: PartitionAudit, offset: int, crc: int, open_source: OpenSource) -> bool:
    """Whether `part` holds a batch of this base offset and CRC, which does not cover the leader epoch."""
    for batches in batches_from(part.directory, open_source, offset):
        if len(batches):
            return bool(np.any((batches["base_offset"] == offset) & (batches["crc"] == crc)))
    return False
