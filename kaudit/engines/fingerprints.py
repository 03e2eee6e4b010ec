"""`diff --fingerprint`: one task a partition, done by an engine."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from kaudit.diff.fingerprint.comparison import compare, narrowed
from kaudit.diff.fingerprint.reading import (
    FingerprintTask,
    ReadFingerprint,
    Rows,
    read_fingerprint,
    rows_of,
)
from kaudit.engines.engine import EachPartition
from kaudit.engines.local import LOCAL
from kaudit.engines.progress import Progress
from kaudit.engines.replicas import layout_of
from kaudit.errors import NothingToAuditError
from kaudit.model.digests import ranges_each
from kaudit.model.fingerprint import Fingerprint, FingerprintDiff, PartitionFingerprint
from kaudit.model.replicas import Replica
from kaudit.model.result import NotAudited
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import Layout, PartitionDirectory

Key = tuple[str, int]


def fingerprint(
    options: ScanOptions,
    site: Replica,
    progress: Progress,
    other: Fingerprint | None = None,
    *,
    each: EachPartition = LOCAL.each_partition,
) -> Fingerprint:
    """Return digests of what lies under a site's path, with `other` narrower ones where that one differs.

    Raises:
        UsageError: the path does not exist, or holds one partition twice.
        NothingToAuditError: no segment was found.

    """
    layout = _layout(site, options)
    most = ranges_each(len(layout.partitions))
    wanted: Mapping[Key, Rows] = {}
    if other is not None:
        theirs = {partition.key: partition for partition in other.partitions}
        read = _read(layout, lambda key: rows_of(theirs[key]) if key in theirs else None, options, progress, each)
        found = (one.fingerprint for one in read)
        wanted = {ours.key: narrowed(ours, theirs[ours.key]) for ours in found}
    read = _read(layout, lambda key: replace(wanted.get(key, Rows()), most_ranges=most), options, progress, each)
    missing = _not_audited(layout, read)
    return Fingerprint(
        options.paths, [one.fingerprint for one in read], missing, any(item.unreadable for item in missing)
    )


def compare_with_logs(  # noqa: PLR0913 - two sites, and who does the work
    options: ScanOptions,
    site: Replica,
    name: str,
    other: Fingerprint,
    progress: Progress,
    *,
    each: EachPartition = LOCAL.each_partition,
) -> FingerprintDiff:
    """Hold what lies under a site's path against the fingerprint of another, which is called `name`. Raises as `fingerprint`."""
    layout = _layout(site, options)
    theirs = {partition.key: partition for partition in other.partitions}
    read = _read(layout, lambda key: rows_of(theirs[key]) if key in theirs else None, options, progress, each)
    ours = {one.fingerprint.key: one.fingerprint for one in read}
    alone = [(directory.topic, directory.partition) for directory in layout.partitions]
    return _compared(
        (site.name, name),
        ours,
        theirs,
        {site.name: [key for key in alone if key not in theirs], name: [key for key in theirs if key not in ours]},
        [*_not_audited(layout, read), *other.not_audited],
        options.paths,
    )


def compare_fingerprints(names: tuple[str, str], sites: tuple[Fingerprint, Fingerprint]) -> FingerprintDiff:
    """Hold two fingerprints against each other, without the logs of either."""
    one, other = ({partition.key: partition for partition in site.partitions} for site in sites)
    return _compared(
        names,
        one,
        other,
        {names[0]: [key for key in one if key not in other], names[1]: [key for key in other if key not in one]},
        [*sites[0].not_audited, *sites[1].not_audited],
        [*sites[0].inputs, *sites[1].inputs],
    )


def _compared(  # noqa: PLR0913, PLR0917 - two sites, and what is left of each
    names: tuple[str, str],
    ours: Mapping[Key, PartitionFingerprint],
    theirs: Mapping[Key, PartitionFingerprint],
    only_on: Mapping[str, Sequence[Key]],
    not_audited: Sequence[NotAudited],
    inputs: Sequence[str],
) -> FingerprintDiff:
    compared = [compare(names, ours[key], theirs[key]) for key in sorted(ours.keys() & theirs.keys())]
    return FingerprintDiff(names, inputs, compared, only_on, not_audited, any(item.unreadable for item in not_audited))


def _layout(site: Replica, options: ScanOptions) -> Layout:
    layout = layout_of(site, options)
    if not layout.unreadable and not any(directory.segments for directory in layout.partitions):
        raise NothingToAuditError(f"nothing to read under {site.path}: no segment was found")
    return layout


def _read(
    layout: Layout,
    rows: Callable[[Key], Rows | None],
    options: ScanOptions,
    progress: Progress,
    each: EachPartition,
) -> list[ReadFingerprint]:
    """Read the partitions that `rows` wants something of, in (topic, partition) order."""
    wanted: list[tuple[PartitionDirectory, Rows | None]] = [
        (directory, rows((directory.topic, directory.partition)))
        for directory in sorted(layout.partitions, key=lambda entry: (entry.topic, entry.partition))
    ]
    work = [FingerprintTask(directory, digests) for directory, digests in wanted if digests is not None]
    progress.start(sum(task.bytes for task in work))
    return list(each(work, read_fingerprint, options, progress)) if work else []


def _not_audited(layout: Layout, read: Sequence[ReadFingerprint]) -> list[NotAudited]:
    unreadable = chain(layout.unreadable, *(one.unreadable for one in read))
    skipped = chain(layout.skipped, *(one.removed for one in read))
    found = [NotAudited(entry.path, entry.reason, unreadable=True) for entry in unreadable]
    return found + [NotAudited(entry.path, entry.reason) for entry in skipped]
