"""Shares the work among Spark's tasks: ranges among reading tasks, partitions among replaying tasks."""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import zip_longest
from operator import itemgetter
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kaudit.errors import UsageError
from kaudit.formats.sidefiles.indexes import TIME_ENTRY
from kaudit.partition.batch_export import SegmentTask
from kaudit.partition.job import Job
from kaudit.reading.chunk_plan import ChunkSpec
from kaudit.reading.chunk_reader import CHUNK_BYTES
from kaudit.scanning.block_histories import BlockHistories, read_blocks
from kaudit.scanning.findings import replicas_of
from kaudit.scanning.found_blocks import ReadMetadata
from kaudit.scanning.opened_state import OpenedState, open_state
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, audit_needs, find_evidence, find_input, plan_jobs, share_rate
from kaudit.source.layout import Layout, PartitionDirectory, SegmentFile, list_snapshots
from kaudit.source.schemes import filesystem, is_decoded_whole, open_segment
from kaudit.source.uri import STDIN, Uri
from kaudit.spark.options import ReadOptions
from kaudit.spark.tasks import ByteRangeTask, PartitionHeader, ReadTask, shards_of


class _Work(Protocol):
    @property
    def bytes(self) -> int:
        """Bytes to read."""


Sized = TypeVar("Sized", bound=_Work)
_SAVED_BYTES = 8 << 20
"""Loading what is saved of a segment costs at most about as much as reading so many bytes of a log."""
_MOST_HEADERS = 1000
"""Partitions that one task begins, however little there is to read of them."""
_REPLAYED_BYTES = 16 << 30
_REPLAYED_PARTITIONS = 64
"""A replaying task takes about so much of the log, or so many partitions: under dynamic allocation cores come later."""


class Chosen(Struct, frozen=True):
    """What filters leave; None: everything. Offsets and times (ms) are inclusive."""

    topics: Collection[str] | None = None
    partitions: Collection[int] | None = None
    replicas: Collection[str] | None = None
    segments: Collection[str] | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    since: int | None = None

    def has(self, directory: PartitionDirectory) -> bool:
        """Return whether rows of a partition replica are wanted."""
        pairs = (
            (self.topics, directory.topic),
            (self.partitions, directory.partition),
            (self.replicas, directory.replica),
        )
        return all(wanted is None or value in wanted for wanted, value in pairs)

    def has_segment(self, spec: ChunkSpec, following: SegmentFile | None) -> bool:
        """Return whether a segment can have rows that are wanted; `following` is the next one's file."""
        if self.segments is not None and spec.file.name not in self.segments:
            return False
        if spec.file.fetched is not None or spec.file.text is not None:
            return True
        if self.last_offset is not None and spec.file.base_offset > self.last_offset:
            return False
        return self.first_offset is None or following is None or following.base_offset > self.first_offset


class SparkPlan(Struct, frozen=True):
    """The reading tasks, and the number of replaying tasks their rows go to."""

    works: Sequence[ReadTask]
    shuffle_partitions: int
    bytes: int

    @property
    def ranges(self) -> int:
        """How many ranges are read."""
        return sum(header.ranges for work in self.works for _, header in work.headers)


def share(jobs: Sequence[Job], cores: int) -> SparkPlan:
    """Share the jobs among tasks for so many `cores`: small partitions together, large ones in pieces."""
    total = sum(job.bytes for job in jobs)
    saved = sum(len(job.saved.pieces) - job.saved.resumed for job in jobs if job.saved is not None)
    largest = max((job.bytes for job in jobs), default=0)
    size = task_bytes(total + saved * _SAVED_BYTES, block_bytes(jobs), cores, largest)
    groups = replicas_of([job.directory for job in jobs])
    wanted = max(cores * TASKS_PER_CORE, total // _REPLAYED_BYTES, len(groups) // _REPLAYED_PARTITIONS)
    shuffle_partitions = max(min(len(groups), wanted), 1)
    where = _assign(jobs, groups, shuffle_partitions)
    shards = shards_of([job.directory for job in jobs], shuffle_partitions)
    return SparkPlan(list(_works(jobs, where, shards, size)), shuffle_partitions, total)


def _following(job: Job, spec: ChunkSpec) -> SegmentFile | None:
    """Return the file of the segment after a spec's."""
    return next(iter(job.directory.segments[spec.segment + 1 : spec.segment + 2]), None)


def _assign(jobs: Sequence[Job], groups: Sequence[Sequence[int]], shuffle_partitions: int) -> list[int]:
    """Give the replicas of each topic partition one replaying task, the largest first, each the task with the fewest bytes so far."""
    loads = [(0, number) for number in range(shuffle_partitions)]
    where = [0] * len(jobs)
    for size, replicas in sorted(
        ((sum(jobs[index].bytes for index in own), own) for own in groups), key=itemgetter(0), reverse=True
    ):
        load, number = heapq.heappop(loads)
        for job_index in replicas:
            where[job_index] = number
        heapq.heappush(loads, (load + size, number))
    return where


def _works(jobs: Sequence[Job], where: Sequence[int], shards: Sequence[int], size: int) -> Iterator[ReadTask]:
    """Yield tasks that read the ranges of the jobs."""
    work, filled = ReadTask([], []), 0
    for job_index, job in enumerate(jobs):
        place, ranges = job.directory, job.ranges()
        header = PartitionHeader(job_index, job, len(ranges), shards[job_index])
        work.headers.append((where[job_index], header))
        snapshots = [file.base_offset for file in list_snapshots(place)]
        for number, (spec, following) in enumerate(zip_longest(ranges, ranges[1:])):
            last = work.byte_ranges[-1] if work.byte_ranges else None
            beside = last is not None and last.job_index == job_index and last.spec.file == spec.file
            if last is not None and beside and last.spec.saved is None and spec.saved is None:
                work.byte_ranges[-1] = replace(last, spec=replace(last.spec, stop=spec.stop))
            else:
                inside = _of_segment(snapshots, place, spec.segment)
                task = ByteRangeTask(job_index, where[job_index], number, spec, job.chunk_bytes, inside)
                work.byte_ranges.append(task)
            filled += _SAVED_BYTES if spec.saved is not None else spec.bytes_to_read
            segment_ends = following is None or following.file != spec.file
            if filled >= (size * 3 // 4 if segment_ends else size):
                yield work
                work, filled = ReadTask([], []), 0
        if len(work.headers) >= _MOST_HEADERS:
            yield work
            work, filled = ReadTask([], []), 0
    if work.byte_ranges or work.headers:
        yield work


def _of_segment(snapshots: Sequence[int], directory: PartitionDirectory, segment: int) -> Sequence[int]:
    """Return which of these offsets, ascending, lie behind a segment's first one."""
    first = bisect_right(snapshots, directory.segments[segment].base_offset)
    following = directory.segments[segment + 1 : segment + 2]
    stop = bisect_left(snapshots, following[0].base_offset) if following else len(snapshots)
    return tuple(snapshots[first:stop])


TASKS_PER_CORE = 4
"""So many reading tasks a core even out what compresses, decodes or is stored unlike its neighbours."""
USUAL_BLOCK_BYTES = 128 << 20
"""Of HDFS by default, and what Spark's tasks read of other files."""
_TASKS = 10_000
"""Of a log for which this is too few, tasks read more."""
_PIECES = 2_000
"""Of one partition, which one task puts together: the rows of a piece are joined (kaudit/reading/range_joining.py)."""
_LARGEST_TASK = 1 << 30
"""A task lost with its executor is read again: this much at most. 100 TB make 100,000 tasks, which Spark bears."""


def block_bytes(jobs: Sequence[Job]) -> int:
    """Return the block size of the files to read: that of one file of each store, and of several stores the largest.

    Disks and S3 have none, and what cannot be asked says none: then it is the usual one.
    """
    newest: dict[tuple[str, str], Uri] = {}
    for job in jobs:
        file = job.plan[-1].file if job.plan else None
        if file is not None and file.fetched is None:
            uri = Uri.parse(file.path)
            newest.setdefault((uri.scheme, uri.authority), uri)
    return max(map(_block_bytes, newest.values()), default=0) or USUAL_BLOCK_BYTES


def _block_bytes(file: Uri) -> int:
    try:
        return 0 if file.is_local else filesystem(file).status(file).block_bytes
    except OSError:
        return 0  # reading it says why


def task_bytes(total: int, block: int, cores: int | None = None, partition: int = 0) -> int:
    """Return how much of so many bytes a task takes: a block, less where so many cores would be idle, at most 1 GiB.

    `partition`: bytes of the largest partition; a huge one is read in larger pieces.
    """
    most = min(max(block, CHUNK_BYTES, partition // _PIECES), _LARGEST_TASK)
    if cores is not None:
        most = min(max(total // (cores * TASKS_PER_CORE), CHUNK_BYTES), most)
    return min(max(most, total // _TASKS), _LARGEST_TASK)


_TIME_INDEX = ".timeindex"


class SegmentRead(Struct, frozen=True):
    """A segment, or a range of one, to be read; `time_index` lies beside segments that are full."""

    task: SegmentTask
    time_index: SegmentFile | None = None

    @property
    def bytes(self) -> int:
        """How many bytes there are."""
        return self.task.spec.stop - self.task.spec.start

    def ends_before(self, since: int) -> bool:
        """Return whether the time index says that all timestamps are lower: its last entry has the segment's highest."""
        if self.time_index is None:
            return False
        with suppress(OSError), closing(open_segment(self.time_index)) as source:
            buffer = bytearray(TIME_ENTRY.size)
            last = source.size() // len(buffer) * len(buffer) - len(buffer)
            if last >= 0 and source.read_into(last, memoryview(buffer)) == len(buffer):
                highest: int = TIME_ENTRY.struct().unpack(buffer)[0]
                return 0 < highest < since
        return False


def chosen_by(options: ReadOptions) -> Chosen:
    """Return what the options themselves choose of the segments; find_input has chosen topics and partitions."""
    return Chosen(first_offset=options.first_offset, last_offset=options.last_offset, since=options.since)


class KnownInput(Struct, frozen=True):
    """What an audit needs to know of its input beside the partitions' rows."""

    options: ScanOptions
    layout: Layout
    histories: BlockHistories


class AuditPlan(Struct, frozen=True):
    """An input that was listed, and the job of each partition replica."""

    known: KnownInput
    jobs: Sequence[Job]
    state: OpenedState | None = None

    def share(self, cores: int) -> SparkPlan:
        """Share the jobs among tasks."""
        return share(share_rate(self.jobs, cores), cores)


class ListedInput(Struct, frozen=True):
    """An input that was listed for an audit, and what an earlier one saved of it."""

    options: ScanOptions
    layout: Layout
    state: OpenedState | None

    def planned(self, read_metadata: ReadMetadata | None = None, *, everything: bool = False) -> AuditPlan:
        """Plan the partitions. `everything`: their jobs are those of an audit that may ask for anything.

        `read_metadata` reads replicas of __cluster_metadata, None: they are read here.
        """
        histories = read_blocks(self.options, self.layout, open_segment, read_metadata)
        needs = all_needs if everything else audit_needs(self.options, self.layout, histories)
        known = KnownInput(self.options, self.layout, histories)
        return AuditPlan(known, plan_jobs(self.options, self.layout, needs), self.state)


def listed_input(options: ScanOptions) -> ListedInput:
    """List the input once, and read the logs of brokers and clients.

    Raises:
        NothingToAuditError, UnreadableInputError: as find_evidence.
        UsageError: also for what tasks cannot read.

    """
    if STDIN in options.paths:
        raise UsageError("--engine spark: tasks elsewhere cannot read standard input (-); write it to a file")
    options, layout = find_evidence(options)
    if not layout.partitions:
        raise UsageError("--engine spark: the inputs hold logs of brokers and clients alone; leave it out")
    require_ranges(layout)
    state = None if options.state is None else open_state(options.state, options, layout)
    return ListedInput(options, layout, state)


def segment_reads(options: ReadOptions, chosen: Chosen) -> tuple[Layout, list[list[SegmentRead]]]:
    """List the input once, and share its segments among tasks that read each as a whole. Raises as find_input does."""
    asked = options.scan_options()
    layout = find_input(asked)
    require_ranges(layout)
    jobs = plan_jobs(asked, layout, all_needs)
    reads = [read for number, job in enumerate(jobs) for read in _reads(job, number, chosen)]
    size = options.partition_bytes or task_bytes(sum(read.bytes for read in reads), block_bytes(jobs))
    return layout, list(grouped(reads, size))


def require_ranges(layout: Layout) -> None:
    """Check that tasks can read ranges of each file without decoding all that lies before them. Raises UsageError."""
    for segment in (segment for entry in layout.everything for segment in entry.segments):
        if segment.fetched is None and "!" in segment.path and is_decoded_whole(Uri.parse(segment.path)):
            raise UsageError(
                f"Spark's tasks cannot read {segment.path} in parts: what holds it is compressed as a whole; unpack it, "
                "pack it as .tar or .zip, or leave out --engine spark"
            )


def _reads(job: Job, number: int, chosen: Chosen) -> Iterator[SegmentRead]:
    directory = job.directory
    if not chosen.has(directory):
        return
    side_files = {file.name: file for file in directory.side_files}
    for spec in job.plan:
        following = _following(job, spec)
        if not chosen.has_segment(spec, following):
            continue
        index = None
        if following is not None and chosen.since is not None:
            index = side_files.get(spec.file.name.removesuffix(".log") + _TIME_INDEX)
        yield SegmentRead(SegmentTask(directory.topic, directory.partition, directory.replica, number, spec), index)


def grouped(reads: Iterable[Sized], size: int) -> Iterator[list[Sized]]:
    """Yield what each task does: as much, in order, as has so many bytes together."""
    held: list[Sized] = []
    filled = 0
    for read in reads:
        if held and filled + read.bytes > size:
            yield held
            held, filled = [], 0
        held.append(read)
        filled += read.bytes
    if held:
        yield held
