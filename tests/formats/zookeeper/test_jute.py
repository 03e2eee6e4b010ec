"""Jute, field by field: values, where the cursor stands afterwards, and what is refused (BinaryInputArchive)."""

import struct

import pytest

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.zookeeper.records import JuteReader


def reader(*parts, end=None):
    data = b"".join(parts)
    return JuteReader(memoryview(data), 0, len(data) if end is None else end)


def sized(raw):
    return struct.pack(">i", len(raw)) + raw


@pytest.mark.parametrize(
    ("read", "raw", "value"),
    [
        (lambda own: own.int32("int"), struct.pack(">i", -2), -2),
        (lambda own: own.int64("long"), struct.pack(">q", -(2**40)), -(2**40)),
        (JuteReader.buffer, sized(b"abc"), b"abc"),
        (JuteReader.buffer, sized(b""), b""),
        (JuteReader.buffer, struct.pack(">i", -1), None),
        (JuteReader.text, sized("é".encode()), "é"),
        (JuteReader.text, struct.pack(">i", -1), None),
        (JuteReader.skip_buffer, sized(b"abc"), 4),
        (JuteReader.skip_buffer, struct.pack(">i", -1), 4),
    ],
)
def test_a_value_and_where_it_ends(read, raw, value):
    own = reader(raw, b"\x07")
    assert (read(own), own.position, own.remaining) == (value, len(raw), 1)
    for end in range(len(raw)):
        with pytest.raises(WireError) as caught:
            read(reader(raw, end=end))
        assert caught.value.reason is Reason.TRUNCATED


@pytest.mark.parametrize(("length", "smallest", "count"), [(-1, 4, 0), (0, 4, 0), (2, 4, 2), (8, 1, 8)])
def test_how_many_elements_a_vector_has(length, smallest, count):
    own = reader(struct.pack(">i", length), bytes(8))
    assert (own.count("vector", smallest), own.position) == (count, 4)


@pytest.mark.parametrize(("length", "smallest"), [(3, 4), (9, 1), (2**31 - 1, 1)])
def test_a_vector_of_more_than_is_left(length, smallest):
    with pytest.raises(WireError) as caught:
        reader(struct.pack(">i", length), bytes(8)).count("vector", smallest)
    assert (caught.value.reason, caught.value.position) == (Reason.COUNT, 0)


@pytest.mark.parametrize("read", [JuteReader.buffer, JuteReader.text, JuteReader.skip_buffer])
def test_a_length_below_minus_one(read):
    with pytest.raises(WireError):
        read(reader(struct.pack(">i", -2), bytes(8)))


def test_bytes_that_are_no_text():
    with pytest.raises(WireError) as caught:
        reader(sized(b"\xff")).text()
    assert (caught.value.reason, caught.value.position) == (Reason.TEXT, 0)


def test_bytes_are_passed_by_size():
    own = reader(bytes(5))
    own.skip(3, "header")
    assert own.position == 3
    with pytest.raises(WireError, match="header of 3 bytes, 2 are left"):
        own.skip(3, "header")
