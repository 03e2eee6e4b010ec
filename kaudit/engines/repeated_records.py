"""`dedup`: every partition read, every bucket of identities matched, then the repeats in the order of the log."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.audits.records.places import MOST_PARTITIONS
from kaudit.audits.records.reading import IDENTIFIED, STORED, ReadPartition, RecordTask, read_partition
from kaudit.audits.records.repeats import KEYED, REPEATED, KeyTask, RepeatTask, count_keys, match_repeats
from kaudit.audits.records.sequences import repeated_sequences
from kaudit.audits.records.spill import Spill, rows_written, spill_directory
from kaudit.audits.repeats.duplicates import PartitionDuplicates
from kaudit.audits.repeats.identities import TopicIdentities
from kaudit.engines.engine import EachPartition
from kaudit.engines.local import LOCAL
from kaudit.engines.progress import Progress
from kaudit.errors import UsageError
from kaudit.listings.duplicates import DuplicateListing
from kaudit.model.result import BrokerVersions, NotAudited, ScanResult
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.record_content import mixed
from kaudit.scanning.not_covered import inputs_without_choice, missing_from_inputs
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import find_input
from kaudit.scanning.summaries import total
from kaudit.source.layout import INTERNAL_TOPICS, Layout, PartitionDirectory
from kaudit.source.schemes import open_segment

_BUCKET_BYTES = 4 << 20
"""Bytes of log whose records are one bucket."""
_MOST_BITS = 10


class RepeatRequest(Struct, frozen=True):
    """How records are compared: by `identity`, None for that which each topic's records plainly have."""

    identity: str | None = None
    reader: IdentityReader = IdentityReader()
    temporary_directory: str | None = None


@contextmanager
def repeated_records(
    options: ScanOptions,
    progress: Progress,
    request: RepeatRequest | None = None,
    each: EachPartition = LOCAL.each_partition,
) -> Iterator[DuplicateListing]:
    """Compare every record with all before it in its partition; what repeats what lies in files while the body runs.

    Memory is bounded; temporary files have 32 bytes a record and 44 a batch.

    Raises:
        UsageError: a path does not exist, an option is wrong, or the temporary directory cannot be written.
        NothingToAuditError: no segment was found.

    """
    request = RepeatRequest() if request is None else request
    identities = TopicIdentities(request.identity, open_segment, request.reader)
    layout = find_input(options)
    directories = [each for each in layout.partitions if each.segments and each.topic not in INTERNAL_TOPICS]
    if len(directories) > MOST_PARTITIONS:
        raise UsageError(
            f"{len(directories):,} partitions are more than can be compared at once: choose some with --topic"
        )
    texts = [each for each in directories if any(segment.text is not None for segment in each.segments)]
    compared = [each for each in directories if each not in texts]
    with spill_directory(request.temporary_directory, options.given) as directory:
        with rows_written(directory):
            partitions, read = _Finder(compared, options, identities, directory, each, progress).found()
        yield DuplicateListing(_result(options, layout, read, texts), partitions, open_segment)


class _Finder:
    def __init__(  # noqa: PLR0913, PLR0917 - what is compared, how, where, and who does the work
        self,
        directories: Sequence[PartitionDirectory],
        options: ScanOptions,
        identities: TopicIdentities,
        place: Path,
        each: EachPartition,
        progress: Progress,
    ) -> None:
        self._directories = directories
        self._options = options
        self._readers = [identities.reader(directory) for directory in directories]
        self._each = each
        self._progress = progress
        self._identified, self._stored, self._repeated, self._keyed = (
            Spill(str(place), name, dtype)
            for name, dtype in (("records", IDENTIFIED), ("batches", STORED), ("repeats", REPEATED), ("keys", KEYED))
        )
        size = sum(directory.bytes for directory in directories)
        self._bits = min(max(size // _BUCKET_BYTES, 1).bit_length() - (size <= _BUCKET_BYTES), _MOST_BITS)

    def found(self) -> tuple[list[PartitionDuplicates], list[ReadPartition]]:
        read = self._read()
        cuts = np.array([cut for one in read for cut in one.cuts], dtype=np.uint64)
        without_key, known_keys = self._match(read, cuts)
        found, part = [], 0
        for one, directory, reader in zip(read, self._directories, self._readers, strict=True):
            batches = self._stored.mapped(one.number)
            parts = range(part + 1, part + 1 + len(one.cuts))
            part += len(one.cuts)
            found.append(
                PartitionDuplicates(
                    directory=directory,
                    reader=reader,
                    base=one.first_offset,
                    repeated=self._repeated,
                    parts=parts,
                    batches=batches,
                    hidden=one.hidden,
                    sequences=repeated_sequences(batches),
                    records=one.counts.records,
                    undecoded=one.counts.batches_undecoded,
                    known_keys=int(known_keys[one.number]),
                    without_key=int(without_key[one.number]),
                    compacted=one.cleaned,
                    damaged=one.damaged,
                )
            )
        return found, read

    def _read(self) -> list[ReadPartition]:
        work = [
            RecordTask(
                directory,
                number,
                topic=int(mixed(np.array([number]))[0]),
                reader=reader,
                read_committed=False,
                identified=self._identified,
                buckets=self._bits,
                stored=self._stored,
            )
            for number, (directory, reader) in enumerate(zip(self._directories, self._readers, strict=True))
        ]
        self._progress.start(sum(task.bytes for task in work))
        return list(self._each(work, read_partition, self._options, self._progress))

    def _match(
        self, read: Sequence[ReadPartition], cuts: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Match all buckets; return by partition the records without a key, and those with a known key that repeat none."""
        bases = np.array([one.first_offset for one in read], dtype=np.int64)
        hidden = {one.number: one.hidden for one in read if one.hidden is not None and len(one.hidden)}
        key_bits = max(self._bits, 1)
        work = [
            RepeatTask(
                number, self._bits, self._identified, self._repeated, self._keyed, self._stored,
                cuts, bases, hidden, key_bits,
            )
            for number in self._identified.numbers()
        ]  # fmt: skip
        nothing = np.zeros(len(read), dtype=np.int64)
        without_key = sum(self._each(work, match_repeats, self._options, self._progress), nothing)
        keys = [KeyTask(number, self._keyed, len(read)) for number in self._keyed.numbers()]
        return without_key, sum(self._each(keys, count_keys, self._options, self._progress), nothing)


def _result(
    options: ScanOptions, layout: Layout, read: Sequence[ReadPartition], texts: Sequence[PartitionDirectory]
) -> ScanResult:
    """Return what was read, and what was not; no checks are run."""
    unreadable = [*layout.unreadable, *(each for one in read for each in one.unreadable)]
    removed = [*layout.skipped, *(each for one in read for each in one.removed)]
    not_audited: list[NotAudited] = [
        *(NotAudited(each.path, each.reason, unreadable=True) for each in unreadable),
        *(NotAudited(each.path, each.reason) for each in removed),
        *(
            NotAudited(each.name, "text of kafka-dump-log: it holds no records to compare", asked_for=True)
            for each in texts
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
