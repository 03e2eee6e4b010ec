"""States of log and broker compared, whichever way they differ."""

import pytest

from kaudit.listings.live_states import Expiration, PartitionStates, compare_states
from kaudit.model.producer_listing import DescribedState, Relation
from kaudit.model.result import PartitionSummary

STATE = DescribedState(0, 9, 1_000_000, -1, -1)
LATER = DescribedState(0, 11, 1_002_000, -1, -1)
OPEN = DescribedState(0, 9, 1_000_000, -1, 4)
HOUR = Expiration("producer.id.expiration.ms", 3_600_000)


def compare(log, before, after, expiration=HOUR, *, now=2_000_000, **summary):
    facts = {"log_start_offset": 0, "log_end_offset": 20, "last_stable_offset": 20, "compacted": False, **summary}
    part = PartitionSummary("orders", 0, "b1", **facts)
    of = [{} if state is None else {7: state} for state in (log, before, after)]
    compared = compare_states(part, 1, PartitionStates(*of), expiration, now)
    (producer,) = compared.producers
    return producer, compared.unexplained


def test_identical():
    producer, unexplained = compare(STATE, STATE, STATE)
    assert (producer.relation, producer.differences, producer.explanation, unexplained) == (
        Relation.IDENTICAL,
        (),
        None,
        0,
    )


def test_what_differs_is_named_field_by_field():
    producer, unexplained = compare(STATE, LATER, LATER)
    assert (producer.relation, producer.differences) == (Relation.DIFFERENT, ("last_sequence", "last_timestamp"))
    assert (producer.explanation, unexplained) == (None, 1)


def test_a_producer_that_goes_on_is_explained():
    producer, unexplained = compare(STATE, STATE, LATER)
    assert (producer.relation, producer.explanation, unexplained) == (
        Relation.DIFFERENT, "the producer went on while the log was read", 0,
    )  # fmt: skip
    producer, unexplained = compare(None, None, STATE)
    assert (producer.relation, producer.explanation) == (
        Relation.BROKER_ONLY, "the producer began while the log was read",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("state", "expiration", "now", "explained"),
    [
        (STATE, HOUR, 1_000_000 + 3_600_000, True),
        (STATE, HOUR, 1_000_000 + 3_599_999, False),
        (OPEN, HOUR, 10_000_000, False),
        (STATE, None, 10_000_000, False),
    ],
)
def test_only_silence_without_a_transaction_makes_a_broker_forget(state, expiration, now, explained):
    producer, unexplained = compare(state, None, None, expiration, now=now)
    assert producer.relation is Relation.LOG_ONLY
    assert (producer.explanation is not None, unexplained) == (explained, int(not explained))


@pytest.mark.parametrize(
    ("summary", "explained"),
    [({"log_start_offset": 5}, "log begins at offset 5"), ({"compacted": True}, "compacted"), ({}, None)],
)
def test_a_broker_remembers_producers_whose_batches_are_gone(summary, explained):
    producer, unexplained = compare(None, STATE, STATE, **summary)
    assert producer.relation is Relation.BROKER_ONLY
    assert (explained or "") in (producer.explanation or "")
    assert unexplained == int(explained is None)
