"""KA706: records that the copy of a topic has more often than the topic itself."""

from kaudit.checks.repeats.mirrored_topics import doubled_on_target
from kaudit.model.impact import Impact
from kaudit.model.ledger import RepeatedRange
from tests.checks.findings import cost_of
from tests.checks.repeats.ledgers import reported


def test_repeats_are_the_targets():
    (found,) = reported(
        doubled_on_target, repeated=30, repeated_ranges=[RepeatedRange(0, 119, 148, 30, 0, 99, 130, 0, 89, 118)]
    )
    assert found.message == "30 records of orders again in primary.orders"
    assert (found.topic, found.partition, found.replica, found.offset) == ("primary.orders", 0, "b", 119)
    assert cost_of(found) == Impact(records_duplicated=30)
