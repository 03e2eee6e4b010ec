"""All sound batches of a segment, for whoever asks for a row of each."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from kaudit.analysis.scan.batch_stream import stream_batches
from kaudit.analysis.scan.chunk_plan import ChunkSpec, OpenSource
from kaudit.analysis.scan.planning import Job
from kaudit.model.batch import Batches, concatenate

_ROWS_AT_ONCE = 1 << 16


class SegmentTask(Struct, frozen=True):
    """A segment to be read: whose it is, and its place in the order of all."""

    topic: str
    partition: int
    replica: str
    number: int
    spec: ChunkSpec


BatchTeller = Callable[[SegmentTask, Batches], tuple[str, bytes]]
"""Makes a piece of a table of some of a segment's batches."""


def segment_tasks(jobs: Sequence[Job]) -> list[SegmentTask]:
    """List the segments of all partitions, in order."""
    chosen = [(job.directory, spec) for job in jobs for spec in job.plan]
    return [
        SegmentTask(directory.topic, directory.partition, directory.replica, number, spec)
        for number, (directory, spec) in enumerate(chosen)
    ]


def tell_segment(task: SegmentTask, open_source: OpenSource, teller: BatchTeller) -> Iterator[tuple[str, bytes]]:
    """Read a segment once more and tell its batches; one that cannot be read any more has been told of."""
    spec = task.spec
    try:
        source = open_source(spec.file)
    except OSError:
        return
    try:
        held: list[Batches] = []
        count = 0
        for piece in stream_batches(
            source, spec.start, spec.stop, spec.end, expected_offset=spec.file.base_offset, verify=spec.verify
        ):
            held.append(piece.batches)
            count += len(piece.batches)
            if count >= _ROWS_AT_ONCE:
                yield teller(task, concatenate(held))
                held, count = [], 0
        if count:
            yield teller(task, concatenate(held))
    except OSError:
        return
    finally:
        source.close()
