"""Markers put together to transactions."""

import pytest

from kaudit.audits.transactions.outputs import TransactionOutputs
from kaudit.listings.transactions import starts_of
from tests.audits.transactions.test_outputs import BILLS, GROUPS, ORDERS, markers


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([(GROUPS, 0), (ORDERS, 2), (GROUPS, 100), (ORDERS, 101)], [0, 2]),
        ([(GROUPS, 0), (ORDERS, 2), (BILLS, 90), (GROUPS, 92)], [0, 2]),
        ([(ORDERS, 0), (BILLS, 900)], [0]),
        ([(ORDERS, 0), (BILLS, 1900)], [0, 1]),
        ([(ORDERS, 0), (ORDERS, 0), (ORDERS, 0)], [0, 1, 2]),
        ([], []),
    ],
    ids=["in step", "the other first", "one", "far apart", "at once", "none"],
)
def test_markers_are_put_together_to_transactions(own, expected):
    places = sorted({place for place, _ in own})
    outputs = TransactionOutputs(
        markers(place, *((7, time, 1) for where, time in own if where == place)) for place in places
    )
    assert starts_of(outputs.rows, outputs.place) == expected


def test_a_producer_and_an_outcome_end_a_transaction():
    outputs = TransactionOutputs([markers(ORDERS, (7, 0, 1), (8, 0, 1)), markers(BILLS, (8, 1, 1), kind=0)])
    assert starts_of(outputs.rows, outputs.place) == [0, 1, 2]
