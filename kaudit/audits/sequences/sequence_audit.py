"""The auditor's state machine: what each batch or marker on disk shows, held against what came before it.

A broker answers an append; the auditor looks at what was appended. Its steps have the names and the order of Kafka's
ProducerAppendInfo (broker/producer_state/producer_append_info.py) and ask the same rules. Where that throws, the auditor
makes an observation, and the two differ in what a bad batch does to the state:
- adopted: a gap, a restart at 0, an unknown start, an epoch that begins above 0, and of an overlap what lies beyond;
- not adopted: a stale epoch, a duplicate, a batch older than the window or inside what is remembered.
A broker that rebuilds its state adopts a stale epoch too: `rebuilt_epoch` and `rebuilt_coordinator_epoch` are what it holds.
Transactions follow the broker: whatever is on disk opens and closes them, as with origin REPLICATION.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kaudit.broker.producer_state.rules import (
    SHORTEST_EXPIRY_MS,
    begins_anew,
    explains,
    in_sequence,
    is_ahead,
    is_coordinator_fenced,
    is_duplicate,
    is_expired,
    is_fenced,
    is_nearly_exhausted,
    is_new_epoch,
    is_outside_transaction,
    is_raising_abort,
    is_version_2_commit,
    marks_own_epoch,
    may_commit,
    offsets_missing,
    sequences_missing,
    starts_above_zero,
)
from kaudit.model import sequence
from kaudit.model.batch_fields import ABORT_MARKER, NO_LEADER_EPOCH, NO_OFFSET, NO_SEQUENCE, UNREPORTED_CONTROL
from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_state import (
    ABORT_BUMPED,
    AFTER_MARKER,
    EXHAUSTION_REPORTED,
    MARKED_EPOCH,
    NO_CRC,
    NO_POSITION,
    NO_SEGMENT,
    NUM_BATCHES_TO_RETAIN,
    OUTSIDE_REPORTED,
    SILENCE_REPORTED,
    TV2,
    ProducerAuditState,
    RetainedBatch,
)


class Producer(NamedTuple):
    """Whose batch it is, and whether sequences mean anything where it lies (not in __consumer_offsets)."""

    producer_id: int
    sequences_count: bool


def audit_batch(
    state: ProducerAuditState | None,
    batch: BoundaryBatch,
    epoch: int,
    is_transactional: bool,  # noqa: FBT001 - a column of the run
    producer: Producer,
) -> tuple[ProducerAuditState, Sequence[Observation]]:
    """Audit one data batch; return the state after it and what there is to report. `state` None: nothing is known."""
    audit = _BatchAudit(state, batch, epoch, is_transactional, producer)
    return audit.append(), audit.observations


class _BatchAudit:
    """One data batch held against the state before it. Each check returns the state after the batch."""

    __slots__ = ("batch", "epoch", "is_transactional", "observations", "producer", "remembered", "reported", "state")

    def __init__(
        self,
        state: ProducerAuditState | None,
        batch: BoundaryBatch,
        epoch: int,
        is_transactional: bool,  # noqa: FBT001
        producer: Producer,
    ) -> None:
        self.remembered = state
        self.state = ProducerAuditState(epoch=epoch) if state is None else state
        self.batch, self.epoch, self.is_transactional, self.producer = batch, epoch, is_transactional, producer
        self.observations: list[Observation] = []
        self.reported = 0

    def append(self) -> ProducerAuditState:
        """Source: ProducerAppendInfo.appendDataBatch."""
        if is_nearly_exhausted(self.epoch):
            self._report_once(ObservationKind.NEARLY_EXHAUSTED, EXHAUSTION_REPORTED)
        if is_outside_transaction(self.state.in_transaction, self.is_transactional):
            self._report_once(ObservationKind.OUTSIDE_TRANSACTION, OUTSIDE_REPORTED)
        if self._continues_after_silence():
            self._report_once(ObservationKind.CONTINUED_AFTER_SILENCE, SILENCE_REPORTED)
        after = self._validate_data_batch()
        flags = after.flags | self.reported
        if not is_fenced(self.epoch, self.state.epoch):
            flags &= ~ABORT_BUMPED
        timestamp, epoch = self.batch.max_timestamp, self.epoch
        if after.last_timestamp != timestamp or after.flags != flags or after.rebuilt_epoch != epoch:
            after = replace(after, last_timestamp=timestamp, flags=flags, rebuilt_epoch=epoch)
        return self._track_transaction(after)

    def _continues_after_silence(self) -> bool:
        """Return whether this is the next batch, but so late that a broker had forgotten the one before."""
        state, batch = self.state, self.batch
        return (
            self.producer.sequences_count
            and self.epoch == state.epoch
            and state.last_sequence != NO_SEQUENCE
            and not state.in_transaction
            and state.last is not None
            and bool(
                is_expired(max(state.last_timestamp, state.last.max_timestamp), batch.max_timestamp, SHORTEST_EXPIRY_MS)
                & in_sequence(state.last_sequence, batch.first_sequence)
            )
        )

    def _validate_data_batch(self) -> ProducerAuditState:
        """Source: maybeValidateDataBatch."""
        if is_fenced(self.epoch, self.state.epoch):
            self._report(ObservationKind.STALE_BATCH)
            return self.state
        if is_new_epoch(self.epoch, self.state.epoch):
            return self._check_first_of_epoch()
        return self._check_sequence()

    def _check_first_of_epoch(self) -> ProducerAuditState:
        """A broker adopts a new epoch that begins at 0 only."""
        if self.producer.sequences_count and starts_above_zero(self.batch.first_sequence):
            self._report_missing(ObservationKind.BUMP_NONZERO, self.batch.first_sequence)
        elif not self.state.flags & TV2 or begins_anew(
            self.epoch, self.state.epoch, bool(self.state.flags & ABORT_BUMPED)
        ):
            kind = ObservationKind.RESTART_BUMP if self.is_transactional else ObservationKind.CLIENT_BUMP
            self._report(kind)
        return self._add_batch(_without_batches(self.state, self.epoch, self.state.flags & ~MARKED_EPOCH))

    def _check_sequence(self) -> ProducerAuditState:
        """Source: checkSequence, for a batch of the current epoch."""
        last, first = self.state.last_sequence, self.batch.first_sequence
        if not self.producer.sequences_count or first < 0 or in_sequence(last, first):
            return self._add_batch(self.state)
        if last == NO_SEQUENCE:
            # the data of this epoch may have been removed together with any data before it
            unknown = self.remembered is None
            self._report_missing(ObservationKind.UNKNOWN_START if unknown else ObservationKind.AFTER_MARKER, first)
            return self._add_batch(self.state)
        return self._check_out_of_order()

    def _check_out_of_order(self) -> ProducerAuditState:
        """A duplicate, a restart, a gap or an overlap: a broker answers DUPLICATE or OUT_OF_ORDER_SEQUENCE_NUMBER."""
        duplicate = self._find_duplicate_batch()
        if duplicate is not None and duplicate.crc == self.batch.crc:
            self._report(ObservationKind.EXACT_DUPLICATE, duplicate)
            return self.state
        if self.batch.first_sequence == 0 and self.batch.crc != self.state.start_crc:
            return self._check_restart(duplicate)
        if duplicate is not None:
            self._report(ObservationKind.SAME_SEQUENCES, duplicate)
            return self.state
        missing = sequences_missing(self.state.last_sequence, self.batch.first_sequence)
        if is_ahead(missing):
            self._report_missing(ObservationKind.GAP, missing)
            return self._add_batch(self.state)
        return self._check_overlap()

    def _find_duplicate_batch(self) -> RetainedBatch | None:
        """Source: ProducerStateEntry.findDuplicateBatch, newest first."""
        first, last = self.batch.first_sequence, self.batch.last_sequence
        for known in reversed(self.state.window):
            if is_duplicate(first, last, known.first_sequence, known.last_sequence):
                return known
        return None

    def _check_restart(self, duplicate: RetainedBatch | None) -> ProducerAuditState:
        missing = sequences_missing(self.state.last_sequence, 0)
        if explains(self._offsets_missing(), missing):  # the sequences up to the wrap lie in the missing offsets
            self._report_missing(ObservationKind.GAP, missing)
            return self._add_batch(self.state)
        self._report(ObservationKind.SEQUENCE_RESTART, duplicate)
        return self._add_batch(_without_batches(self.state, self.epoch, self.state.flags))

    def _check_overlap(self) -> ProducerAuditState:
        state, last_sequence = self.state, self.batch.last_sequence
        if sequence.distance(state.last_sequence, last_sequence) > 0:
            self._report(ObservationKind.OVERLAP)
            return self._add_batch(state)
        behind = bool(state.window) and sequence.distance(state.window[0].first_sequence, last_sequence) < 0
        self._report(ObservationKind.BEHIND_WINDOW if behind else ObservationKind.INSIDE)
        return state

    def _add_batch(self, state: ProducerAuditState) -> ProducerAuditState:
        """Source: ProducerStateEntry.addBatch."""
        batch = self.batch
        retained = RetainedBatch(batch.base_offset, batch.first_sequence, batch.last_sequence, batch.crc)
        return replace(
            state,
            last_sequence=batch.last_sequence,
            window=(*state.window[1 - NUM_BATCHES_TO_RETAIN :], retained),
            last=batch,
            last_timestamp=batch.max_timestamp,
            start_crc=batch.crc if batch.first_sequence == 0 else state.start_crc,
        )

    def _track_transaction(self, state: ProducerAuditState) -> ProducerAuditState:
        """Source: appendDataBatch, its last lines."""
        batch = self.batch
        if not self.is_transactional:
            return state
        if state.in_transaction:
            return replace(state, txn_records=state.txn_records + batch.record_count)
        after_marker = state.epoch == self.epoch and state.flags & MARKED_EPOCH
        return replace(
            state,
            txn_first_offset=batch.base_offset,
            txn_first_timestamp=batch.max_timestamp,
            txn_position=batch.position,
            txn_segment=batch.segment,
            txn_records=batch.record_count,
            flags=state.flags | AFTER_MARKER if after_marker else state.flags & ~AFTER_MARKER,
        )

    def _offsets_missing(self) -> int:
        batch, last = self.batch, self.state.last
        if last is None:
            return offsets_missing(batch.base_offset, batch.present_before, 0, 0)
        return offsets_missing(batch.base_offset, batch.present_before, last.base_offset, last.present_before)

    def _report_once(self, kind: ObservationKind, flag: int) -> None:
        if not self.state.flags & flag:
            self.reported |= flag
            self._report(kind)

    def _report_missing(self, kind: ObservationKind, missing_sequences: int) -> None:
        missing = self._offsets_missing()
        explained = bool(explains(missing, missing_sequences))
        self._report(kind, None, missing_sequences, missing, explained=explained)

    def _report(
        self,
        kind: ObservationKind,
        duplicate: RetainedBatch | None = None,
        missing_sequences: int = 0,
        missing_offsets: int = 0,
        *,
        explained: bool = False,
    ) -> None:
        self.observations.append(
            Observation(
                kind,
                self.producer.producer_id,
                self.epoch,
                self.batch,
                None,
                self.is_transactional,
                self.remembered,
                duplicate,
                missing_sequences,
                missing_offsets,
                explained=explained,
            )
        )


def audit_marker(
    state: ProducerAuditState | None, marker: EndTxnMarker
) -> tuple[ProducerAuditState | None, Sequence[Observation]]:
    """Audit one end marker; one whose record compaction removed has no effect (KAFKA-7467)."""
    if marker.record_count == 0:
        return state, ()
    if state is None:
        return _append_end_txn_marker(ProducerAuditState(epoch=marker.producer_epoch), marker), ()
    kinds = []
    if is_coordinator_fenced(marker.coordinator_epoch, state.coordinator_epoch) and marker.type != UNREPORTED_CONTROL:
        kinds.append(ObservationKind.COORDINATOR_EPOCH_REGRESSION)
    if is_fenced(marker.producer_epoch, state.epoch):
        kinds.append(ObservationKind.STALE_MARKER)
    observations = [
        Observation(kind, marker.producer_id, marker.producer_epoch, None, marker, True, state) for kind in kinds
    ]
    return _append_end_txn_marker(state, marker), observations


def _append_end_txn_marker(state: ProducerAuditState, marker: EndTxnMarker) -> ProducerAuditState:
    """Source: ProducerAppendInfo.appendEndTxnMarker; a marker of an older epoch ends the transaction all the same."""
    flags = state.flags & ~(OUTSIDE_REPORTED | ABORT_BUMPED | AFTER_MARKER | MARKED_EPOCH)
    committed = may_commit(marker.type)
    if marks_own_epoch(marker.producer_epoch, state.epoch, state.last_sequence):
        flags |= MARKED_EPOCH
    if is_version_2_commit(marker.producer_epoch, state.epoch, committed):
        flags |= TV2
    if is_raising_abort(marker.producer_epoch, state.epoch, committed):
        flags |= ABORT_BUMPED
    if is_new_epoch(marker.producer_epoch, state.epoch):
        state = _without_batches(state, marker.producer_epoch, flags)
    return replace(
        state,
        coordinator_epoch=max(marker.coordinator_epoch, state.coordinator_epoch),
        rebuilt_epoch=marker.producer_epoch,
        rebuilt_coordinator_epoch=marker.coordinator_epoch,
        last_timestamp=marker.timestamp,
        txn_first_offset=NO_OFFSET,
        txn_first_timestamp=-1,
        txn_position=NO_POSITION,
        txn_segment=NO_SEGMENT,
        txn_records=0,
        marker_offset=marker.offset,
        marker_timestamp=marker.timestamp,
        flags=flags,
    )


def _without_batches(state: ProducerAuditState, epoch: int, flags: int) -> ProducerAuditState:
    """Source: ProducerStateEntry.maybeUpdateProducerEpoch."""
    return replace(state, epoch=epoch, last_sequence=NO_SEQUENCE, window=(), start_crc=NO_CRC, flags=flags)


def audit_end(state: ProducerAuditState, producer_id: int) -> Sequence[Observation]:
    """Report what only the end of the log decides, of an ABORT_BUMPED state: nothing followed the abort that raised the epoch."""
    if state.flags & TV2:
        return ()
    marker = EndTxnMarker(
        offset=state.marker_offset,
        producer_id=producer_id,
        producer_epoch=state.epoch,
        coordinator_epoch=state.coordinator_epoch,
        type=ABORT_MARKER,
        timestamp=state.marker_timestamp,
        leader_epoch=NO_LEADER_EPOCH,
        present_before=0,
        position=NO_POSITION,
        size=0,
        record_count=1,
        segment=0,
    )
    return (Observation(ObservationKind.TIMEOUT_ABORT, producer_id, state.epoch, None, marker, True, state),)
