"""Reading in bulk equals reading batch by batch, on damaged input too: chain of candidates, chained CRC."""

import random

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kaudit.formats.log.candidate_scan import Framing, linked_positions
from kaudit.formats.log.crc_algebra import POLYNOMIAL, _before_zero_bytes, corrupt_indexes, restore_heads
from kaudit.formats.log.record_batch import batch_crc_holds, gather_headers, walk
from tests.logs import Batch, Log, data, marker

BULK = settings(max_examples=300, deadline=None)

batches = st.lists(
    st.one_of(
        st.builds(
            data,
            st.sampled_from([1, 2, 2000, 2**40]),
            st.integers(0, 3),
            st.integers(0, 2**31 - 1),
            st.integers(1, 3),
            payload=st.one_of(
                st.binary(max_size=90),
                # headers inside payloads, whole or cut
                st.integers(0, 70).map(lambda cut: data(7, 0, 0, payload=b"inner").encode()[:cut]),
                st.just(b"\0\0\0\0\0\0\0\1\0\0\0\x40\0\0\0\0\2" + bytes(60)),
            ),
            leader_epoch=st.sampled_from([0, 2, 2**24]),
        ),
        st.builds(marker, st.sampled_from([1, 2]), st.integers(0, 3)),
        st.builds(Batch, payload=st.binary(max_size=400)),
    ),
    min_size=1,
    max_size=40,
)
flips = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), max_size=4)


def encoded(content, changes):
    log = Log()
    for batch in content:
        log.append(batch)
    raw = bytearray(log.encode())
    for place, bits in changes:
        raw[int(place * len(raw))] ^= bits
    return raw


def same(first, second):
    assert first.positions.tolist() == second.positions.tolist()
    assert (first.stop, first.valid) == (second.stop, second.valid)


@BULK
@given(batches, flips, st.integers(0, 300), st.floats(0, 1))
def test_framing_by_candidates_equals_the_walk(content, changes, cut, share):
    raw = encoded(content, changes)
    buffer = memoryview(raw)[: max(len(raw) - cut, 0)]
    last_start = int(share * len(buffer)) + 1
    framing = Framing()
    framing.mean_size = 100.0
    expected = walk(buffer, 0, len(buffer), last_start)
    same(framing.follow(buffer, 0, len(buffer), last_start), expected)
    chain, stop = linked_positions(buffer, 0, len(buffer), last_start)
    assert chain.tolist() == expected.positions[: len(chain)].tolist()
    assert stop == (expected.positions[len(chain)] if len(chain) < len(expected.positions) else expected.stop)


@BULK
@given(st.integers(0, 2**32), st.integers(0, 3000))
def test_framing_of_bytes_that_mean_nothing_equals_the_walk(seed, size):
    # few values, so that magics and zeros abound
    raw = bytearray(random.Random(seed).choices(b"\0\0\0\0\2\2\1\x40\xff", k=size))
    for start in (0, min(7, size)):
        framing = Framing()
        framing.mean_size = 100.0
        expected = walk(memoryview(raw), start, size, size)
        same(framing.follow(memoryview(raw), start, size, size), expected)


def test_candidates_of_an_undamaged_log_are_the_whole_walk():
    log = Log()
    for number in range(5000):
        log.append(data(2000, 0, number, payload=bytes([2, 0, number % 256]) * (number % 9)))
    raw = memoryview(bytearray(log.encode()))
    chain, stop = linked_positions(raw, 0, len(raw), len(raw))
    assert len(chain) == 5000
    assert stop == len(raw)


@BULK
@given(batches, flips)
@example([data(1, 0, 0)], [(0.9, 1)])
def test_crcs_over_many_batches_find_what_one_for_each_finds(content, changes):
    raw = encoded(content, [])
    positions = walk(memoryview(raw), 0, len(raw), len(raw)).positions
    for place, bits in changes:  # anywhere but in lengths and magics, which are framing's affair
        at = int(place * len(raw))
        start = int(positions[np.searchsorted(positions, at, side="right") - 1])
        if not 8 <= at - start < 17:
            raw[at] ^= bits
    before = bytes(raw)
    buffer = memoryview(raw)
    ends = [*positions.tolist()[1:], len(raw)]
    expected = [
        index
        for index, (start, end) in enumerate(zip(positions.tolist(), ends, strict=True))
        if not batch_crc_holds(buffer, start, end - start)
    ]
    headers = gather_headers(buffer, positions)
    assert corrupt_indexes(buffer, positions, headers["crc"].astype(np.uint32), len(raw)) == expected
    restore_heads(buffer, positions, headers)
    assert bytes(raw) == before


@pytest.mark.parametrize("register", [0, 1, 0x80000000, 0xFFFFFFFF, 0x12345678, POLYNOMIAL])
@pytest.mark.parametrize("count", [0, 1, 4, 21])
def test_the_register_before_zero_bytes(register, count):
    """The library takes and gives the register inverted."""
    before = _before_zero_bytes(register, count)
    assert crc32c(bytes(count), before ^ 0xFFFFFFFF) ^ 0xFFFFFFFF == register
