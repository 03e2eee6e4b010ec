"""The ranges of all jobs in order, cut when their turn comes, and what comes of each."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kaudit.pipeline.pace import Pace
from kaudit.pipeline.plan import cut_first
from kaudit.pipeline.read import ChunkSpec
from kaudit.pipeline.schedule import Job, Outcome, read_range


class Range(NamedTuple):
    """A range to read, of the job with this number."""

    job: int
    spec: ChunkSpec


class RangeRead(NamedTuple):
    """A range and what came of it."""

    job: int
    spec: ChunkSpec
    outcome: Outcome


def ranges(jobs: Sequence[Job], paces: Sequence[Pace]) -> Iterator[Range]:
    """Cut the jobs' segments, each job's as its pace wants when the range is asked for."""
    left = sum(job.bytes for job in jobs)
    for number, (job, pace) in enumerate(zip(jobs, paces, strict=True)):
        for spec in job.in_pieces:
            rest: ChunkSpec | None = spec
            while rest is not None:
                part, rest = cut_first(rest, pace.next_bytes(left))
                left -= part.stop - part.start
                yield Range(number, part)


def read_here(found: Iterable[Range]) -> Iterator[RangeRead]:
    """Read every range in this process."""
    for number, spec in found:
        yield RangeRead(number, spec, read_range(spec))
