"""What a task makes of rows of `batches`: one chunk of what lies side by side, wherever the rows are cut."""

import pyarrow as pa
import pytest

from kaudit.reading.chunk_codec import unpack_chunk
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.spark import rows as module
from kaudit.spark.rows import batches_to_runs
from tests.logs import Log, data
from tests.spark.in_process import load

OFFSETS = list(range(6))
SIZE = len(data(7, 0, 0).encode())


@pytest.fixture
def batches(tmp_path):
    """Six batches of one producer, of one size: four in the first segment, two in the second."""
    log = Log()
    for sequence in OFFSETS:
        log.append(data(7, 0, sequence))
    log.write(tmp_path / "orders-0", segment_starts=(4,))
    return pa.Table.from_batches(load("batches", tmp_path))


def chunks(*parts):
    """Of each chunk: its segment, where it starts and stops, and the offsets and number of batches of its runs."""
    made = []
    for rows in batches_to_runs(part for table in parts for part in table.to_batches()):
        first, *others = rows.to_pylist()
        assert [row["row"] for row in others] == ["run"] * len(others)
        (chunk,) = unpack_chunk(first["chunk"])
        assert isinstance(chunk, ChunkRows)
        assert chunk.start == first["first_position"]
        runs = [(row["first_offset"], row["last_offset"], row["batches"]) for row in others]
        made.append((first["segment_number"], chunk.start // SIZE, chunk.stop // SIZE, chunk.read_to // SIZE, runs))
    return made


WHOLE = [(0, 0, 4, 4, [(0, 3, 4)]), (1, 0, 2, 2, [(4, 5, 2)])]


def test_what_lies_side_by_side_is_one_chunk_of_its_segment(batches):
    assert chunks(batches) == WHOLE


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_wherever_rows_are_cut(batches, size):
    assert chunks(*(batches.slice(start, size) for start in range(0, len(OFFSETS), size))) == WHOLE


def test_in_any_order_and_twice(batches):
    assert sorted(chunks(batches.take([5, 3, 1, 0, 2, 4, 3, 3, 0]).combine_chunks())) == WHOLE


@pytest.mark.parametrize(("left", "expected"), [
    ([0, 1, 3], [(0, 0, 2, 2, [(0, 1, 2)]), (0, 3, 4, 4, [(3, 3, 1)])]),
    ([1, 2], [(0, 1, 3, 3, [(1, 2, 2)])]),
    ([3, 5], [(0, 3, 4, 4, [(3, 3, 1)]), (1, 1, 2, 2, [(5, 5, 1)])]),
    ([], []),
])  # fmt: skip
def test_of_what_a_filter_left_each_stretch_is_a_chunk(batches, left, expected):
    assert chunks(batches.take(pa.array(left, pa.int64()))) == expected
    assert chunks(*(batches.take([at]) for at in left)) == expected


def test_a_row_that_comes_again_later_is_a_chunk_of_its_own(batches):
    one = (0, 1, 2, 2, [(1, 1, 1)])
    assert chunks(batches.take([1]), batches.take([1])) == [one, one]


@pytest.mark.parametrize("inexact", range(4))
def test_a_chunk_with_a_row_that_is_not_the_whole_header_has_no_stop(batches, inexact):
    """It may not stand for its bytes: they are read again."""
    at = batches.schema.get_field_index("exact")
    exact = pa.array([number != inexact for number in OFFSETS])
    rows = batches.set_column(at, batches.schema.field(at), exact)
    expected = [(0, 0, module.NO_STOP // SIZE, 4, [(0, 3, 4)]), WHOLE[1]]
    assert chunks(rows) == expected
    assert chunks(*(rows.slice(number, 1) for number in OFFSETS)) == expected


def test_a_chunk_ends_once_it_has_as_many_batches_as_a_chunk_may_have(batches, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_BATCHES", 2)
    single = [batches.slice(number, 1) for number in OFFSETS]
    assert chunks(*single) == [(0, 0, 2, 2, [(0, 1, 2)]), (0, 2, 4, 4, [(2, 3, 2)]), WHOLE[1]]
