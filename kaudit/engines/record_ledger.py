"""`diff --by records`: every partition of both sides read, every bucket of identities matched, then the ledgers in order."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.records.reading import IDENTIFIED, ReadPartition, RecordTask, read_partition
from kaudit.audits.records.spill import Spill, rows_written, spill_directory
from kaudit.diff.records.assembly import Assembly
from kaudit.diff.records.bucket import BucketTask, Sides, match_bucket
from kaudit.diff.records.result import ledger_result
from kaudit.diff.records.topics import Pairing, by_topic, pair_topics, parse_maps
from kaudit.engines.local import LOCAL
from kaudit.engines.progress import Progress
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.ledger import LedgerResult, TopicLedger
from kaudit.model.replicas import Replica
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.record_content import mixed
from kaudit.scanning.options import ScanOptions
from kaudit.source.discover import PathNotFoundError, discover
from kaudit.source.kafka.options import ClusterOptions
from kaudit.source.layout import Layout
from kaudit.source.uri import UrlError

_BUCKET_BYTES = 4 << 20
"""Bytes of log whose records are one bucket: what is written of one before it is removed is little beside the others."""
_MOST_BITS = 10


class Comparison(Struct, frozen=True):
    """Pairs of topics that are compared by one identity."""

    pairings: Sequence[Pairing]
    reader: IdentityReader
    read_committed: bool

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return sum(
            each.bytes for pair in self.pairings for side in (pair.sources, pair.targets) for each in side.values()
        )

    def bits(self, bucket_bytes: int, most: int) -> int:
        """Return how many bits of an identity say its bucket, so that about so many bytes of log are one, at `most`."""
        return min(max(self.bytes // bucket_bytes, 1).bit_length() - (self.bytes <= bucket_bytes), most)

    def tasks(self, directory: Path, bits: int) -> list[RecordTask]:
        """Return what is to be read, the source's first, into `spills` of a directory."""
        return [
            RecordTask(
                directory=replica,
                number=pairing.numbers[partition],
                topic=int(mixed(np.array([index]))[0]),
                reader=self.reader,
                read_committed=self.read_committed,
                identified=spill,
                buckets=bits,
            )
            for spill, side in zip(self.spills(directory), ("sources", "targets"), strict=True)
            for index, pairing in enumerate(self.pairings)
            for partition, replica in sorted(getattr(pairing, side).items())
        ]

    @staticmethod
    def spills(directory: Path) -> tuple[Spill, Spill]:
        """Return where the rows of source and target are written."""
        return Spill(str(directory), "source", IDENTIFIED), Spill(str(directory), "target", IDENTIFIED)

    def assembly(self, read: Sequence[ReadPartition]) -> Assembly:
        """Return what is made of the results of `tasks`, in their order."""
        sources = sum(len(pairing.sources) for pairing in self.pairings)
        parts = read[:sources], read[sources:]
        return Assembly(self.pairings, self.reader.identity.text, self.read_committed, parts)


Compared = tuple[Assembly, list[TopicLedger]]


class Compare(Protocol):
    """Compares on an engine; the maps of offsets are files in the directory."""

    def __call__(self, comparison: Comparison, options: ScanOptions, directory: Path, progress: Progress) -> Compared:
        """Return what was read, and the ledger of each pair."""


def compare(comparison: Comparison, options: ScanOptions, directory: Path, progress: Progress) -> Compared:
    """Compare in this machine's processes, with all rows in files of the directory: 32 bytes a record."""
    bits = comparison.bits(_BUCKET_BYTES, _MOST_BITS)
    progress.start(comparison.bytes)
    read = LOCAL.each_partition(comparison.tasks(directory, bits), read_partition, options, progress)
    assembly = comparison.assembly(list(read))
    sides = Sides.of(comparison.spills(directory), assembly.spills(directory), assembly.cuts())
    match = BucketTask(0, bits, sides, assembly.partitions, assembly.cut_off)
    single = assembly.joined(LOCAL.each_partition(match.of_each_bucket(), match_bucket, options, progress))
    begins = assembly.begins(single)
    work = replace(match, begins=begins).of_each_bucket()
    grouped = LOCAL.each_partition(work, match_bucket, options, progress)
    return assembly, assembly.ledgers(directory, assembly.joined([single, *grouped]), begins)


class LedgerRequest(Struct, frozen=True):
    """How records are compared. `given`: the user named the identity, which is not changed then. `maps` as of --map."""

    reader: IdentityReader = IdentityReader()
    given: bool = False
    read_committed: bool = False
    maps: Sequence[str] = ()
    temporary_directory: str | None = None
    target_command_config: str | None = None
    """How to connect to the target, where not as to the source."""


@contextmanager
def record_ledger(
    options: ScanOptions,
    sides: tuple[Replica, Replica],
    request: LedgerRequest,
    progress: Progress,
    compare: Compare = compare,
) -> Iterator[LedgerResult]:
    """Compare the topics of a source and a target; the maps of offsets are files that are there while the body runs.

    Memory is bounded, and temporary files have at most 32 bytes a record.

    Raises:
        UsageError: a path does not exist, an option is wrong, or the temporary directory cannot be written.
        NothingToAuditError: no topic of the source has a copy in the target; not where something could not be read.

    """
    clusters = (
        options.cluster,
        replace(options.cluster, command_config=request.target_command_config or options.cluster.command_config),
    )
    layouts = [_layout(side, options, cluster) for side, cluster in zip(sides, clusters, strict=True)]
    found = [by_topic(layout.partitions) for layout in layouts]
    pairings, alone = pair_topics(found[0], found[1], parse_maps(request.maps))
    chosen = [pair for pair in pairings if not options.topics or {pair.source, pair.target} & set(options.topics)]
    pairings = _renumbered(chosen)
    alone = {topic: reason for topic, reason in alone.items() if not options.topics or topic in options.topics}
    if not pairings and any(layout.unreadable for layout in layouts):
        yield ledger_result(sides, layouts, ([], []), [], alone)
        return
    if not pairings:
        have = (
            f"{side.path} has {', '.join(sorted(topics)[:5]) or 'no topic'}"
            for side, topics in zip(sides, found, strict=True)
        )
        raise NothingToAuditError(
            f"nothing to compare: no topic of the source has a copy in the target ({'; '.join(have)}); --map 'REGEX=NAME' names copies"
        )
    options = replace(options, paths=[side.path for side in sides])
    with spill_directory(request.temporary_directory, options.paths) as directory:
        with rows_written(directory):
            comparison = Comparison(pairings, request.reader, request.read_committed)
            read, ledgers = _compared(comparison, options, request, directory, partial(compare, progress=progress))
        yield ledger_result(sides, layouts, read, ledgers, alone)


def _layout(side: Replica, options: ScanOptions, cluster: ClusterOptions) -> Layout:
    try:
        layout = discover([side.path], cluster=cluster)
    except PathNotFoundError as error:
        raise UsageError(f"no such file or directory: {error}") from error
    except UrlError as error:
        raise UsageError(str(error)) from error
    chosen = [each for each in layout.partitions if not options.partitions or each.partition in options.partitions]
    return replace(layout, partitions=chosen)


def _renumbered(pairings: Sequence[Pairing]) -> list[Pairing]:
    first, found = 0, []
    for pairing in pairings:
        found.append(replace(pairing, first_number=first))
        first += len(pairing.partitions)
    return found


def _has_brokers_times(ledger: TopicLedger) -> bool:
    return bool(ledger.source_counts.appended_times or ledger.target_counts.appended_times)


def _compared(
    comparison: Comparison,
    options: ScanOptions,
    request: LedgerRequest,
    directory: Path,
    compare: Callable[[Comparison, ScanOptions, Path], Compared],
) -> tuple[tuple[Sequence[ReadPartition], Sequence[ReadPartition]], list[TopicLedger]]:
    """Compare; once more without timestamps where brokers have set them, unless the user chose the identity."""
    places = directory / "1", directory / "2"
    for place in places:
        place.mkdir()
    assembly, ledgers = compare(comparison, options, places[0])
    again = [] if request.given else [index for index, one in enumerate(ledgers) if _has_brokers_times(one)]
    if again:
        reader = replace(request.reader, identity=request.reader.identity.without_timestamp())
        chosen = _renumbered([comparison.pairings[index] for index in again])
        _, own = compare(replace(comparison, pairings=chosen, reader=reader), options, places[1])
        for index, ledger in zip(again, own, strict=True):
            ledgers[index] = ledger
    return assembly.read, ledgers
