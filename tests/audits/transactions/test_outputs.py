"""What transactions wrote, by the markers of all partitions: which belong together, and what was written."""

import numpy as np

from kaudit.audits.transactions.marker_outcomes import Markers
from kaudit.audits.transactions.outputs import TransactionOutputs
from kaudit.audits.transactions.transaction_spans import ENDED_TRANSACTION
from kaudit.model.exactly_once import EndOfTransaction
from kaudit.reading.rows import Rows
from kaudit.source.layout import PartitionDirectory

GROUPS, ORDERS, BILLS = ("__consumer_offsets", 0), ("orders", 0), ("bills", 3)


def markers(place: tuple[str, int], *ended: tuple[int, int, int], kind: int = 1, epoch: int = 0) -> Markers:
    """Markers of one partition: (producer id, time, records)."""
    rows: Rows = np.zeros(len(ended), dtype=ENDED_TRANSACTION)
    for number, (producer_id, timestamp, records) in enumerate(ended):
        rows[number]["producer_id"], rows[number]["timestamp"], rows[number]["records"] = (
            producer_id,
            timestamp,
            records,
        )
        rows[number]["first_offset"], rows[number]["marker_offset"] = number * 10, number * 10 + 9
    rows["type"], rows["producer_epoch"] = kind, epoch
    return Markers(PartitionDirectory(*place, "b1", "/data", "/data/x", "x", ()), rows)


def of(
    outputs: TransactionOutputs, producer_id: int, time: int, last: int | None = None
) -> list[tuple[str, int, int, int]]:
    first, end = (EndOfTransaction(producer_id, 0, each, 0) for each in (time, time if last is None else last))
    return [(each.topic, each.first_offset, each.last_offset, each.records) for each in outputs.committed(first, end)]


def test_each_marker_is_of_the_transaction_whose_end_is_nearest():
    outputs = TransactionOutputs(
        [
            markers(GROUPS, (7, 1000, 1), (7, 1100, 1), (7, 9000, 1)),
            markers(ORDERS, (7, 1002, 5), (7, 1098, 6), (8, 1001, 9)),
            markers(BILLS, (7, 1104, 2), (7, 9030, 3)),
        ]
    )
    assert of(outputs, 7, 1000) == [("orders", 0, 9, 5)]
    assert of(outputs, 7, 1100) == [("bills", 0, 9, 2), ("orders", 10, 19, 6)]
    assert of(outputs, 7, 1000, 1100) == [("bills", 0, 9, 2), ("orders", 0, 19, 11)]
    assert of(outputs, 7, 9000) == [("bills", 10, 19, 3)]
    assert of(outputs, 9, 1000) == []


def test_aborted_ones_and_those_of_another_epoch_are_not_its_outputs():
    outputs = TransactionOutputs(
        [markers(GROUPS, (7, 1000, 1)), markers(ORDERS, (7, 1000, 5), kind=0), markers(BILLS, (7, 1000, 5), epoch=1)]
    )
    assert of(outputs, 7, 1000) == []


def test_of_several_replicas_the_longest_counts():
    outputs = TransactionOutputs([markers(ORDERS, (7, 1, 5)), markers(ORDERS, (7, 1, 5), (7, 900, 6))])
    assert len(outputs.rows) == 2
