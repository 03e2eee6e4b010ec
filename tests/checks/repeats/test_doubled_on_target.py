"""KA706: records that the copy of a topic has more often than the topic itself."""

from kaudit.checks.repeats.mirrored_topics import doubled_on_target
from kaudit.model.impact import Impact
from kaudit.model.ledger import PartitionPair, RepeatedRange
from tests.checks.findings import cost_of
from tests.checks.repeats.ledgers import reported


def test_repeats_are_the_targets():
    (found,) = reported(
        doubled_on_target, repeated=30, repeated_ranges=[RepeatedRange(0, 119, 148, 30, 0, 99, 130, 0, 89, 118)]
    )
    assert found.message == "30 records of orders again in primary.orders"
    assert (found.topic, found.partition, found.replica, found.offset) == ("primary.orders", 0, "b", 119)
    assert cost_of(found) == Impact(records_duplicated=30)


def test_a_mirror_that_began_at_the_log_start_again_is_named_by_where_the_repeats_begin():
    pairs = [PartitionPair(0, 0, 200, 40, 239, 7, 206, 40, 0)]

    def causes(first: int) -> list[str]:
        repeated = [RepeatedRange(0, 119, 148, 30, 0, first, first + 29, 0, 7, 36)]
        (found,) = reported(doubled_on_target, repeated=30, repeated_ranges=repeated, partitions=pairs)
        return [each.cause for each in found.explanations if "auto.offset.reset=earliest" in each.cause]

    assert len(causes(40)) == 1
    assert causes(41) == []
