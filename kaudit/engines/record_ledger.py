"""`diff --by records`: every partition of both sides read, every bucket of identities matched, then the ledgers in order."""

import errno
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.diff.records.bucket import BucketTask, MatchedBucket, Sides, match_bucket
from kaudit.diff.records.cleaning import KEYED, REMOVED, note_keys, superseded
from kaudit.diff.records.ledger import LedgerBuilder, Side, TopicPair, pair_groups
from kaudit.diff.records.matching import Bounds, Rows
from kaudit.diff.records.places import NOWHERE, numbers_of
from kaudit.diff.records.reading import IDENTIFIED, ReadPartition, RecordTask, read_partition
from kaudit.diff.records.result import ledger_result
from kaudit.diff.records.side import COPIED, GROUPED, NO_GROUPS, PLACED, descents, sorted_rows
from kaudit.diff.records.spill import Spill
from kaudit.diff.records.topics import Pairing, by_topic, pair_topics, parse_maps
from kaudit.engines.engine import EachPartition
from kaudit.engines.local import LOCAL
from kaudit.engines.progress import Progress
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.ledger import LedgerResult, SideCounts, TopicLedger
from kaudit.model.replicas import Replica
from kaudit.reading.content_rows import NO_KEY
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.record_content import mixed
from kaudit.scanning.options import ScanOptions
from kaudit.source.discover import PathNotFoundError, discover
from kaudit.source.kafka.options import ClusterOptions
from kaudit.source.layout import Layout
from kaudit.source.uri import Uri, UrlError

_BUCKET_BYTES = 4 << 20
"""Bytes of log whose records are one bucket: what is written of one before it is removed is little beside the others."""
_MOST_BITS = 10
_GROUP_ROWS = 1 << 19
"""Records whose keys are compared at once, where the order differs."""
_PLACE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOENT)


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
    each: EachPartition = LOCAL.each_partition,
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
    place = _temporary_place(sides, request)
    options = replace(options, paths=[side.path for side in sides])
    with _directory(place) as directory:
        try:
            run = _Run(pairings, options, request, Path(directory, "1"), each, progress)
            ledgers = run.ledgers()
            again = [] if request.given else [index for index, one in enumerate(ledgers) if _has_brokers_times(one)]
            if again:
                reader = replace(request.reader, identity=request.reader.identity.without_timestamp())
                chosen = _renumbered([pairings[index] for index in again])
                other = _Run(chosen, options, replace(request, reader=reader), Path(directory, "2"), each, progress)
                for index, ledger in zip(again, other.ledgers(), strict=True):
                    ledgers[index] = ledger
        except OSError as error:
            if error.errno not in _PLACE_ERRORS:
                raise
            raise UsageError(f"{place}: {error.strerror}; --temporary-directory names another place") from error
        yield ledger_result(sides, layouts, run.read, ledgers, alone)


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


def _temporary_place(sides: Sequence[Replica], request: LedgerRequest) -> str:
    place = request.temporary_directory or tempfile.gettempdir()
    resolved = Path(place).resolve()
    for side in sides:
        if Uri.parse(side.path).is_local and Path(side.path).resolve() in (resolved, *resolved.parents):
            raise UsageError(
                f"{place} lies in {side.path}, where nothing is written: --temporary-directory names another place"
            )
    return place


@contextmanager
def _directory(place: str) -> Iterator[str]:
    try:
        held = tempfile.TemporaryDirectory(prefix="kaudit-ledger-", dir=place)
    except OSError as error:
        raise UsageError(f"{place}: {error.strerror}; --temporary-directory names another place") from error
    with held as directory:
        yield directory


class _Run:
    """One comparison of pairs of topics by one identity."""

    def __init__(  # noqa: PLR0913, PLR0917 - what is compared, how, where, and who does the work
        self,
        pairings: Sequence[Pairing],
        options: ScanOptions,
        request: LedgerRequest,
        directory: Path,
        each: EachPartition,
        progress: Progress,
    ) -> None:
        directory.mkdir()
        self._pairings = pairings
        self._options = options
        self._request = request
        self._directory = directory
        self._each = each
        self._progress = progress
        self._partitions = sum(len(pairing.partitions) for pairing in pairings)
        self._of_number = np.concatenate(
            [np.full(len(pairing.partitions), index) for index, pairing in enumerate(pairings)]
        )
        self.read: tuple[list[ReadPartition], list[ReadPartition]] = ([], [])

    def _spill(self, name: str, dtype: np.dtype[Any]) -> Spill:
        return Spill(str(self._directory), name, dtype)

    def ledgers(self) -> list[TopicLedger]:
        """Return the ledger of each pair."""
        bits = self._read()
        cuts = [_cuts(read) for read in self.read]
        sides = Sides(
            self._spill("source", IDENTIFIED),
            self._spill("target", IDENTIFIED),
            self._spill("left-source", IDENTIFIED),
            self._spill("left-target", IDENTIFIED),
            self._spill("placed", PLACED),
            self._spill("copied", COPIED),
            *cuts,
        )
        numbers = sorted({*sides.source.numbers(), *sides.target.numbers()})
        cut_off = any(one.starts_late for read in self.read for one in read)
        work = [BucketTask(number, bits, sides, self._partitions, cut_off) for number in numbers]
        alone = list(self._each(work, match_bucket, self._options, self._progress))
        begins = self._begins(self._bounds(alone))
        numbers = sorted({*sides.left_source.numbers(), *sides.left_target.numbers()})
        work = [BucketTask(number, bits, sides, self._partitions, cut_off, begins) for number in numbers]
        grouped = list(self._each(work, match_bucket, self._options, self._progress))
        return self._built(sides, self._bounds([*alone, *grouped]), begins, [*alone, *grouped])

    def _read(self) -> int:
        size = sum(
            each.bytes
            for pairing in self._pairings
            for side in (pairing.sources, pairing.targets)
            for each in side.values()
        )
        bits = min(max(size // _BUCKET_BYTES, 1).bit_length() - (size <= _BUCKET_BYTES), _MOST_BITS)
        work = []
        for name in ("source", "target"):
            spill = self._spill(name, IDENTIFIED)
            for index, pairing in enumerate(self._pairings):
                topic = int(mixed(np.array([index]))[0])
                held = pairing.sources if name == "source" else pairing.targets
                work += [
                    RecordTask(
                        directory,
                        pairing.numbers[partition],
                        topic,
                        self._request.reader,
                        self._request.read_committed,
                        spill,
                        bits,
                    )
                    for partition, directory in sorted(held.items())
                ]
        self._progress.start(size)
        read = list(self._each(work, read_partition, self._options, self._progress))
        sources = sum(len(pairing.sources) for pairing in self._pairings)
        self.read = read[:sources], read[sources:]
        return bits

    def _bounds(self, found: Sequence[MatchedBucket]) -> tuple[Bounds, Bounds]:
        bounds = Bounds.empty(self._partitions), Bounds.empty(self._partitions)
        for bucket in found:
            for side, own in zip(bounds, bucket.bounds, strict=True):
                side.merge(own)
        return bounds

    def _begins(self, bounds: tuple[Bounds, Bounds]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return by number where the other side's first record is, on source and target, as `Bounds.begins`."""
        removed = [self._of_topic([(one.number, one.starts_late) for one in read]) for read in self.read]
        return bounds[0].begins(removed[1]), bounds[1].begins(removed[0])

    def _of_topic(self, found: Sequence[tuple[int, bool]]) -> NDArray[np.bool_]:
        """Return by number what holds for one partition of its topic: partitions of two topics need not correspond."""
        topics = np.zeros(len(self._pairings), dtype=np.bool_)
        for number, holds in found:
            topics[self._of_number[number]] |= holds
        by_number: NDArray[np.bool_] = topics[self._of_number]
        return by_number

    def _built(
        self,
        sides: Sides,
        bounds: tuple[Bounds, Bounds],
        begins: tuple[NDArray[np.uint64], NDArray[np.uint64]],
        found: Sequence[MatchedBucket],
    ) -> list[TopicLedger]:
        of_number = self._of_number
        source, target = (self._side(*side) for side in zip(self.read, bounds, begins, strict=True))
        builders = [
            LedgerBuilder(source, target, self._directory / f"map.{index}") for index in range(len(self._pairings))
        ]
        for counted in (each for bucket in found for each in bucket.counted):
            builders[of_number[counted.number]].add_counted(counted)
        removed = self._removed(sides.placed, source, target, sides.source_cuts)
        for rows, own_removed in sorted_rows(sides.placed, removed):
            for index, own in _by_pair(rows, of_number):
                builders[index].add_source(own, own_removed)
        self._order(sides.placed, builders, of_number)
        removed = self._removed(sides.copied, target, source, sides.target_cuts)
        for rows, own_removed in sorted_rows(sides.copied, removed):
            for index, own in _by_pair(rows, of_number):
                builders[index].add_target(own, own_removed)
        counts = [[self._counts(read, pairing) for read in self.read] for pairing in self._pairings]
        return [
            builder.ledger(
                TopicPair(
                    pairing.source,
                    pairing.target,
                    self._request.reader.identity.text,
                    self._request.read_committed,
                    *own,
                )
            )
            for builder, pairing, own in zip(builders, self._pairings, counts, strict=True)
        ]

    def _removed(self, rows_of: Spill, own: Side, other: Side, cuts: NDArray[np.uint64]) -> Spill:
        """Find the records that the other side's log cleaner may have removed: places under the numbers of the parts they are in."""
        keyed, found = self._spill(f"{rows_of.name}-keys", KEYED), self._spill(f"{rows_of.name}-removed", REMOVED)

        def write(places: NDArray[np.uint64]) -> None:
            found.append(np.searchsorted(cuts, places, side="right"), places.view(REMOVED))

        total = sum(rows_of.size(number) for number in rows_of.numbers())
        shift = np.uint64(64 - max((total // _GROUP_ROWS).bit_length(), 1))
        for number in rows_of.numbers() if other.cleaned.any() else ():
            for rows in rows_of.parts(number):
                write(note_keys(rows[other.cleaned[numbers_of(rows["place"])]], own.bounds.outside, keyed, shift))
        for number in keyed.numbers():
            for places in superseded(keyed, number, own.bounds.outside):
                write(places)
            keyed.remove(number)
        return found

    def _side(self, read: Sequence[ReadPartition], bounds: Bounds, begins: NDArray[np.uint64]) -> Side:
        bases = np.zeros(self._partitions, dtype=np.int64)
        for one in read:
            bases[one.number] = one.first_offset
        partitions = np.concatenate([np.array(pairing.partitions, dtype=np.int64) for pairing in self._pairings])
        return Side(partitions, bases, bounds, begins, self._of_topic([(one.number, one.cleaned) for one in read]))

    def _order(self, placed: Spill, builders: Sequence[LedgerBuilder], of_number: NDArray[np.int64]) -> None:
        """Find the records whose order within their key differs, in the partitions where any order does."""
        groups = np.array(sorted(set().union(*(builder.disordered for builder in builders))), dtype=np.uint64)
        keyed = self._spill("keyed", GROUPED)
        total = sum(placed.size(number) for number in placed.numbers())
        shift = np.uint64(64 - max((total // _GROUP_ROWS).bit_length(), 1))
        for number in placed.numbers():
            rows = placed.read(number) if len(groups) else np.empty(0, dtype=PLACED)
            placed.remove(number)  # nobody reads it again, and what takes its place has as many bytes
            rows = rows[np.argsort(rows["place"], kind="stable")]
            own = rows[(rows["other"] != NOWHERE) & (rows["key"] != NO_KEY)]
            own = own[np.isin(pair_groups(own), groups)]
            grouped = np.empty(len(own), dtype=GROUPED)
            for name in PLACED.names or ():
                grouped[name] = own[name]
            grouped["group"] = mixed(own["key"], pair_groups(own))
            keyed.append((grouped["group"] >> shift).astype(np.int64), grouped)
        for number in keyed.numbers():
            lasts = NO_GROUPS
            for rows in keyed.parts(number):
                later, earlier, lasts = descents(rows, rows["group"], lasts)
                order = np.argsort(later["place"], kind="stable")
                for index in np.unique(of_number[numbers_of(later["place"])]).tolist():
                    own = order[of_number[numbers_of(later["place"][order])] == index]
                    builders[index].add_moved(later[own], earlier[own])
            keyed.remove(number)

    @staticmethod
    def _counts(read: Sequence[ReadPartition], pairing: Pairing) -> SideCounts:
        numbers = set(pairing.numbers.values())
        return reduce(SideCounts.__add__, (each.counts for each in read if each.number in numbers), SideCounts())


def _cuts(read: Sequence[ReadPartition]) -> NDArray[np.uint64]:
    """Return the places after which the next part of about CUT_RECORDS records begins."""
    return np.array(sorted(cut for each in read for cut in each.cuts), dtype=np.uint64)


def _by_pair(rows: Rows, of_number: NDArray[np.int64]) -> Iterator[tuple[int, Rows]]:
    """Cut rows in the order of their places where another pair of topics begins."""
    if not len(rows):
        return
    pairs = of_number[numbers_of(rows["place"])]
    starts = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1]))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
        yield int(pairs[start]), rows[start:stop]
