"""KA708: records in the copy of a topic that the topic does not have."""

from kaudit.checks.repeats.mirrored_topics import only_on_target
from kaudit.model.ledger import RecordRange
from tests.checks.repeats.ledgers import reported


def test_they_are_the_targets():
    (found,) = reported(only_on_target, only_in_target=1, only_in_target_ranges=[RecordRange(0, 3, 3, 1)])
    assert found.message == "1 record of primary.orders missing in orders"
    assert (found.topic, found.replica, found.offset) == ("primary.orders", "b", 3)
