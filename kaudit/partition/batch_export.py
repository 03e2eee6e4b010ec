"""Valid batches of a segment in pieces, for a table with one row per batch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

from msgspec import Struct

from kaudit.errors import UnreadableInputError
from kaudit.model.batch import Batches, concatenate
from kaudit.model.result import NotAudited
from kaudit.partition.job import Job
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import ChunkSpec, OpenSource
from kaudit.reading.segment import ByteRange
from kaudit.source.listing import failure
from kaudit.source.schemes import SegmentRemovedError

_ROWS_AT_ONCE = 1 << 16


class SegmentTask(Struct, frozen=True):
    """A segment to be read: the partition it belongs to, and its rank `number` among all segments."""

    topic: str
    partition: int
    replica: str
    number: int
    spec: ChunkSpec


BatchWriter = Callable[[SegmentTask, Batches], tuple[str, bytes]]
"""Returns (table name, rows as an Arrow IPC stream) for some of a segment's batches."""


def segment_tasks(jobs: Sequence[Job], not_audited: Sequence[NotAudited] = ()) -> list[SegmentTask]:
    """List the segments of all partitions, in order, without those that the result says could not be read."""
    unread = tuple(note.path for note in not_audited if note.unreadable)
    chosen = [
        (job.directory, spec)
        for job in jobs
        for spec in job.plan
        # of a log that brokers send, offsets that could not be read follow its path
        if not any(path.startswith(spec.file.path) for path in unread)
    ]
    return [
        SegmentTask(directory.topic, directory.partition, directory.replica, number, spec)
        for number, (directory, spec) in enumerate(chosen)
    ]


def write_segment(task: SegmentTask, open_source: OpenSource, writer: BatchWriter) -> Iterator[tuple[str, bytes]]:
    """Read a segment once more and yield its batches as table pieces; none of one that retention has removed meanwhile.

    Raises:
        UnreadableInputError: it cannot be read any more.

    """
    try:
        yield from _pieces(task, open_source, writer)
    except SegmentRemovedError:
        return
    except OSError as error:
        raise UnreadableInputError(f"{task.spec.file.path}: {failure(error)}") from None


def _pieces(task: SegmentTask, open_source: OpenSource, writer: BatchWriter) -> Iterator[tuple[str, bytes]]:
    spec = task.spec
    held: list[Batches] = []
    count = 0
    read = ByteRange(spec.start, spec.stop, spec.end)
    with closing(open_source(spec.file)) as source:
        for piece in stream_batches(source, read, expected_offset=spec.file.base_offset, verify=spec.verify):
            held.append(piece.batches)
            count += len(piece.batches)
            if count >= _ROWS_AT_ONCE:
                yield writer(task, concatenate(held))
                held, count = [], 0
        if count:
            yield writer(task, concatenate(held))
