"""`dedup`: every partition read, every bucket of identities matched, then the repeats in the order of the log."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct

from kaudit.audits.records.places import MOST_PARTITIONS
from kaudit.audits.records.reading import IDENTIFIED, ReadPartition, RecordTask, read_partition
from kaudit.audits.records.repeats import KEYED, REPEATED, KeyTask, RepeatTask, count_keys, match_repeats
from kaudit.audits.records.spill import Spill, rows_written, spill_directory
from kaudit.audits.repeats.duplicates import PartitionDuplicates
from kaudit.audits.repeats.identities import TopicIdentities
from kaudit.engines.engine import EachPartition
from kaudit.engines.identities import identity_reader
from kaudit.engines.local import LOCAL
from kaudit.engines.progress import Progress
from kaudit.errors import UsageError
from kaudit.listings.duplicates import DuplicateListing
from kaudit.model.result import BrokerVersions, NotAudited, ScanResult
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.record_content import mixed
from kaudit.scanning.comparison_options import RecordOptions
from kaudit.scanning.not_covered import inputs_without_choice, missing_from_inputs
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import find_input
from kaudit.scanning.summaries import total
from kaudit.source.layout import INTERNAL_TOPICS, Layout, PartitionDirectory
from kaudit.source.schemes import open_segment

_BUCKET_BYTES = 4 << 20
"""Bytes of log whose records are one bucket."""
_MOST_BITS = 10


_Each = Callable[[Sequence[Any], Callable[..., Any]], Iterable[Any]]
"""Does a job for each of some work."""


class Comparable(Struct, frozen=True):
    """A partition whose records are compared, and what reads their identities."""

    directory: PartitionDirectory
    reader: IdentityReader

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return self.directory.bytes


class RepeatPlan(Struct, frozen=True):
    """What lies where, and what is compared of it, partition by partition; `texts` hold no records."""

    layout: Layout
    compared: Sequence[Comparable]
    texts: Sequence[PartitionDirectory] = ()


def plan_repeats(options: ScanOptions, asked: RecordOptions) -> RepeatPlan:
    """List the input, and choose the identity of each topic by its first records. Raises as `repeated_records`."""
    reader = identity_reader(None, asked.schemas, asked.key_schemas)
    identities = TopicIdentities(asked.identity, open_segment, reader)
    layout = find_input(options)
    directories = [each for each in layout.partitions if each.segments and each.topic not in INTERNAL_TOPICS]
    if len(directories) > MOST_PARTITIONS:
        raise UsageError(
            f"{len(directories):,} partitions are more than can be compared at once: choose some with --topic"
        )
    texts = [each for each in directories if any(segment.text is not None for segment in each.segments)]
    return RepeatPlan(
        layout, [Comparable(each, identities.reader(each)) for each in directories if each not in texts], texts
    )


@contextmanager
def repeated_records(
    options: ScanOptions,
    progress: Progress,
    asked: RecordOptions = RecordOptions(),  # noqa: B008 - frozen
    each: EachPartition = LOCAL.each_partition,
    plan: RepeatPlan | None = None,
) -> Iterator[DuplicateListing]:
    """Compare every record with all before it in its partition; what repeats what lies in files while the body runs.

    Memory is bounded; temporary files have 32 bytes a record. `plan`: what to compare, by default all of the input.

    Raises:
        UsageError: a path does not exist, an option is wrong, or the temporary directory cannot be written.
        NothingToAuditError: no segment was found.

    """
    plan = plan_repeats(options, asked) if plan is None else plan
    with spill_directory(asked.temporary_directory, options.given) as directory:
        with rows_written(directory):
            partitions, read = _found(
                plan.compared, str(directory), lambda work, job: each(work, job, options, progress), progress
            )
        yield DuplicateListing(_result(options, plan, read), partitions, open_segment)


def _found(
    compared: Sequence[Comparable], place: str, each: _Each, progress: Progress
) -> tuple[list[PartitionDuplicates], list[ReadPartition]]:
    """Read every partition, match every bucket of records and of keys, with rows in files of a place."""
    size = sum(one.bytes for one in compared)
    bits = min(max(size // _BUCKET_BYTES, 1).bit_length() - (size <= _BUCKET_BYTES), _MOST_BITS)
    identified, repeated, keyed = (
        Spill(place, name, dtype) for name, dtype in (("records", IDENTIFIED), ("repeats", REPEATED), ("keys", KEYED))
    )
    work = [
        RecordTask(
            one.directory,
            number,
            topic=int(mixed(np.array([number]))[0]),
            reader=one.reader,
            read_committed=False,
            identified=identified,
            buckets=bits,
            placed=True,
        )
        for number, one in enumerate(compared)
    ]
    progress.start(sum(task.bytes for task in work))
    read: list[ReadPartition] = list(each(work, read_partition))
    cuts, nothing = np.array([cut for one in read for cut in one.cuts], np.uint64), np.zeros(len(read), np.int64)
    buckets = [
        RepeatTask(number, identified, bits, repeated, keyed, cuts, max(bits, 1), len(read))
        for number in identified.numbers()
    ]
    without_key = sum(each(buckets, match_repeats), nothing)
    known_keys = sum(each([KeyTask(number, keyed, len(read)) for number in keyed.numbers()], count_keys), nothing)
    ends = np.cumsum([0, *(len(one.cuts) for one in read)]).tolist()
    return [
        PartitionDuplicates(of.directory, of.reader, one, repeated, range(first + 1, end + 1), known, without)
        for one, of, (first, end), known, without in zip(
            read, compared, pairwise(ends), known_keys.tolist(), without_key.tolist(), strict=True
        )
    ], read


def _result(options: ScanOptions, plan: RepeatPlan, read: Sequence[ReadPartition]) -> ScanResult:
    """Return what was read, and what was not; no checks are run."""
    layout = plan.layout
    unreadable = [*layout.unreadable, *(each for one in read for each in one.unreadable)]
    removed = [*layout.skipped, *(each for one in read for each in one.removed)]
    not_audited: list[NotAudited] = [
        *(NotAudited(each.path, each.reason, unreadable=True) for each in unreadable),
        *(NotAudited(each.path, each.reason) for each in removed),
        *(
            NotAudited(each.name, "text of kafka-dump-log: it holds no records to compare", asked_for=True)
            for each in plan.texts
        ),
        *missing_from_inputs(options, layout),
        *inputs_without_choice(options, layout.partitions, layout.unchosen),
    ]
    partitions = [one.summary for one in read]
    return ScanResult(
        inputs=tuple(options.given),
        broker_version=BrokerVersions("auto", None, None, None, ("records are the same under every version",)),
        partitions=partitions,
        findings=(),
        not_audited=not_audited,
        summary=total(partitions, ()),
        incomplete=any(each.unreadable for each in not_audited),
    )
