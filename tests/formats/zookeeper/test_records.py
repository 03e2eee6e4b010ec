"""Headers of ZooKeeper's files, and values of Jute at the bounds of their lengths (BinaryInputArchive)."""

import struct

import pytest

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.zookeeper.records import FILE_HEADER_SIZE, JuteReader, read_file_header


def header(magic=b"ZKLG", version=2, database=-7):
    return struct.pack(">4siq", magic, version, database)


def failure(call, *arguments):
    with pytest.raises(WireError) as caught:
        call(*arguments)
    return caught.value.reason, caught.value.position, caught.value.detail


def test_the_header_of_a_file():
    assert FILE_HEADER_SIZE == 16
    assert read_file_header(memoryview(header() + b"more"), b"ZKLG", "log") == -7
    assert read_file_header(memoryview(header(b"ZKSN")), b"ZKSN", "snapshot") == -7
    assert failure(read_file_header, memoryview(header()[:15]), b"ZKLG", "log") == (
        Reason.TRUNCATED,
        0,
        "a log of 15 bytes has no file header",
    )
    assert failure(read_file_header, memoryview(header()), b"ZKSN", "snapshot")[:2] == (Reason.VERSION, 0)
    for version in (1, 3):
        assert failure(read_file_header, memoryview(header(version=version)), b"ZKLG", "log") == (
            Reason.VERSION,
            4,
            f"log of format version {version}, known is 2",
        )


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\0\0\0\2ab", b"ab"),
        (b"\0\0\0\0", b""),
        (b"\xff\xff\xff\xff", None),
        (b"\0\0\0\3\xc3\xa9x", "\u00e9x".encode()),
    ],
)
def test_buffers_and_texts(data, value):
    for lead in (b"", b"abc"):
        reader = JuteReader(lead + data + b"z", len(lead))
        assert reader.buffer() == value
        assert reader.rest() == b"z"
        reader = JuteReader(lead + data + b"z", len(lead))
        assert reader.text() == (None if value is None else value.decode())
        passed = JuteReader(lead + data + b"z", len(lead))
        start = passed.position
        assert passed.skip_buffer() == start + 4
        assert (passed.position, passed.part(start).rest()) == (len(lead + data), data)
    for cut in range(len(data)):
        for name in ("buffer", "text", "skip_buffer"):
            assert failure(getattr(JuteReader(data[:cut]), name))[0] is Reason.TRUNCATED


def test_lengths_below_null():
    for name in ("buffer", "text", "skip_buffer"):
        assert failure(getattr(JuteReader(b"x\xff\xff\xff\xfe", 1), name))[:2] == (Reason.LENGTH, 1)


@pytest.mark.parametrize(
    ("count", "smallest", "left", "good"), [(-1, 4, 0, 0), (0, 4, 0, 0), (2, 4, 8, 2), (2, 4, 7, None), (3, 4, 8, None)]
)
def test_vectors_are_bounded_by_what_is_left(count, smallest, left, good):
    reader = JuteReader(struct.pack(">i", count) + bytes(left))
    if good is None:
        assert failure(reader.count, "vector", smallest)[:2] == (Reason.COUNT, 0)
    else:
        assert reader.count("vector", smallest) == good


def test_a_text_that_is_no_utf8():
    assert failure(JuteReader(b"\0\0\0\1\xff").text)[:2] == (Reason.TEXT, 0)
