"""Which segments tasks read: listed, pruned by what is asked for, and grouped by their bytes."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress

from msgspec import Struct
from msgspec.structs import replace

from kaudit.engines.task_size import block_bytes, task_bytes
from kaudit.formats.sidefiles.indexes import TIME_ENTRY
from kaudit.partition.batch_export import SegmentTask
from kaudit.partition.job import Job
from kaudit.reading.chunk_plan import ChunkSpec, cut
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.source.layout import PartitionDirectory, SegmentFile
from kaudit.source.schemes import open_segment
from kaudit.spark.options import ReadOptions

_TIME_INDEX = ".timeindex"


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


def partition_jobs(options: ReadOptions) -> list[Job]:
    """List the input and plan every partition replica, for an audit that may ask for anything. Raises as find_input does."""
    asked = options.scan_options()
    return plan_jobs(asked, find_input(asked), all_needs)


def segment_reads(options: ReadOptions, chosen: Chosen) -> list[list[SegmentRead]]:
    """List the input and share its segments among tasks. Raises as find_input does."""
    asked = options.scan_options()
    jobs = plan_jobs(asked, find_input(asked), all_needs)
    reads = [read for number, job in enumerate(jobs) for read in _reads(job, number, options, chosen)]
    size = options.partition_bytes or task_bytes(sum(read.bytes for read in reads), block_bytes(jobs))
    return list(_grouped(reads, size))


def _reads(job: Job, number: int, options: ReadOptions, chosen: Chosen) -> Iterator[SegmentRead]:
    directory = job.directory
    if not chosen.has(directory):
        return
    side_files = {file.name: file for file in directory.side_files}
    for spec in job.plan:
        following = directory.segments[spec.segment + 1] if spec.segment + 1 < len(directory.segments) else None
        if not chosen.has_segment(spec, following):
            continue
        index = None
        if following is not None and chosen.since is not None:
            index = side_files.get(spec.file.name.removesuffix(".log") + _TIME_INDEX)
        whole = SegmentTask(directory.topic, directory.partition, directory.replica, number, spec)
        for part in cut(spec, job.chunk_bytes) if options.cut else (spec,):
            yield SegmentRead(replace(whole, spec=part), index)


def _grouped(reads: Sequence[SegmentRead], size: int) -> Iterator[list[SegmentRead]]:
    held: list[SegmentRead] = []
    filled = 0
    for read in reads:
        if held and filled + read.bytes > size:
            yield held
            held, filled = [], 0
        held.append(read)
        filled += read.bytes
    if held:
        yield held
