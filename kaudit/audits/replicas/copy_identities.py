"""Compares the ids beside the copies of partitions: clusters, brokers and their log directories, topics."""

from collections.abc import Iterable, Iterator

from kaudit.model.copy_identities import HeldTwice, LogCopy, MixedClusters, RecreatedLog, SeveralTopicIds
from kaudit.model.grouping import grouped
from kaudit.source.file_kinds import parse_partition_name
from kaudit.source.layout import PartitionDirectory


def log_copy(directory: PartitionDirectory, end_offset: int | None, leader_epoch: int) -> LogCopy:
    """Return a partition's directory as a copy of its log, which ends at `end_offset` (exclusive) with this leader epoch."""
    identity = directory.identity
    return LogCopy(
        topic=directory.topic,
        partition=directory.partition,
        name=directory.replica,
        log_dir=directory.log_dir,
        broker_id=None if identity is None else identity.broker_id,
        cluster_id=None if identity is None else identity.cluster_id,
        directory_id=None if identity is None else identity.directory_id,
        topic_id=directory.topic_id,
        start_offset=directory.start_offset,
        end_offset=end_offset,
        leader_epoch=leader_epoch,
        in_use=_is_in_use(directory),
        directory=directory.directory,
    )


def of_one_log(directories: Iterable[PartitionDirectory]) -> list[list[PartitionDirectory]]:
    """Group a partition's directories by the log that they may be copies of, in the order of the first of each group.

    Those of two clusters, of two topics of one name, or in use on two disks of one broker are copies of different logs. An id that is
    not known contradicts nothing, but a broker has a partition once: two in use under one broker id are no replicas, and without the
    id of the cluster or the directory nothing shows that they are one log at two times.
    """
    groups: list[list[PartitionDirectory]] = []
    for directory in directories:
        own = next((group for group in groups if all(_may_be_one(directory, other) for other in group)), None)
        if own is None:
            groups.append([directory])
        else:
            own.append(directory)
    return groups


def _may_be_one(one: PartitionDirectory, other: PartitionDirectory) -> bool:
    ids = [(one.topic_id, other.topic_id)]
    if one.identity is not None and other.identity is not None:
        ids.append((one.identity.cluster_id, other.identity.cluster_id))
        if one.identity.broker_id == other.identity.broker_id and _is_in_use(one) and _is_in_use(other):
            ids.append((one.identity.directory_id, other.identity.directory_id))
            if one.log_dir != other.log_dir and None in (one.identity.key, other.identity.key):
                return False
    return all(None in pair or pair[0] == pair[1] for pair in ids)


def _is_in_use(directory: PartitionDirectory) -> bool:
    named = parse_partition_name(directory.directory.rpartition("/")[2])
    return named is None or named.moved is None


def contradictions(copies: Iterable[LogCopy]) -> Iterator[MixedClusters | HeldTwice | SeveralTopicIds]:
    """Yield where the ids beside the copies contradict that they belong to one cluster at one time.

    An id that is not known contradicts nothing. A topic's id is in partition.metadata (KIP-516, since 2.8), a log directory's
    in meta.properties (KIP-858, since 3.7): without it a broker's disks cannot be told from copies made at different times.
    """
    known = sorted(copies, key=lambda copy: (copy.topic, copy.partition, copy.name))
    yield from _mixed_clusters(known)
    by_broker = grouped(
        ((copy.topic, copy.partition, copy.cluster_id, copy.broker_id), copy) for copy in known if copy.in_use
    )
    for (_, _, cluster_id, broker_id), held in by_broker.items():
        disks = {copy.directory_id for copy in held if copy.directory_id is not None}
        if cluster_id is not None and broker_id is not None and len(disks) > 1:
            yield HeldTwice(sorted(held, key=lambda copy: (-copy.leader_epoch, -(copy.end_offset or 0))))
    for (topic, _), named in grouped(((copy.topic, copy.cluster_id), copy) for copy in known).items():
        by_id = grouped((copy.topic_id, copy) for copy in named if copy.topic_id is not None)
        if len(by_id) > 1:
            yield SeveralTopicIds(topic, by_id)


def recreated_logs(copies: Iterable[LogCopy]) -> Iterator[RecreatedLog]:
    """Yield the partitions with copies of a topic that was deleted: brokers set its logs aside (`-delete`, `-stray`).

    The topic that no directory set aside belongs to is the one that is there now.
    """
    by_cluster = grouped(
        ((copy.topic, copy.partition, copy.cluster_id), copy) for copy in copies if copy.topic_id is not None
    )
    for (topic, partition, _), held in by_cluster.items():
        former = {str(copy.topic_id) for copy in held if not copy.in_use}
        current = {str(copy.topic_id) for copy in held if copy.in_use} - former
        old = [copy for copy in held if copy.topic_id not in current and (copy.end_offset or 0) > copy.start_offset]
        if len(current) == 1 and len(former) == 1 and old:
            most = max(old, key=lambda copy: (copy.end_offset or 0) - copy.start_offset)
            end = most.end_offset or 0
            yield RecreatedLog(topic, partition, current.pop(), former.pop(), most.start_offset, end, old)


def _mixed_clusters(copies: Iterable[LogCopy]) -> Iterator[MixedClusters]:
    in_clusters = (copy for copy in copies if copy.cluster_id is not None)
    shared = {
        name: held
        for name, held in grouped((f"{copy.topic}-{copy.partition}", copy) for copy in in_clusters).items()
        if len({copy.cluster_id for copy in held}) > 1
    }
    if shared:
        by_cluster = grouped((str(copy.cluster_id), copy) for held in shared.values() for copy in held)
        yield MixedClusters(
            {cluster: sorted({copy.log_dir for copy in held}) for cluster, held in sorted(by_cluster.items())},
            list(shared),
            same_topic_ids=any(_one_id(held) for held in shared.values()),
        )


def _one_id(copies: Iterable[LogCopy]) -> bool:
    ids = {copy.topic_id for copy in copies}
    return len(ids) == 1 and None not in ids
