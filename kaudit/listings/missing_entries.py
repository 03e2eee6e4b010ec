"""The missing offsets that a producer's timeline lists; the producer's own rows bound their number."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import attrgetter

from kaudit.model.columns import Columns
from kaudit.model.damage import MissingCause, MissingOffsets
from kaudit.model.timeline import MissingEntry
from kaudit.partition.audit import PartitionAudit

LISTED = 10
"""After one run or marker starts, at most this many ranges of a cause have their own entries; the rest is one entry."""
_FIRST_OFFSET = attrgetter("first_offset")


class MissingEntries:
    """The missing offsets of a partition, as entries of timelines."""

    def __init__(self, partition: PartitionAudit) -> None:
        directory = partition.directory
        start = directory.segments[0].base_offset if directory.segments else 0
        self._start = max(start, directory.log_start_offset or 0)
        by_cause: dict[MissingCause, list[MissingOffsets]] = {}
        for gap in sorted(partition.missing, key=_FIRST_OFFSET):
            by_cause.setdefault(gap.cause, []).append(gap)
        self._by_cause = [_OfCause(cause, gaps) for cause, gaps in by_cause.items()]

    def of_producer(self, runs: Columns, markers: Columns) -> Iterator[MissingEntry]:
        """Yield the missing offsets within a producer's span, and those before the log if its first sequence is not 0.

        `runs` and `markers` are the producer's, by offset.
        """
        if self._start > 0 and len(runs) and int(runs["first_sequence"][0]) > 0:
            yield MissingEntry(0, self._start - 1, self._start, MissingCause.LOG_START)
        if not self._by_cause:
            return
        begins = sorted([*runs["first_offset"].tolist(), *markers["offset"].tolist()])
        ends = [int(rows[name][-1]) for rows, name in ((runs, "last_offset"), (markers, "offset")) if len(rows)]
        for missing in self._by_cause:
            for first, end in pairwise([*begins, max(ends, default=0) + 1]):
                yield from missing.between(first, end)


class _OfCause:
    def __init__(self, cause: MissingCause, gaps: Sequence[MissingOffsets]) -> None:
        self._cause = cause
        self._gaps = gaps
        self._before = [0, *accumulate(gap.count for gap in gaps)]

    def between(self, first: int, end: int) -> Iterator[MissingEntry]:
        """Yield the ranges that begin from `first` to before `end`."""
        start = bisect_left(self._gaps, first, key=_FIRST_OFFSET)
        stop = bisect_left(self._gaps, end, start, key=_FIRST_OFFSET)
        listed = min(stop, start + LISTED)
        for gap in self._gaps[start:listed]:
            yield MissingEntry(gap.first_offset, gap.last_offset, gap.count, self._cause)
        if listed < stop:
            count = self._before[stop] - self._before[listed]
            yield MissingEntry(self._gaps[listed].first_offset, self._gaps[stop - 1].last_offset, count, self._cause)
