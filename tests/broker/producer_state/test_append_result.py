"""What a broker decides about one batch or marker, and what its five values say of it.

The rules are ProducerAppendInfo's: checkProducerEpoch, checkSequence, appendDataBatch and appendEndTxnMarker of the release.
"""

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.append_result import CompletedTransaction, Origin, Outcome, Rule
from kaudit.broker.producer_state.producer_append_info import validate_append, validate_end_txn_marker
from kaudit.broker.producer_state.producer_state_entry import (
    UNKNOWN,
    BatchMetadata,
    DataBatch,
    MarkerBatch,
    ProducerStateEntry,
    VerificationStateEntry,
)
from kaudit.broker.releases.profile import profile_for

LAST = 2**31 - 1
FENCED, OUT_OF_ORDER = KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
KNOWN = ProducerStateEntry(3, 2, 2, (BatchMetadata(6, 16, 3, 1), BatchMetadata(9, 19, 2, 2)))
"""Epoch 3, sequences 3 to 6 at offsets 13 to 16 and 7 to 9 at 17 to 19."""
OPEN = replace(KNOWN, current_txn_first_offset=15)
MARKED = ProducerStateEntry(3, 2, 2)
"""Epoch 3, known by a marker alone."""


def batch(epoch: int, first: int, last: int | None = None, *, transactional: bool = False) -> DataBatch:
    last = first if last is None else last
    return DataBatch(7, epoch, first, last, 20, 20 + (last - first) % 2**31, 5, transactional)


def marker(epoch: int, coordinator_epoch: int = 2, version: int = 0) -> MarkerBatch:
    return MarkerBatch(7, epoch, coordinator_epoch, 20, 5, commit=False, transaction_version=version)


@dataclass
class Case:
    """A batch against a state on a release: the rule that decides, its error, and what is said of both sides."""

    state: ProducerStateEntry
    batch: DataBatch
    rule: Rule
    incoming: str
    remembered: str
    error: KafkaError = KafkaError.NONE
    expected: str = ""
    got: str = ""
    version: str = "3.9.1"
    origin: Origin = Origin.CLIENT
    verification: VerificationStateEntry | None = None


EPOCH_3, WINDOW = "epoch 3, last sequence 9", "epoch 3, batches from offset 13 to last sequence 9"
UNDER_VERIFICATION = VerificationStateEntry(5, 3, 0, 0)
ACCEPTED = {
    "the next": Case(KNOWN, batch(3, 10), Rule.NEXT, "epoch 3, sequence 10", EPOCH_3),
    "some of the next": Case(KNOWN, batch(3, 10, 12), Rule.NEXT, "epoch 3, sequences 10 to 12", EPOCH_3),
    "the next behind a marker": Case(MARKED, batch(3, 0), Rule.NEXT, "epoch 3, sequence 0", "epoch 3 without a batch"),
    "a new epoch": Case(KNOWN, batch(4, 0), Rule.NEW_EPOCH, "epoch 4, sequence 0", EPOCH_3),
    "the first of all": Case(UNKNOWN, batch(0, 0, 3), Rule.FIRST, "epoch 0, sequences 0 to 3", "nothing"),
    "a first one above 0": Case(UNKNOWN, batch(0, 1), Rule.UNKNOWN_ACCEPTED, "epoch 0, sequence 1", "nothing"),
    "in the open transaction": Case(OPEN, batch(3, 10, transactional=True), Rule.NEXT, "epoch 3, sequence 10", EPOCH_3),
    "the lowest under verification": Case(
        UNKNOWN, batch(3, 5), Rule.UNKNOWN_ACCEPTED, "epoch 3, sequence 5", "nothing", verification=UNDER_VERIFICATION
    ),
    "what a leader wrote": Case(
        OPEN,
        batch(3, 99, transactional=True),
        Rule.REPLICATED,
        "epoch 3, sequence 99",
        EPOCH_3,
        origin=Origin.REPLICATION,
    ),
    "of an older epoch, as a leader wrote it": Case(
        KNOWN, batch(2, 10), Rule.REPLICATED, "epoch 2, sequence 10", EPOCH_3, origin=Origin.REPLICATION
    ),
    "what a coordinator writes": Case(
        KNOWN, batch(3, 0), Rule.COORDINATOR, "epoch 3, sequence 0", "epoch 3", origin=Origin.COORDINATOR
    ),
    "of an older epoch, before 2.4.1 checked it": Case(
        KNOWN,
        batch(2, 0),
        Rule.COORDINATOR,
        "epoch 2, sequence 0",
        "epoch 3",
        origin=Origin.COORDINATOR,
        version="2.3.1",
    ),
}
REFUSED = {
    "an older epoch": Case(
        KNOWN, batch(2, 10), Rule.STALE_EPOCH, "epoch 2, sequence 10", "epoch 3", FENCED, "epoch 3 or higher", "epoch 2"
    ),
    "an older epoch of a coordinator": Case(
        KNOWN, batch(2, 0), Rule.STALE_EPOCH, "epoch 2, sequence 0", "epoch 3", FENCED, "epoch 3 or higher", "epoch 2",
        origin=Origin.COORDINATOR,
    ),
    "a gap": Case(
        KNOWN, batch(3, 11, 12), Rule.OUT_OF_ORDER, "epoch 3, sequences 11 to 12", EPOCH_3, OUT_OF_ORDER, "sequence 10",
        "sequence 11",
    ),
    "a part of what is remembered": Case(
        KNOWN, batch(3, 3, 5), Rule.OUT_OF_ORDER, "epoch 3, sequences 3 to 5", EPOCH_3, OUT_OF_ORDER, "sequence 10",
        "sequence 3",
    ),
    "older than what is remembered": Case(
        KNOWN, batch(3, 1, 2), Rule.OLD_DUPLICATE, "epoch 3, sequences 1 to 2", WINDOW, OUT_OF_ORDER, "sequence 10",
        "sequence 1",
    ),
    "older than what 1.0.0 remembers": Case(
        KNOWN, batch(3, 1, 2), Rule.OLD_DUPLICATE, "epoch 3, sequences 1 to 2", WINDOW,
        KafkaError.DUPLICATE_SEQUENCE_NUMBER, "sequence 10", "sequence 1", version="1.0.0",
    ),
    "a new epoch above 0": Case(
        KNOWN, batch(4, 10), Rule.NEW_EPOCH_NONZERO, "epoch 4, sequence 10", EPOCH_3, OUT_OF_ORDER, "sequence 0",
        "sequence 10",
    ),
    "unknown and above 0": Case(
        UNKNOWN, batch(0, 4), Rule.UNKNOWN_PRODUCER, "epoch 0, sequence 4", "nothing", KafkaError.UNKNOWN_PRODUCER_ID,
        "sequence 0", "sequence 4", version="2.4.1",
    ),
    "known by a marker alone, and above 0": Case(
        MARKED, batch(3, 4), Rule.UNKNOWN_NEXT, "epoch 3, sequence 4", "epoch 3 without a batch", OUT_OF_ORDER,
        "sequence 0", "sequence 4",
    ),
    "outside of the open transaction": Case(
        OPEN, batch(3, 10), Rule.NOT_TRANSACTIONAL, "a non-transactional batch", "a transaction open since offset 15",
        KafkaError.INVALID_TXN_STATE, "a transactional batch", "a non-transactional batch",
    ),
    "above the lowest under verification": Case(
        UNKNOWN, batch(3, 6), Rule.VERIFICATION, "epoch 3, sequence 6", "lowest sequence 5 under verification",
        OUT_OF_ORDER, "at most sequence 5", "sequence 6", verification=UNDER_VERIFICATION,
    ),
    "transaction version 2 that does not begin at 0": Case(
        MARKED, batch(3, 4), Rule.TV2_START, "epoch 3, sequence 4", "epoch 3 without a batch", OUT_OF_ORDER,
        "sequence 0", "sequence 4", version="4.1.0", verification=VerificationStateEntry(5, 3, 0, 2),
    ),
}  # fmt: skip


def decided(case):
    return validate_append(case.state, case.batch, profile_for(case.version), case.origin, case.verification)


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_is_appended(case):
    case = ACCEPTED[case]
    after, result = decided(case)
    assert (result.outcome, result.error, result.rule) == (Outcome.APPENDED, KafkaError.NONE, case.rule)
    assert (result.incoming, result.remembered, result.expected) == (case.incoming, case.remembered, "")
    assert (result.base_offset, result.state) == (20, case.state)
    length = (case.batch.last_sequence - case.batch.base_sequence) % 2**31
    kept = case.state.batches if case.state.epoch == case.batch.producer_epoch else ()
    newest = BatchMetadata(case.batch.last_sequence, case.batch.last_offset, length, 5)
    assert (after.epoch, after.batches, after.last_timestamp) == (case.batch.producer_epoch, (*kept, newest), 5)


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_and_why(case):
    case = REFUSED[case]
    after, result = decided(case)
    assert (result.outcome, result.error, result.rule) == (Outcome.REJECTED, case.error, case.rule)
    assert (result.incoming, result.remembered) == (case.incoming, case.remembered)
    assert (result.expected, result.got) == (case.expected, case.got)
    assert (result.base_offset, after) == (-1, case.state)
    why = f"producer 7 at offset 20 in orders-3: incoming {case.incoming}, remembered {case.remembered}; {case.rule.reason}"
    assert result.why(20, "orders-3") == why


@pytest.mark.parametrize("case", ["the next", "the next behind a marker", "the first of all", "a new epoch"])
def test_the_five_values_of_what_is_appended(case):
    case = ACCEPTED[case]
    last = f"last sequence {case.state.last_sequence}"
    remembered = case.remembered if case.rule is not Rule.NEXT else f"epoch {case.state.epoch}, {last}"
    why = f"producer 7 at offset 20 in orders-3: incoming {case.incoming}, remembered {remembered}; {case.rule.reason}"
    assert decided(case)[1].why(20, "orders-3") == why


@pytest.mark.parametrize(("first", "last", "offset"), [(3, 6, 13), (7, 9, 17)])
def test_what_is_remembered_is_answered_with_its_offset(first, last, offset):
    after, result = validate_append(OPEN, batch(3, first, last), profile_for("3.9.1"), Origin.CLIENT)
    assert (result.outcome, result.error, result.rule) == (Outcome.DUPLICATE, KafkaError.NONE, Rule.DUPLICATE)
    assert (result.base_offset, result.remembered, after) == (offset, WINDOW, OPEN)


@pytest.mark.parametrize(("first", "last"), [(3, 9), (4, 6), (3, 5), (7, 8), (8, 9)])
def test_only_the_same_first_and_last_sequence_are_a_duplicate(first, last):
    _, result = validate_append(KNOWN, batch(3, first, last), profile_for("3.9.1"), Origin.CLIENT)
    assert result.outcome is Outcome.REJECTED


def test_five_batches_are_remembered_and_sequences_wrap():
    """ProducerStateEntry.NUM_BATCHES_TO_RETAIN; DefaultRecordBatch.incrementSequence."""
    state, profile = UNKNOWN, profile_for("3.9.1")
    sent = [(LAST - 3, LAST - 2), (LAST - 1, 0), (1, 1), (2, 2), (3, 4), (5, 5)]
    for count, (first, last) in enumerate(sent, start=1):
        state, result = validate_append(state, batch(0, first, last), profile, Origin.CLIENT)
        assert result.outcome is Outcome.APPENDED
        assert [known.last_sequence for known in state.batches] == [end for _, end in sent[:count]][-5:]
    for first, last in sent:
        _, result = validate_append(state, batch(0, first, last), profile, Origin.CLIENT)
        assert result.outcome is (Outcome.REJECTED if first == LAST - 3 else Outcome.DUPLICATE)


@pytest.mark.parametrize(
    ("state", "sent", "version", "rule", "expected", "got"),
    [
        (KNOWN, marker(2), "3.9.1", Rule.STALE_MARKER, "epoch 3 or higher", "epoch 2"),
        (KNOWN, marker(3, 1), "3.9.1", Rule.STALE_COORDINATOR, "coordinator epoch 2 or higher", "coordinator epoch 1"),
        (OPEN, marker(3, version=2), "4.2.0", Rule.REPEATED_MARKER, "an epoch above 3", "epoch 3"),
        (OPEN, marker(3, version=2), "4.1.0", Rule.MARKER, "", "coordinator epoch 2"),
        (OPEN, marker(4, version=2), "4.2.0", Rule.MARKER, "", "coordinator epoch 2"),
        (OPEN, marker(3, version=1), "4.2.0", Rule.MARKER, "", "coordinator epoch 2"),
        (KNOWN, marker(3, version=2), "4.2.0", Rule.MARKER, "", "coordinator epoch 2"),
        (replace(OPEN, epoch=32_767), marker(32_767, version=2), "4.2.0", Rule.REPEATED_MARKER, "an epoch above 32767", "epoch 32767"),
        (replace(OPEN, epoch=32_767), marker(32_767, version=2), "4.3.0", Rule.MARKER, "", "coordinator epoch 2"),
        (replace(OPEN, epoch=32_766), marker(32_766, version=2), "4.3.0", Rule.REPEATED_MARKER, "an epoch above 32766", "epoch 32766"),
    ],
)  # fmt: skip
def test_markers_of_old_epochs(state, sent, version, rule, expected, got):
    after, result, completed = validate_end_txn_marker(state, sent, profile_for(version), Origin.COORDINATOR)
    assert (result.rule, result.expected, result.got) == (rule, expected, got)
    assert result.incoming == f"marker of epoch {sent.producer_epoch}, coordinator epoch {sent.coordinator_epoch}"
    if rule is Rule.MARKER:
        kept = state.batches if sent.producer_epoch == state.epoch else ()
        assert after == ProducerStateEntry(sent.producer_epoch, 2, 5, kept)
        opened = state.current_txn_first_offset
        assert completed == (CompletedTransaction(7, opened, 20, aborted=True) if opened >= 0 else None)
        assert result.remembered == f"epoch {state.epoch}, coordinator epoch 2"
    else:
        assert (after, completed, result.outcome) == (state, None, Outcome.REJECTED)
        assert result.error is (KafkaError.TRANSACTION_COORDINATOR_FENCED if "coord" in expected else FENCED)


def test_replicas_take_markers_of_old_epochs():
    for sent in (marker(2), marker(3, 1)):
        after, result, completed = validate_end_txn_marker(OPEN, sent, profile_for("3.9.1"), Origin.REPLICATION)
        assert result.rule is Rule.MARKER
        assert (after.epoch, after.coordinator_epoch) == (sent.producer_epoch, sent.coordinator_epoch)
        assert completed == CompletedTransaction(7, 15, 20, aborted=True)


@pytest.mark.parametrize(("version", "completes"), [("2.7.2", True), ("2.8.0", False)])
def test_a_marker_without_a_transaction(version, completes):
    """KAFKA-10702."""
    _, _, completed = validate_end_txn_marker(KNOWN, marker(3), profile_for(version), Origin.COORDINATOR)
    assert completed == (CompletedTransaction(7, 20, 20, aborted=True) if completes else None)


@pytest.mark.parametrize(
    ("sequence", "epoch", "lowest"),
    [(4, 3, (4, 3)), (5, 3, (5, 3)), (6, 3, (5, 3)), (9, 4, (9, 4)), (0, 4, (0, 4)), (0, 2, (5, 3))],
)
def test_the_lowest_sequence_of_a_verified_transaction(sequence, epoch, lowest):
    """VerificationStateEntry.maybeUpdateLowestSequenceAndEpoch."""
    after = UNDER_VERIFICATION.lowered(sequence, epoch)
    assert (after.lowest_sequence, after.producer_epoch) == lowest
    assert (after.created_at, after.transaction_version) == (0, 0)
