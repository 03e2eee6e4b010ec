"""One partition replica that is being written: each visit reads only what was appended since the last one.

The assembler of a partition takes chunks cut anywhere, so the chunks of a log that grows give what a scan of the whole log
gives. Bytes at the end that are not a whole valid batch are read again at the next visit: what follows decides what they
are. Segments that retention deletes from the front stay known. A log that was truncated, compacted, or deleted and created
again is read from its beginning, as a scan would: compaction itself read and wrote as much.
"""

from collections.abc import Callable
from contextlib import closing

from msgspec import Struct
from msgspec.structs import replace

from kaudit.formats.log.batch_header import HEADER_SIZE
from kaudit.model.damage import DamageKind
from kaudit.partition.assembler import PartitionAssembler
from kaudit.partition.audit import Needs, PartitionAudit
from kaudit.partition.job import Job
from kaudit.partition.replay import PartitionReplay
from kaudit.reading.chunk_plan import ChunkSpec, OpenSource
from kaudit.reading.chunk_reader import CHUNK_BATCHES, CHUNK_BYTES, read_chunk
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.unread_segments import Failure, failure
from kaudit.source.bytes import ByteSource, read_bytes
from kaudit.source.kafka.fetched_segment import RemovedByRetentionError
from kaudit.source.layout import PartitionDirectory, SegmentFile

MOST_DELETED = 1000
"""Deleted segments that stay known; with more of them than of others, the partition is read again, to forget them."""


class Mark(Struct):
    """The place up to which a partition was read: batches before `position` of segment number `segment` were taken.

    `head` is the header of the last of them, at `head_position`; as long as it is there, the log goes on from it.
    """

    segment: int = 0
    position: int = 0
    head: bytes = b""
    head_position: int = 0


class _AsPlanned:
    """A file of the size it had when its reading was planned: what a broker appends meanwhile is left for the next visit."""

    def __init__(self, source: ByteSource, size: int) -> None:
        self._source = source
        self._size = size
        self.read_into = source.read_into
        self.close = source.close

    def size(self) -> int:
        """Return the planned size in bytes."""
        return self._size


class PartitionFollower:
    """Feeds an assembler with what is appended to one partition replica. `read_bytes` counts repeated readings too."""

    def __init__(self, job: Job, open_source: OpenSource) -> None:
        self._open_file = open_source
        self._stopping: Callable[[], bool] = lambda: False
        self.read_bytes = 0
        self.restarts = 0
        self._begin(job)

    def _begin(self, job: Job) -> None:
        """Forget everything; the next reading begins with the first byte of the partition."""
        self._job = job
        self._assembler = PartitionAssembler(job, None, self._open, self._open_file)
        self.mark = Mark()
        self._in_order = False
        self._broken = False

    @property
    def directory(self) -> PartitionDirectory:
        """The partition, with the segments that were deleted after they were read."""
        return self._job.directory

    @property
    def replay(self) -> PartitionReplay:
        """What the partition came to so far."""
        return self._assembler.replay

    @property
    def failed(self) -> bool:
        """Whether something could not be read at the last visit."""
        return self._assembler.failed

    @property
    def needs_reading(self) -> bool:
        """Whether the log has bytes after those taken."""
        here = self.directory.segments[self.mark.segment :]
        return bool(here) and (len(here) > 1 or here[0].size > self.mark.position)

    def visit(self, job: Job, stopping: Callable[[], bool] = lambda: False) -> None:
        """Take what was appended. `job` is the partition as it is now; reading ends early when `stopping` returns True."""
        self._stopping = stopping
        if not self._goes_on(job):
            self.restarts += 1
            self._begin(job)
        try:
            self._grow(job)
            self._read()
        except FileNotFoundError:
            self._begin(job)  # deleted, or replaced, while it was read: the next visit begins with what is there then
        except OSError as error:
            self._break(error)

    def ask_for(self, needs: Needs) -> bool:
        """Take what the audit of all partitions needs now of this one; return whether that is something else than before."""
        if needs == self._job.needs:
            return False
        self._job = replace(self._job, needs=needs)
        self._assembler.ask_for(needs)
        return True

    def close(self) -> PartitionAudit:
        """Return what the findings need of the partition as far as it was read. To be used before the next visit."""
        return self._assembler.at_end()

    def is_settled(self, segment: str | None, position: int | None) -> bool:
        """Whether appended batches can no longer change what lies at a position of a segment."""
        last = self.directory.segments[-1] if self.directory.segments else None
        if (
            last is None
            or segment != last.name
            or position is None
            or self.mark.segment < len(self.directory.segments) - 1
        ):
            return True
        return position < self.mark.position

    def _open(self, segment: SegmentFile) -> ByteSource:
        if segment.fetched is not None:
            return self._open_file(segment)
        return _AsPlanned(self._open_file(segment), segment.size)

    def _break(self, error: OSError) -> None:
        """Reading failed inside a chunk, so that nobody knows what was taken of it: the next visit begins anew."""
        self._assembler.skip(failure(self.directory.directory, error), for_good=False)
        self._broken = True

    def _goes_on(self, job: Job) -> bool:
        """Whether the log there now is the one that was read, with more at its end and perhaps less at its front."""
        known = {segment.base_offset: segment for segment in self.directory.segments}
        there = {segment.base_offset: segment for segment in job.directory.segments}
        if self._broken or not known or not there:
            return not self._broken and (not known or self.mark == Mark())
        first, last = min(there), max(known)
        if not any(base in there for base in known):
            return first == self.replay.log_end_offset and not self._tail_damage
        gone = sum(base < first for base in known)
        kept = {base for base in known if base >= first}
        if kept != {base for base in there if base <= last} or (gone > MOST_DELETED and gone > len(there)):
            return False
        if self.replay.continuity.missing and _is_cleaned(job.directory) != _is_cleaned(self.directory):
            return False  # whether missing offsets are normal is decided as they are read
        read = [segment for segment in self.directory.segments[: self.mark.segment] if segment.base_offset in kept]
        if any(there[segment.base_offset].size != segment.size for segment in read):
            return False
        file = there.get(self.directory.segments[self.mark.segment].base_offset)
        return file is None or (file.size >= self.mark.position and self._holds_mark(file))

    def _holds_mark(self, file: SegmentFile) -> bool:
        mark = self.mark
        try:
            with closing(self._open_file(file)) as source:
                return read_bytes(source, mark.head_position, len(mark.head)) == mark.head
        except OSError:
            return True  # reading on reports the error

    def _grow(self, job: Job) -> None:
        """Take the partition as it is now; deleted segments keep their numbers."""
        there = {segment.base_offset: segment for segment in job.directory.segments}
        known = [
            there.pop(segment.base_offset) if segment.base_offset in there else replace(segment, size=0, deleted=True)
            for segment in self.directory.segments
        ]
        segments = (*known, *(there[base] for base in sorted(there)))
        plan = {spec.file.base_offset: spec for spec in job.plan}
        numbered = [
            replace(plan[segment.base_offset], segment=number)
            for number, segment in enumerate(segments)
            if segment.base_offset in plan
        ]
        self._job = replace(job, directory=replace(job.directory, segments=segments), plan=numbered)
        self._assembler.grow(self._job)

    @property
    def _tail_damage(self) -> list[int]:
        """Positions in the segment of the mark where damage begins after which no valid batch was read."""
        return [damage.position for segment, damage in self.replay.continuity.pending if segment == self.mark.segment]

    def _read(self) -> None:
        plan = {spec.segment: spec for spec in self._job.plan}
        mark, last = self.mark, len(self.directory.segments) - 1
        if self._in_order and self.needs_reading:
            self._read_in_order()
            return
        for number in range(mark.segment, last + 1):
            if self._stopping():
                return
            if number > mark.segment:
                mark.segment, mark.position, mark.head = number, 0, b""
            spec = plan.get(number)
            if spec is not None and spec.stop > mark.position:
                self._read_segment(spec)
                if self._assembler.out_of_order:
                    self._read_in_order()
                    return

    def _read_segment(self, spec: ChunkSpec) -> None:
        """Read a segment from the mark on, as long as its batches are in order."""
        self._assembler.read_again(spec.segment)
        try:
            source = self._open(spec.file)
        except FileNotFoundError:
            raise
        except OSError as error:
            self._skip(spec, error)
            return
        with closing(source):
            at = self.mark.position
            while at < spec.stop and not self._stopping():
                expected = self.replay.continuity.next_offset if at else None
                # positions of what brokers send stand for offsets, of which any number may be missing
                stop = spec.stop if spec.file.fetched is not None else min(at + CHUNK_BYTES, spec.stop)
                part = replace(spec, start=at, stop=stop, expected_offset=expected)
                try:
                    rows = read_chunk(part, source, CHUNK_BATCHES)
                except RemovedByRetentionError as error:
                    at = self._go_to(spec, at, error.log_start)
                    continue
                except OSError as error:
                    self._skip(spec, error)
                    return
                self._assembler.take(rows, part)
                if self._assembler.out_of_order or self._assembler.stopped:
                    self._broken = self._assembler.stopped
                    return
                self.read_bytes += rows.read_to - at
                at = rows.read_to
                self._move_mark(rows, source)

    def _go_to(self, spec: ChunkSpec, at: int, log_start: int) -> int:
        """Retention overtook the reader of a log that brokers send: leave out what it removed; return where to go on."""
        place = spec.file.fetched
        assert place is not None
        self.mark.position, self.mark.head = min(max(place.position(log_start), at + 1), spec.stop), b""
        reason = f"offsets {place.offset(at)}..{log_start - 1} were removed by retention before they were read"
        self._assembler.skip(Failure(spec.file.path, reason))
        return self.mark.position

    def _skip(self, spec: ChunkSpec, error: OSError) -> None:
        """A segment cannot be read: leave it out, as a scan does; the last one may be readable at the next visit."""
        is_last = spec.segment == len(self.directory.segments) - 1
        self._assembler.skip(failure(spec.file.path, error), for_good=not is_last)
        if not is_last:
            self.mark.segment, self.mark.position, self.mark.head = spec.segment + 1, 0, b""

    def _move_mark(self, rows: ChunkRows, source: ByteSource) -> None:
        mark = self.mark
        mark.position = min([*self._tail_damage, rows.read_to])
        if rows.last_position >= 0:
            mark.head, mark.head_position = read_bytes(source, rows.last_position, HEADER_SIZE), rows.last_position

    def _read_in_order(self) -> None:
        """Read from front to back, as batches are out of order.

        As long as any of the last segment are, what follows decides their order, and the log is read like this again.
        """
        job = self._job
        self._begin(replace(job, directory=replace(job.directory, segments=segments_of(job.directory))))
        self._grow(replace(job, directory=self.directory))
        last = len(self.directory.segments) - 1
        for rows in self._assembler.read_in_order():
            self.read_bytes += rows.read_to - rows.start
            self.mark.segment = rows.segment
            with closing(self._open(self.directory.segments[rows.segment])) as source:
                self._move_mark(rows, source)
        self._in_order = any(
            placed.segment == last and placed.damage.kind is DamageKind.OUT_OF_ORDER
            for placed in self.replay.continuity.damages
        )


def segments_of(directory: PartitionDirectory) -> tuple[SegmentFile, ...]:
    """The segments that are there."""
    return tuple(segment for segment in directory.segments if not segment.deleted)


def _is_cleaned(directory: PartitionDirectory) -> bool:
    return directory.first_dirty_offset is not None
