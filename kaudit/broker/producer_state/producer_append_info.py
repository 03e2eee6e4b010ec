"""The state machine of one producer id in one partition: pure functions, named and ordered as the methods of Kafka's.

Source: ProducerAppendInfo, ProducerStateEntry and UnifiedLog.analyzeAndValidateProducerState (Log before 3.0). What differs
between releases is asked of the profile.
"""

from typing import NamedTuple

from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.append_result import AppendResult, CompletedTransaction, Origin, Outcome, Rule
from kaudit.broker.producer_state.producer_state_entry import (
    BatchMetadata,
    DataBatch,
    MarkerBatch,
    ProducerStateEntry,
    VerificationStateEntry,
)
from kaudit.broker.producer_state.rules import (
    in_sequence,
    is_coordinator_fenced,
    is_fenced,
    is_outside_transaction,
)
from kaudit.broker.releases.profile import Profile
from kaudit.model.batch_fields import NO_OFFSET, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from kaudit.model.sequence import MAX_SEQUENCE

TRANSACTION_VERSION_2 = 2
MAX_EPOCH = 2**15 - 1

# Looking a member up in its Enum costs as much as making a state does.
_APPENDED, _NONE, _NEXT, _MARKER = Outcome.APPENDED, KafkaError.NONE, Rule.NEXT, Rule.MARKER
_DUPLICATE_SEQUENCE = KafkaError.DUPLICATE_SEQUENCE_NUMBER
_CLIENT, _REPLICATION = Origin.CLIENT, Origin.REPLICATION


class _Refusal(NamedTuple):
    """The error a check throws; `bound` is the lowest sequence under verification where that decided."""

    error: KafkaError
    rule: Rule
    bound: int = 0

    def of(self, batch: DataBatch | MarkerBatch, state: ProducerStateEntry) -> AppendResult:
        return AppendResult(Outcome.REJECTED, self.error, self.rule, NO_OFFSET, batch, state, self.bound)


def validate_append(
    state: ProducerStateEntry,
    batch: DataBatch,
    profile: Profile,
    origin: Origin,
    verification: VerificationStateEntry | None = None,
) -> tuple[ProducerStateEntry, AppendResult]:
    """Check one batch against a producer's state; return the state afterwards and the result.

    `verification` is the entry the leader keeps for this producer, if any. A rejected batch leaves the state as it is
    (but see Switches.refused_batch_is_remembered); a duplicate too. Source: analyzeAndValidateProducerState, then appendDataBatch.
    """
    if origin is _CLIENT:
        looks_back_first = profile.old_duplicate_error is _DUPLICATE_SEQUENCE
        if verification is None and not looks_back_first and _is_next(state, batch):
            return add_batch(state, batch, profile), AppendResult(
                _APPENDED, _NONE, _NEXT, batch.base_offset, batch, state
            )
        duplicate = find_duplicate_batch(state, batch, profile)
        if duplicate is not None:
            return state, AppendResult(Outcome.DUPLICATE, _NONE, Rule.DUPLICATE, duplicate.first_offset, batch, state)
    refusal = _validate_data_batch(state, batch, profile, origin, verification)
    if refusal is None and is_outside_transaction(state.in_transaction, batch.is_transactional):
        refusal = _Refusal(KafkaError.INVALID_TXN_STATE, Rule.NOT_TRANSACTIONAL)
    if refusal is not None:
        remembered = refusal.rule is Rule.NOT_TRANSACTIONAL and profile.refused_batch_is_remembered
        return add_batch(state, batch, profile) if remembered else state, refusal.of(batch, state)
    rule = _accepting_rule(state, batch, origin)
    return add_batch(state, batch, profile), AppendResult(_APPENDED, _NONE, rule, batch.base_offset, batch, state)


def _is_next(state: ProducerStateEntry, batch: DataBatch) -> bool:
    """Return whether all rules below accept: the next sequence of the current epoch, in its transaction, no wrap.

    Nearly all batches of a producer are like that. Where a remembered sequence is not below, the rules decide.
    """
    batches = state.batches
    if not batches or state.epoch != batch.producer_epoch or state.epoch < 0:
        return False
    base_sequence = batch.base_sequence
    if batches[-1].last_sequence + 1 != base_sequence:
        return False
    if state.current_txn_first_offset != NO_OFFSET and not batch.is_transactional:
        return False
    for known in batches:  # noqa: SIM110 - a generator costs more than the five steps
        if known.last_sequence >= base_sequence:
            return False
    return True


def find_duplicate_batch(state: ProducerStateEntry, batch: DataBatch, profile: Profile) -> BatchMetadata | None:
    """Return the remembered batch `batch` repeats exactly, or None. Source: ProducerStateEntry.findDuplicateBatch."""
    if batch.producer_epoch != state.epoch:
        return None
    for known in state.batches:
        # rules.is_duplicate, but the first sequence is computed last: it costs the most
        if known.last_sequence == batch.last_sequence and known.first_sequence(profile) == batch.base_sequence:
            return known
    return None


def _validate_data_batch(
    state: ProducerStateEntry,
    batch: DataBatch,
    profile: Profile,
    origin: Origin,
    verification: VerificationStateEntry | None,
) -> _Refusal | None:
    """Source: maybeValidateDataBatch."""
    if origin is _REPLICATION or (origin is Origin.COORDINATOR and not profile.offset_commit_checks_epoch):
        return None
    if batch.producer_epoch == NO_PRODUCER_EPOCH and profile.no_epoch_skips_validation:
        return None
    refusal = _check_producer_epoch(state, batch)
    if refusal is None and origin is _CLIENT:
        refusal = _check_verification(state, batch, profile, verification) or _check_sequence(state, batch, profile)
    return refusal


def _check_producer_epoch(state: ProducerStateEntry, batch: DataBatch) -> _Refusal | None:
    if is_fenced(batch.producer_epoch, state.epoch):
        return _Refusal(KafkaError.INVALID_PRODUCER_EPOCH, Rule.STALE_EPOCH)
    return None


def _check_verification(
    state: ProducerStateEntry, batch: DataBatch, profile: Profile, verification: VerificationStateEntry | None
) -> _Refusal | None:
    """Source: checkSequence, its first two conditions."""
    if verification is None:
        return None
    version2 = verification.transaction_version >= TRANSACTION_VERSION_2
    if profile.tv2_starts_at_zero and version2 and batch.base_sequence != 0 and not state.batches:
        return _Refusal(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, Rule.TV2_START)
    if batch.base_sequence > verification.lowest_sequence:
        return _Refusal(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, Rule.VERIFICATION, verification.lowest_sequence)
    return None


def _check_sequence(state: ProducerStateEntry, batch: DataBatch, profile: Profile) -> _Refusal | None:
    if batch.producer_epoch != state.epoch:
        return _check_first_of_epoch(state, profile) if batch.base_sequence != 0 else None
    last = state.last_sequence
    looks_back_first = profile.old_duplicate_error is _DUPLICATE_SEQUENCE
    if looks_back_first and _ends_before_window(state, batch, profile):
        return _Refusal(profile.old_duplicate_error, Rule.OLD_DUPLICATE)
    if in_sequence(last, batch.base_sequence) or (state.epoch == NO_PRODUCER_EPOCH and profile.accepts_unknown_nonzero):
        return None  # an entry of epoch -1 counts as unknown
    if last == NO_SEQUENCE:
        return _Refusal(profile.marker_only_nonzero_error, Rule.UNKNOWN_NEXT)
    if _ends_before_window(state, batch, profile):
        return _Refusal(profile.old_duplicate_error, Rule.OLD_DUPLICATE)
    return _Refusal(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, Rule.OUT_OF_ORDER)


def _check_first_of_epoch(state: ProducerStateEntry, profile: Profile) -> _Refusal | None:
    if state.epoch != NO_PRODUCER_EPOCH:
        return _Refusal(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, Rule.NEW_EPOCH_NONZERO)
    if profile.accepts_unknown_nonzero:
        return None
    return _Refusal(profile.unknown_producer_error, Rule.UNKNOWN_PRODUCER)


def _ends_before_window(state: ProducerStateEntry, batch: DataBatch, profile: Profile) -> bool:
    oldest = state.batches[0].first_sequence(profile) if state.batches else NO_SEQUENCE
    return batch.last_sequence != 0 and oldest != MAX_SEQUENCE and batch.last_sequence < oldest


def _accepting_rule(state: ProducerStateEntry, batch: DataBatch, origin: Origin) -> Rule:
    if origin is _REPLICATION:
        return Rule.REPLICATED
    if origin is Origin.COORDINATOR:
        return Rule.COORDINATOR
    if state.epoch == NO_PRODUCER_EPOCH:
        return Rule.FIRST if batch.base_sequence == 0 else Rule.UNKNOWN_ACCEPTED
    return Rule.NEXT if batch.producer_epoch == state.epoch else Rule.NEW_EPOCH


def add_batch(state: ProducerStateEntry, batch: DataBatch, profile: Profile) -> ProducerStateEntry:
    """Return the state after `batch` was written, whatever it holds. A different epoch, even a lower one, replaces.

    Source: ProducerStateEntry.addBatch, and what appendDataBatch does with the transaction.
    """
    epoch, last_offset, timestamp = batch.producer_epoch, batch.last_offset, batch.max_timestamp
    if profile.offset_delta_from_sequences:
        length = batch.last_sequence - batch.base_sequence
    else:
        length = last_offset - batch.base_offset
    batches = state.batches
    newest = BatchMetadata(batch.last_sequence, last_offset, length, timestamp)
    if state.epoch != epoch:
        batches = (newest,)
    elif len(batches) < profile.window:
        batches = (*batches, newest)
    else:
        batches = (*batches[len(batches) - profile.window + 1 :], newest)
    first_offset = state.current_txn_first_offset
    if first_offset == NO_OFFSET and batch.is_transactional:
        first_offset = last_offset - length
    return ProducerStateEntry(epoch, state.coordinator_epoch, timestamp, batches, first_offset)


def validate_end_txn_marker(
    state: ProducerStateEntry, marker: MarkerBatch, profile: Profile, origin: Origin
) -> tuple[ProducerStateEntry, AppendResult, CompletedTransaction | None]:
    """Check an end of transaction marker; return the state afterwards, the result and the transaction it ended."""
    if origin is not _REPLICATION or profile.marker_checks_bind_replicas:
        refusal = _check_marker_epoch(state, marker, profile, origin) or _check_coordinator_epoch(state, marker)
        if refusal is not None:
            return state, refusal.of(marker, state), None
    completed: CompletedTransaction | None = None
    if state.in_transaction:
        completed = CompletedTransaction(
            marker.producer_id, state.current_txn_first_offset, marker.offset, not marker.commit
        )
    elif profile.empty_marker_completes_transaction:
        completed = CompletedTransaction(marker.producer_id, marker.offset, marker.offset, not marker.commit)
    result = AppendResult(_APPENDED, _NONE, _MARKER, marker.offset, marker, state)
    return append_end_txn_marker(state, marker, profile), result, completed


def append_end_txn_marker(state: ProducerStateEntry, marker: MarkerBatch, profile: Profile) -> ProducerStateEntry:
    """Return the state after a marker was written: its epochs, no open transaction, no batches of another epoch."""
    batches = state.batches if marker.producer_epoch == state.epoch else ()
    if profile.marker_replaces_last_batch:
        last_sequence = batches[-1].last_sequence if batches else NO_SEQUENCE
        batches = (BatchMetadata(last_sequence, marker.offset, 0, marker.timestamp),)
    timestamp = marker.timestamp
    if not profile.marker_sets_timestamp:
        timestamp = batches[-1].timestamp if batches else NO_TIMESTAMP
    return ProducerStateEntry(marker.producer_epoch, marker.coordinator_epoch, timestamp, batches, NO_OFFSET)


def _check_marker_epoch(
    state: ProducerStateEntry, marker: MarkerBatch, profile: Profile, origin: Origin
) -> _Refusal | None:
    # The log does not say a marker's transaction version, so replicas use the lenient test.
    strict = (
        profile.tv2_marker_must_exceed_epoch
        and marker.transaction_version >= TRANSACTION_VERSION_2
        and origin is not _REPLICATION
    )
    if is_fenced(marker.producer_epoch, state.epoch):
        return _Refusal(KafkaError.INVALID_PRODUCER_EPOCH, Rule.STALE_MARKER)
    last = profile.tv2_marker_may_repeat_last_epoch and marker.producer_epoch == MAX_EPOCH
    if strict and marker.producer_epoch == state.epoch and state.in_transaction and not last:
        return _Refusal(KafkaError.INVALID_PRODUCER_EPOCH, Rule.REPEATED_MARKER)
    return None


def _check_coordinator_epoch(state: ProducerStateEntry, marker: MarkerBatch) -> _Refusal | None:
    if is_coordinator_fenced(marker.coordinator_epoch, state.coordinator_epoch):
        return _Refusal(KafkaError.TRANSACTION_COORDINATOR_FENCED, Rule.STALE_COORDINATOR)
    return None
