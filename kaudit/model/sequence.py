"""Arithmetic of sequence numbers, which wrap from 2^31 - 1 to 0, and sets of them.

Source: DefaultRecordBatch.incrementSequence / decrementSequence.
"""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kaudit.model.grouping import grouped

if TYPE_CHECKING:
    from numpy.typing import NDArray


N = TypeVar("N", int, "NDArray[Any]")
"""A number, or a numpy column of numbers; int32 columns wrap, and the mask corrects the sum."""

MAX_SEQUENCE = 2**31 - 1
_MODULUS = 2**31


def next_sequence(last: N) -> N:
    """Return the sequence after `last` (-1..2^31-1): 0 after none (-1) and after the highest."""
    return (last + 1) & MAX_SEQUENCE


def add(sequence: int, delta: int) -> int:
    """Sequence `delta` (>= 0) steps after `sequence` (0..2^31-1)."""
    return (sequence + delta) % _MODULUS


def subtract(sequence: int, delta: int) -> int:
    """Sequence `delta` (>= 0) steps before `sequence` (0..2^31-1)."""
    return (sequence - delta) % _MODULUS


def distance(first: N, second: N) -> N:
    """Shortest signed number of steps from `first` to `second` on the circle, -2^30..2^30-1."""
    half = _MODULUS // 2
    steps: N = (second - first + half) % _MODULUS - half
    return steps


class SequenceRange(NamedTuple):
    """`length` (>= 0) sequences of a producer's epoch from `first` on; past 2^31 - 1 they go on at 0."""

    producer_id: int
    producer_epoch: int
    first: int
    length: int


class SequenceRanges:
    """A set of sequences that says how many of a range are in it; far fewer than 2^30 of a producer's epoch."""

    def __init__(self, ranges: Iterable[SequenceRange]) -> None:
        by_epoch = grouped(((given.producer_id, given.producer_epoch), given) for given in ranges)
        self._epochs = {key: _Epoch(group) for key, group in by_epoch.items()}

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
        return distance(self._origin, given.first)

    def _below(self, step: int) -> int:
        ranges = bisect_right(self._starts, step)
        if not ranges:
            return 0
        return self._before[ranges] - max(self._ends[ranges - 1] - step, 0)
