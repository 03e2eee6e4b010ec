"""Finding and reading the histories of blocks of producer ids, and whose they are.

What the user names goes with everything; what is found goes with the log directories of its cluster only: two clusters
hand out the same ids, and one's history applied to the other's logs would accuse healthy producers.
"""

import os
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaudit.model.result import NotAudited
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import CLUSTER_METADATA, Layout, PartitionDirectory
from kaudit.source.zookeeper import ZooKeeperFiles, zookeeper_nearby

if TYPE_CHECKING:  # few logs come with a history
    from kaudit.audits.producer_ids.block_sources import BlockSource, ClusterBlocks


class BlockHistories(Struct):
    """The blocks of each cluster, and which log directories are whose. `notes`: what was not read, or not used, and why."""

    clusters: "list[ClusterBlocks]" = field(default_factory=list)
    notes: list[NotAudited] = field(default_factory=list)
    _by_log_dir: dict[str, int] = field(default_factory=dict)
    _for_all: bool = False

    def of(self, log_dir: str) -> "ClusterBlocks | None":
        """Return the blocks that partitions in this log directory go by, if they are known."""
        number = self.number_of(log_dir)
        return self.clusters[number] if number is not None else None

    def number_of(self, log_dir: str) -> int | None:
        """Return the number of those blocks among `clusters`."""
        if self._for_all:
            return 0 if self.clusters else None
        return self._by_log_dir.get(os.path.abspath(log_dir))  # noqa: PTH100 - keeps symbolic links

    def apply(self, sources: "Sequence[BlockSource]", log_dirs: Sequence[str] | None) -> None:
        """Let these log directories (None: all) go by what these sources say together."""
        from kaudit.audits.producer_ids.block_sources import combined_blocks  # noqa: PLC0415

        blocks = combined_blocks(sources)
        if blocks is None:
            return
        if log_dirs is None:
            self._for_all = True
        else:
            self._by_log_dir.update((os.path.abspath(log_dir), len(self.clusters)) for log_dir in log_dirs)  # noqa: PTH100
        self.clusters.append(blocks)


ReadMetadata = Callable[[Sequence[PartitionDirectory]], "list[BlockSource]"]
"""Returns what each of these replicas of __cluster_metadata says of blocks."""


def metadata_of(open_source: OpenSource) -> ReadMetadata:
    """Return what reads replicas of __cluster_metadata here."""

    def read(directories: Sequence[PartitionDirectory]) -> "list[BlockSource]":
        from kaudit.audits.producer_ids import block_sources  # noqa: PLC0415 - few logs come with a history

        return [block_sources.read_metadata(directory, open_source) for directory in directories]

    return read


def read_blocks(options: ScanOptions, layout: Layout, read_metadata: ReadMetadata) -> BlockHistories:
    """Read the histories that the options name, else those found inside and beside the inputs.

    Raises:
        UsageError: a named source does not exist or holds nothing of the kind.

    """
    histories = BlockHistories()
    if (options.zookeeper, options.blocks, options.metadata) != (None, None, None):
        named = _named(options, read_metadata)
        for source in named:
            histories.notes += source.notes
        histories.apply(named, None)
        return histories
    ensembles, metadata = zookeeper_nearby(options.paths), _metadata_partitions(layout)
    if ensembles or metadata:
        _discovered(histories, layout, ensembles, metadata, read_metadata)
    return histories


def _named(options: ScanOptions, read_metadata: ReadMetadata) -> "list[BlockSource]":
    from kaudit.audits.producer_ids import block_sources  # noqa: PLC0415 - few logs come with a history: 3 ms less for the others

    named: list[BlockSource] = []
    if options.zookeeper is not None:
        named += block_sources.read_named_zookeeper(options.zookeeper)
    if options.blocks is not None:
        named.append(block_sources.read_lines(options.blocks))
    if options.metadata is not None:
        named += read_metadata(block_sources.named_metadata(options.metadata))
    return named


def _discovered(
    histories: BlockHistories,
    layout: Layout,
    ensembles: Sequence[ZooKeeperFiles],
    metadata_partitions: Sequence[PartitionDirectory],
    read_metadata: ReadMetadata,
) -> None:
    from kaudit.audits.producer_ids import block_sources  # noqa: PLC0415 - as above

    clusters = _clusters(layout)
    sources = [source for files in ensembles for source in block_sources.read_zookeeper(files)]
    logs: dict[str, list[tuple[str, BlockSource]]] = {}
    for directory, source in zip(metadata_partitions, read_metadata(metadata_partitions), strict=True):
        log_dir = os.path.abspath(directory.log_dir)  # noqa: PTH100 - keeps symbolic links
        histories.notes += source.notes
        logs.setdefault(clusters.get(log_dir, ""), []).append((log_dir, source))
    lone = len(sources) == 1 and len(set(clusters.values())) == 1
    for cluster, log_dirs in _by_cluster(clusters).items():
        own = [source for source in sources if source.cluster == cluster and cluster]
        if not own and lone and not (sources[0].cluster and cluster):
            own = sources  # neither says whose it is, and there is no other
        for source in own:
            histories.notes += source.notes
        metadata = logs.get(cluster, [])
        if _agree([source for _, source in metadata]):
            histories.apply([*own, *(source for _, source in metadata)], log_dirs)
            continue
        # copies of several clusters that were set up with one id: each log directory has its own
        for log_dir, source in metadata:
            histories.apply([source], [log_dir])


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


def _metadata_partitions(layout: Layout) -> list[PartitionDirectory]:
    return [part for part in layout.everything if part.topic == CLUSTER_METADATA]


def _agree(sources: "Sequence[BlockSource]") -> bool:
    """Whether these are replicas of one log: where both reach, they hold the same grants."""
    return all(_same_log(one, other) for one, other in combinations(sources, 2))


def _same_log(one: "BlockSource", other: "BlockSource") -> bool:
    if one.extent is None or other.extent is None:
        return True
    first, last = max(one.extent[0], other.extent[0]), min(one.extent[1], other.extent[1])
    return _grants(one, first, last) == _grants(other, first, last)


def _grants(source: "BlockSource", first: int, last: int) -> list[tuple[object, ...]]:
    return [
        (entry.offset, entry.start, entry.broker, entry.broker_epoch, entry.at_ms)
        for entry in source.history.entries
        if entry.offset is not None and first <= entry.offset <= last
    ]
