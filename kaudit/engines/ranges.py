"""The ranges of all jobs in order, cut when their turn comes, and what comes of each."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from kaudit.partition.job import Job
from kaudit.reading.chunk_plan import ChunkSpec, cut_first
from kaudit.reading.chunk_rows import ChunkRows, Outcome
from kaudit.reading.chunk_size import ChunkSize
from kaudit.reading.range_reader import read_planned, read_range
from kaudit.reading.small_segments import apart

_MOST_BATCHES = 1 << 19
"""Batches of one range that are held, about 100 bytes each: small batches may follow large ones."""


PROCESSES_PAY_BYTES = 64 << 20
"""Below this many bytes to read, starting processes costs more than it saves."""


class Range(NamedTuple):
    """A range to read, of the job with this number."""

    job: int
    spec: ChunkSpec


class RangeRead(NamedTuple):
    """A range and what came of it."""

    job: int
    spec: ChunkSpec
    outcome: Outcome


def ranges(jobs: Sequence[Job], chunk_sizes: Sequence[ChunkSize]) -> Iterator[Range]:
    """Cut the jobs' segments, each job's as large as its chunk size is when the range is asked for."""
    left = sum(job.bytes for job in jobs)
    for number, (job, chunk_size) in enumerate(zip(jobs, chunk_sizes, strict=True)):
        for spec in job.joined:
            rest: ChunkSpec | None = spec
            while rest is not None:
                part, rest = cut_first(rest, chunk_size.next_bytes(left))
                left -= part.bytes_to_read
                yield Range(number, part)


def read_most(spec: ChunkSpec) -> list[Outcome]:
    """Read a range, or of one that has more batches than its chunk size allowed for the first of them.

    Segments that were planned together and had to be read one by one have an outcome each.
    """
    return read_planned(spec, _MOST_BATCHES)


def reads(found: Range, outcomes: Sequence[Outcome]) -> Iterator[RangeRead]:
    """Yield what came of a range, or of each segment planned with others."""
    number, spec = found
    specs = [spec] if len(outcomes) == 1 else apart(spec) if spec.joined else map(partial(_part, spec), outcomes)
    for part, outcome in zip(specs, outcomes, strict=True):
        yield RangeRead(number, part, outcome)


def _part(spec: ChunkSpec, outcome: Outcome) -> ChunkSpec:
    """Return the range of what came of a part of one that is saved."""
    return replace(spec, start=outcome.start, stop=outcome.stop) if isinstance(outcome, ChunkRows) else spec


def read_here(found: Iterable[Range]) -> Generator[RangeRead]:
    """Read every range in this process."""
    for entry in found:
        yield from reads(entry, read_most(entry.spec))


def with_rest(read: RangeRead, chunk_size: ChunkSize) -> Iterator[RangeRead]:
    """Yield a range and, if there is more of it, the rest, which is read here as large as the chunk size is by then."""
    unread: list[ChunkSpec] = []
    while True:
        number, spec, outcome = read
        if isinstance(outcome, ChunkRows) and outcome.stop < spec.stop:
            unread.append(replace(spec, start=outcome.stop, expected_offset=None))
            spec = replace(spec, stop=outcome.stop)
        yield RangeRead(number, spec, outcome)
        if not unread:
            return
        part, rest = cut_first(unread.pop(), chunk_size.bytes)
        if rest is not None:
            unread.append(rest)
        read = RangeRead(number, part, read_range(part, _MOST_BATCHES))
