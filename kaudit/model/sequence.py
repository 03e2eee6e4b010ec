"""Arithmetic of sequence numbers, which wrap from 2^31 - 1 to 0.

Source: DefaultRecordBatch.incrementSequence / decrementSequence and ProducerAppendInfo.inSequence.
"""

MAX_SEQUENCE = 2**31 - 1
_MODULUS = 2**31


def add(sequence: int, delta: int) -> int:
    """Sequence `delta` (>= 0) steps after `sequence` (0..2^31-1)."""
    return (sequence + delta) % _MODULUS


def subtract(sequence: int, delta: int) -> int:
    """Sequence `delta` (>= 0) steps before `sequence` (0..2^31-1)."""
    return (sequence - delta) % _MODULUS


def follows(last: int, following: int) -> bool:
    """Tell whether `following` is the next sequence after `last`."""
    return following == add(last, 1)


def distance(first: int, second: int) -> int:
    """Shortest signed number of steps from `first` to `second` on the circle, -2^30..2^30-1."""
    steps = (second - first) % _MODULUS
    return steps - _MODULUS if steps >= _MODULUS // 2 else steps
