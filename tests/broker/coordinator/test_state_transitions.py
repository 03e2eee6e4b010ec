"""Every pair of states of a transactional id, as TransactionMetadata.validPreviousStates of Kafka 4.0 has them."""

import pytest

from kaudit.broker.coordinator.transaction_metadata import why_illegal
from kaudit.model.coordinator import TransactionStatus, TransactionValue

VALID_PREVIOUS = {
    "Empty": {"Empty", "CompleteCommit", "CompleteAbort"},
    "Ongoing": {"Ongoing", "Empty", "CompleteCommit", "CompleteAbort"},
    "PrepareCommit": {"Ongoing"},
    "PrepareAbort": {"Ongoing", "PrepareEpochFence"},
    "CompleteCommit": {"PrepareCommit"},
    "CompleteAbort": {"PrepareAbort"},
    "Dead": {"Empty", "CompleteAbort", "CompleteCommit"},
}
WITH_VERSION_2 = {"PrepareAbort": {"Ongoing", "PrepareEpochFence", "Empty", "CompleteCommit", "CompleteAbort"}}
"""TransactionState.PREPARE_ABORT of 4.0: under transaction version 2 a client may abort what never began."""
STATES = [status for status in TransactionStatus if status is not TransactionStatus.UNKNOWN]


def value(status, version=0, producer_id=7, epoch=3):
    return TransactionValue(version, producer_id, epoch, 1000, status, int(status), None, 5, 5)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("after", STATES, ids=lambda status: status.label)
def test_states_that_may_follow_one_another(version, after):
    valid = VALID_PREVIOUS | (WITH_VERSION_2 if version else {})
    for before in STATES:
        # nothing is ever written in PrepareEpochFence; of a state nobody knows nothing can be said
        allowed = before.label in valid.get(after.label, {before.label})
        why = why_illegal(value(before), value(after, version))
        assert why == (None if allowed else f"{after.label} after {before.label}")
        assert why_illegal(value(TransactionStatus.UNKNOWN), value(after, version)) is None
        assert why_illegal(value(before), value(TransactionStatus.UNKNOWN, version)) is None


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [((7, 3), (7, 2), "epoch 2 after epoch 3"), ((7, 3), (7, 3), None), ((7, 3), (7, 4), None), ((7, 3), (8, 0), None)],
)
def test_epochs_of_one_producer_id_only_rise(before, after, why):
    ongoing = TransactionStatus.ONGOING
    assert why_illegal(value(ongoing, 0, *before), value(ongoing, 0, *after)) == why
