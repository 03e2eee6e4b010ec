"""What end markers show, held against the producer's state before them: appendEndTxnMarker and what a log on disk adds to it."""

import pytest

from kaudit.audits.sequences.sequence_audit import audit_marker
from kaudit.model.batch_fields import ABORT_MARKER, COMMIT_MARKER, NO_SEQUENCE, UNREPORTED_CONTROL
from kaudit.model.log_rows import EndTxnMarker
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_state import ProducerAuditState, RetainedBatch

OLDER, STALE = ObservationKind.COORDINATOR_EPOCH_REGRESSION, ObservationKind.STALE_MARKER


def marker(epoch: int = 3, coordinator_epoch: int = 5, kind: int = COMMIT_MARKER, records: int = 1) -> EndTxnMarker:
    return EndTxnMarker(
        offset=40, producer_id=7, producer_epoch=epoch, coordinator_epoch=coordinator_epoch, type=kind, timestamp=99,
        leader_epoch=0, present_before=0, position=800, size=78, record_count=records, segment=0,
    )  # fmt: skip


STATE = ProducerAuditState(
    epoch=3, last_sequence=9, window=(RetainedBatch(30, 5, 9, 1),), coordinator_epoch=5, last_timestamp=50,
    txn_first_offset=30, txn_records=5,
)  # fmt: skip


@pytest.mark.parametrize(("sent", "kinds"), [
    (marker(), []),
    (marker(coordinator_epoch=4), [OLDER]),
    (marker(coordinator_epoch=6), []),
    (marker(epoch=2), [STALE]),
    (marker(epoch=4), []),
    (marker(epoch=2, coordinator_epoch=4), [OLDER, STALE]),
    # kafka-dump-log of some releases names neither type nor coordinator epoch
    (marker(coordinator_epoch=-1, kind=UNREPORTED_CONTROL), []),
    (marker(epoch=2, coordinator_epoch=-1, kind=UNREPORTED_CONTROL), [STALE]),
])  # fmt: skip
@pytest.mark.parametrize("kind", [None, ABORT_MARKER])
def test_a_marker_of_an_older_epoch_is_observed_and_ends_the_transaction_all_the_same(sent, kinds, kind):
    if kind is not None and sent.type != UNREPORTED_CONTROL:
        sent = sent._replace(type=kind)
    after, observations = audit_marker(STATE, sent)
    assert observations == [Observation(each, 7, sent.producer_epoch, None, sent, True, STATE) for each in kinds]
    assert after is not None
    assert (after.txn_first_offset, after.txn_records, after.in_transaction) == (-1, 0, False)
    assert (after.last_timestamp, after.marker_offset, after.marker_timestamp) == (99, 40, 99)
    assert after.coordinator_epoch == max(5, sent.coordinator_epoch)
    raised = sent.producer_epoch > 3
    assert after.epoch == max(3, sent.producer_epoch)
    assert after.window == (() if raised else STATE.window)
    assert after.last_sequence == (NO_SEQUENCE if raised else 9)


def test_a_marker_whose_record_compaction_removed_has_no_effect():
    """KAFKA-7467."""
    for state in (None, STATE):
        after, observations = audit_marker(state, marker(epoch=4, coordinator_epoch=1, records=0))
        assert after is state
        assert list(observations) == []


def test_of_a_producer_that_is_not_known_a_marker_states_the_epochs_alone():
    after, observations = audit_marker(None, marker())
    assert list(observations) == []
    assert after is not None
    assert (after.epoch, after.coordinator_epoch, after.last_sequence, after.window) == (3, 5, NO_SEQUENCE, ())
