"""Which rows of an inspection are shown: what was asked for, inclusive at both ends, and damage always."""

import pytest

from kaudit.inspect.row_filter import RowFilter, around
from kaudit.inspect.rows import identify
from kaudit.inspect.segment import SegmentReader
from kaudit.source.uri import Uri
from tests.formats.encoders import batch as batch_bytes
from tests.formats.encoders import record


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


HEADERS = (
    batch_bytes([record(0), record(1, 5)], 10, producer_id=7, producer_epoch=2, base_timestamp=0, max_timestamp=5)
    + batch_bytes([record(0)], 12, producer_id=8, leader_epoch=3, base_timestamp=20)
    + batch_bytes([record(0)], 13, base_timestamp=-1, max_timestamp=-1)
)  # fmt: skip
"""Batches at 10..11 from time 0 to 5, at 12 at time 20, and at 13 without a time."""


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({}, [10, 12, 13]),
        ({"producer_ids": frozenset({7})}, [10]),
        ({"producer_ids": frozenset({7, 8})}, [10, 12]),
        ({"producer_epochs": frozenset({2})}, [10]),
        ({"leader_epochs": frozenset({3})}, [12]),
        ({"first_offset": 11}, [10, 12, 13]),
        ({"first_offset": 12}, [12, 13]),
        ({"last_offset": 12}, [10, 12]),
        ({"last_offset": 11}, [10]),
        ({"last_offset": 9}, []),
        ({"since_ms": 5}, [10, 12]),
        ({"since_ms": 6}, [12]),
        ({"until_ms": 0}, [10]),
        ({"until_ms": 19}, [10]),
        ({"until_ms": 20}, [10, 12]),
        ({"producer_ids": frozenset({7}), "since_ms": 6}, []),
    ],
)
def test_batches_that_may_hold_what_was_asked_for(tmp_path, asked, shown):
    path = tmp_path / "00000000000000000010.log"
    path.write_bytes(HEADERS)
    with SegmentReader(identify(Uri.parse(str(path)))) as segment:
        assert [row["base_offset"] for row in segment.rows(RowFilter(**asked))] == shown


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
