"""Where a batch may begin in bytes that mean nothing: every bound of every field that a header has to keep."""

import struct

import numpy as np
import pytest

from kaudit.formats.log.resync import candidates
from tests.formats import encoders

BATCH = encoders.batch([encoders.record(0)], base_offset=5, producer_id=7, producer_epoch=0, base_sequence=0)
MESSAGES = [encoders.message(5, magic) for magic in (0, 1)]
NOISE = b"\xff" * 30


def found(content, *, start=0, remaining_after=0, stop=None):
    return candidates(memoryview(content), start, remaining_after, stop).tolist()


def changed(content, position, value):
    return content[:position] + value + content[position + len(value) :]


@pytest.mark.parametrize("content", [BATCH, *MESSAGES], ids=["2", "0", "1"])
def test_a_batch_in_noise(content):
    buffer = NOISE + content + NOISE
    assert found(buffer) == found(buffer, start=30) == [30]
    assert found(buffer, start=31) == []
    assert found(buffer, stop=30) == []
    assert found(buffer, stop=31) == [30]
    assert found(NOISE) == found(b"") == found(bytes(16)) == []


def test_several_in_their_order():
    parts = [MESSAGES[1], BATCH, MESSAGES[0], BATCH, MESSAGES[1]]
    places, buffer = [], b""
    for part in parts:
        places.append(len(buffer))
        buffer += part + NOISE
    assert found(buffer) == places


@pytest.mark.parametrize("remaining", [0, 5])
@pytest.mark.parametrize("content", [BATCH, *MESSAGES], ids=["2", "0", "1"])
def test_no_batch_claims_more_than_the_file_has(content, remaining):
    behind = NOISE[: 20 - remaining]
    most = len(content) - 12 + 20
    for length, good in ((most, True), (most + 1, False), (2**31 - 1, False)):
        buffer = changed(content, 8, struct.pack(">i", length)) + behind
        assert found(buffer, remaining_after=remaining) == ([0] if good else [])


@pytest.mark.parametrize(("content", "least"), [(BATCH, 49), (MESSAGES[0], 14), (MESSAGES[1], 14)], ids=["2", "0", "1"])
def test_the_least_length(content, least):
    for length, good in ((least, True), (least - 1, False), (0, False), (-1, False), (-(2**31), False)):
        assert found(changed(content, 8, struct.pack(">i", length)) + NOISE) == ([0] if good else [])


@pytest.mark.parametrize(
    ("position", "value", "good"),
    [
        (0, b"\x01", False),  # an offset of 2^56
        (0, b"\x00\xff", True),
        (16, b"\x03", False),
        (16, b"\xff", False),
        (21, b"\x00\x7c", True),  # zstd, and every flag there is
        (21, b"\x00\x7d", False),  # codec 5
        (21, b"\x00\x80", False),
        (21, b"\x01\x00", False),
        (21, b"\xff\xff", False),
        (23, struct.pack(">i", 0), True),
        (23, struct.pack(">i", -1), False),
        (57, struct.pack(">i", 0), True),
        (57, struct.pack(">i", -1), False),
        (43, struct.pack(">qhi", -1, -1, -1), True),
    ],
)
def test_fields_of_a_batch(position, value, good):
    assert found(changed(BATCH, position, value) + NOISE) == ([0] if good else [])


@pytest.mark.parametrize("content", MESSAGES, ids=["0", "1"])
@pytest.mark.parametrize(
    ("attributes", "good"),
    [(0, True), (3, True), (4, False), (7, False), (8, True), (11, True), (12, False), (16, False)],
)
def test_attributes_of_a_message(content, attributes, good):
    """There was no zstd then: codecs 0 to 3, and log append time."""
    assert found(changed(content, 17, bytes([attributes])) + NOISE) == ([0] if good else [])


@pytest.mark.parametrize(("size", "good"), [(61, True), (60, False), (18, False)])
def test_a_batch_needs_its_header_inside_the_buffer(size, good):
    assert found(BATCH[:size], remaining_after=len(BATCH) - size) == ([0] if good else [])


@pytest.mark.parametrize(("size", "good"), [(18, True), (17, False)])
def test_a_message_needs_what_comes_before_its_attributes_end(size, good):
    assert found(MESSAGES[0][:size], remaining_after=len(MESSAGES[0]) - size) == ([0] if good else [])


def test_positions_are_numbers_of_64_bits():
    assert candidates(memoryview(NOISE), 0, 0).dtype == candidates(memoryview(BATCH), 0, 0).dtype == np.int64
