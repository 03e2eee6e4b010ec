"""A saved report held against logs: one task a partition, done by an engine."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

from kaudit.diff.fingerprint.comparison import rows_of_audited, verify
from kaudit.diff.fingerprint.reading import FingerprintTask, ReadFingerprint, read_fingerprint
from kaudit.engines.engine import EachPartition
from kaudit.engines.local import LOCAL
from kaudit.engines.progress import Progress
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.digests import PartitionDigest
from kaudit.model.fingerprint import PartitionVerification, Verification, VerificationOutcome
from kaudit.model.result import NotAudited
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import chosen_input
from kaudit.source.layout import PartitionDirectory

Key = tuple[str, int]


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
    not_audited = [
        *(NotAudited(entry.path, entry.reason, unreadable=True) for entry in layout.unreadable),
        *(NotAudited(entry.path, entry.reason, unreadable=True) for one in read for entry in one.unreadable),
        *(NotAudited(entry.path, entry.reason) for entry in chain.from_iterable(one.removed for one in read)),
    ]
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
