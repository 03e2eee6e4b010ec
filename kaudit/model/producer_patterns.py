"""Patterns that several batches of a partition show together: interleaved writers, repeats, dropped producers."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kaudit.model import sequence
from kaudit.model.application_logs import LogEvent
from kaudit.model.json_record import JsonRecord
from kaudit.model.log_rows import BoundaryBatch, NonIdempotentBatch
from kaudit.model.observation import Observation


class StepMismatch(Struct, frozen=True):
    """Three or more neighbouring gaps or overlaps that move a producer's sequence by one rule."""

    observations: Sequence[Observation]


class Chain(JsonRecord, frozen=True):
    """Batches of which each starts where the one before it in the chain ended: offsets and sequences, inclusive.

    `first_offset` and `last_offset` are the base offsets of its first and last batch.
    """

    first_offset: int
    last_offset: int
    first_sequence: int
    last_sequence: int
    batches: int


class InterleavedWriters(Struct, frozen=True):
    """Two chains, the earlier one first, and how often the log changes between them.

    `copies` are batches that repeat an earlier one, sequences and CRC alike; they belong to neither chain. `rewritten`
    are batches of the chains whose sequences equal those of an earlier batch with another CRC: a copy whose CRC the
    broker changed (LogAppendTime, recompression) looks the same, so many of them make two writers less likely.
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


class RepeatedBatch(Struct, frozen=True):
    """Two copies of one batch without a producer id. Their ordinals count such batches of the partition.

    `timestamps`: under so many base timestamps the same records are among the batches close before `again`, its own included.
    """

    first: NonIdempotentBatch
    again: NonIdempotentBatch
    timestamps: int

    @property
    def same_times(self) -> bool:
        """Whether the timestamps of their records are equal too, as the client gave them."""
        return self.first.base_timestamp == self.again.base_timestamp


class ReorderedBatches(Struct, frozen=True):
    """Batches that a retry wrote after later ones; `overtaken_by` is the batch before the first of them."""

    overtaken_by: NonIdempotentBatch
    late: Sequence[NonIdempotentBatch]
    reversed: bool
    """The copies come in the opposite order of what they copy; else their timestamps go back."""


class RegroupedRecords(Struct, frozen=True):
    """Records at `first_offset` to `last_offset`, of batches without producer ids, that lie at `copied_first` to `copied_last`, too.

    `first` and `again` are the batches in which the first of them lies, before and again: their other records differ.
    """

    first: NonIdempotentBatch
    again: NonIdempotentBatch
    copied_first: int
    copied_last: int
    first_offset: int
    last_offset: int

    @property
    def records(self) -> int:
        """How many there are."""
        return self.last_offset - self.first_offset + 1


class RepeatsAtMost(Struct, frozen=True):
    """How many records without producer ids equal an earlier one: with their timestamps, and without."""

    same_times: int
    any_times: int


class Repeats(Struct, frozen=True):
    """The repeats among a partition's batches without producer ids; `at_most` where all of its records were compared."""

    repeated: Sequence[RepeatedBatch] = ()
    reordered: Sequence[ReorderedBatches] = ()
    regrouped: Sequence[RegroupedRecords] = ()
    at_most: RepeatsAtMost | None = None


class RepeatedSession(Struct, frozen=True):
    """A session (producer id and epoch) whose first records, `first_offset` to `last_offset`, another one had written.

    `records` are as many as could be compared, at `copied_first` to `copied_last` before; `same_times`: their timestamps
    are equal too. `previous` and `batch` are the batches in which the copied records and the copies begin. `records_at_most`: so
    many of the session others had written before, wherever; None where not all of the partition was compared.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    previous_id: int
    previous_epoch: int
    copied_first: int
    copied_last: int
    records: int
    same_times: bool
    previous: BoundaryBatch
    batch: BoundaryBatch
    records_at_most: int | None = None


class RepeatedEpoch(Struct, frozen=True):
    """The tail of a producer's old epoch, again at the head of its new one: one at most for each (id, new epoch).

    `records` records at `copied_first` to `copied_last` are those at `first_offset` to `last_offset`, in order; `copied` and
    `again` are the batches they lie in, the first of `again` being the new epoch's first. `same_times`: their timestamps are
    equal too. `distinct`: so many of the copied batches, or of their records, differ from all others around.
    `to_the_end`: they are the last of the old epoch, or all there is of the new one. `records_at_most` as of RepeatedSession.
    """

    producer_id: int
    producer_epoch: int
    previous_epoch: int
    first_offset: int
    last_offset: int
    copied_first: int
    copied_last: int
    copied: Sequence[BoundaryBatch]
    again: Sequence[BoundaryBatch]
    records: int
    distinct: int
    same_times: bool
    to_the_end: bool
    records_at_most: int | None = None


class IdleProducer(Struct, frozen=True):
    """A producer without an open transaction at the log's end: its newest batch or marker, times in ms."""

    producer_id: int
    producer_epoch: int
    last_offset: int
    last_timestamp: int
    segment: int | None
    position: int | None


class EvictedProducer(Struct, frozen=True):
    """A producer whose last batch below the log start is at `last_offset`; `position` is a byte in `segment`.

    `again`: offset of its first batch above, which starts anew at sequence 0 in the same epoch; `repeated`: that
    batch's bytes are those of one below.
    """

    producer_id: int
    producer_epoch: int
    last_offset: int
    last_sequence: int
    segment: int
    position: int
    again: int | None = None
    repeated: bool = False


class GivenUpSends(Struct, frozen=True):
    """What a client had sent to a partition in one epoch when it gave up waiting, as its log says: sequences, inclusive.

    Those after `last_acknowledged`, -1 if there is none, up to `last_assigned` failed for the application, but for batches that were `moved`
    to the next epoch: the first sequence of each here and there, in their order. Where some were, the last acknowledged one is not known.
    """

    producer_epoch: int
    last_acknowledged: int | None
    last_assigned: int
    moved: Sequence[tuple[int, int]] = ()


class RaisedEpochs(Struct, frozen=True):
    """Epochs that one producer id raised again and again: `rises` are observations in offset order, all of one kind.

    `ends` has, by epoch, the last sequence that the log holds of each it had before the last rise, and of the newest one.
    `given_up` and `fenced` are what logs say: of sends that failed, and events of instances that were fenced.
    """

    rises: Sequence[Observation]
    ends: Mapping[int, int]
    given_up: Sequence[GivenUpSends] = ()
    fenced: Sequence[LogEvent] = ()

    @property
    def first_epoch(self) -> int:
        """The epoch before the first rise."""
        state = self.rises[0].remembered
        assert state is not None
        return state.epoch

    @property
    def last_epoch(self) -> int:
        """The epoch after the last rise."""
        return self.rises[-1].producer_epoch

    @property
    def times(self) -> tuple[int, int]:
        """The times of the batches at the first and at the last rise, ms."""
        first, last = self.rises[0].batch, self.rises[-1].batch
        assert first is not None
        assert last is not None
        return first.max_timestamp, last.max_timestamp


class RepeatedStarts(Struct, frozen=True):
    """Sessions that followed one another and began each with records of one before it, in offset order."""

    sessions: Sequence[RepeatedSession]
