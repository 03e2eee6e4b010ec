"""KA705: records of a topic that its copy does not have."""

from typing import Any

from kaudit.checks.repeats.mirrored_topics import missing_on_target
from kaudit.model.impact import Impact
from kaudit.model.ledger import RecordRange
from tests.checks.findings import cost_of
from tests.checks.repeats.ledgers import reported


def test_of_one_partition_its_offsets_are_named():
    (found,) = reported(
        missing_on_target, missing=5, missing_ranges=[RecordRange(2, 7, 9, 3), RecordRange(2, 20, 22, 2)]
    )
    assert found.message == "5 records of orders missing in primary.orders"
    assert (found.topic, found.partition, found.replica, found.offset, found.last_offset) == ("orders", 2, "a", 7, 22)
    assert cost_of(found) == Impact(records_lost_at_least=0, records_lost_at_most=5)
    assert found.next == ["kaudit inspect --records --around 7 /a/orders-2"]


def test_of_several_partitions_the_topic_is_reported():
    (found,) = reported(missing_on_target, missing=2, missing_ranges=[RecordRange(n, 7, 7, 1) for n in range(2)])
    assert (found.topic, found.partition, found.offset) == ("orders", None, None)


def test_twenty_ranges_are_shown():
    (found,) = reported(
        missing_on_target, missing=30, missing_ranges=[RecordRange(0, n * 2, n * 2, 1) for n in range(30)]
    )
    evidence: Any = found.evidence.to_dict()
    assert (len(evidence["ranges"]), evidence["more"]) == (20, 10)
