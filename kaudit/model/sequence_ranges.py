"""Sets of sequences, by producer and epoch."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from kaudit.model import sequence


class SequenceRange(NamedTuple):
    """`length` (>= 0) sequences of a producer's epoch from `first` on; past 2^31 - 1 they go on at 0."""

    producer_id: int
    producer_epoch: int
    first: int
    length: int


class SequenceRanges:
    """A set of sequences that says how many of a range are in it; far fewer than 2^30 of a producer's epoch."""

    def __init__(self, ranges: Iterable[SequenceRange]) -> None:
        grouped: dict[tuple[int, int], list[SequenceRange]] = {}
        for given in ranges:
            grouped.setdefault((given.producer_id, given.producer_epoch), []).append(given)
        self._epochs = {key: _Epoch(group) for key, group in grouped.items()}

    def count(self, wanted: SequenceRange) -> int:
        """Return how many of these sequences are in the set."""
        epoch = self._epochs.get((wanted.producer_id, wanted.producer_epoch))
        return 0 if epoch is None else epoch.count(wanted)


class _Epoch:
    """Disjoint ranges of one epoch, as steps from the first one given."""

    def __init__(self, ranges: list[SequenceRange]) -> None:
        self._origin = ranges[0].first
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, length in sorted((self._steps(given), given.length) for given in ranges):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], start + length)
            else:
                self._starts.append(start)
                self._ends.append(start + length)
        lengths = (end - start for start, end in zip(self._starts, self._ends, strict=True))
        self._before = list(accumulate(lengths, initial=0))

    def count(self, wanted: SequenceRange) -> int:
        start = self._steps(wanted)
        return self._below(start + wanted.length) - self._below(start)

    def _steps(self, given: SequenceRange) -> int:
        return sequence.distance(self._origin, given.first)

    def _below(self, step: int) -> int:
        ranges = bisect_right(self._starts, step)
        if not ranges:
            return 0
        return self._before[ranges] - max(self._ends[ranges - 1] - step, 0)
