"""Reading the histories of blocks of producer ids: those that are named, and those found inside and beside the inputs."""

import os
from collections.abc import Callable, Sequence
from itertools import combinations

from msgspec import Struct, field

from kaudit.audits.producer_ids import block_sources
from kaudit.audits.producer_ids.block_sources import BlockSource, ClusterBlocks
from kaudit.model.grouping import grouped
from kaudit.model.result import NotAudited
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import Layout, PartitionDirectory
from kaudit.source.zookeeper import ZooKeeperFiles

ReadMetadata = Callable[[Sequence[PartitionDirectory]], list[BlockSource]]
"""Returns the history of blocks in each of these replicas of __cluster_metadata."""


class FoundBlocks(Struct):
    """The blocks that were found, each with the log directories that go by them (None: all). `notes`: what was not read or not used, and why."""

    notes: list[NotAudited] = field(default_factory=list)
    blocks: list[tuple[ClusterBlocks, Sequence[str] | None]] = field(default_factory=list)

    def add(self, sources: Sequence[BlockSource], log_dirs: Sequence[str] | None) -> None:
        """Let these log directories go by what these sources say together."""
        combined = block_sources.combined_blocks(sources)
        if combined is not None:
            self.blocks.append((combined, log_dirs))


def metadata_reader(open_source: OpenSource) -> ReadMetadata:
    """Return a function that reads replicas of __cluster_metadata in this process."""
    return lambda directories: [block_sources.read_metadata(directory, open_source) for directory in directories]


def named_blocks(options: ScanOptions, read_metadata: ReadMetadata) -> FoundBlocks:
    """Read the histories that the options name; all log directories go by them."""
    named: list[BlockSource] = []
    if options.zookeeper is not None:
        named += block_sources.read_named_zookeeper(options.zookeeper)
    if options.blocks is not None:
        named.append(block_sources.read_lines(options.blocks))
    if options.metadata is not None:
        named += read_metadata(block_sources.named_metadata(options.metadata))
    found = FoundBlocks([note for source in named for note in source.notes])
    found.add(named, None)
    return found


def discovered_blocks(
    layout: Layout,
    ensembles: Sequence[ZooKeeperFiles],
    metadata_partitions: Sequence[PartitionDirectory],
    read_metadata: ReadMetadata,
) -> FoundBlocks:
    """Read the histories beside and inside the inputs; the log directories of a cluster go by its own."""
    found = FoundBlocks()
    clusters = _clusters(layout)
    sources = [source for files in ensembles for source in block_sources.read_zookeeper(files)]
    logs: dict[str, list[tuple[str, BlockSource]]] = {}
    for directory, source in zip(metadata_partitions, read_metadata(metadata_partitions), strict=True):
        log_dir = os.path.abspath(directory.log_dir)  # noqa: PTH100 - keeps symbolic links
        found.notes += source.notes
        logs.setdefault(clusters.get(log_dir, ""), []).append((log_dir, source))
    lone = len(sources) == 1 and len(set(clusters.values())) == 1
    for cluster, log_dirs in grouped((cluster, log_dir) for log_dir, cluster in clusters.items()).items():
        own = [source for source in sources if source.cluster == cluster and cluster]
        if not own and lone and not (sources[0].cluster and cluster):
            own = sources  # neither says whose it is, and there is no other
        for source in own:
            found.notes += source.notes
        metadata = logs.get(cluster, [])
        if _agree([source for _, source in metadata]):
            found.add([*own, *(source for _, source in metadata)], log_dirs)
            continue
        # copies of several clusters that were set up with one id: each log directory has its own
        for log_dir, source in metadata:
            found.add([source], [log_dir])
    return found


def _clusters(layout: Layout) -> dict[str, str]:
    """Return the cluster id of each log directory by its absolute path, empty where it is not known."""
    absolute: Callable[[str], str] = os.path.abspath
    known = {absolute(entry["path"]): entry.get("cluster.id", "") for entry in layout.evidence.meta_properties}
    log_dirs = {absolute(part.log_dir) for part in layout.everything}
    return {log_dir: known.get(log_dir, "") for log_dir in sorted(log_dirs)}


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
