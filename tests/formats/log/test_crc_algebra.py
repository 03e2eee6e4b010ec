"""CRCs put together from others are those of the libraries, and no byte is read more than a few times for them."""

import random
import zlib

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.formats.log.crc_algebra import ZLIB_POLYNOMIAL, CrcRanges, ZeroBytes
from tests.memory import Memory

CONTENT = random.Random(5).randbytes(300_000)
START = 1000
places = st.integers(START, len(CONTENT))


def reader(source):
    def read(position, size):
        buffer = bytearray(size)
        return bytes(buffer[: source.read_into(position, memoryview(buffer))])

    return read


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 5000))
def test_zero_bytes_lead_where_zlib_goes(register, count):
    # zlib's own register is inverted before and after
    assert ZeroBytes(ZLIB_POLYNOMIAL).after(register, count) == (
        zlib.crc32(bytes(count), register ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    )


@settings(deadline=None)
@given(st.lists(st.tuples(places, places), min_size=1, max_size=5))
def test_of_every_range_it_is_what_the_libraries_compute(ranges):
    crcs = CrcRanges(reader(Memory(CONTENT)), START)
    for first, stop in map(sorted, ranges):
        assert crcs.crc32c(first, stop) == crc32c(CONTENT[first:stop])
        assert crcs.crc32(first, stop) == zlib.crc32(CONTENT[first:stop])


@pytest.mark.parametrize("stop", [len(CONTENT) + 1, 2 * len(CONTENT), 1 << 40])
def test_a_range_beyond_the_end_has_none(stop):
    crcs = CrcRanges(reader(Memory(CONTENT)), START)
    assert crcs.crc32c(START, stop) is None
    assert crcs.crc32(START, stop) is None
    assert crcs.crc32c(START, len(CONTENT)) == crc32c(CONTENT[START:])


def test_of_the_blocks_read_the_least_lately_used_is_given_up():
    """64 blocks of 64 KiB are kept: the one used last stays, and is not read again."""
    block = 64 << 10
    content = random.Random(7).randbytes(66 * block)
    asked = []

    def read(position, size):
        asked.append(position // block)
        return content[position : position + size]

    crcs = CrcRanges(read, 0)

    def use(number):
        first = number * block
        assert crcs.crc32c(first, first + 100) == crc32c(content[first : first + 100])

    for number in range(64):
        use(number)
    use(0)
    for number in (64, 0, 1):
        use(number)
    assert asked == [*range(65), 1]
