"""The rules of producer state, one predicate each: a broker's state machine and both paths of the audit ask these.

Each takes numbers or numpy columns of numbers and returns a truth value or a mask, so only operators that both know are
used: `&` for `and`, `^ True` for `not`. -1 stands for what is not there, as in Kafka's batches and entries.
Source: ProducerAppendInfo, ProducerStateEntry, ProducerStateManager.
"""

# numpy types the result of == as Any
# mypy: disable-error-code="no-any-return"

from typing import TYPE_CHECKING, Any, TypeVar

from kaudit.model.batch_fields import COMMIT_MARKER, NO_SEQUENCE, UNREPORTED_CONTROL
from kaudit.model.sequence import MAX_SEQUENCE, next_sequence

if TYPE_CHECKING:
    from numpy.typing import NDArray

N = TypeVar("N", int, "NDArray[Any]")

NEARLY_EXHAUSTED_EPOCH = 32000
"""Kafka's epochs end at 32767; a transactional producer then gets a new id, others go on until they fail."""
SHORTEST_EXPIRY_MS = 24 * 3600 * 1000
"""Least silence after which any release forgets a producer by default (KIP-854)."""
_HALF_OF_SEQUENCES = 1 << 30


def in_sequence(last_sequence: N, first_sequence: N) -> N:
    """The next sequence after the last one, or 0 where none is remembered. Source: inSequence."""
    return first_sequence == next_sequence(last_sequence)


def sequences_missing(last_sequence: N, first_sequence: N) -> N:
    """How many sequences lie between two batches, 0..2^31-1: more than 2^30 are a step back."""
    return (first_sequence - next_sequence(last_sequence)) & MAX_SEQUENCE


def is_ahead(missing: N) -> N:
    """Some sequences are missing, and not so many that it is a step back."""
    return (missing > 0) & (missing < _HALF_OF_SEQUENCES)


def offsets_missing(base_offset: N, present_before: N, earlier_base_offset: N, earlier_present_before: N) -> N:
    """Offsets between the beginnings of two batches that no batch in the log covers; 0, 0 for the log's beginning."""
    return (base_offset - earlier_base_offset) - (present_before - earlier_present_before)


def explains(missing_offsets: N, missing_sequences: N) -> N:
    """At least as many offsets are missing as sequences: the batches between were removed from the log, or lost with it."""
    return missing_offsets >= missing_sequences


def starts_above_zero(first_sequence: N) -> N:
    """A producer id without state, or a new epoch, has to start at 0; -1 is no sequence. Source: checkSequence."""
    return first_sequence > 0


def is_fenced(producer_epoch: N, current_epoch: N) -> N:
    """A batch or marker of an older epoch. Source: checkProducerEpoch."""
    return producer_epoch < current_epoch


def is_new_epoch(producer_epoch: N, current_epoch: N) -> N:
    """A batch or marker of a newer epoch: what was remembered of the old one is dropped. Source: maybeUpdateProducerEpoch."""
    return producer_epoch > current_epoch


def is_nearly_exhausted(producer_epoch: N) -> N:
    """Few epochs are left for this producer id."""
    return producer_epoch >= NEARLY_EXHAUSTED_EPOCH


def is_duplicate(first_sequence: N, last_sequence: N, known_first: N, known_last: N) -> N:
    """A batch with the sequences of a remembered one of the same epoch. Source: findDuplicateBatch."""
    return (first_sequence == known_first) & (last_sequence == known_last)


def begins_transaction(in_transaction: N, is_transactional: N) -> N:
    """A transactional batch while no transaction is open. Source: appendDataBatch."""
    return is_transactional & (in_transaction ^ True)


def is_outside_transaction(in_transaction: N, is_transactional: N) -> N:
    """A batch that is not transactional while a transaction is open: INVALID_TXN_STATE. Source: appendDataBatch."""
    return in_transaction & (is_transactional ^ True)


def is_coordinator_fenced(coordinator_epoch: N, current_epoch: N) -> N:
    """A marker of an older coordinator. Source: checkCoordinatorEpoch."""
    return coordinator_epoch < current_epoch


def may_commit(marker_type: N) -> N:
    """A commit marker, or a marker of a dump text that does not print its type."""
    return (marker_type == COMMIT_MARKER) | (marker_type == UNREPORTED_CONTROL)


def is_version_2_commit(marker_epoch: N, current_epoch: N, committed: N) -> N:
    """A commit one epoch above its data's: transaction version 2 raises the epoch with each transaction (KIP-890)."""
    return committed & (marker_epoch - current_epoch == 1)


def is_raising_abort(marker_epoch: N, current_epoch: N, committed: N) -> N:
    """An abort of a newer epoch: the coordinator fenced the producer. Source: TransactionCoordinator, timed out."""
    return (committed ^ True) & (marker_epoch > current_epoch)


def begins_anew(epoch: N, current_epoch: N, raising_abort: N) -> N:
    """Data after an abort that raised the epoch, `current_epoch`: with transaction version 2 every abort does (KIP-890).

    Who aborted goes on with that epoch; initTransactions, which aborts what another instance left open, takes the next one. A producer
    with transactions in other partitions may look the same in one of them.
    """
    return raising_abort & (epoch - current_epoch == 1)


def marks_own_epoch(marker_epoch: N, current_epoch: N, last_sequence: N) -> N:
    """A marker of the epoch of the data it ends."""
    return (marker_epoch == current_epoch) & (last_sequence != NO_SEQUENCE)


def is_expired(last_timestamp: N, now: N, limit_ms: int) -> N:
    """Idle for so long by record time. Source: ProducerStateManager.isProducerExpired, which spares open transactions."""
    return now - last_timestamp >= limit_ms
