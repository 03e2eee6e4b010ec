"""Which history of blocks of producer ids goes with which partitions.

What the user names goes with everything; what is found goes with the log directories of its cluster only: two clusters
hand out the same ids, and one's history held against the other's logs would accuse healthy producers.
"""

import os
from collections.abc import Callable, Sequence
from itertools import combinations

from msgspec import Struct, field

from kaudit.model.result import NotAudited
from kaudit.pipeline.block_sources import (
    Told,
    read_lines,
    read_metadata,
    read_named_metadata,
    read_named_zookeeper,
    read_zookeeper,
)
from kaudit.pipeline.metadata_log import CLUSTER_METADATA
from kaudit.pipeline.options import ScanOptions
from kaudit.pipeline.read import OpenSource
from kaudit.replay.allocation.coverage import Coverage
from kaudit.replay.allocation.history import BlockHistory, combine
from kaudit.replay.allocation.rules import Step, is_complete, next_block, replay
from kaudit.source.block_places import zookeeper_nearby
from kaudit.source.layout import Layout, PartitionDirectory


class Blocks(Struct, frozen=True):
    """One cluster's blocks. `origin` names the sources; `following` is the block the next broker will get."""

    origin: str
    history: BlockHistory
    steps: list[Step]
    coverage: Coverage
    complete: bool
    following: tuple[int, int] | None


class BlockBook(Struct):
    """All histories, and who goes by which. `notes` tell what was not read, or not used, and why."""

    books: list[Blocks] = field(default_factory=list)
    notes: list[NotAudited] = field(default_factory=list)
    _by_log_dir: dict[str, int] = field(default_factory=dict)
    _for_all: bool = False

    def of(self, log_dir: str) -> Blocks | None:
        """Return the history that partitions in this log directory go by, if there is one."""
        if self._for_all:
            return self.books[0] if self.books else None
        number = self._by_log_dir.get(os.path.abspath(log_dir))  # noqa: PTH100 - keeps symbolic links
        return self.books[number] if number is not None else None

    def apply(self, told: Sequence[Told], log_dirs: Sequence[str] | None) -> None:
        """Let these log directories (None: all) go by what these sources tell together."""
        history = combine([source.history for source in told])
        if not history.entries:
            return
        steps = replay(history)
        origin = ", ".join(dict.fromkeys(source.origin for source in told if source.history.entries))
        blocks = Blocks(origin, history, steps, Coverage(steps), is_complete(steps), next_block(history))
        if log_dirs is None:
            self._for_all = True
        else:
            self._by_log_dir.update((os.path.abspath(place), len(self.books)) for place in log_dirs)  # noqa: PTH100
        self.books.append(blocks)


def read_blocks(options: ScanOptions, layout: Layout, open_source: OpenSource) -> BlockBook:
    """Read the histories that the options name, else those found inside and beside the inputs.

    Raises:
        UsageError: a named source does not exist or holds nothing of the kind.

    """
    book = BlockBook()
    named: list[Told] = []
    if options.zookeeper is not None:
        named += read_named_zookeeper(options.zookeeper)
    if options.blocks is not None:
        named.append(read_lines(options.blocks))
    if options.metadata is not None:
        named += read_named_metadata(options.metadata, open_source)
    if named:
        for source in named:
            book.notes += source.notes
        book.apply(named, None)
        return book
    _discovered(book, options, layout, open_source)
    return book


def _discovered(book: BlockBook, options: ScanOptions, layout: Layout, open_source: OpenSource) -> None:
    clusters = _clusters(layout)
    told = [source for files in zookeeper_nearby(options.paths) for source in read_zookeeper(files)]
    logs: dict[str, list[tuple[str, Told]]] = {}
    for directory in _metadata_partitions(layout):
        log_dir = os.path.abspath(directory.log_dir)  # noqa: PTH100 - keeps symbolic links
        source = read_metadata(directory, open_source)
        book.notes += source.notes
        logs.setdefault(clusters.get(log_dir, ""), []).append((log_dir, source))
    lone = len(told) == 1 and len(set(clusters.values())) == 1
    for cluster, log_dirs in _by_cluster(clusters).items():
        own = [source for source in told if source.cluster == cluster and cluster]
        if not own and lone and not (told[0].cluster and cluster):
            own = told  # neither says whose it is, and there is no other
        for source in own:
            book.notes += source.notes
        metadata = logs.get(cluster, [])
        if _agree([source for _, source in metadata]):
            book.apply([*own, *(source for _, source in metadata)], log_dirs)
            continue
        # copies of several clusters that were set up with one id: each log directory has its own
        for log_dir, source in metadata:
            book.apply([source], [log_dir])


def _clusters(layout: Layout) -> dict[str, str]:
    """Return the cluster id of each log directory by its absolute path, empty where none is told."""
    told = {entry["path"]: entry.get("cluster.id", "") for entry in layout.evidence.meta_properties}
    absolute: Callable[[str], str] = os.path.abspath
    told = {absolute(path): cluster for path, cluster in told.items()}
    places = {absolute(part.log_dir) for part in layout.everything}
    return {place: told.get(place, "") for place in sorted(places)}


def _by_cluster(clusters: dict[str, str]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for log_dir, cluster in clusters.items():
        grouped.setdefault(cluster, []).append(log_dir)
    return grouped


def _metadata_partitions(layout: Layout) -> list[PartitionDirectory]:
    return [part for part in layout.everything if part.topic == CLUSTER_METADATA]


def _agree(sources: Sequence[Told]) -> bool:
    """Tell whether these are replicas of one log: where both reach, they hold the same grants."""
    return all(_same_log(one, other) for one, other in combinations(sources, 2))


def _same_log(one: Told, other: Told) -> bool:
    if one.extent is None or other.extent is None:
        return True
    first, last = max(one.extent[0], other.extent[0]), min(one.extent[1], other.extent[1])
    return _grants(one, first, last) == _grants(other, first, last)


def _grants(source: Told, first: int, last: int) -> list[tuple[object, ...]]:
    return [
        (entry.offset, entry.start, entry.broker, entry.broker_epoch, entry.at_ms)
        for entry in source.history.entries
        if entry.offset is not None and first <= entry.offset <= last
    ]
