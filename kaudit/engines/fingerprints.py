"""`diff --fingerprint`: one task a partition, done by an engine.

A saved report held against logs: one task a partition, done by an engine.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from kaudit.diff.fingerprint.comparison import compare, narrowed, rows_of_audited, verify
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
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.digests import PartitionDigest, ranges_each
from kaudit.model.fingerprint import (
    Fingerprint,
    FingerprintDiff,
    PartitionFingerprint,
    PartitionVerification,
    Verification,
    VerificationOutcome,
)
from kaudit.model.replicas import Replica
from kaudit.model.result import NotAudited
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import chosen_input
from kaudit.source.layout import Layout, PartitionDirectory, Unreadable

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
    missing = _not_audited(layout.unreadable, layout.skipped, read)
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
        [*_not_audited(layout.unreadable, layout.skipped, read), *other.not_audited],
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


def _not_audited(
    unreadable: Iterable[Unreadable], skipped: Iterable[Unreadable], read: Sequence[ReadFingerprint]
) -> list[NotAudited]:
    unreadable = chain(unreadable, *(one.unreadable for one in read))
    skipped = chain(skipped, *(one.removed for one in read))
    found = [NotAudited(entry.path, entry.reason, unreadable=True) for entry in unreadable]
    return found + [NotAudited(entry.path, entry.reason) for entry in skipped]


def verify_report(
    options: ScanOptions,
    reported: Sequence[PartitionDigest],
    progress: Progress,
    each: EachPartition = LOCAL.each_partition,
) -> Verification:
    """Hold what lies under `options.paths` against the digests of a report, of the topics and partitions that are asked for.

    Raises:
        UsageError: a path does not exist, or it is not clear which replica of a partition is which.
        NothingToAuditError: no segment was found, or the report has no digest of what is asked for.

    """
    wanted = [entry for entry in reported if options.asks_for(*entry.key)]
    if not wanted:
        raise NothingToAuditError("nothing to verify: the report names no digest of what is asked for")
    layout = chosen_input(options)
    there = layout.partitions
    if not layout.unreadable and not any(directory.segments for directory in there):
        raise NothingToAuditError(f"nothing to verify under {', '.join(options.paths)}: no segment was found")
    held = _matched(wanted, there)
    work = [
        FingerprintTask(held[number], rows_of_audited(entry)) for number, entry in enumerate(wanted) if number in held
    ]
    progress.start(sum(task.bytes for task in work))
    read = list(each(work, read_fingerprint, options, progress)) if work else []
    by_number = dict(zip(held, read, strict=True))
    found = [
        _missing(entry) if number not in by_number else _verified(entry, by_number[number], held[number])
        for number, entry in enumerate(wanted)
    ]
    keys = {entry.key for entry in wanted}
    not_in_report = dict.fromkeys(key for entry in there if (key := (entry.topic, entry.partition)) not in keys)
    not_audited = _not_audited(layout.unreadable, (), read)
    return Verification(
        options.paths, found, list(not_in_report), not_audited, any(entry.unreadable for entry in not_audited)
    )


def _matched(
    wanted: Sequence[PartitionDigest], there: Sequence[PartitionDirectory]
) -> Mapping[int, PartitionDirectory]:
    """Return by its place in `wanted` where each partition replica lies: that of its name, or the only one of the partition."""
    directories, reported = defaultdict[Key, list[PartitionDirectory]](list), defaultdict[Key, list[int]](list)
    for directory in there:
        directories[directory.topic, directory.partition].append(directory)
    for number, entry in enumerate(wanted):
        reported[entry.key].append(number)
    found: dict[int, PartitionDirectory] = {}
    for key, numbers in reported.items():
        places = directories[key]
        if len(places) == len(numbers) == 1:
            found[numbers[0]] = places[0]
            continue
        own = {directory.replica: directory for directory in places}
        named = {number: own[wanted[number].replica] for number in numbers if wanted[number].replica in own}
        if places and not named:
            names = ", ".join(wanted[number].replica for number in numbers)
            raise UsageError(
                f"{key[0]}-{key[1]}: the report audited {names}, and here lie {', '.join(own)}: the names do not say which is which"
            )
        found |= named
    return dict(sorted(found.items()))


def _missing(reported: PartitionDigest) -> PartitionVerification:
    return PartitionVerification(
        topic=reported.topic,
        partition=reported.partition,
        replica=reported.replica,
        verdict=VerificationOutcome.MISSING,
        start_offset=reported.start_offset,
        end_offset=reported.end_offset,
    )


def _verified(reported: PartitionDigest, read: ReadFingerprint, directory: PartitionDirectory) -> PartitionVerification:
    cleaned_below = directory.first_dirty_offset
    if cleaned_below is None:
        cleaned_below = reported.end_offset if reported.compacted or read.fingerprint.compacted else 0
    return verify(reported, read.fingerprint, cleaned_below, read_whole=not read.unreadable)
