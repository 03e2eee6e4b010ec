"""Reading the histories of blocks that the user names, or that lie inside and beside the inputs. Imported where there are any."""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from kaudit.audits.producer_ids.block_sources import (
    BlockSource,
    ClusterBlocks,
    combined_blocks,
    named_metadata,
    read_lines,
    read_metadata,
    read_named_zookeeper,
    read_zookeeper,
)
from kaudit.model.result import NotAudited
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import Layout, PartitionDirectory
from kaudit.source.zookeeper import ZooKeeperFiles

AskReplicas = Callable[
    [Callable[[PartitionDirectory, OpenSource], BlockSource], Sequence[PartitionDirectory]], list[BlockSource]
]
"""Calls a function with each of these replicas of __cluster_metadata, here or in the tasks of an engine; returns what it returned."""
Discovery = tuple[list[NotAudited], ClusterBlocks | None, Sequence[str] | None]
"""Notes about sources, and blocks with the log directories that go by them, None for all."""


def named_blocks(options: ScanOptions, ask: AskReplicas) -> Discovery:
    """Read the sources that the options name: they go with every log directory.

    Raises:
        UsageError: one does not exist or holds nothing of the kind.

    """
    named: list[BlockSource] = []
    if options.zookeeper is not None:
        named += read_named_zookeeper(options.zookeeper)
    if options.blocks is not None:
        named.append(read_lines(options.blocks))
    if options.metadata is not None:
        named += ask(read_metadata, named_metadata(options.metadata))
    return [note for source in named for note in source.notes], combined_blocks(named), None


def found_blocks(
    layout: Layout, ensembles: Sequence[ZooKeeperFiles], replicas: Sequence[PartitionDirectory], ask: AskReplicas
) -> Iterator[Discovery]:
    """Read the ensembles and replicas of __cluster_metadata that were found; yield the blocks of each cluster."""
    clusters = _clusters(layout)
    sources = [source for files in ensembles for source in read_zookeeper(files)]
    logs: dict[str, list[tuple[str, BlockSource]]] = {}
    for directory, source in zip(replicas, ask(read_metadata, replicas), strict=True):
        log_dir = os.path.abspath(directory.log_dir)  # noqa: PTH100 - keeps symbolic links
        yield source.notes, None, None
        logs.setdefault(clusters.get(log_dir, ""), []).append((log_dir, source))
    lone = len(sources) == 1 and len(set(clusters.values())) == 1
    for cluster, log_dirs in _by_cluster(clusters).items():
        own = [source for source in sources if source.cluster == cluster and cluster]
        if not own and lone and not (sources[0].cluster and cluster):
            own = sources  # neither says whose it is, and there is no other
        for source in own:
            yield source.notes, None, None
        metadata = logs.get(cluster, [])
        if _agree([source for _, source in metadata]):
            yield [], combined_blocks([*own, *(source for _, source in metadata)]), log_dirs
            continue
        # copies of several clusters that were set up with one id: each log directory has its own
        for log_dir, source in metadata:
            yield [], combined_blocks([source]), [log_dir]


def _clusters(layout: Layout) -> dict[str, str]:
    """Return the cluster id of each log directory by its absolute path, empty where it is not known."""
    absolute: Callable[[str], str] = os.path.abspath
    known = {absolute(entry["path"]): entry.get("cluster.id", "") for entry in layout.evidence.meta_properties}
    log_dirs = {absolute(part.log_dir) for part in layout.everything}
    return {log_dir: known.get(log_dir, "") for log_dir in sorted(log_dirs)}


def _by_cluster(clusters: dict[str, str]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for log_dir, cluster in clusters.items():
        grouped.setdefault(cluster, []).append(log_dir)
    return grouped


def _agree(sources: Sequence[BlockSource]) -> bool:
    """Whether these are replicas of one log: where both reach, they hold the same grants."""
    return all(_same_log(one, other) for one, other in combinations(sources, 2))


def _same_log(one: BlockSource, other: BlockSource) -> bool:
    if one.extent is None or other.extent is None:
        return True
    first, last = max(one.extent[0], other.extent[0]), min(one.extent[1], other.extent[1])
    return _grants(one, first, last) == _grants(other, first, last)


def _grants(source: BlockSource, first: int, last: int) -> list[tuple[object, ...]]:
    return [
        (entry.offset, entry.start, entry.broker, entry.broker_epoch, entry.at_ms)
        for entry in source.history.entries
        if entry.offset is not None and first <= entry.offset <= last
    ]
