"""The auditor's own state machine: what each batch or marker on disk says, given what came before it.

A broker answers an append; the auditor looks at what was appended. The two differ in what a bad batch does to the state
(DESIGN.md section 2): a gap, a bump, a restart or an unknown start is adopted; of a stale, repeated or overlapping batch
only what lies beyond the remembered last sequence is. Transactions follow the broker: whatever is on disk opens and
closes them (ProducerAppendInfo.append and appendEndTxnMarker with origin REPLICATION).
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kaudit.model import sequence
from kaudit.model.batch_fields import MAYBE_COMMITS, NO_COORDINATOR_EPOCH, NO_OFFSET, NO_SEQUENCE, UNTOLD_CONTROL
from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_state import (
    ABORT_BUMPED,
    AFTER_MARKER,
    EXHAUSTION_REPORTED,
    MARKED_EPOCH,
    NUM_BATCHES_TO_RETAIN,
    OUTSIDE_REPORTED,
    SILENCE_REPORTED,
    TV2,
    ProducerAuditState,
    RetainedBatch,
)

NEARLY_EXHAUSTED_EPOCH = 32000
SHORTEST_EXPIRY_MS = 24 * 3600 * 1000
"""Least silence after which any release forgets a producer by default (KIP-854)."""


class Reporter(Protocol):
    """Takes down one observation about the current batch."""

    def __call__(
        self,
        kind: ObservationKind,
        *,
        twin: RetainedBatch | None = None,
        missing_sequences: int = 0,
        missing_offsets: int = 0,
    ) -> None:
        """Report `kind`, explained if as many offsets are missing as sequences."""


class Producer(NamedTuple):
    """Whose batch it is, and whether sequences mean anything where it lies (not in __consumer_offsets)."""

    producer_id: int
    sequences_count: bool = True


def offsets_missing(batch: BoundaryBatch, last: BoundaryBatch | None) -> int:
    """Offsets between two batches of a producer (or the offset 0 and its first) that no batch in the log covers."""
    if last is None:
        return batch.base_offset - batch.present_before
    return (batch.base_offset - last.base_offset) - (batch.present_before - last.present_before)


def audit_batch(
    state: ProducerAuditState | None,
    batch: BoundaryBatch,
    epoch: int,
    is_transactional: bool,  # noqa: FBT001 - a column of the run
    producer: Producer,
) -> tuple[ProducerAuditState, Sequence[Observation]]:
    """Judge one data batch; return the state after it and what there is to report."""
    facts: list[Observation] = []

    def report(
        kind: ObservationKind,
        *,
        twin: RetainedBatch | None = None,
        missing_sequences: int = 0,
        missing_offsets: int = 0,
    ) -> None:
        facts.append(
            Observation(
                kind,
                producer.producer_id,
                epoch,
                batch,
                None,
                is_transactional,
                state,
                twin,
                missing_sequences,
                missing_offsets,
                explained=0 < missing_sequences <= missing_offsets,
            )
        )

    told = 0
    flags = state.flags if state is not None else 0
    if epoch >= NEARLY_EXHAUSTED_EPOCH and not flags & EXHAUSTION_REPORTED:
        told |= EXHAUSTION_REPORTED
        report(ObservationKind.NEARLY_EXHAUSTED)
    if state is None:
        if producer.sequences_count and batch.first_sequence > 0:
            missing = offsets_missing(batch, None)
            report(ObservationKind.UNKNOWN_START, missing_sequences=batch.first_sequence, missing_offsets=missing)
        after = _adopt(_fresh(epoch), batch)
    else:
        if state.txn_first_offset != NO_OFFSET and not is_transactional and not flags & OUTSIDE_REPORTED:
            told |= OUTSIDE_REPORTED
            report(ObservationKind.OUTSIDE_TRANSACTION)
        if producer.sequences_count and not flags & SILENCE_REPORTED and _goes_on_after_silence(state, batch, epoch):
            told |= SILENCE_REPORTED
            report(ObservationKind.CONTINUED_AFTER_SILENCE)
        after = _judge_known(state, batch, epoch, is_transactional, producer, report)
        if epoch >= state.epoch:
            after = after._replace(flags=after.flags & ~ABORT_BUMPED)
    after = after._replace(flags=after.flags | told)
    return _track_transaction(after, batch, epoch, is_transactional=is_transactional), facts


def audit_marker(
    state: ProducerAuditState | None, marker: EndTxnMarker
) -> tuple[ProducerAuditState | None, Sequence[Observation]]:
    """Judge one end marker; one whose record compaction removed has no effect (KAFKA-7467)."""
    if marker.record_count == 0:
        return state, ()
    if state is None:
        return _close(_fresh(marker.producer_epoch), marker), ()
    facts: list[Observation] = []

    def report(kind: ObservationKind) -> None:
        facts.append(Observation(kind, marker.producer_id, marker.producer_epoch, None, marker, True, state))

    if marker.coordinator_epoch < state.coordinator_epoch and marker.type != UNTOLD_CONTROL:
        report(ObservationKind.COORDINATOR_EPOCH_REGRESSION)
    if marker.producer_epoch < state.epoch:
        report(ObservationKind.STALE_MARKER)
        return _close(state, marker), facts
    if marker.producer_epoch == state.epoch:
        return _close(state, marker), facts
    committed = marker.type in MAYBE_COMMITS
    bumped = state._replace(epoch=marker.producer_epoch, last_sequence=NO_SEQUENCE, window=(), start_crc=-1)
    after = _close(bumped, marker)
    if committed and marker.producer_epoch == state.epoch + 1:
        return after._replace(flags=after.flags | TV2), facts
    return after._replace(flags=after.flags | (0 if committed else ABORT_BUMPED)), facts


def audit_end(state: ProducerAuditState, producer_id: int) -> Sequence[Observation]:
    """Report what only the end of the log decides: an abort that raised the epoch and was followed by nothing."""
    if not state.flags & ABORT_BUMPED or state.flags & TV2:
        return ()
    marker = EndTxnMarker(
        state.marker_offset,
        producer_id,
        state.epoch,
        state.coordinator_epoch,
        0,
        state.marker_timestamp,
        -1,
        0,
        0,
        0,
        1,
        0,
    )
    return (Observation(ObservationKind.TIMEOUT_ABORT, producer_id, state.epoch, None, marker, True, state),)


def _goes_on_after_silence(state: ProducerAuditState, batch: BoundaryBatch, epoch: int) -> bool:
    """Tell whether a batch is the next one, but comes so late that a broker had forgotten the one before."""
    return (
        epoch == state.epoch
        and state.last_sequence != NO_SEQUENCE
        and state.txn_first_offset == NO_OFFSET
        and state.last is not None
        and batch.max_timestamp - max(state.last_timestamp, state.last.max_timestamp) >= SHORTEST_EXPIRY_MS
        and sequence.follows(state.last_sequence, batch.first_sequence)
    )


def _judge_known(
    state: ProducerAuditState,
    batch: BoundaryBatch,
    epoch: int,
    is_transactional: bool,  # noqa: FBT001
    producer: Producer,
    report: Reporter,
) -> ProducerAuditState:
    if epoch < state.epoch:
        report(ObservationKind.STALE_BATCH)
        return state
    if epoch > state.epoch:
        return _judge_bump(state, batch, epoch, is_transactional, producer, report)
    if not producer.sequences_count or batch.first_sequence < 0:
        return _adopt(state, batch)
    if state.last_sequence == NO_SEQUENCE:
        if batch.first_sequence > 0:
            # the data of this epoch may have been removed together with any data before it
            missing = offsets_missing(batch, state.last)
            report(ObservationKind.AFTER_MARKER, missing_sequences=batch.first_sequence, missing_offsets=missing)
        return _adopt(state, batch)
    if sequence.follows(state.last_sequence, batch.first_sequence):
        return _adopt(state, batch)
    return _judge_joint(state, batch, report)


def _judge_bump(
    state: ProducerAuditState,
    batch: BoundaryBatch,
    epoch: int,
    is_transactional: bool,  # noqa: FBT001
    producer: Producer,
    report: Reporter,
) -> ProducerAuditState:
    if producer.sequences_count and batch.first_sequence > 0:
        missing = offsets_missing(batch, state.last)
        report(ObservationKind.BUMP_NONZERO, missing_sequences=batch.first_sequence, missing_offsets=missing)
    elif not state.flags & TV2:
        report(ObservationKind.RESTART_BUMP if is_transactional else ObservationKind.CLIENT_BUMP)
    flags = state.flags & ~MARKED_EPOCH
    return _adopt(state._replace(epoch=epoch, last_sequence=NO_SEQUENCE, window=(), start_crc=-1, flags=flags), batch)


def _judge_joint(state: ProducerAuditState, batch: BoundaryBatch, report: Reporter) -> ProducerAuditState:
    """Same epoch, not the next sequence: a repeat, a restart, a gap, or an overlap."""
    twin = next(
        (
            known
            for known in reversed(state.window)
            if (known.first_sequence, known.last_sequence) == (batch.first_sequence, batch.last_sequence)
        ),
        None,
    )
    if twin is not None and twin.crc == batch.crc:
        report(ObservationKind.EXACT_DUPLICATE, twin=twin)
        return state
    if batch.first_sequence == 0 and batch.crc != state.start_crc:
        missing = offsets_missing(batch, state.last)
        gap = (0 - state.last_sequence - 1) % (sequence.MAX_SEQUENCE + 1)
        if missing >= gap:  # the sequences up to the wrap lie in the missing offsets
            report(ObservationKind.GAP, missing_sequences=gap, missing_offsets=missing)
            return _adopt(state, batch)
        report(ObservationKind.SEQUENCE_RESTART, twin=twin)
        return _adopt(state._replace(last_sequence=NO_SEQUENCE, window=(), start_crc=-1), batch)
    if twin is not None:
        report(ObservationKind.SAME_SEQUENCES, twin=twin)
        return state
    ahead = sequence.distance(sequence.add(state.last_sequence, 1), batch.first_sequence)
    if ahead > 0:
        missing = offsets_missing(batch, state.last)
        report(ObservationKind.GAP, missing_sequences=ahead, missing_offsets=missing)
        return _adopt(state, batch)
    beyond = sequence.distance(state.last_sequence, batch.last_sequence)
    oldest = state.window[0].first_sequence if state.window else state.last_sequence
    if beyond <= 0 and sequence.distance(oldest, batch.last_sequence) < 0:
        report(ObservationKind.BEHIND_WINDOW)
        return state
    report(ObservationKind.OVERLAP if beyond > 0 else ObservationKind.INSIDE)
    return _adopt(state, batch) if beyond > 0 else state


def _fresh(epoch: int) -> ProducerAuditState:
    return ProducerAuditState(
        epoch=epoch,
        last_sequence=NO_SEQUENCE,
        window=(),
        last=None,
        start_crc=-1,
        coordinator_epoch=NO_COORDINATOR_EPOCH,
        last_timestamp=-1,
        txn_first_offset=NO_OFFSET,
        txn_first_timestamp=-1,
        txn_position=-1,
        txn_segment=-1,
        txn_records=0,
        marker_offset=NO_OFFSET,
        marker_timestamp=-1,
        flags=0,
    )


def _adopt(state: ProducerAuditState, batch: BoundaryBatch) -> ProducerAuditState:
    remembered = RetainedBatch(batch.base_offset, batch.first_sequence, batch.last_sequence, batch.crc)
    starts_epoch = batch.first_sequence == 0 and state.last_sequence == NO_SEQUENCE
    return state._replace(
        last_sequence=batch.last_sequence,
        window=(*state.window[1 - NUM_BATCHES_TO_RETAIN :], remembered),
        last=batch,
        start_crc=batch.crc if starts_epoch else state.start_crc,
    )


def _track_transaction(
    state: ProducerAuditState, batch: BoundaryBatch, epoch: int, *, is_transactional: bool
) -> ProducerAuditState:
    state = state._replace(last_timestamp=batch.max_timestamp)
    if not is_transactional:
        return state
    if state.txn_first_offset != NO_OFFSET:
        return state._replace(txn_records=state.txn_records + batch.record_count)
    after_marker = state.marker_offset != NO_OFFSET and state.epoch == epoch and bool(state.flags & MARKED_EPOCH)
    flags = (state.flags | AFTER_MARKER) if after_marker else (state.flags & ~AFTER_MARKER)
    return state._replace(
        txn_first_offset=batch.base_offset,
        txn_first_timestamp=batch.max_timestamp,
        txn_position=batch.position,
        txn_segment=batch.segment,
        txn_records=batch.record_count,
        flags=flags,
    )


def _close(state: ProducerAuditState, marker: EndTxnMarker) -> ProducerAuditState:
    same_epoch = state.last is not None and state.last_sequence != NO_SEQUENCE and marker.producer_epoch == state.epoch
    flags = state.flags & ~(OUTSIDE_REPORTED | ABORT_BUMPED | AFTER_MARKER | MARKED_EPOCH)
    return state._replace(
        coordinator_epoch=max(marker.coordinator_epoch, state.coordinator_epoch),
        last_timestamp=marker.timestamp,
        txn_first_offset=NO_OFFSET,
        txn_first_timestamp=-1,
        txn_position=-1,
        txn_segment=-1,
        txn_records=0,
        marker_offset=marker.offset,
        marker_timestamp=marker.timestamp,
        flags=flags | (MARKED_EPOCH if same_epoch else 0),
    )
