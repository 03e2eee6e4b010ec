"""Which rows of an inspection are shown: what was asked for, inclusive at both ends, and damage always."""

import pytest

from kaudit.inspect.row_filter import RowFilter, around


def batch(first, last, **more):
    return {"row": "batch", "base_offset": first, "last_offset": last, **more}


@pytest.mark.parametrize(("asked", "row", "shown"), [
    ({}, {"row": "entry"}, True),
    ({"since_ms": 10}, {"row": "record", "timestamp": 9}, False),
    ({"since_ms": 10}, {"row": "record", "timestamp": 10}, True),
    ({"until_ms": 10}, {"row": "record", "timestamp": 10}, True),
    ({"until_ms": 10}, {"row": "record", "timestamp": 11}, False),
    ({"since_ms": 5, "until_ms": 10}, {"row": "record", "timestamp": 11}, False),
    # a batch goes by its last time here: its first may lie before the end asked for
    ({"until_ms": 10}, {"row": "batch", "max_timestamp": 11}, True),
    ({"since_ms": 12, "until_ms": 20}, {"row": "batch", "max_timestamp": 11}, False),
    ({"since_ms": 10}, {"row": "batch", "max_timestamp": 10, "timestamp": 3}, True),
    # without a time there is no answer
    ({"since_ms": 10}, {"row": "entry"}, False),
    ({"until_ms": 10}, {"row": "entry", "timestamp": None}, False),
    ({"since_ms": 10, "first_offset": 3, "producer_ids": frozenset({1})}, {"row": "damage"}, True),
    # a batch of offsets 4 to 6
    ({"first_offset": 6}, batch(4, 6), True),
    ({"first_offset": 7}, batch(4, 6), False),
    ({"last_offset": 4}, batch(4, 6), True),
    ({"last_offset": 3}, batch(4, 6), False),
    ({"first_offset": 5, "last_offset": 5}, batch(4, 6), True),
    ({"first_offset": 0, "last_offset": 0}, {"row": "record", "offset": 0}, True),
    ({"first_offset": 4, "last_offset": 6}, {"row": "record", "offset": 6}, True),
    ({"first_offset": 4, "last_offset": 6}, {"row": "record", "offset": 7}, False),
    ({"first_offset": 4}, {"row": "entry", "first_offset": 1, "last_offset": 4}, True),
    ({"first_offset": 4}, {"row": "entry"}, False),
    ({"producer_ids": frozenset({7})}, {"row": "entry", "producer_id": 7}, True),
    ({"producer_ids": frozenset({7})}, {"row": "entry", "producer_id": 8}, False),
    ({"producer_ids": frozenset({7})}, {"row": "entry"}, False),
    ({"producer_ids": frozenset({7}), "producer_epochs": frozenset({0, 2})},
     {"row": "entry", "producer_id": 7, "producer_epoch": 1}, False),
    ({"leader_epochs": frozenset({3})}, {"row": "entry", "leader_epoch": 3}, True),
])  # fmt: skip
def test_rows_that_were_asked_for(asked, row, shown):
    assert RowFilter(**asked).accepts(row) is shown
    assert RowFilter(**asked).active is bool(asked)


def test_what_is_asked_of_batches_alone():
    """Records of internal topics name producers and times of their own: their batches are judged by the rest."""
    asked = RowFilter(frozenset({7}), frozenset({0}), frozenset({3}), 4, 6, 10, 20)
    assert asked.of_batches_only() == RowFilter(leader_epochs=frozenset({3}), first_offset=4, last_offset=6)


LOG = [batch(10 * number, 10 * number + 8) for number in range(20)]


@pytest.mark.parametrize(("offset", "shown"), [
    (0, range(6)), (1, range(6)), (8, range(6)),
    # no batch holds it: the first one beyond it
    (9, range(7)), (100, range(5, 16)), (108, range(5, 16)), (109, range(6, 17)), (198, range(14, 20)),
    (199, range(15, 20)), (10**9, range(15, 20)),
])  # fmt: skip
def test_five_batches_on_each_side(offset, shown):
    assert list(around(LOG, offset)) == [LOG[number] for number in shown]


def test_damage_counts_among_the_neighbours():
    damage = {"row": "damage", "last_offset": 10**6}
    assert list(around([*LOG[:3], damage, *LOG[3:]], 50)) == [LOG[1], LOG[2], damage, *LOG[3:11]]
