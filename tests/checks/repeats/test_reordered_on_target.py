"""KA707: records of one key that the copy of a topic has in another order."""

from kaudit.checks.repeats.mirrored_topics import reordered_on_target
from kaudit.model.ledger import MovedRecord
from tests.checks.repeats.ledgers import reported


def test_the_records_that_came_too_early_are_named():
    moved = [MovedRecord(0, 8, 1, 30, 5, 33), MovedRecord(0, 9, 1, 20, 6, 40)]
    (found,) = reported(reordered_on_target, out_of_order=2, moved=moved)
    assert found.message == "2 records of orders in primary.orders before the record of the same key that precedes it"
    assert (found.partition, found.offset, found.last_offset) == (1, 20, 30)
