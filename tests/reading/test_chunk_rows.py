"""The rows of a chunk, moved to where they lie in the partition."""

import numpy as np
import pytest

from kaudit.model.columns import Columns
from kaudit.model.damage import MalformedBatch
from kaudit.reading.batch_starts import BATCH_START
from kaudit.reading.chunk_rows import ChunkRows, Counts, LastBatch, NonIdempotentRows
from kaudit.reading.rows import (
    BOUNDARY_BATCH,
    GAP,
    LEADER_EPOCH_START,
    MARKER,
    NON_IDEMPOTENT_BATCH,
    RUN,
)

TABLES = {"runs": RUN, "boundary_batches": BOUNDARY_BATCH, "markers": MARKER}
ARRAYS = {"gaps": GAP, "leader_epochs": LEADER_EPOCH_START, "batch_starts": BATCH_START}


def filled(dtype, segment):
    """Two rows, of this segment and the next, whose other fields are 5 and 6."""
    rows = np.zeros(2, dtype=dtype)
    for name in dtype.names:
        rows[name] = [segment, segment + 1] if name == "segment" else [5, 6]
    return rows


def rows_at(segment):
    rows = ChunkRows(
        segment,
        10,
        20,
        30,
        non_idempotent=NonIdempotentRows(filled(NON_IDEMPOTENT_BATCH, segment), 2, 1),
        malformed=[MalformedBatch(segment + 1, 12, 80, 4, 5, 2, 7, 0, "what is wrong")],
        counts=Counts(batches=2),
        first_offset=4,
        last_offset=9,
    )
    for name, dtype in TABLES.items():
        columns = filled(dtype, segment)
        setattr(rows, name, Columns(dtype, 2, {field: columns[field] for field in dtype.names or ()}))
    for name, dtype in ARRAYS.items():
        setattr(rows, name, filled(dtype, segment))
    return rows


@pytest.mark.parametrize("segment", [0, 3, 4, 5, 90])
def test_rows_of_a_segment_with_another_number(segment):
    before, expected = rows_at(4), rows_at(segment)
    moved = before.renumbered(segment)
    for name in (*TABLES, *ARRAYS):
        assert getattr(moved, name).tolist() == getattr(expected, name).tolist(), name
        assert getattr(before, name).tolist() == getattr(rows_at(4), name).tolist(), name
    assert moved.non_idempotent.rows.tolist() == expected.non_idempotent.rows.tolist()
    assert before.non_idempotent.rows.tolist() == rows_at(4).non_idempotent.rows.tolist()
    assert (moved.non_idempotent.batches, moved.non_idempotent.regressions) == (2, 1)
    assert (moved.malformed, moved.counts) == (expected.malformed, Counts(batches=2))
    assert (moved.segment, moved.start, moved.read_to, moved.stop) == (segment, 10, 20, 30)
    assert (before.segment, moved.first_offset, moved.last_offset) == (4, 4, 9)


def test_offsets_present_are_counted_from_the_start_of_the_log():
    rows = rows_at(0)
    rows.count_from(100)
    for name, counting in (
        ("runs", {"present_before_first", "present_before_last"}),
        ("boundary_batches", {"present_before"}),
        ("markers", {"present_before"}),
    ):
        table = getattr(rows, name)
        expected = {field: getattr(rows_at(0), name)[field].tolist() for field in table.dtype.names}
        expected |= {field: [105, 106] for field in counting}
        assert {field: table[field].tolist() for field in table.dtype.names} == expected


def test_counts_are_added_and_times_compared():
    names = [name for name in Counts.__struct_fields__ if not name.endswith(("_timestamp", "largest_batch"))]
    one = Counts(
        **{name: number for number, name in enumerate(names)}, max_timestamp=50, min_timestamp=20, largest_batch=70
    )
    one.add(Counts(**dict.fromkeys(names, 100), max_timestamp=40, min_timestamp=10, largest_batch=60))
    assert [getattr(one, name) for name in names] == [100 + number for number in range(len(names))]
    assert (one.max_timestamp, one.min_timestamp, one.largest_batch) == (50, 10, 70)
    for mine, other, least, greatest in (
        ((-1, -1), (0, 7), 0, 7),
        ((3, 4), (-1, -1), 3, 4),
        ((-1, -1), (-1, -1), -1, -1),
    ):
        counts = Counts(min_timestamp=mine[0], max_timestamp=mine[1])
        counts.add(Counts(min_timestamp=other[0], max_timestamp=other[1]))
        assert (counts.min_timestamp, counts.max_timestamp) == (least, greatest)


def test_what_rows_take_in_memory():
    def size(dtype):
        return 2 * dtype.itemsize

    expected = sum(map(size, (*TABLES.values(), *ARRAYS.values(), NON_IDEMPOTENT_BATCH)))
    assert rows_at(0).row_bytes() == expected
    assert ChunkRows(0, 0, 0, 0).row_bytes() == 0


def test_where_the_last_batch_ends():
    assert LastBatch(100, 61, 0, 0, 0, 0).end == 161
