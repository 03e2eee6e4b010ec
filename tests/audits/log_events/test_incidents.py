"""What events come to, whose they are, and what became of refused batches by lines alone."""

import pytest

from kaudit.audits.log_events.incidents import logged_incidents
from kaudit.model.application_logs import LogEventKind
from kaudit.model.logged_incidents import Consequence, Outcome
from tests.audits.log_events.made import event

KIND = LogEventKind
OUT_OF_ORDER = "OUT_OF_ORDER_SEQUENCE_NUMBER"


def refused(base, last, line=1, **fields):
    where = {"topic": "t", "partition": 0, "producer_id": 7, "error": OUT_OF_ORDER, **fields}
    return event(KIND.OUT_OF_ORDER_SEQUENCE, line, base_sequence=base, last_sequence=last, **where)


def outcomes(*events):
    return [(one.consequence, one.outcome) for one in logged_incidents(events, {})]


@pytest.mark.parametrize(
    ("later", "outcome"),
    [
        ([], Outcome.UNKNOWN),
        # what was first refused has been appended since, and the later duplicate is no loss
        (
            [event(KIND.DUPLICATE_SEQUENCE, 2, last_sequence=170, topic="t", partition=0, producer_id=7)],
            Outcome.UNKNOWN,
        ),
        ([event(KIND.EPOCH_BUMPED, 2, producer_id=7, producer_epoch=1)], Outcome.SUPERSEDED),
        ([event(KIND.PRODUCER_ID_ASSIGNED, 2, producer_id=7, producer_epoch=1)], Outcome.SUPERSEDED),
        ([event(KIND.EPOCH_BUMPED, 2, producer_id=8, producer_epoch=1)], Outcome.UNKNOWN),
        (
            [event(KIND.EPOCH_BUMPED, 2, producer_id=7), event(KIND.FATAL_ERROR, 3, producer_id=7)],
            Outcome.UNKNOWN,
        ),
        (
            [
                event(KIND.EPOCH_BUMPED, 2, producer_id=7),
                event(KIND.DELIVERY_TIMEOUT, 3, producer_id=7, topic="t", partition=1),
            ],
            Outcome.SUPERSEDED,
        ),
    ],
)
def test_what_became_of_a_refused_batch(later, outcome):
    assert outcomes(refused(9, 5), *later)[0] == (Consequence.REFUSED, outcome)


def test_a_batch_that_came_too_early_was_appended_where_the_broker_got_further():
    first, second = refused(9, 5), refused(30, 20, 2)
    (both,) = logged_incidents([first, second], {})
    assert both.outcome is Outcome.UNKNOWN  # the second one
    states = {("t", 0): {7: (0, 40)}}
    assert logged_incidents([first, second], states)[0].outcome is Outcome.LANDED
    assert logged_incidents([first, second], {("t", 0): {7: (0, 29)}})[0].outcome is Outcome.NEVER_LANDED


def test_an_older_epoch_was_continued_by_a_newer_one():
    older = refused(9, 5, producer_epoch=1)
    newer = event(
        KIND.INVALID_PRODUCER_EPOCH,
        2,
        producer_id=7,
        producer_epoch=1,
        expected_epoch=2,
        error="INVALID_PRODUCER_EPOCH",
    )
    assert outcomes(older, newer)[0] == (Consequence.REFUSED, Outcome.SUPERSEDED)


def test_names_of_one_producer_are_joined():
    lines = [
        refused(9, 5),
        event(KIND.TRANSACTION_TIMEOUT, 2, transactional_id="app"),
        event(KIND.DELIVERY_TIMEOUT, 3, client_id="c-1", path="a/app.log", topic="t", partition=0),
        event(KIND.DELIVERY_TIMEOUT, 4, client_id="c-1", path="b/app.log", topic="t", partition=0),
    ]
    assert len({one.subject for one in logged_incidents(lines, {})}) == 4
    lines += [
        event(KIND.PRODUCER_ID_ASSIGNED, 5, transactional_id="app", producer_id=7, producer_epoch=0),
        event(KIND.PRODUCER_ID_ASSIGNED, 6, client_id="c-1", path="a/app.log", transactional_id="app"),
    ]
    joined = logged_incidents(lines, {})
    assert len({one.subject for one in joined}) == 2
    assert [one.producer_id for one in joined] == [7, None, 7, 7]  # by file and line
    assert {one.transactional_id for one in joined if one.producer_id == 7} == {"app"}


def test_a_block_of_producer_ids_names_no_producer():
    block = event(KIND.PRODUCER_ID_BLOCK, 2, producer_id=7, last_producer_id=1006, client_id="c")
    assert logged_incidents([refused(9, 5), block], {})[0].client_id is None


@pytest.mark.parametrize(
    ("one", "consequence"),
    [
        (event(KIND.INVALID_TXN_STATE, error="INVALID_TXN_STATE", topic="t", partition=0), Consequence.REFUSED),
        (event(KIND.INVALID_TXN_STATE, error="INVALID_TXN_STATE", transactional_id="x"), Consequence.ROLLED_BACK),
        (event(KIND.REQUEST_ERROR, error="MESSAGE_TOO_LARGE", topic="t", partition=0), Consequence.REFUSED),
        (event(KIND.REQUEST_ERROR, error="NOT_LEADER_OR_FOLLOWER", topic="t", partition=0), None),
        (event(KIND.DELIVERY_FAILED, error="NOT_LEADER_OR_FOLLOWER", topic="t", partition=0), None),
        (event(KIND.DELIVERY_FAILED, error="PRODUCER_FENCED", topic="t", partition=0), Consequence.FENCED),
        (event(KIND.FATAL_ERROR, error="KafkaException"), Consequence.UNDELIVERED),
        (event(KIND.CONCURRENT_TRANSACTIONS, error="CONCURRENT_TRANSACTIONS"), None),
        (event(KIND.BECAME_LEADER, topic="t", partition=0), None),
    ],
)
def test_what_an_event_comes_to(one, consequence):
    assert [found.consequence for found in logged_incidents([one], {})] == (
        [] if consequence is None else [consequence]
    )


def test_many_lines_of_many_partitions_take_no_longer_than_their_number():
    lines = [refused(9, 5, number, partition=number % 500, error=OUT_OF_ORDER) for number in range(20_000)]
    assert len(logged_incidents(lines, {})) == 500
