"""A line about a refusal as the attempt that was refused."""

from kaudit.broker.producer_state.producer_state_entry import UNKNOWN, BatchMetadata, ProducerStateEntry
from kaudit.model.application_logs import LogEventKind
from kaudit.replay.reconstruction.refusals import agrees, candidates, possible_producer, says_forgotten
from tests.audits.log_events.made import event

FENCED = LogEventKind.FENCED_PRODUCER


def state(epoch=0, last=5, offset=10, first_offset=-1):
    return ProducerStateEntry(epoch, -1, 0, (BatchMetadata(last, offset, 0, 0),), first_offset)


def test_what_a_line_states_is_taken_and_the_rest_is_assumed():
    line, assumed = next(candidates(event(producer_id=7, base_sequence=9, last_sequence=5), 7, state(epoch=3)))
    assert line == {
        "op": "produce", "producer_id": 7, "producer_epoch": 3, "base_sequence": 9, "record_count": 1,
        "is_transactional": False,
    }  # fmt: skip
    assert assumed == ["record_count", "is_transactional", "producer_epoch"]


def test_in_a_transaction_a_batch_is_transactional_unless_that_was_refused():
    open_transaction = state(first_offset=3)
    line, _ = next(candidates(event(producer_id=7), 7, open_transaction))
    assert line["is_transactional"]
    line, _ = next(candidates(event(LogEventKind.INVALID_TXN_STATE, producer_id=7), 7, open_transaction))
    assert not line["is_transactional"]


def test_an_unknown_producer_cannot_have_begun_at_0():
    assert {line["base_sequence"] for line, _ in candidates(event(producer_id=7), 7, UNKNOWN)} == {1}


def test_a_refused_coordinator_is_a_marker():
    fenced = event(LogEventKind.TRANSACTION_COORDINATOR_FENCED, producer_id=7, coordinator_epoch=2)
    ((line, assumed),) = candidates(fenced, 7, state(epoch=4))
    assert (line["op"], line["producer_epoch"], line["coordinator_epoch"]) == ("write_marker", 4, 2)
    assert assumed == ["commit", "producer_epoch"]


def test_a_line_without_a_producer_id_is_of_the_one_that_wrote_last_with_that_epoch():
    states = {1: state(epoch=2, offset=10), 2: state(epoch=2, offset=30), 3: state(epoch=1, offset=99)}
    assert possible_producer(event(FENCED, producer_epoch=0, expected_epoch=2), states, {}) == 2
    assert possible_producer(event(FENCED, producer_epoch=0, expected_epoch=8), states, {}) is None
    assert possible_producer(event(producer_id=5), states, {}) == 5


def test_a_new_epoch_is_that_of_a_producer_with_a_lower_one_or_of_one_nobody_remembers():
    states = {1: state(epoch=2), 2: state(epoch=5)}
    assert possible_producer(event(producer_epoch=4, base_sequence=3), states, {}) == 1
    assert possible_producer(event(producer_epoch=1, base_sequence=3), states, {8: {0}, 9: {1}, 10: {3}}) == 9
    assert possible_producer(event(producer_epoch=1, base_sequence=3), states, {1: {2}, 2: {5}}) is None


def test_a_broker_that_calls_a_known_epoch_new_has_forgotten_the_producer():
    states = {1: state(epoch=2)}
    new = event(producer_epoch=2, base_sequence=3)
    assert possible_producer(new, states, {1: {2}}) == 1
    assert says_forgotten(new, states[1])
    assert not says_forgotten(event(producer_epoch=3, base_sequence=3), states[1])
    assert not says_forgotten(event(producer_epoch=2, base_sequence=3), state(epoch=2, first_offset=0))
    assert says_forgotten(event(LogEventKind.UNKNOWN_PRODUCER_ID), states[1])


def test_a_line_agrees_with_the_state_it_names():
    assert agrees(event(last_sequence=5, expected_epoch=0, offset=11), state(), 11)
    assert not agrees(event(last_sequence=4), state(), 11)
    assert not agrees(event(expected_epoch=1), state(), 11)
    assert not agrees(event(offset=12), state(), 11)
    assert agrees(event(), state(), 11)
