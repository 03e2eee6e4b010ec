"""Which bytes at the end of a file may be the start of a batch that the end cuts off."""

import struct

import pytest

from kaudit.formats.log.resync import looks_torn
from tests.logs import data

WHOLE = data(7, 0, 3, 4).at(100).encode()
MOST_RELATIVE = 2**31 - 1
"""LogSegment.canConvertToRelativeOffset: a segment's offsets lie at most this far behind its base offset."""


def torn(content: bytes, available: int | None = None, expected: int | None = None) -> bool:
    return looks_torn(memoryview(content[:61]), len(content) if available is None else available, expected)


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_every_start_of_a_batch_is_one(length):
    assert torn(WHOLE[:length], expected=100)


def test_a_whole_batch_is_not_cut_off():
    assert not torn(WHOLE)
    assert torn(WHOLE[:61], available=len(WHOLE) - 1)
    assert not torn(WHOLE[:61], available=len(WHOLE))


@pytest.mark.parametrize(
    ("expected", "possible"),
    [
        (None, True),
        (100, True),
        (99, True),
        (101, False),
        (100 - MOST_RELATIVE, True),
        (99 - MOST_RELATIVE, False),
    ],
)
@pytest.mark.parametrize("length", [8, 11, 12, 16, 17, 40, 61])
def test_a_base_offset_that_a_segment_can_reach(expected, possible, length):
    assert torn(WHOLE[:length], expected=expected) is possible


def test_with_less_than_a_base_offset_nothing_speaks_against_it():
    assert torn(WHOLE[:7], expected=5000)
    assert not torn(struct.pack(">q", -1))
    assert torn(struct.pack(">q", 0))


@pytest.mark.parametrize(
    ("message_size", "possible"),
    [
        (13, False),
        (14, True),
        (49, True),
        (2**31 - 1, True),
        (-1, False),
        (0, False),
    ],  # 14: a message of magic 0 without key and value
)
def test_a_size_that_a_batch_can_have(message_size, possible):
    assert torn(struct.pack(">qi", 100, message_size)) is possible


@pytest.mark.parametrize(("magic", "possible"), [(0, True), (1, True), (2, True), (3, False), (255, False)])
def test_a_magic_that_brokers_write(magic, possible):
    head = WHOLE[:16] + bytes([magic])
    assert torn(head) is possible
    assert torn(head + WHOLE[17:60]) is possible


@pytest.mark.parametrize(
    ("position", "value", "possible"),
    [
        (21, struct.pack(">h", 0x7F), False),  # codec 7
        (21, struct.pack(">h", 0x7C), True),  # zstd, log append time, transactional, control, delete horizon
        (21, struct.pack(">h", 0x05), False),  # codec 5
        (21, struct.pack(">h", 0x80), False),  # a flag nobody gives
        (21, struct.pack(">h", -1), False),
        (23, struct.pack(">i", 0), True),
        (23, struct.pack(">i", -1), False),
        (57, struct.pack(">i", 0), True),
        (57, struct.pack(">i", -1), False),
    ],
)
def test_fields_of_a_whole_header(position, value, possible):
    head = WHOLE[:position] + value + WHOLE[position + len(value) : 61]
    assert torn(head) is possible
    assert torn(head[:60])  # what is not all there says nothing
