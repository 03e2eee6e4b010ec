import itertools
import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as PythonBatch

from kaudit.formats.errors import LimitExceededError, Reason, WireError
from kaudit.formats.log.records import Header, Record, read_records
from tests.formats import encoders
from tests.formats.archives import files
from tests.formats.fuzz import damaged, outcome, quick
from tests.formats.log.raw_batches import batches, segments

blob = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.binary(max_size=20), blob), max_size=3)
plain = st.tuples(st.integers(-(2**40), 2**40), blob, blob, headers, st.integers(0, 255))


@given(st.lists(plain, min_size=1, max_size=8), st.integers(0, 4), st.integers(0, 2**62), st.integers(0, 2**31 - 1))
@quick
def test_round_trip(rows, codec, base_offset, base_sequence):
    encoded = [
        encoders.record(2 * index, timestamp_delta, key, value, header, attributes)
        for index, (timestamp_delta, key, value, header, attributes) in enumerate(rows)
    ]
    raw = encoders.batch(
        encoded,
        base_offset,
        codec,
        last_offset_delta=2 * len(rows),
        producer_id=5,
        producer_epoch=0,
        base_sequence=base_sequence,
    )
    positions = [0, *itertools.accumulate(map(len, encoded))]
    assert list(read_records(memoryview(raw))) == [
        Record(
            offset=base_offset + 2 * index,
            timestamp=1_700_000_000_000 + timestamp_delta,
            sequence=(base_sequence + 2 * index) % 2**31,
            attributes=attributes,
            key=key,
            value=value,
            headers=tuple(Header(*pair) for pair in header),
            position=positions[index],
            size=len(encoded[index]),
        )
        for index, (timestamp_delta, key, value, header, attributes) in enumerate(rows)
    ]


def test_null_is_not_empty():
    rows = list(read_records(encoders.batch([encoders.record(0, key=None, value=b""), encoders.record(1, key=b"")])))
    assert [(row.key, row.value) for row in rows] == [(None, b""), (b"", None)]
    assert [row.sequence for row in rows] == [None, None]


def test_log_append_time_belongs_to_the_batch():
    raw = encoders.batch([encoders.record(0, 5)], flags=encoders.LOG_APPEND_TIME, max_timestamp=99)
    assert [row.timestamp for row in read_records(raw)] == [99]


def test_a_batch_emptied_by_compaction():
    assert list(read_records(encoders.batch([], last_offset_delta=6))) == []
    emptied = bytearray(encoders.batch([], last_offset_delta=6))
    emptied[22] |= encoders.LZ4  # the codec bits stay though nothing is compressed
    assert list(read_records(emptied)) == []


def test_delete_horizon_is_the_base_of_the_times():
    raw = encoders.batch([encoders.record(0, -5)], flags=encoders.DELETE_HORIZON, base_timestamp=1000)
    assert [row.timestamp for row in read_records(raw)] == [995]


ONE, TWO = encoders.record(0, value=b"one"), encoders.record(1, value=b"two")


@pytest.mark.parametrize(
    ("raw", "reason", "good"),
    [
        (encoders.batch([ONE, TWO])[:60], Reason.TRUNCATED, 0),
        (encoders.batch([ONE, TWO], magic=1), Reason.VERSION, 0),
        (encoders.batch([ONE, TWO], length=60), Reason.LENGTH, 0),
        (encoders.batch([ONE, TWO], count=-1), Reason.COUNT, 0),
        (encoders.batch([ONE, TWO], count=3), Reason.COUNT, 0),
        (encoders.batch([ONE, TWO], count=3, last_offset_delta=9), Reason.TRUNCATED, 2),
        (encoders.batch([ONE, TWO], count=900, last_offset_delta=999), Reason.TRUNCATED, 2),
        (encoders.batch([ONE, TWO], count=1), Reason.TRAILING, 1),
        (encoders.batch([ONE, TWO], last_offset_delta=-1), Reason.ORDER, 0),
        (encoders.batch([ONE, TWO], base_offset=2**63 - 1), Reason.ORDER, 0),
        (encoders.batch([ONE, ONE]), Reason.ORDER, 1),
        (encoders.batch([TWO, ONE]), Reason.ORDER, 1),
        (encoders.batch([ONE, encoders.record(2)]), Reason.ORDER, 1),
        (encoders.batch([ONE, b"\x00" + TWO], count=2), Reason.LENGTH, 1),
        (encoders.batch([ONE, TWO[:-1]]), Reason.LENGTH, 1),
        (encoders.batch([ONE, b"\x7f" + TWO[1:]]), Reason.LENGTH, 1),
        (encoders.batch([ONE, b"\xff" * 7 + TWO]), Reason.VARINT, 1),
        (encoders.batch([ONE, TWO[:1] + b"\x00" + b"\x80" * 9 + TWO[11:]]), Reason.TRUNCATED, 1),
        (encoders.batch([ONE, encoders.record(1, 2**63 - 1)], base_timestamp=9), Reason.VALUE, 1),
        (encoders.batch([ONE, bytes([TWO[0] + 2]) + TWO[1:] + b"\x00"]), Reason.LENGTH, 1),
        (encoders.batch([ONE], codec=5), Reason.CODEC, 0),
    ],
)
def test_contradictions(raw, reason, good):
    with pytest.raises(WireError) as caught:
        list(read_records(raw))
    reader = read_records(raw)
    assert len(list(itertools.islice(reader, good))) == good
    assert caught.value.reason is reason


def test_negative_lengths_are_not_null():
    body = struct.pack(">B", 0) + encoders.varint(0) * 2 + encoders.varint(-2) + encoders.varint(-1) * 2
    with pytest.raises(WireError) as caught:
        list(read_records(encoders.batch([encoders.varint(len(body)) + body])))
    assert caught.value.reason is Reason.LENGTH


def sized(body):
    """A record of these bytes, behind its length."""
    return encoders.varint(len(body)) + body


HEAD = bytes(3)
"""Attributes, timestamp delta and offset delta of a first record."""
NULL, EMPTY = encoders.varint(-1), encoders.varint(0)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (HEAD + encoders.varint(9) + b"key", "key of 9 bytes, the record has 3 left"),
        (HEAD + encoders.varint(-2) + b"key", "key of length -2"),
        (HEAD + NULL + encoders.varint(70) + bytes(69), "value of 70 bytes, the record has 69 left"),
        (HEAD + NULL + NULL + encoders.varint(-1), "-1 headers, the record has 0 bytes left"),
        (HEAD + NULL + NULL + encoders.varint(2) + EMPTY + NULL + EMPTY, "2 headers, the record has 3 bytes left"),
        (HEAD + NULL + NULL + encoders.varint(1) + NULL + NULL, "a header key must not be null"),
        (HEAD + NULL + NULL + encoders.varint(1) + EMPTY + encoders.varint(3) + b"ab", "header value of 3 bytes"),
        (HEAD + NULL + NULL + EMPTY + b"more", "record says it ends at"),
    ],
)
def test_what_a_record_that_contradicts_itself_says(body, detail):
    """The bytes of the record behind it are not its own."""
    with pytest.raises(WireError) as caught:
        list(read_records(encoders.batch([sized(body), encoders.record(1, value=bytes(100))])))
    assert caught.value.detail.startswith(detail)
    assert caught.value.reason in (Reason.LENGTH, Reason.COUNT)


def test_the_smallest_headers_take_two_bytes_each():
    raw = encoders.batch([encoders.record(0, headers=[(b"", None)] * 3)])
    assert [row.headers for row in read_records(raw)] == [(Header(b"", None),) * 3]


def test_the_limit_reaches_the_codec():
    raw = encoders.batch([encoders.record(0, value=bytes(10_000))], codec=encoders.ZSTD)
    with pytest.raises(LimitExceededError):
        list(read_records(raw, limit=5000))


@pytest.mark.parametrize(
    ("base", "delta", "timestamp"),
    [(0, 2**63 - 1, 2**63 - 1), (-1, -(2**63) + 1, -(2**63)), (2**63 - 1, 0, 2**63 - 1), (-(2**63), 2**63 - 1, -1)],
)
def test_timestamps_of_all_64_bits(base, delta, timestamp):
    raw = encoders.batch([encoders.record(0, delta)], base_timestamp=base)
    assert [row.timestamp for row in read_records(raw)] == [timestamp]


@pytest.mark.parametrize(("base", "delta"), [(1, 2**63 - 1), (-2, -(2**63) + 1), (2**63 - 1, 1), (-(2**63), -1)])
def test_timestamps_beyond_64_bits(base, delta):
    with pytest.raises(WireError) as caught:
        list(read_records(encoders.batch([encoders.record(0, delta)], base_timestamp=base)))
    assert caught.value.reason is Reason.VALUE


def test_the_last_offsets_of_all():
    raw = encoders.batch([ONE, TWO], base_offset=2**63 - 2)
    assert [row.offset for row in read_records(raw)] == [2**63 - 2, 2**63 - 1]
    far = encoders.batch([encoders.record(2**31 - 1)], last_offset_delta=2**31 - 1, base_sequence=2)
    assert [(row.offset, row.sequence) for row in read_records(far)] == [(2**31 - 1, 1)]


@pytest.mark.parametrize(
    ("records", "detail"),
    [
        ([ONE, ONE], "offset delta 0 after 0, last is 1"),
        ([TWO, TWO], "offset delta 1 after 1, last is 1"),
        ([ONE, encoders.record(2)], "offset delta 2 after 0, last is 1"),
        ([encoders.record(-1), ONE], "offset delta -1 after -1, last is 1"),
    ],
)
def test_offsets_that_do_not_rise_are_named_by_their_deltas(records, detail):
    with pytest.raises(WireError) as caught:
        list(read_records(encoders.batch(records, base_offset=700)))
    assert caught.value.detail == detail


def padded(value, size):
    """A zigzag varint in more bytes than it needs."""
    raw, out = 2 * value if value >= 0 else -2 * value - 1, bytearray()
    for place in range(size):
        out.append(raw >> 7 * place & 0x7F | (0x80 if place < size - 1 else 0))
    return bytes(out)


@pytest.mark.parametrize(
    ("field", "size", "good"),
    [("length", 5, True), ("length", 6, False), ("timestamp", 10, True), ("timestamp", 11, False)]
    + [(name, size, size < 6) for name in ("offset", "key", "value", "headers", "header") for size in (2, 5, 6)],
)
def test_varints_may_be_longer_than_they_need_to_be(field, size, good):
    """ByteUtils.readVarint takes five bytes, readVarlong ten, whatever they say."""
    least = {"length": 1, "timestamp": 1, "offset": 1, "key": 1, "value": 1, "headers": 1, "header": 1} | {field: size}
    body = b"\0" + padded(-3, least["timestamp"]) + padded(0, least["offset"]) + padded(1, least["key"]) + b"k"
    body += padded(2, least["value"]) + b"vv" + padded(1, least["headers"]) + padded(1, least["header"]) + b"h" + NULL
    raw = encoders.batch([padded(len(body), least["length"]) + body], base_timestamp=1000)
    if good:
        (row,) = read_records(raw)
        assert (row.timestamp, row.key, row.value, row.headers) == (997, b"k", b"vv", (Header(b"h", None),))
    else:
        with pytest.raises(WireError) as caught:
            list(read_records(raw))
        assert caught.value.reason is Reason.VARINT


def test_a_varint_of_more_bits_than_its_type_has():
    for size, bits, field in ((5, 32, "offset"), (10, 64, "timestamp")):
        many = b"\xff" * (size - 1) + bytes([1 << bits - 7 * (size - 1)])
        fields = (b"\0" + many) if field == "offset" else many + b"\0"
        with pytest.raises(WireError) as caught:
            list(read_records(encoders.batch([sized(b"\0" + fields + NULL + NULL + EMPTY)])))
        assert caught.value.reason is Reason.VARINT


@pytest.mark.parametrize(("size", "good"), [(5, False), (6, True)])
def test_the_shortest_record(size, good):
    """Attributes, two deltas, two null lengths, no headers: six bytes behind the length."""
    body = (bytes(3) + NULL + NULL + EMPTY)[:size]
    raw = encoders.batch([sized(body), encoders.record(1)])
    if good:
        assert [(row.key, row.value, row.size) for row in read_records(raw)] == [(None, None, 7), (None, None, 7)]
    else:
        with pytest.raises(WireError) as caught:
            list(read_records(raw))
        assert caught.value.detail == f"record of {size} bytes, {len(raw) - 61 - 1} are left"


def _aio(raw):
    batch = AioBatch(raw)
    return [(r.offset, r.timestamp, r.key, r.value, [(key, value) for key, value in r.headers]) for r in batch]


def _python(raw):
    return [
        (r.offset, r.timestamp, r.key, r.value, [(key, value) for key, value in r.headers]) for r in PythonBatch(raw)
    ]


def test_records_of_every_client_equal_what_their_libraries_read(evidence):
    """Six clients, five codecs: every key, value, header and timestamp as two independent readers see them."""
    compared = 0
    for segment in segments(evidence.capture("clients-mix")):
        if segment.parent.name.startswith("__"):
            continue
        for _, raw in batches(segment.read_bytes()):
            ours = [
                (r.offset, r.timestamp, r.key, r.value, [(h.key.decode(), h.value) for h in r.headers])
                for r in read_records(raw)
            ]
            assert ours == _aio(raw)
            assert ours == _python(raw)
            compared += len(ours)
    assert compared > 4000


def test_every_batch_there_is_reads_to_its_end(evidence):
    count_of_batches = 0
    for path in files(evidence, "*.log", without=["artificial", "enospc"]):
        for _, raw in batches(path.read_bytes()):
            (count,) = struct.unpack_from(">i", raw, 57)
            assert len(list(read_records(raw))) == count
            count_of_batches += 1
    assert count_of_batches > 50_000


SAMPLES = [
    encoders.batch(
        [encoders.record(index, index, b"key", b"value" * index, [(b"h", None)]) for index in range(6)], codec=codec
    )
    for codec in encoders.COMPRESS
]


@given(damaged(SAMPLES))
@quick
def test_fuzz(data):
    rows, error = outcome(lambda: list(read_records(data, limit=100_000)))
    assert error is None or error.position >= 0
    for row in rows or ():
        assert -(2**63) <= row.timestamp < 2**63
        assert -(2**63) <= row.offset < 2**63
