"""Copies of one broker's log directory made at different times: they are not replicas of one another.

A broker holds a partition once. So copies of a partition from log directories of one identity (meta.properties) are the
same replica before and after: where they differ the log was changed in between, and nothing diverged.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from msgspec import Struct

from kaudit.model.grouping import grouped
from kaudit.model.internal_topics import GROUPS, SHARE_STATE, TRANSACTIONS
from kaudit.model.replicas import BrokerReplicas
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.log_tail import last_batches
from kaudit.source.layout import LogDirectoryIdentity, PartitionDirectory, SegmentFile

_DAY_MS = 86_400_000
_NEVER_DELETED = (GROUPS, SHARE_STATE, TRANSACTIONS)

Clock = tuple[int, int]
"""A copy's newest batch timestamp and newest modification of a file, ms: they order the copies."""


class BrokerCopies(Struct, frozen=True):
    """Two or more copies of one broker's log directory: the clock of each copy by its path, the oldest first."""

    identity: LogDirectoryIdentity
    clocks: Mapping[str, Clock]

    @property
    def log_dirs(self) -> list[str]:
        """The copies' paths, the oldest first."""
        return list(self.clocks)


def of_brokers(entry: BrokerCopies, names: Mapping[str, str]) -> BrokerReplicas:
    """Return the copies by the names of their log directories, without those that have none."""
    known = dict.fromkeys(names[log_dir] for log_dir in entry.log_dirs if log_dir in names)
    identity = entry.identity
    return BrokerReplicas(identity.broker_id, identity.directory_id, identity.cluster_id, tuple(known))


def broker_copies(directories: Iterable[PartitionDirectory], open_source: OpenSource) -> list[BrokerCopies]:
    """Return the log directories of which there are several copies, ordered by broker id.

    Directories that share no partition are not copies: without directory.id (before 3.7) a broker's disks look alike.
    """
    by_log_dir = _by_log_dir(directories)
    alike: dict[tuple[int, str], list[str]] = {}
    for log_dir, held in by_log_dir.items():
        identity = held[0].identity
        if identity is not None and identity.key is not None:
            alike.setdefault(identity.key, []).append(log_dir)
    found: list[BrokerCopies] = []
    for log_dirs in alike.values():
        for copies in _sharing(log_dirs, by_log_dir):
            identity = by_log_dir[copies[0]][0].identity
            if len(copies) > 1 and identity is not None:
                clocks = sorted((clock(by_log_dir[log_dir], open_source), log_dir) for log_dir in copies)
                found.append(BrokerCopies(identity, {log_dir: at for at, log_dir in clocks}))
    return sorted(found, key=lambda copies: (copies.identity.broker_id, copies.log_dirs[0]))


def clock(directories: Iterable[PartitionDirectory], open_source: OpenSource) -> Clock:
    """Return the time of a copy of a log directory, by the last batches of its partitions.

    As elsewhere, a timestamp more than a day after the newest file is a producer's mistake and no clock.
    """
    last = [directory.segments[-1] for directory in directories if directory.segments]
    modified = max((segment.modified_ms for segment in last), default=0)
    timestamps = (_newest_timestamp(segment, open_source) for segment in last)
    return max((at for at in timestamps if at <= modified + _DAY_MS), default=-1), modified


def copied_together(
    directories: Iterable[PartitionDirectory], copies: Sequence[BrokerCopies], open_source: OpenSource
) -> list[frozenset[str]]:
    """Group log directories into those of one cluster copied together; all are one group where nothing says otherwise.

    In each cluster the broker with the most copies makes the groups. Another's copy belongs to the one whose path is
    nearest, of equally near ones to the one with the nearest clock; a second copy of the same broker stays by itself, and
    so does one of an unknown cluster that is equally near to several.
    """
    by_log_dir = _by_log_dir(directories)
    clusters = _clusters(by_log_dir)
    seeds = _seeds(clusters, copies) or _brokers_twice(by_log_dir)
    if len(seeds) < 2:
        return [frozenset(by_log_dir)]
    clocks = {log_dir: at for entry in copies for log_dir, at in entry.clocks.items()}
    clocks |= {log_dir: clock(held, open_source) for log_dir, held in by_log_dir.items() if log_dir not in clocks}
    brokers = {log_dir: number for number, entry in enumerate(copies) for log_dir in entry.log_dirs}

    def distance(log_dir: str, seed: str) -> tuple[int, int, int]:
        (at, modified), (other_at, other_modified) = clocks[log_dir], clocks[seed]
        return -_shared_path(log_dir, seed), abs(at - other_at), abs(modified - other_modified)

    groups = {seed: [seed] for seed in seeds}
    nearest: list[tuple[tuple[int, int, int], str, str]] = []
    for log_dir in by_log_dir.keys() - set(seeds):
        own = clusters[log_dir]
        near = sorted((distance(log_dir, seed), seed) for seed in seeds if own in (None, clusters[seed]))
        nearest_path = near[0][0][0]
        if len({clusters[seed] or seed for (path, *_), seed in near if path == nearest_path}) > 1:
            groups[log_dir] = [log_dir]
        else:
            nearest.append((*near[0], log_dir))
    for _, seed, log_dir in sorted(nearest):
        taken = log_dir in brokers and brokers[log_dir] in [brokers.get(other) for other in groups[seed]]
        groups.setdefault(log_dir if taken else seed, []).append(log_dir)
    return [frozenset(group) for group in groups.values()]


def of_one_run(directories: Iterable[PartitionDirectory], groups: Sequence[frozenset[str]]) -> Sequence[frozenset[str]]:
    """Join what `copied_together` grouped into log directories of one cluster, at whatever times they were copied.

    A producer id, a transactional id or a group of one cluster says nothing about another, nor about what may be of any.
    """
    clusters = _clusters(_by_log_dir(directories))
    if len(set(clusters.values()) - {None}) == 1:
        return [frozenset(clusters)]
    runs: dict[object, frozenset[str]] = {}
    for group in groups:
        key = next((clusters[log_dir] for log_dir in group if clusters[log_dir] is not None), group)
        runs[key] = runs.get(key, frozenset()) | group
    return list(runs.values())


def _clusters(by_log_dir: Mapping[str, Sequence[PartitionDirectory]]) -> dict[str, str | None]:
    """Return the cluster of each log directory, None where it is not known.

    Nobody deletes an internal topic: one of several topic ids is that of several clusters, which may have been set up with one cluster id.
    """
    clusters = {log_dir: getattr(held[0].identity, "cluster_id", None) for log_dir, held in by_log_dir.items()}
    ids: dict[tuple[str | None, str], dict[str, str]] = {}
    for log_dir, held in by_log_dir.items():
        for directory in held:
            if directory.topic in _NEVER_DELETED and directory.topic_id is not None:
                ids.setdefault((clusters[log_dir], directory.topic), {})[log_dir] = directory.topic_id
    for (cluster, _), own in sorted(ids.items(), key=str):
        if len(set(own.values())) > 1:
            clusters |= {log_dir: own.get(log_dir) for log_dir, known in clusters.items() if known == cluster}
    return clusters


def _seeds(clusters: Mapping[str, str | None], copies: Sequence[BrokerCopies]) -> list[str]:
    """One log directory for each time a cluster was copied; unknown clusters are one where any is known."""
    known = {cluster for cluster in clusters.values() if cluster is not None}
    seeds: list[str] = []
    for cluster in sorted(known):
        candidates: list[Sequence[str]] = [[min(log_dir for log_dir, of in clusters.items() if of == cluster)]]
        candidates += [entry.log_dirs for entry in copies if entry.identity.cluster_id == cluster]
        longest = max(candidates, key=len)
        seeds += longest
    return seeds


def _brokers_twice(by_log_dir: Mapping[str, Sequence[PartitionDirectory]]) -> list[str]:
    """Log directories of no known cluster that hold the same partition of the same broker id: a broker holds it once."""
    by_broker: dict[int, list[str]] = {}
    for log_dir, held in by_log_dir.items():
        identity = held[0].identity
        if identity is not None:
            by_broker.setdefault(identity.broker_id, []).append(log_dir)
    twice: list[str] = []
    for log_dirs in by_broker.values():
        twice = max([twice, *_sharing(log_dirs, by_log_dir)], key=len)
    return sorted(twice) if len(twice) > 1 else []


def _by_log_dir(directories: Iterable[PartitionDirectory]) -> dict[str, list[PartitionDirectory]]:
    return grouped((directory.log_dir, directory) for directory in directories)


def _sharing(log_dirs: Iterable[str], by_log_dir: Mapping[str, Sequence[PartitionDirectory]]) -> list[list[str]]:
    """Bring together the log directories that have a partition in common, directly or over others."""
    groups: list[tuple[set[str], list[str]]] = []
    for log_dir in log_dirs:
        names, together = {directory.name for directory in by_log_dir[log_dir]}, [log_dir]
        apart = []
        for group in groups:
            if names.isdisjoint(group[0]):
                apart.append(group)
            else:
                names |= group[0]
                together = [*group[1], *together]
        groups = [*apart, (names, together)]
    return [together for _, together in groups]


def _newest_timestamp(segment: SegmentFile, open_source: OpenSource) -> int:
    """The greatest timestamp of the segment's last batches, ms; -1 where none can be read."""
    if segment.text is not None:
        return -1
    try:
        found = last_batches(segment, open_source)
        return max((int(batches["max_timestamp"].max()) for batches in found), default=-1)
    except OSError:
        return -1


def _shared_path(one: str, other: str) -> int:
    """How many directories two paths have in common from the root."""
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return sum(1 for _ in takewhile(lambda parts: parts[0] == parts[1], pairs))
