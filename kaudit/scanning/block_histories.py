"""The histories of blocks of producer ids that a scan goes by, and the log directories that each applies to.

What the user names goes with everything; what is found goes with the log directories of its cluster only: two clusters
hand out the same ids, and one's history applied to the other's logs would accuse healthy producers.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaudit.model.result import NotAudited
from kaudit.reading.chunk_plan import OpenSource
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import CLUSTER_METADATA, Layout
from kaudit.source.zookeeper import zookeeper_nearby

if TYPE_CHECKING:  # few logs come with a history
    from kaudit.audits.producer_ids.block_sources import ClusterBlocks
    from kaudit.scanning.found_blocks import ReadMetadata


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

    def apply(self, blocks: "ClusterBlocks", log_dirs: Sequence[str] | None) -> None:
        """Let these log directories (None: all) go by these blocks."""
        if log_dirs is None:
            self._for_all = True
        else:
            self._by_log_dir.update((os.path.abspath(log_dir), len(self.clusters)) for log_dir in log_dirs)  # noqa: PTH100
        self.clusters.append(blocks)


def read_blocks(
    options: ScanOptions, layout: Layout, open_source: OpenSource, read_metadata: "ReadMetadata | None" = None
) -> BlockHistories:
    """Read the histories that the options name, else those found inside and beside the inputs.

    `read_metadata` reads replicas of __cluster_metadata; None: they are read here, with `open_source`.

    Raises:
        UsageError: a named source does not exist or holds nothing of the kind.

    """
    named = (options.zookeeper, options.blocks, options.metadata) != (None, None, None)
    ensembles, unlisted = ([], []) if named else zookeeper_nearby(options.paths)
    metadata = [] if named else [part for part in layout.everything if part.topic == CLUSTER_METADATA]
    histories = BlockHistories()
    for folder, error in unlisted:
        # where ZooKeeper does not let others look is no failure
        reason = (
            f"cannot be listed, so that ZooKeeper's blocks of producer ids are not known: {error.strerror or error}"
        )
        is_unreadable = not isinstance(error, PermissionError)
        histories.notes.append(NotAudited(str(folder), reason, unreadable=is_unreadable))
    if not (named or ensembles or metadata):
        return histories
    from kaudit.scanning import found_blocks  # noqa: PLC0415 - few logs come with a history: 3 ms less for the others

    read_metadata = read_metadata or found_blocks.metadata_reader(open_source)
    found = (
        found_blocks.named_blocks(options, read_metadata)
        if named
        else found_blocks.discovered_blocks(layout, ensembles, metadata, read_metadata)
    )
    histories.notes += found.notes
    for blocks, log_dirs in found.blocks:
        histories.apply(blocks, log_dirs)
    return histories
