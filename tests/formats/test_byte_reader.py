"""Kafka's primitive types read at the bounds of their ranges and of the buffer: org.apache.kafka.common.protocol.types.Type."""

import pytest

from kaudit.formats.byte_reader import Reader
from kaudit.formats.errors import Reason, WireError
from tests.formats.encoders import unsigned_varint


def failure(read, data, *arguments, position=0):
    with pytest.raises(WireError) as caught:
        getattr(Reader(data, position), read)(*arguments)
    return caught.value.reason, caught.value.position, caught.value.detail


@pytest.mark.parametrize(("name", "size"), [("int8", 1), ("int16", 2), ("int32", 4), ("int64", 8)])
def test_integers(name, size):
    for value in (-(2 ** (8 * size - 1)), -1, 0, 2 ** (8 * size - 1) - 1):
        reader = Reader(b"x" + value.to_bytes(size, "big", signed=True) + b"y", 1)
        assert getattr(reader, name)("it") == value
        assert (reader.position, reader.remaining, reader.rest()) == (1 + size, 1, b"y")
    left = f"it needs {size} bytes, {size - 1} are left"
    assert failure(name, bytes(size), "it", position=1) == (Reason.TRUNCATED, 1, left)


def test_raw_bytes():
    reader = Reader(b"abcde", 1)
    assert (reader.raw(0, "it"), reader.raw(3, "it"), reader.remaining) == (b"", b"bcd", 1)
    assert failure("raw", b"abc", 4, "it") == (Reason.TRUNCATED, 0, "it of 4 bytes, 3 are left")
    assert failure("raw", b"abc", -1, "it") == (Reason.TRUNCATED, 0, "it of -1 bytes, 3 are left")
    assert failure("raw", b"abc", 1, "it", position=9) == (Reason.TRUNCATED, 9, "it of 1 bytes, 0 are left")


@pytest.mark.parametrize("value", [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**32 - 1])
def test_unsigned_varints(value):
    encoded = unsigned_varint(value)
    reader = Reader(encoded + b"\xff")
    assert (reader.unsigned_varint("it"), reader.position) == (value, len(encoded))
    for size in range(len(encoded)):
        assert failure("unsigned_varint", b"x" + encoded[:size], "it", position=1)[:2] == (Reason.TRUNCATED, 1)


def test_varints_beyond_32_bits():
    beyond = "it: varint beyond 32 bits"
    assert failure("unsigned_varint", unsigned_varint(2**32), "it") == (Reason.VARINT, 0, beyond)
    assert failure("unsigned_varint", b"\x80" * 5 + b"\x00", "it") == (Reason.VARINT, 0, beyond)
    assert Reader(b"\x80" * 4 + b"\x00").unsigned_varint("it") == 0


@pytest.mark.parametrize("value", [0, 1, 0x7F, 0x80, 2**32, 2**35, 2**63 - 1, 2**63, 2**64 - 1])
def test_unsigned_varlongs(value):
    encoded = unsigned_varint(value)
    reader = Reader(encoded + b"\xff")
    assert (reader.unsigned_varlong("it"), reader.position) == (value, len(encoded))
    for size in range(len(encoded)):
        assert failure("unsigned_varlong", b"x" + encoded[:size], "it", position=1)[:2] == (Reason.TRUNCATED, 1)


def test_what_a_varlong_has_beyond_64_bits_is_dropped():
    assert Reader(b"\xff" * 9 + b"\x7f").unsigned_varlong("it") == 2**64 - 1
    assert failure("unsigned_varlong", b"\x80" * 10 + b"\0", "it") == (Reason.VARINT, 0, "it: varint beyond 64 bits")


@pytest.mark.parametrize(
    ("raw", "value"), [(0, 0), (1, -1), (2, 1), (3, -2), (2**32 - 2, 2**31 - 1), (2**32 - 1, -(2**31))]
)
def test_zigzag(raw, value):
    """The table of protobuf's Encoding, which is Kafka's ByteUtils and Avro's too."""
    assert Reader(unsigned_varint(raw)).varint("it") == Reader(unsigned_varint(raw)).varlong("it") == value


def test_zigzag_of_64_bits():
    assert Reader(unsigned_varint(2**64 - 1)).varlong("it") == -(2**63)
    assert failure("varint", unsigned_varint(2**32), "it")[0] is Reason.VARINT


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"\xff\xff", None), (b"\0\0", ""), (b"\0\2ab", "ab"), (b"\0\2\xc3\xa9", "é")],
)
def test_strings(data, text):
    assert Reader(data).nullable_string("it") == text
    if text is not None:
        assert Reader(data).string("it") == text
        compact = unsigned_varint(len(data) - 1) + data[2:]
        assert Reader(compact).compact_nullable_string("it") == Reader(compact).compact_string("it") == text


@pytest.mark.parametrize(
    ("read", "data", "reason", "detail"),
    [
        ("nullable_string", b"\xff\xfe", Reason.LENGTH, "it has length -2"),
        ("nullable_string", b"\0\3ab", Reason.TRUNCATED, "it of 3 bytes, 2 are left"),
        ("nullable_string", b"\0\1\xff", Reason.TEXT, "it is not UTF-8: b'\\xff'"),
        ("string", b"\xff\xff", Reason.LENGTH, "it must not be null"),
        ("compact_nullable_string", b"\4ab", Reason.TRUNCATED, "it of 3 bytes, 2 are left"),
        ("compact_nullable_string", b"\2\xff", Reason.TEXT, "it is not UTF-8: b'\\xff'"),
        ("compact_string", b"\0", Reason.LENGTH, "it must not be null"),
    ],
)
def test_what_is_no_string(read, data, reason, detail):
    found = failure(read, data, "it")
    assert (found[0], found[2]) == (reason, detail)
    assert found[1] == ((2 if read == "nullable_string" else 1) if reason is Reason.TRUNCATED else 0)


def test_nulls():
    assert Reader(b"\0").compact_nullable_string("it") is None
    assert Reader(b"\xff\xff\xff\xff").array_count("it", 4) is None
    assert Reader(b"\0").compact_array_count("it", 4) is None


@pytest.mark.parametrize(
    ("count", "element", "left", "good"), [(0, 4, 0, True), (2, 4, 8, True), (2, 4, 7, False), (3, 4, 8, False)]
)
def test_counts_are_bounded_by_what_is_left(count, element, left, good):
    plain, compact = count.to_bytes(4, "big") + bytes(left), unsigned_varint(count + 1) + bytes(left)
    if good:
        assert Reader(plain).array_count("it", element) == Reader(compact).compact_array_count("it", element) == count
    else:
        said = (Reason.COUNT, 0, f"it has {count} elements, {left} bytes are left")
        assert failure("array_count", plain, "it", element) == said
        assert failure("compact_array_count", compact, "it", element) == said


def test_a_count_below_null():
    assert failure("array_count", b"\xff\xff\xff\xfe" + bytes(9), "it", 1)[0] is Reason.COUNT


@pytest.mark.parametrize(
    ("data", "fields"),
    [(b"\0", {}), (b"\1\0\0", {0: b""}), (b"\2\0\1a\5\2bc", {0: b"a", 5: b"bc"})],
)
def test_tagged_fields(data, fields):
    reader = Reader(data)
    assert reader.tagged_fields() == fields
    reader.expect_end()
    assert failure("tagged_fields", data[:-1])[0] in (Reason.TRUNCATED, Reason.COUNT)


@pytest.mark.parametrize("data", [b"\2\5\1a\5\1b", b"\2\5\1a\4\1b"])
def test_tags_rise(data):
    assert failure("tagged_fields", data)[:2] == (Reason.ORDER, 4)


def test_more_tagged_fields_than_bytes():
    assert failure("tagged_fields", b"\2\0\0\1")[0] is Reason.COUNT


def test_what_is_left_over():
    Reader(b"ab", 2).expect_end()
    assert failure("expect_end", b"abc", position=1) == (Reason.TRAILING, 1, "2 bytes left over")
