"""Patterns that several observations of one producer make together; each is reported once, in place of them."""

from collections.abc import Sequence

from msgspec import Struct

from kaudit.model import sequence
from kaudit.model.observation import Observation


class StepMismatch(Struct, frozen=True):
    """Three or more neighbouring gaps or overlaps that move a producer's sequence by one rule."""

    observations: Sequence[Observation]


class Chain(Struct, frozen=True):
    """Batches of which each starts where the one before it in the chain ended: offsets and sequences, inclusive.

    `first_offset` and `last_offset` are the base offsets of its first and last batch.
    """

    first_offset: int
    last_offset: int
    first_sequence: int
    last_sequence: int
    batches: int


class InterleavedWriters(Struct, frozen=True):
    """Two chains, the one that starts first in the log first, and how often the log changes between them.

    `copies` are batches that repeat an earlier one, sequences and CRC alike; they belong to neither chain.
    `rewritten` are batches of the chains whose sequences an earlier batch of another CRC has exactly: a copy whose CRC
    the broker changed (LogAppendTime, recompression) looks the same, so that many of them make two writers less likely.
    """

    first: Chain
    second: Chain
    changes: int
    copies: int
    rewritten: int


class SharedProducerId(Struct, frozen=True):
    """A (producer id, epoch) whose batches are two chains, and the observations that two writers explain.

    `grants` is how often the cluster's block history grants the id, 0 where no history is known.
    """

    producer_id: int
    producer_epoch: int
    writers: InterleavedWriters
    observations: Sequence[Observation]
    grants: int


def sequence_step(observation: Observation) -> tuple[int, int]:
    """Return (how far the base sequence moved, how many records the batch before held)."""
    assert observation.batch is not None
    assert observation.remembered is not None
    assert observation.remembered.last is not None
    before = observation.remembered.last
    moved = sequence.distance(before.first_sequence, observation.batch.first_sequence)
    return moved, sequence.distance(before.first_sequence, before.last_sequence) + 1
