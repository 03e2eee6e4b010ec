"""Observations: what an audit of a producer's batches and markers yields, and the state each was compared with."""

import functools
from enum import Enum

from msgspec import Struct

from kaudit.model import sequence
from kaudit.model.batch_fields import NO_LEADER_EPOCH
from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker
from kaudit.model.producer_state import ProducerAuditState, RetainedBatch
from kaudit.model.sequence import SequenceRange


class ObservationKind(Enum):
    """What was observed; `label` is the `class` findings have in their evidence."""

    EXACT_DUPLICATE = "sequence/exact"
    SAME_SEQUENCES = "sequence/same-sequences"
    BEHIND_WINDOW = "sequence/behind-window"
    OVERLAP = "sequence/overlap"
    INSIDE = "sequence/inside"
    GAP = "sequence/gap"
    SEQUENCE_RESTART = "sequence/restart"
    UNKNOWN_START = "sequence/unknown-start"
    AFTER_MARKER = "sequence/after-marker"
    STALE_BATCH = "epoch/stale-batch"
    STALE_MARKER = "epoch/stale-marker"
    BUMP_NONZERO = "epoch/bump-nonzero"
    CLIENT_BUMP = "epoch/client-bump"
    RESTART_BUMP = "epoch/restart"
    TIMEOUT_ABORT = "epoch/timeout-abort"
    NEARLY_EXHAUSTED = "epoch/nearly-exhausted"
    COORDINATOR_EPOCH_REGRESSION = "epoch/coordinator-epoch-regression"
    OUTSIDE_TRANSACTION = "transaction/outside-transaction"
    CONTINUED_AFTER_SILENCE = "state/went-on"

    __hash__ = object.__hash__  # Enum's is of the name, in Python; members are single

    @functools.cached_property
    def label(self) -> str:
        """The part after the slash."""
        return self.value.partition("/")[2]


OUT_OF_ORDER = (
    ObservationKind.EXACT_DUPLICATE,
    ObservationKind.SAME_SEQUENCES,
    ObservationKind.BEHIND_WINDOW,
    ObservationKind.OVERLAP,
    ObservationKind.INSIDE,
)
"""Batches that begin before the last sequence of their epoch."""


class Observation(Struct, frozen=True, array_like=True, gc=False):
    """What a batch or an end marker shows when it is compared with the producer's state before it.

    Either `batch` or `marker` is set. `following` is the producer's next batch and `following_epoch` its epoch, filled in
    when it comes. `explained`: missing offsets explain the missing sequences, so that there is nothing to report.
    `times_go_back`: of the batches that may have been in flight with a restarted sequence, one is older than one before it.
    """

    kind: ObservationKind
    producer_id: int
    producer_epoch: int
    batch: BoundaryBatch | None
    marker: EndTxnMarker | None
    is_transactional: bool
    remembered: ProducerAuditState | None
    original: RetainedBatch | None = None
    missing_sequences: int = 0
    missing_offsets: int = 0
    following: BoundaryBatch | None = None
    following_epoch: int = -1
    explained: bool = False
    times_go_back: bool = False

    @property
    def offset(self) -> int:
        """Offset of the batch or marker."""
        return self.batch.base_offset if self.batch is not None else self._marker().offset

    @property
    def last_offset(self) -> int:
        """Last offset of the batch or marker."""
        return self.batch.last_offset if self.batch is not None else self._marker().offset

    @property
    def sequences(self) -> SequenceRange:
        """The batch's sequences; none for a marker."""
        batch = self.batch
        if batch is None:
            return SequenceRange(self.producer_id, self.producer_epoch, 0, 0)
        length = max(sequence.distance(batch.first_sequence, batch.last_sequence), -1) + 1
        return SequenceRange(self.producer_id, self.producer_epoch, batch.first_sequence, length)

    @property
    def missing(self) -> SequenceRange:
        """The sequences missing before the batch."""
        first = sequence.subtract(self.sequences.first, self.missing_sequences)
        return SequenceRange(self.producer_id, self.producer_epoch, first, self.missing_sequences)

    @property
    def position(self) -> int:
        """Byte in the segment."""
        return self.batch.position if self.batch is not None else self._marker().position

    @property
    def segment(self) -> int:
        """Index of the segment."""
        return self.batch.segment if self.batch is not None else self._marker().segment

    @property
    def is_after_leader_change(self) -> bool:
        """Whether the leader epoch rose between the producer's batch before and this one; False where either is unknown."""
        last = self.remembered.last if self.remembered is not None else None
        return (
            last is not None
            and self.batch is not None
            and NO_LEADER_EPOCH < last.leader_epoch < self.batch.leader_epoch
        )

    def _marker(self) -> EndTxnMarker:
        assert self.marker is not None
        return self.marker
