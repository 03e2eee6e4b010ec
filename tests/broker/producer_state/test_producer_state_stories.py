"""The stories of Kafka's ProducerStateManagerTest, rewritten. Each test names the original."""

import pytest

from kaudit.broker.producer_state.append_result import Origin
from kaudit.broker.producer_state.producer_append_info import validate_append
from kaudit.broker.producer_state.producer_state_entry import UNKNOWN, DataBatch
from kaudit.broker.producer_state.rules import SHORTEST_EXPIRY_MS
from kaudit.broker.releases.profile import profile_groups
from kaudit.model.sequence import MAX_SEQUENCE
from tests.broker.producer_state.story import DAY_MS, Story

OUT_OF_ORDER, FENCED, NOT_IN_TRANSACTION, COORDINATOR_FENCED, UNKNOWN_PRODUCER = 45, 47, 48, 52, 59


def test_a_producer_id_goes_from_sequence_to_sequence_and_epoch_to_epoch():
    """testBasicIdMapping"""
    story = Story()
    assert story.sends(0) == ("appended", 0)
    assert story.sends(1) == ("appended", 1)
    assert story.sends(5) == OUT_OF_ORDER
    assert story.sends(0, epoch=1) == ("appended", 2)
    assert story.sends(0, epoch=0) == FENCED


def test_a_marker_is_all_that_is_left_of_a_producer():
    """testAppendTxnMarkerWithNoProducerState"""
    story = Story()
    assert story.marks(epoch=2, offset=27) == 0
    assert (story.remembers().epoch, story.remembers().last_sequence) == (2, -1)
    assert story.sends(0, epoch=0) == FENCED
    assert story.sends(17, epoch=2) == OUT_OF_ORDER
    assert story.sends(0, epoch=2, offset=39) == ("appended", 39)
    assert story.remembers().last_sequence == 0


@pytest.mark.parametrize(
    ("version", "code"),
    [("1.1.1", 45), ("2.0.0", 45), ("2.0.1", 59), ("2.4.1", 59), ("2.5.0", 45)],
)
def test_what_follows_a_lonely_marker_has_had_different_errors(version, code):
    """testAppendTxnMarkerWithNoProducerState, as it changed with KAFKA-7298 and KIP-360"""
    story = Story(version)
    story.marks(epoch=2)
    assert story.sends(17, epoch=2) == code


def test_sequences_wrap_to_zero():
    """testProducerSequenceWrapAround"""
    story = Story()
    story.replicates(MAX_SEQUENCE, epoch=15, offset=735)
    assert story.sends(0, epoch=15, offset=1235) == ("appended", 1235)
    assert story.remembered() == [(MAX_SEQUENCE, MAX_SEQUENCE), (0, 0)]


def test_sequences_wrap_inside_a_batch():
    """testProducerSequenceWithWrapAroundBatchRecord"""
    story = Story()
    story.replicates(MAX_SEQUENCE - 10, epoch=15, count=21, offset=2000)
    (batch,) = story.remembers().batches
    assert story.remembered() == [(MAX_SEQUENCE - 10, 9)]
    assert (batch.first_offset, batch.last_offset) == (2000, 2020)


def test_after_the_wrap_comes_zero_and_nothing_else():
    """testProducerSequenceInvalidWrapAround"""
    story = Story()
    story.replicates(MAX_SEQUENCE, epoch=15, offset=735)
    assert story.sends(1, epoch=15, offset=1235) == OUT_OF_ORDER


def test_a_loading_log_may_begin_anywhere():
    """testNoValidationOnFirstEntryWhenLoadingLog"""
    story = Story("1.1.1")
    story.replicates(16, epoch=5, offset=735)
    assert (story.remembers().epoch, story.remembered()) == (5, [(16, 16)])


def test_a_marker_raises_the_epoch_and_empties_the_window():
    """testControlRecordBumpsProducerEpoch"""
    story = Story()
    story.sends(0)
    story.marks(commit=False, epoch=1)
    assert (story.remembers().epoch, story.remembered(), story.remembers().in_transaction) == (1, [], False)
    assert story.sends(0, epoch=1) == ("appended", 2)


def test_the_first_batch_of_a_transaction_is_where_it_begins():
    """testTxnFirstOffsetMetadataCached"""
    story = Story()
    story.sends(0, transactional=True, offset=992342)
    assert story.stable == 992342


def test_checking_a_batch_changes_nothing():
    """testPrepareUpdateDoesNotMutate"""
    profile = Story().profile
    state, _ = validate_append(UNKNOWN, DataBatch(1, 0, 0, 4, 15, 19, 100, False), profile, Origin.CLIENT)
    after, _ = validate_append(state, DataBatch(1, 0, 5, 9, 20, 24, 105, False), profile, Origin.CLIENT)
    assert state.last_sequence == 4
    assert after.last_sequence == 9
    validate_append(after, DataBatch(1, 1, 0, 4, 25, 29, 110, False), profile, Origin.CLIENT)
    assert (after.epoch, after.last_sequence) == (0, 9)


def test_after_a_marker_raised_the_epoch_only_zero_follows():
    """testOutOfSequenceAfterControlRecordEpochBump"""
    story = Story()
    story.sends(0, transactional=True)
    story.sends(1, transactional=True)
    story.marks(commit=False, epoch=1)
    assert story.sends(2, epoch=1, transactional=True) == OUT_OF_ORDER
    assert story.sends(0, epoch=1, transactional=True) == ("appended", 3)


def test_a_plain_batch_must_not_come_into_a_transaction():
    """testNonTransactionalAppendWithOngoingTransaction"""
    story = Story()
    story.sends(0, transactional=True)
    assert story.sends(1) == NOT_IN_TRANSACTION
    assert story.sends(1, transactional=True) == ("appended", 1)


def test_an_open_transaction_survives_a_restart():
    """testRecoverFromSnapshotUnfinishedTransaction"""
    story = Story()
    story.sends(0, transactional=True)
    story.sends(1, transactional=True)
    story.restarts()
    assert story.remembers().current_txn_first_offset == 0
    assert story.stable == 0
    assert story.sends(2) == NOT_IN_TRANSACTION


def test_a_finished_transaction_stays_finished():
    """testRecoverFromSnapshotFinishedTransaction"""
    story = Story()
    story.sends(0, transactional=True)
    story.sends(1, transactional=True)
    story.marks(commit=False)
    story.restarts()
    assert not story.remembers().in_transaction
    assert story.stable == 3
    assert story.remembers().last_sequence == 1


def test_a_transaction_of_markers_only_survives_too():
    """testRecoverFromSnapshotEmptyTransaction"""
    story = Story()
    story.now = 57
    story.marks(commit=False, epoch=3)
    story.restarts()
    state = story.remembers()
    assert (state.epoch, state.last_timestamp, state.in_transaction) == (3, 57, False)
    assert state.batches == ()


def test_a_fencing_abort_is_remembered_over_a_restart():
    """testProducerStateAfterFencingAbortMarker"""
    story = Story()
    story.sends(0, transactional=True)
    story.marks(commit=False, epoch=1)
    story.restarts()
    assert (story.remembers().epoch, story.remembers().last_sequence) == (1, -1)
    assert story.sends(0, epoch=0) == FENCED


def test_the_expired_are_not_loaded():
    """testRemoveExpiredPidsOnReload"""
    story = Story(expiration_ms=1000)
    story.sends(0, at=0)
    story.now = 70_000
    story.restarts()
    assert not story.knows()
    story.now = 70_001
    assert story.sends(2) == ("appended", 1)


def test_where_nothing_is_known_a_replica_takes_what_it_gets():
    """testAcceptAppendWithoutProducerStateOnReplica"""
    story = Story()
    story.replicates(2, offset=70)
    assert story.remembered() == [(2, 2)]


def test_a_replica_takes_gaps():
    """testAcceptAppendWithSequenceGapsOnReplica"""
    story = Story()
    story.replicates(0)
    assert story.sends(3) == OUT_OF_ORDER
    story.replicates(3)
    assert story.remembers().last_sequence == 3


def test_the_log_is_read_where_no_snapshot_reaches():
    """testTruncateAndReloadRemovesOutOfRangeSnapshots"""
    story = Story()
    for sequence in range(5):
        story.sends(sequence)
    story.restarts(clean=True, truncated_to_offset=3)
    assert story.remembered() == [(0, 0), (1, 1), (2, 2)]


def test_producers_that_still_live_are_loaded():
    """testLoadFromSnapshotRetainsNonExpiredProducers"""
    story = Story()
    story.sends(0, producer=1)
    story.sends(0, producer=2, transactional=True)
    story.restarts()
    assert story.remembered(1) == [(0, 0)]
    assert story.remembered(2) == [(0, 0)]


def test_an_idle_producer_is_forgotten():
    """testPidExpirationTimeout"""
    story = Story(expiration_ms=5000, sweep_ms=1000)
    story.sends(5, epoch=5)
    story.passes(7000)
    assert not story.knows()
    assert story.sends(6, epoch=5) == ("appended", 1)


def test_the_oldest_open_transaction_holds_back_readers():
    """testFirstUnstableOffset"""
    story = Story()
    assert story.stable == 0
    story.sends(0, producer=1, transactional=True, offset=99)
    assert story.stable == 99
    story.sends(0, producer=2, transactional=True, offset=105)
    assert story.stable == 99
    story.marks(producer=1)
    assert story.stable == 105
    story.marks(producer=2, commit=False)
    assert story.stable == story.partition.log_end


def test_an_open_transaction_keeps_its_producer():
    """testProducersWithOngoingTransactionsDontExpire"""
    story = Story(expiration_ms=5000, sweep_ms=1000)
    story.sends(0, transactional=True)
    story.passes(6000)
    assert story.knows()
    story.marks()
    story.passes(6000)
    assert not story.knows()


def test_a_group_coordinator_does_not_count():
    """testSequenceNotValidatedForGroupMetadataTopic"""
    story = Story()
    assert story.coordinator_writes(-1, transactional=True) == 0
    assert story.coordinator_writes(-1, transactional=True) == 0


def test_a_marker_of_an_old_epoch_is_refused():
    """testOldEpochForControlRecord"""
    story = Story()
    story.sends(0, epoch=5, transactional=True)
    assert story.marks(epoch=4) == FENCED


def test_an_old_coordinator_is_refused_until_the_epoch_is_current():
    """testCoordinatorFencing"""
    story = Story()
    story.sends(0)
    assert story.marks(coordinator_epoch=1) == 0
    assert story.remembers().coordinator_epoch == 1
    story.sends(1)
    assert story.marks(coordinator_epoch=0) == COORDINATOR_FENCED
    assert story.marks(coordinator_epoch=1) == 0
    assert story.marks(coordinator_epoch=2) == 0


def test_an_old_coordinator_is_refused_after_a_restart_too():
    """testCoordinatorFencedAfterReload"""
    story = Story()
    story.sends(0, transactional=True)
    story.marks(coordinator_epoch=99)
    story.restarts()
    assert story.marks(coordinator_epoch=98) == COORDINATOR_FENCED


@pytest.mark.parametrize("version", ["1.1.1", "3.9.1"])
def test_a_snapshot_nobody_can_read_is_replaced_by_the_log(version):
    """testLoadFromEmptySnapshotFile, testLoadFromTruncatedSnapshotFile, testLoadFromCorruptSnapshotFile"""
    story = Story(version)
    for sequence in range(7):
        story.sends(sequence)
    story.restarts(clean=True, corrupted_snapshots=frozenset({7}))
    assert story.remembered() == [(sequence, sequence) for sequence in range(2, 7)]


def test_the_lowest_sequence_under_verification_binds():
    """testThrowOutOfOrderSequenceWithVerificationSequenceCheck, testEntryForVerification"""
    story = Story()
    story.partition.start_verification((1, 0, 0), now=0, transaction_version=0)
    assert story.sends(3, transactional=True) == OUT_OF_ORDER
    assert story.sends(0, transactional=True) == ("appended", 0)
    assert story.partition.verifications == {}


def test_a_verification_keeps_the_lowest_sequence_of_the_highest_epoch():
    """testSequenceAndEpochInVerificationEntry"""
    partition = Story().partition
    lowest = []
    for epoch, sequence in [(0, 1), (0, 2), (0, 0), (1, 5), (0, 3), (1, 4)]:
        partition.start_verification((1, epoch, sequence), now=0, transaction_version=0)
        entry = partition.verifications[1]
        lowest.append((entry.producer_epoch, entry.lowest_sequence))
    assert lowest == [(0, 1), (0, 1), (0, 0), (1, 5), (1, 5), (1, 4)]


def test_a_verification_expires_like_a_producer():
    """testVerificationStateEntryExpiration"""
    story = Story(expiration_ms=5000, sweep_ms=1000)
    story.partition.start_verification((1, 0, 0), now=0, transaction_version=0)
    story.passes(4000)
    assert 1 in story.partition.verifications
    story.passes(2000)
    assert story.partition.verifications == {}


def test_readers_wait_for_each_transaction_in_turn():
    """testLastStableOffsetCompletedTxn"""
    story = Story()
    for producer, offset in ((1, 0), (2, 4), (3, 9)):
        story.sends(0, producer=producer, transactional=True, offset=offset)
    story.marks(producer=2, offset=10)
    assert story.stable == 0
    story.marks(producer=1)
    assert story.stable == 9
    story.marks(producer=3)
    assert story.stable == 13


@pytest.mark.parametrize("version", ["1.0.0", "2.0.1", "2.2.0", "2.2.1", "4.2.0"])
def test_the_transaction_index_says_up_to_where_an_abort_made_the_log_stable(version):
    """ProducerStateManager.completeTxn, since KAFKA-7866 lastStableOffset: the oldest open transaction, or past the marker."""
    story = Story(version)
    story.sends(0, transactional=True)
    story.sends(0, producer=2, count=2, transactional=True)
    story.marks(commit=False)
    story.sends(1, transactional=True)
    story.marks(commit=False, producer=2)
    story.marks(commit=False)
    aborted = story.partition.producers.aborted
    assert [(row.last_offset, row.last_stable_offset) for row in aborted] == [(3, 1), (5, 4), (6, 7)]


@pytest.mark.parametrize(("version", "begins"), [("2.1.0", 2 + MAX_SEQUENCE), ("2.1.1", 1)])
def test_a_transaction_that_begins_with_the_wrap_begins_too_high_before_2_1_1(version, begins):
    """appendDataBatch: its first offset is the last one less the last sequence, plus the first (KAFKA-7692)."""
    story = Story(version)
    story.sends(0, transactional=True)
    story.replicates(MAX_SEQUENCE, count=2, producer=2, transactional=True)
    story.marks(commit=False)
    (row,) = story.partition.producers.aborted
    assert (row.last_offset, row.last_stable_offset) == (3, begins)


def test_markers_without_data_complete_nothing():
    """testSkipEmptyTransactions"""
    story = Story()
    story.sends(0, transactional=True)
    story.marks(commit=False)
    story.marks(commit=False)
    assert story.aborted == [(1, 0, 1)]


def test_until_2_7_they_were_transactions_of_their_own():
    """testSkipEmptyTransactions, before KAFKA-10702"""
    story = Story("2.7.2")
    story.sends(0, transactional=True)
    story.marks(commit=False)
    story.marks(commit=False)
    assert story.aborted == [(1, 0, 1), (1, 2, 2)]


def test_what_goes_into_a_snapshot_comes_out_of_it():
    """testReadWriteSnapshot, testTakeSnapshot, testReloadSnapshots"""
    story = Story()
    story.sends(0, producer=1, count=3, at=11)
    story.sends(0, producer=2, epoch=4, transactional=True, at=12)
    story.marks(producer=3, epoch=5, coordinator_epoch=6)
    before = {producer: story.remembers(producer) for producer in (1, 2, 3)}
    story.restarts()
    assert {producer: story.remembers(producer) for producer in (1, 2, 3)} == before


def test_what_the_log_start_passes_is_forgotten_at_once_until_2_3():
    """testTruncateHead, testLoadFromSnapshotRemovesNonRetainedProducers (Kafka 2.3 and before)"""
    stories = {version: Story(version) for version in ("0.11.0.3", "2.3.1", "2.4.0")}
    for story in stories.values():
        story.sends(0, producer=1)
        story.sends(0, producer=2)
        story.partition.delete_records(1, story.now, None)
    assert {version: story.knows(1) for version, story in stories.items()} == {
        "0.11.0.3": False,
        "2.3.1": False,
        "2.4.0": True,
    }
    assert all(story.knows(2) for story in stories.values())


def test_an_evicted_producer_takes_its_open_transaction_along():
    """testTruncateHead (Kafka 2.3 and before)"""
    story = Story("2.0.1")
    story.sends(0, transactional=True)
    story.sends(0, producer=2)
    story.partition.delete_records(1, story.now, None)
    assert story.stable == 2


def test_old_timestamps_expire_at_once_and_future_ones_late():
    """testRemoveExpiredPidsOnReload; the clock is the records' time"""
    story = Story()
    story.now = 10 * DAY_MS
    story.sends(0, producer=1, at=story.now - DAY_MS)
    story.sends(0, producer=2, at=story.now + DAY_MS)
    story.restarts(clean=False)
    assert (story.knows(1), story.knows(2)) == (False, True)


def test_no_release_forgets_a_producer_sooner_than_the_shortest_expiry():
    assert min(profile.expiration_default_ms for profile, _ in profile_groups()) == SHORTEST_EXPIRY_MS
