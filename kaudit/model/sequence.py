"""Arithmetic of sequence numbers, which wrap from 2^31 - 1 to 0.

Source: DefaultRecordBatch.incrementSequence / decrementSequence.
"""

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from numpy.typing import NDArray

N = TypeVar("N", int, "NDArray[Any]")
"""A number, or a numpy column of numbers: int32 columns wrap, and the mask makes of that what the sum is."""

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


def distance(first: int, second: int) -> int:
    """Shortest signed number of steps from `first` to `second` on the circle, -2^30..2^30-1."""
    steps = (second - first) % _MODULUS
    return steps - _MODULUS if steps >= _MODULUS // 2 else steps
