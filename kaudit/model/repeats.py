"""Records that are in the log again where no sequence can show it."""

from collections.abc import Sequence

from msgspec import Struct

from kaudit.model.log_rows import BoundaryBatch, NonIdempotentBatch


class RepeatedBatch(Struct, frozen=True):
    """Two copies of one batch without a producer id. Their ordinals count such batches of the partition.

    `timestamps`: under so many base timestamps the same records are among the batches close before `again`, its own included.
    """

    first: NonIdempotentBatch
    again: NonIdempotentBatch
    timestamps: int

    @property
    def same_times(self) -> bool:
        """Whether their records' timestamps are equal too, as the client gave them."""
        return self.first.base_timestamp == self.again.base_timestamp


class ReorderedBatches(Struct, frozen=True):
    """Batches that a retry put behind later ones; `overtaken_by` is the batch before the first of them."""

    overtaken_by: NonIdempotentBatch
    late: Sequence[NonIdempotentBatch]
    reversed: bool
    """The copies come in the opposite order of what they copy; else their timestamps go back."""


class Repeats(Struct, frozen=True):
    """What a partition's batches without producer ids show."""

    repeated: Sequence[RepeatedBatch] = ()
    reordered: Sequence[ReorderedBatches] = ()


class RepeatedSession(Struct, frozen=True):
    """A session (producer id and epoch) whose first records, `first_offset` to `last_offset`, another one had written.

    `records` are as many as could be compared, at `copied_first` to `copied_last` before; `same_times`: their timestamps
    are equal too. `previous` and `batch` are the batches in which the copied records and the copies begin.
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
    copied: Sequence[BoundaryBatch] = ()
    """The batches kept that hold copied records, the first being `previous`."""
    again: Sequence[BoundaryBatch] = ()
    """The batches kept that hold the copies, the first being `batch`."""


class RepeatedEpoch(Struct, frozen=True):
    """The tail of a producer's old epoch, again at the head of its new one: one at most for each (id, new epoch).

    `records` records at `copied_first` to `copied_last` are those at `first_offset` to `last_offset`, in order; `copied` and
    `again` are the batches they lie in, the first of `again` being the new epoch's first. `same_times`: their timestamps are
    equal too. `distinct`: so many of the copied batches, or of their records, differ from all others around.
    `to_the_end`: they are the last of the old epoch, or all there is of the new one.
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
