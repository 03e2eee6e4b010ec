import struct

import pytest
from fuzz import damaged, quick
from hypothesis import given
from hypothesis import strategies as st
from raw_batches import batches

from kaudit.wire.errors import Damage, Reason
from kaudit.wire.indexes import parse_offset_index, parse_time_index

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


@pytest.mark.parametrize("capture", ["clients-mix", "txn-mix-2.8.2", "failover-acks1", "cross-session"])
def test_index_entries_of_healthy_captures_point_at_batches(evidence, capture):
    entries = 0
    for path in evidence.capture(capture).rglob("*.index"):
        log = path.with_suffix(".log")
        if not log.exists():
            continue
        index = parse_offset_index(path.read_bytes())
        assert index.damage == ()
        at = {
            position: (struct.unpack_from(">q", raw)[0], struct.unpack_from(">i", raw, 23)[0])
            for position, raw in batches(log.read_bytes())
        }
        for relative, position in zip(index.relative_offsets.tolist(), index.positions.tolist(), strict=True):
            base_offset, last_delta = at[position]
            assert base_offset <= int(path.stem) + relative <= base_offset + last_delta
            entries += 1
        times = parse_time_index(path.with_suffix(".timeindex").read_bytes())
        assert times.damage == ()
        assert times.timestamps.tolist() == sorted(times.timestamps.tolist())
    assert entries > 10


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
