import struct

from hypothesis import given
from hypothesis import strategies as st

from kaudit.formats.errors import Damage, Reason
from kaudit.formats.sidefiles.indexes import parse_offset_index, parse_time_index
from tests.formats.archives import files
from tests.formats.fuzz import damaged, quick
from tests.formats.segment_rows import batch_rows

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.tuples(int32, int32).filter(any), max_size=9), st.integers(0, 9))
@quick
def test_offset_index_round_trip(rows, padding):
    index = parse_offset_index(b"".join(struct.pack(">ii", *row) for row in rows) + bytes(8 * padding))
    assert list(zip(index.relative_offsets.tolist(), index.positions.tolist(), strict=True)) == rows
    assert (index.padding_rows, index.damage) == (padding, ())


@given(st.lists(st.tuples(int64, int32).filter(any), max_size=9), st.integers(0, 9))
@quick
def test_time_index_round_trip(rows, padding):
    index = parse_time_index(b"".join(struct.pack(">qi", *row) for row in rows) + bytes(12 * padding))
    assert list(zip(index.timestamps.tolist(), index.relative_offsets.tolist(), strict=True)) == rows
    assert (index.padding_rows, index.damage) == (padding, ())


def test_a_torn_row():
    data = struct.pack(">iiii", 1, 2, 3, 4)[:13]
    index = parse_offset_index(data)
    assert (index.relative_offsets.tolist(), index.positions.tolist()) == ([1], [2])
    assert index.damage == (Damage(8, 13, Reason.TRUNCATED, "5 bytes of a row of 8"),)
    assert [damage.position for damage in parse_time_index(data).damage] == [12]


def test_zeros_between_rows_are_rows():
    assert parse_offset_index(struct.pack(">iiii", 0, 0, 3, 4) + bytes(16)).relative_offsets.tolist() == [0, 3]


def test_every_index_there_is(evidence):
    """All but the labelled garbage: no torn row, monotone, and each row points at a batch no later than its offset."""
    entries = times = 0
    for path in files(evidence, "*.index", without=["artificial", "recovered"]):
        index, log = parse_offset_index(path.read_bytes()), path.with_suffix(".log")
        assert index.damage == ()
        if not log.exists() or not len(index.positions):
            continue
        at = {row["position"]: row for row, _ in batch_rows(log.read_bytes())}
        previous, last_offset = -1, max(row["last_offset"] for row in at.values())
        for relative, position in zip(index.relative_offsets.tolist(), index.positions.tolist(), strict=True):
            row = at[position]
            # The offset is the last of an append, the position its start: between them may lie several batches.
            assert row.get("base_offset", row["last_offset"]) <= int(path.stem) + relative <= last_offset
            assert previous < relative
            previous = relative
            entries += 1
    for path in files(evidence, "*.timeindex", without=["artificial", "recovered"]):
        time_index = parse_time_index(path.read_bytes())
        assert time_index.damage == ()
        assert time_index.timestamps.tolist() == sorted(time_index.timestamps.tolist())
        times += len(time_index.timestamps)
    assert entries > 100
    assert times > 1000


def test_the_labelled_garbage_is_decoded_not_judged(evidence):
    path = evidence.capture("torn-writes") / "artificial/index-garbage/explosion-0/00000000000000000662.index"
    raw = path.read_bytes()
    index = parse_offset_index(raw)
    assert len(index.relative_offsets) + index.padding_rows == len(raw) // 8
    assert index.relative_offsets.tolist() != sorted(index.relative_offsets.tolist())


@given(damaged([struct.pack(">6i", 1, 2, 3, 4, 5, 6) + bytes(48)]))
@quick
def test_fuzz(data):
    for parse, size in ((parse_offset_index, 8), (parse_time_index, 12)):
        index = parse(data)
        assert len(index.relative_offsets) + index.padding_rows == len(data) // size
        assert bool(index.damage) == bool(len(data) % size)
