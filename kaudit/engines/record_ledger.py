"""`diff --by records`: every partition of both sides read, every bucket of identities matched, then the ledgers in order."""

import hashlib
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kaudit import __version__
from kaudit.audits.records.reading import IDENTIFIED, ReadAgain, ReadPartition, RecordTask, read_partition
from kaudit.audits.records.spill import Spill, resumed_directory, rows_written, spill_directory
from kaudit.diff.records.assembly import Assembly
from kaudit.diff.records.bucket import BucketTask, MatchedBucket, Sides, match_bucket
from kaudit.diff.records.fingerprints import SCHEMA, RecordFingerprint, topic_windows
from kaudit.diff.records.group_offsets import GroupOffset, committed_offsets
from kaudit.diff.records.result import ledger_result, not_read
from kaudit.diff.records.topics import Pairing, by_topic, pair_topics, parse_maps
from kaudit.diff.records.windows import (
    MOST_RUNS,
    ORDER_CROSSES,
    Narrowed,
    ReadWindows,
    WindowTask,
    narrow,
    read_windows,
)
from kaudit.engines.identities import identity_reader
from kaudit.engines.local import LOCAL
from kaudit.engines.noted import NotedTask, Notes, do_noted, in_order
from kaudit.engines.progress import Progress
from kaudit.engines.replicas import layout_of
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.ledger import LedgerResult, TopicLedger
from kaudit.model.replicas import Replica
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import Of
from kaudit.reading.record_content import mixed
from kaudit.scanning.comparison_options import LedgerOptions
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import chosen_input
from kaudit.source.layout import Layout, Unreadable
from kaudit.source.schemes import open_segment
from kaudit.source.uri import Uri

_BUCKET_BYTES = 4 << 20
"""Bytes of log whose records are one bucket: what is written of one before it is removed is little beside the others."""
_MOST_BITS = 10
WINDOW_MS = 600_000
"""Windows of fingerprints, unless others are asked for."""


_Found = TypeVar("_Found")


class Comparison(Struct, frozen=True):
    """Pairs of topics that are compared by one identity."""

    pairings: Sequence[Pairing]
    reader: IdentityReader
    read_committed: bool
    narrowed: Narrowed | None = None
    """What windows of event time have shown."""

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return sum(task.bytes for task in self.tasks(Path(), 0))

    def bits(self, bucket_bytes: int, most: int) -> int:
        """Return how many bits of an identity say its bucket, so that about so many bytes of log are one, at `most`."""
        return min(max(self.bytes // bucket_bytes, 1).bit_length() - (self.bytes <= bucket_bytes), most)

    def tasks(self, directory: Path, bits: int) -> list[RecordTask]:
        """Return what is to be read, the source's first, into `spills` of a directory."""
        again: Sequence[Mapping[int, ReadAgain]] = ({}, {}) if self.narrowed is None else self.narrowed.again
        return [
            RecordTask(
                directory=replica,
                number=pairing.numbers[partition],
                topic=int(mixed(np.array([index]))[0]),
                reader=self.reader,
                read_committed=self.read_committed,
                identified=spill,
                buckets=bits,
                again=own.get(pairing.numbers[partition]),
            )
            for spill, side, own in zip(self.spills(directory), ("sources", "targets"), again, strict=True)
            for index, pairing in enumerate(self.pairings)
            for partition, replica in sorted(getattr(pairing, side).items())
        ]

    @staticmethod
    def spills(directory: Path) -> tuple[Spill, Spill]:
        """Return where the rows of source and target are written."""
        return Spill(str(directory), "source", IDENTIFIED), Spill(str(directory), "target", IDENTIFIED)

    def assembly(self, read: Sequence[ReadPartition]) -> Assembly:
        """Return what is made of the results of `tasks`, in their order."""
        source, target = self.sides(read)
        if self.narrowed is not None:
            source, target = (
                list(map(_with_failures, *each)) for each in zip(self.narrowed.read, (source, target), strict=True)
            )
        parts = source, target
        return Assembly(self.pairings, self.reader.identity.text, self.read_committed, parts, self.narrowed)

    def sides(self, found: Sequence[_Found]) -> tuple[Sequence[_Found], Sequence[_Found]]:
        """Return what is of the source, and what of the target, of the results of `tasks`."""
        sources = sum(len(pairing.sources) for pairing in self.pairings)
        return found[:sources], found[sources:]


def _with_failures(first: ReadPartition, again: ReadPartition) -> ReadPartition:
    """Return what was read of a partition first, with what failed later."""
    return replace(first, unreadable=[*first.unreadable, *again.unreadable], removed=[*first.removed, *again.removed])


Compared = tuple[Assembly, list[TopicLedger]]


class RecordEngine(Protocol):
    """What an engine does for a ledger."""

    def compare(self, comparison: Comparison, options: ScanOptions, directory: Path, progress: Progress) -> Compared:
        """Return what was read, and the ledger of each pair; the maps of offsets are files in the directory."""

    def windows(self, work: Sequence[WindowTask], options: ScanOptions, progress: Progress) -> Sequence[ReadWindows]:
        """Return the windows of each partition, in their order."""


class LocalRecords:
    """Compares in this machine's processes, with all rows in files of the directory: 32 bytes a record."""

    def compare(self, comparison: Comparison, options: ScanOptions, directory: Path, progress: Progress) -> Compared:
        """Read every partition, match every bucket of identities, then put the ledgers together."""
        bits = comparison.bits(_BUCKET_BYTES, _MOST_BITS)
        progress.start(comparison.bytes)
        notes, place = Notes(directory), str(directory)
        if any(each.unreadable or each.removed for each in notes.results("read", ReadPartition).values()):
            notes.forget()

        def done(kind: str, of: type[_Found], tasks: Sequence[NotedTask]) -> list[_Found]:
            before = notes.results(kind, of)
            progress.advance(sum(task.bytes for task in tasks if task.number in before))
            work = [task for task in tasks if task.number not in before]
            results = LOCAL.each_partition(work, do_noted, options, progress)
            return in_order(before, zip((task.number for task in work), results, strict=True))

        def matched(kind: str, buckets: BucketTask) -> list[MatchedBucket]:
            work = [
                NotedTask(place, kind, task.number, task, match_bucket, [(spill, task.number) for spill in task.spills])
                for task in buckets.of_each_bucket()
            ]
            return done(kind, MatchedBucket, work)

        tasks = enumerate(comparison.tasks(directory, bits))
        read = done("read", ReadPartition, [NotedTask(place, "read", *task, read_partition) for task in tasks])
        assembly = comparison.assembly(read)
        sides = Sides.of(comparison.spills(directory), assembly.spills(directory), assembly.cuts())
        buckets = BucketTask(0, bits, sides, assembly.partitions, assembly.cut_off)
        single = assembly.joined(matched("single", buckets))
        begins = assembly.begins(single)
        grouped = matched("grouped", replace(buckets, begins=begins))
        return assembly, assembly.ledgers(directory, assembly.joined([single, *grouped]), begins)

    def windows(self, work: Sequence[WindowTask], options: ScanOptions, progress: Progress) -> Sequence[ReadWindows]:
        """Read every partition."""
        progress.start(sum(task.bytes for task in work))
        return list(LOCAL.each_partition(work, read_windows, options, progress))


LOCAL_RECORDS = LocalRecords()


class LedgerRequest(Struct, frozen=True):
    """How records are compared. `given`: the user named the identity, which is not changed then. `maps` as of --map."""

    reader: IdentityReader = IdentityReader()
    given: bool = False
    read_committed: bool = False
    maps: Sequence[str] = ()
    window_ms: int | None = None
    """Windows of event time that are compared first; the identity has the timestamp then."""
    temporary_directory: str | None = None
    target_command_config: str | None = None
    """How to connect to the target, where not as to the source."""
    target_remote: str | None = None
    """Where the target's brokers have copied segments to."""

    @classmethod
    def of(cls, asked: LedgerOptions) -> "LedgerRequest":
        """Return what the options ask for. Raises UsageError for an identity or a schema that is none, or one that windows separate."""
        reader = identity_reader(asked.identity, asked.schemas, asked.key_schemas)
        if asked.windows_ms is not None and not reader.identity.is_timed:
            raise UsageError(
                f"--windows: equal records may lie in several windows by --identity {reader.identity.text}: add timestamp"
            )
        return cls(
            reader,
            asked.identity is not None,
            asked.read_committed,
            asked.maps,
            asked.windows_ms,
            asked.temporary_directory,
            asked.target_command_config,
            asked.target_remote,
        )

    def of_sides(self, options: ScanOptions) -> tuple[ScanOptions, ScanOptions]:
        """Return the options of reading the source, and of reading the target. Keys go where there are copied segments."""
        keys, config = options.remote_keys, self.target_command_config or options.cluster.command_config
        target = replace(options, remote=self.target_remote, cluster=replace(options.cluster, command_config=config))
        if self.target_remote is None:
            return options, replace(target, remote_keys=())
        return replace(options, remote_keys=() if options.remote is None else keys), target


class LedgerPlan(Struct, frozen=True):
    """What lies on each side, the pairs of topics to compare, and by topic of the source why others are not compared."""

    layouts: Sequence[Layout]
    pairings: Sequence[Pairing]
    alone: Mapping[str, str]

    @classmethod
    def of_part(cls, pairings: Sequence[Pairing]) -> "LedgerPlan":
        """Return the plan of some of the pairs."""
        directories = [[*pair.sources.values()] for pair in pairings], [[*pair.targets.values()] for pair in pairings]
        return cls([Layout([*chain.from_iterable(side)]) for side in directories], _renumbered(pairings), {})

    @property
    def unreadable(self) -> Sequence[Unreadable]:
        """What could not be listed."""
        return [each for layout in self.layouts for each in layout.unreadable]


def plan_ledger(options: ScanOptions, sides: tuple[Replica, Replica], request: LedgerRequest) -> LedgerPlan:
    """List both sides, and pair their topics. Raises as `record_ledger`."""
    layouts = [_layout(side, own) for side, own in zip(sides, request.of_sides(options), strict=True)]
    found = [by_topic(layout.partitions) for layout in layouts]
    pairings, alone = pair_topics(found[0], found[1], parse_maps(request.maps))
    chosen = [pair for pair in pairings if not options.topics or {pair.source, pair.target} & set(options.topics)]
    pairings = _renumbered(chosen)
    alone = {topic: reason for topic, reason in alone.items() if not options.topics or topic in options.topics}
    if not pairings and not any(layout.unreadable for layout in layouts):
        have = (
            f"{side.path} has {', '.join(sorted(topics)[:5]) or 'no topic'}"
            for side, topics in zip(sides, found, strict=True)
        )
        raise NothingToAuditError(
            f"nothing to compare: no topic of the source has a copy in the target ({'; '.join(have)}); --map 'REGEX=NAME' names copies"
        )
    return LedgerPlan(layouts, pairings, alone)


@contextmanager
def record_ledger(  # noqa: PLR0913, PLR0917 - what is compared, how, and who does the work
    options: ScanOptions,
    sides: tuple[Replica, Replica],
    request: LedgerRequest,
    progress: Progress,
    engine: RecordEngine = LOCAL_RECORDS,
    plan: LedgerPlan | None = None,
) -> Iterator[LedgerResult]:
    """Compare the topics of a source and a target; the maps of offsets are files that are there while the body runs.

    Memory is bounded, and temporary files have at most 32 bytes a record. `plan`: what to compare, by default all that has a copy.

    Raises:
        UsageError: a path does not exist, an option is wrong, or the temporary directory cannot be written.
        NothingToAuditError: no topic of the source has a copy in the target; not where something could not be read.

    """
    plan = plan_ledger(options, sides, request) if plan is None else plan
    if not plan.pairings:
        yield ledger_result(sides, plan.layouts, ([], []), [], plan.alone)
        return
    options = replace(options, paths=[side.path for side in sides])
    with _directory(options, plan.layouts, request) as directory:
        with rows_written(directory):
            comparison = Comparison(plan.pairings, request.reader, request.read_committed)
            run = _Run(options, request, directory, engine, progress)
            read, ledgers = run.compared(comparison)
        yield ledger_result(sides, plan.layouts, read, ledgers, plan.alone)


def _directory(options: ScanOptions, layouts: Sequence[Layout], request: LedgerRequest) -> AbstractContextManager[Path]:
    """Return where rows are written: in a place that the user names so that the same comparison of the same files goes on after an interruption."""
    place = request.temporary_directory
    inputs = [*options.given, *([] if request.target_remote is None else [request.target_remote])]
    if place is None or not all(Uri.parse(path).is_local for path in inputs):
        return spill_directory(place, inputs)
    files = [
        (
            one.topic,
            one.partition,
            one.log_start_offset,
            one.first_dirty_offset,
            *((each.path, each.size, each.modified_ms) for each in one.segments),
        )
        for layout in layouts
        for one in layout.partitions
    ]
    key = pickle.dumps((__version__, request, options, files))
    return resumed_directory(place, inputs, hashlib.sha256(key).hexdigest()[:16])


def record_fingerprint(  # noqa: PLR0913, PLR0917 - what is read, how, and who does the work
    options: ScanOptions,
    site: Replica,
    request: LedgerRequest,
    progress: Progress,
    engine: RecordEngine = LOCAL_RECORDS,
    within: Mapping[str, Sequence[tuple[int, int]]] | None = None,
) -> RecordFingerprint:
    """Return counts and digests by windows of what lies under a site's path; of windows those `within`, by topic, if given.

    Raises:
        UsageError: the path does not exist.
        NothingToAuditError: no topic was found.

    """
    layout = _layout(site, options)
    topics = {
        name: own for name, own in by_topic(layout.partitions).items() if not options.topics or name in options.topics
    }
    if not topics and not layout.unreadable:
        raise NothingToAuditError(f"nothing to read under {site.path}: no topic was found")
    keys = [(topic, partition) for topic in sorted(topics) for partition in sorted(topics[topic])]
    nowhere = Spill("", "", IDENTIFIED)
    width = request.window_ms or WINDOW_MS
    work = [
        WindowTask(
            RecordTask(topics[topic][partition], number, 0, request.reader, request.read_committed, nowhere, 0),
            width,
            None,
        )
        for number, (topic, partition) in enumerate(keys)
    ]
    read = dict(
        zip(keys, engine.windows(work, replace(options, paths=[site.path]), progress) if work else (), strict=True)
    )
    missing = not_read([layout], [[each.read for each in read.values()]])
    found = [
        topic_windows(
            topic,
            {partition: read[topic, partition] for partition in own},
            None if within is None else within.get(topic, ()),
        )
        for topic, own in sorted(topics.items())
    ]
    identity, incomplete = request.reader.identity.text, any(each.unreadable for each in missing)
    return RecordFingerprint(SCHEMA, [site.path], incomplete, missing, identity, request.read_committed, width, found)


def commits_of_source(
    source: Replica, groups: Sequence[str], options: ScanOptions
) -> tuple[list[GroupOffset], list[str]]:
    """Return what the groups committed last in the source, and what could not be read of that. Raises UsageError for a group without commits."""
    layout = layout_of(source, replace(options, topics=(), partitions=()))
    commits, unread = committed_offsets(layout.partitions, groups, open_segment)
    for group in groups:
        if all(commit.group != group for commit in commits):
            raise UsageError(f"--translate-group {group}: __consumer_offsets of the source has no commit of it")
    return commits, unread


def _layout(side: Replica, options: ScanOptions) -> Layout:
    """List one side; its topics are chosen when they have been paired. Raises as `chosen_input`."""
    return chosen_input(replace(options, paths=[side.path], topics=()))


def _renumbered(pairings: Sequence[Pairing]) -> list[Pairing]:
    first, found = 0, []
    for pairing in pairings:
        found.append(replace(pairing, first_number=first))
        first += len(pairing.partitions)
    return found


def _has_brokers_times(ledger: TopicLedger) -> bool:
    return bool(ledger.source_counts.appended_times or ledger.target_counts.appended_times)


def _may_differ_in_headers(ledger: TopicLedger) -> bool:
    """Return whether each side has records of its own: a mirror may have added headers to them."""
    return bool((ledger.missing or ledger.pending) and (ledger.only_in_target or ledger.ahead))


class _Run(Struct, frozen=True):
    """A comparison under way."""

    options: ScanOptions
    request: LedgerRequest
    directory: Path
    engine: RecordEngine
    progress: Progress

    def compared(
        self, comparison: Comparison
    ) -> tuple[tuple[Sequence[ReadPartition], Sequence[ReadPartition]], list[TopicLedger]]:
        """Compare; some pairs once more: without timestamps that brokers have set or headers that differ, and whole where windows turn out to prove nothing."""
        if self.request.window_ms is not None:
            comparison = replace(comparison, narrowed=self._narrowed(comparison, self.request.window_ms))
        assembly, ledgers = self._compare(comparison, "first")
        whole = replace(comparison, narrowed=None)
        crossing = {
            index
            for index, one in enumerate(ledgers)
            if one.windows is not None and one.windows.compared_whole == ORDER_CROSSES
        }
        for index, ledger in self._again(whole, crossing, "whole"):
            ledgers[index] = replace(ledger, windows=ledgers[index].windows)
        appended = {index for index, one in enumerate(ledgers) if _has_brokers_times(one) and not self.request.given}
        identity = comparison.reader.identity.without(Of.TIMESTAMP)
        untimed = replace(whole, reader=replace(comparison.reader, identity=identity))
        for index, ledger in self._again(untimed, appended, "untimed"):
            windows = ledgers[index].windows
            ledgers[index] = replace(ledger, windows=windows and replace(windows, compared_whole=_BROKERS_TIMES))
        others = {index for index, one in enumerate(ledgers) if _may_differ_in_headers(one) and not self.request.given}
        for name, same, chosen in (("headless", whole, others - appended), ("bare", untimed, others & appended)):
            identity = same.reader.identity.without(Of.HEADERS)
            for index, ledger in self._again(
                replace(same, reader=replace(same.reader, identity=identity)), chosen, name
            ):
                more, windows = ledger.matched - ledgers[index].matched, ledgers[index].windows
                if more > 0:
                    windows = windows and replace(windows, compared_whole=_OTHER_HEADERS)
                    ledgers[index] = replace(ledger, windows=windows, but_for_headers=more)
        return assembly.read, ledgers

    def _narrowed(self, comparison: Comparison, window_ms: int) -> Narrowed:
        work = comparison.tasks(Path(), 0)
        most = MOST_RUNS // max(len(work), 1)
        found = self.engine.windows([WindowTask(task, window_ms, most) for task in work], self.options, self.progress)
        return narrow(comparison.pairings, window_ms, comparison.sides(found))

    def _again(self, comparison: Comparison, chosen: set[int], name: str) -> Iterator[tuple[int, TopicLedger]]:
        if chosen:
            pairings = _renumbered([comparison.pairings[index] for index in sorted(chosen)])
            _, ledgers = self._compare(replace(comparison, pairings=pairings), name)
            yield from zip(sorted(chosen), ledgers, strict=True)

    def _compare(self, comparison: Comparison, name: str) -> Compared:
        place = self.directory / name
        place.mkdir(exist_ok=True)
        return self.engine.compare(comparison, self.options, place, self.progress)


_BROKERS_TIMES = "brokers have set the timestamps"
_OTHER_HEADERS = "copies have other headers"
