"""Batches on brokers as rows."""

import pytest
from msgspec.structs import replace

from kaudit.errors import NothingToAuditError, UsageError
from kaudit.inspect import segment
from kaudit.inspect.row_filter import RowFilter
from kaudit.inspect.walk import InspectOptions, inspect_rows
from kaudit.source.layout import FetchedRange
from tests.logs import data
from tests.source.kafka.fake_broker import FakeBroker

KEY = ("orders", 0)


@pytest.fixture
def broker():
    batches = [data(7, 0, number * 2, 2).at(number * 2).encode() for number in range(100)]
    corrupt = bytearray(batches[50])
    corrupt[-1] ^= 1
    batches[50] = bytes(corrupt)
    with FakeBroker({KEY: batches}) as running:
        yield running


def rows(broker, path="orders", **options):
    return list(inspect_rows(InspectOptions([f"kafka://{broker.address}/{path}"], **options), batches=False))


def test_every_batch_is_a_row_without_a_place(broker):
    found = rows(broker)
    assert [row["base_offset"] for row in found] == list(range(0, 200, 2))
    assert {(row["topic"], row["partition"], row["segment"], row["position"]) for row in found} == {
        ("orders", 0, None, None)
    }
    assert [row["base_offset"] for row in found if not row["crc_valid"]] == [100]


def test_rows_have_the_columns_of_those_of_files(broker, tmp_path):
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(data(7, 0, 0, 2).encode())
    ours = inspect_rows(InspectOptions([str(path)], records=True), batches=True)
    theirs = rows(broker, records=True, wanted=RowFilter(first_offset=0, last_offset=1))
    assert [set(row) for row in theirs] == [set(row) for row in ours]


def test_a_range_of_offsets(broker):
    assert [row["base_offset"] for row in rows(broker, wanted=RowFilter(first_offset=11, last_offset=14))] == [
        10,
        12,
        14,
    ]


def test_the_neighbours_of_an_offset(broker):
    assert [row["base_offset"] for row in rows(broker, "orders/0", around=31)] == list(range(20, 42, 2))


def test_the_records_of_a_batch(broker):
    found = rows(broker, records=True, wanted=RowFilter(first_offset=10, last_offset=11))
    assert [(row["row"], row.get("offset")) for row in found] == [("batch", None), ("record", 10), ("record", 11)]


def test_what_cannot_be_shown(broker):
    with pytest.raises(UsageError, match="no such topic"):
        rows(broker, "payments")
    with pytest.raises(UsageError, match="--around"):
        rows(broker, at=5)
    with pytest.raises(NothingToAuditError, match="connection refused"):
        list(inspect_rows(InspectOptions(["kafka://127.0.0.1:1/orders"]), batches=False))


@pytest.mark.parametrize(("place", "offset", "expected"), [
    # 1000 bytes an offset: 2097 offsets are 2 MiB
    ((0, 9000, 1000), 5000, (2903, 7097)),
    ((4000, 9000, 1000), 5000, (4000, 7097)),  # nothing below may be asked for
    ((0, 6000, 1000), 5000, (2903, 6000)),
    ((0, 9000, 1000), 20_000, (9000, 9000)),  # beyond the end
    ((4000, 9000, 1000), 1000, (4000, 4000)),  # below the start
    ((0, 9000, 1 << 20), 5000, (4998, 5002)),
    ((0, 9000, (2 << 20) + 1), 5000, (4999, 5001)),  # at least the neighbours
])  # fmt: skip
def test_what_is_fetched_around_an_offset(place, offset, expected):
    """2 MiB on either side, within what can be read."""
    readable_from, end, bytes_per_offset = place
    whole = FetchedRange("h:1", "orders", 0, 0, readable_from, end, bytes_per_offset=bytes_per_offset)
    near = segment._near(whole, offset)
    assert (near.readable_from, near.end_offset) == expected
    assert replace(near, readable_from=readable_from, end_offset=end) == whole
