import re
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatch

from kaudit.formats.errors import LimitExceededError, Reason, WireError
from kaudit.formats.log.legacy import LegacyRecord, parse_message, read_legacy_records, read_messages
from kaudit.formats.log.records import read_records
from tests.formats import encoders
from tests.formats.fuzz import damaged, outcome, quick

blob = st.none() | st.binary(max_size=120)
rows = st.lists(st.tuples(st.integers(-1, 2**62), blob, blob), min_size=1, max_size=6)


def wrap(last_offset, magic, inner, codec, timestamp=0, attributes=0, compress=None):
    value = (compress or encoders.COMPRESS.get(codec, bytes))(b"".join(inner))
    return encoders.message(last_offset, magic, None, value, codec, timestamp, attributes)


@given(rows, st.integers(0, 1), st.integers(0, 2**60))
@quick
def test_plain_messages_round_trip(rows, magic, base):
    data = b"".join(
        encoders.message(base + index, magic, key, value, 0, timestamp)
        for index, (timestamp, key, value) in enumerate(rows)
    )
    messages = list(read_messages(memoryview(data)))
    assert [m.position + m.size for m in messages][-1] == len(data)
    found = [record for message in messages for record in read_legacy_records(message)]
    assert [(r.offset, r.timestamp, r.key, r.value, r.crc_valid) for r in found] == [
        (base + index, timestamp if magic else None, key, value, True)
        for index, (timestamp, key, value) in enumerate(rows)
    ]


@given(rows, st.integers(0, 1), st.integers(0, 2**60), st.integers(1, 4), st.booleans())
@quick
def test_wrappers_round_trip(rows, magic, base, codec, is_log_append_time):
    """Every second offset, as compaction leaves them: absolute inside magic 0, relative inside magic 1."""
    inner = [
        encoders.message(2 * index + (0 if magic else base), magic, key, value, 0, timestamp)
        for index, (timestamp, key, value) in enumerate(rows)
    ]
    last = base + 2 * (len(rows) - 1)
    raw = wrap(last, magic, inner, codec, timestamp=77, attributes=8 if is_log_append_time else 0)
    times = [77 if is_log_append_time else timestamp for timestamp, _, _ in rows]
    assert [(r.offset, r.timestamp, r.key, r.value) for r in read_legacy_records(parse_message(raw))] == [
        (base + 2 * index, times[index] if magic else None, key, value) for index, (_, key, value) in enumerate(rows)
    ]


def test_a_broken_crc_is_reported_not_hidden():
    raw = bytearray(encoders.message(5, 1, b"k", b"v"))
    raw[-1] ^= 1
    message = parse_message(raw)
    assert (message.crc_valid, message.value) == (False, b"w")
    assert list(read_legacy_records(message)) == [LegacyRecord(5, 0, b"k", b"w", False, 0, len(raw))]


def test_the_lz4_header_of_magic_0_is_not_believed():
    inner = [encoders.message(4, 0, None, b"v" * 50)]
    old = parse_message(wrap(4, 0, inner, encoders.LZ4, compress=encoders.lz4_of_old_kafka))
    assert [record.value for record in read_legacy_records(old)] == [b"v" * 50]
    sound = parse_message(wrap(4, 0, inner, encoders.LZ4))
    assert [record.value for record in read_legacy_records(sound)] == [b"v" * 50]


PLAIN = encoders.message(0, 1, b"k", b"v")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", Reason.TRUNCATED),
        (PLAIN[:17], Reason.TRUNCATED),
        (PLAIN[:-1], Reason.TRUNCATED),
        (PLAIN[:16] + b"\x02" + PLAIN[17:], Reason.VERSION),
        (PLAIN[:8] + struct.pack(">i", -1) + PLAIN[12:], Reason.LENGTH),
        (PLAIN[:8] + struct.pack(">i", 21) + PLAIN[12:], Reason.LENGTH),
        (PLAIN[:8] + struct.pack(">i", 23) + PLAIN[12:], Reason.LENGTH),
        (encoders.message(0, 1, b"k", b"v" * 9)[:31] + struct.pack(">i", 3) + b"v" * 9, Reason.LENGTH),
        (PLAIN[:26] + struct.pack(">i", -2) + PLAIN[30:], Reason.LENGTH),
        (PLAIN[:26] + struct.pack(">i", 2**31 - 1) + PLAIN[30:], Reason.LENGTH),
        (PLAIN[:26] + struct.pack(">i", 5) + PLAIN[30:], Reason.LENGTH),
    ],
)
def test_what_is_no_message(raw, reason):
    with pytest.raises(WireError) as caught:
        parse_message(raw)
    assert caught.value.reason is reason


@pytest.mark.parametrize(("position", "left"), [(30, 6), (36, 0), (40, 0)])
def test_what_is_left_of_a_buffer_is_said(position, left):
    with pytest.raises(WireError, match=f"^{left} bytes left") as caught:
        parse_message(PLAIN, position)
    assert caught.value.reason is Reason.TRUNCATED


TWO = [encoders.message(0, 1, None, b"a"), encoders.message(1, 1, None, b"b")]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (encoders.message(9, 1, None, None, encoders.GZIP), Reason.COUNT),
        (wrap(9, 1, [], encoders.GZIP), Reason.COUNT),
        (wrap(9, 1, [encoders.message(0, 0, None, b"a")], encoders.GZIP), Reason.VERSION),
        (wrap(9, 1, [wrap(0, 1, TWO, encoders.GZIP)], encoders.GZIP), Reason.CODEC),
        (wrap(9, 1, TWO, 5), Reason.CODEC),
        (wrap(9, 1, [*TWO, b"\x00" * 5], encoders.GZIP), Reason.TRUNCATED),
        (wrap(9, 1, [*TWO, b"\x00" * 30], encoders.GZIP), Reason.LENGTH),
        (wrap(0, 1, TWO, encoders.GZIP), Reason.ORDER),
        (wrap(9, 1, TWO[::-1], encoders.GZIP), Reason.ORDER),
        (wrap(0, 0, [encoders.message(1, 0, None, b"a")], encoders.GZIP), Reason.ORDER),
    ],
)
def test_wrappers_with_contradictions(raw, reason):
    with pytest.raises(WireError) as caught:
        list(read_legacy_records(parse_message(raw)))
    assert caught.value.reason is reason


def test_the_limit_reaches_the_codec():
    raw = wrap(0, 1, [encoders.message(0, 1, None, bytes(9000))], encoders.GZIP)
    with pytest.raises(LimitExceededError):
        list(read_legacy_records(parse_message(raw), limit=5000))


def _entries(data):
    """(magic, bytes) of each entry, walked by sizes alone."""
    position = 0
    while position + 17 <= len(data):
        size = 12 + struct.unpack_from(">i", data, position + 8)[0]
        if size <= 12:
            return
        yield data[position + 16], data[position : position + size]
        position += size


LINE = re.compile(
    r"offset: (\d+) position: \d+ (\w+): (-?\d+) isvalid: (\w+) keysize: (-?\d+) valuesize: (-?\d+) magic: (\d)"
)


def test_every_legacy_record_equals_the_dump_and_kafka_python(evidence):
    root = evidence.capture("legacy-formats")
    compared = {0: 0, 1: 0}
    codecs = set()
    for dump in sorted((root / "dumps").glob("*.deep.txt")):
        if "____" in dump.name:
            continue  # internal topics are magic 2
        found: list[tuple[int, int | None, bytes | None, bytes | None, int]] = []
        for magic, raw in _entries((root / dump.name.removesuffix(".deep.txt").replace("__", "/")).read_bytes()):
            if magic == 2:
                found += [(r.offset, r.timestamp, r.key, r.value, 2) for r in read_records(raw)]
                continue
            message = parse_message(raw)
            assert message.crc_valid
            codecs.add((magic, message.codec))
            records = list(read_legacy_records(message))
            assert all(record.crc_valid for record in records)
            theirs = [(r.offset, r.timestamp, r.key, r.value) for r in LegacyRecordBatch(memoryview(raw), magic)]
            assert [(r.offset, r.timestamp, r.key, r.value) for r in records] == theirs
            found += [(r.offset, r.timestamp, r.key, r.value, magic) for r in records]
            compared[magic] += len(records)
        sizes = [
            (o, -1 if t is None else t, -1 if k is None else len(k), -1 if v is None else len(v), m)
            for o, t, k, v, m in found
        ]
        dumped = [
            (int(line[1]), int(line[3]), int(line[5]), int(line[6]), int(line[7]))
            for line in map(LINE.match, dump.read_text().splitlines())
            if line
        ]
        assert dumped == sizes, dump.name
    assert min(compared.values()) > 300
    assert codecs >= {(magic, codec) for magic in (0, 1) for codec in (0, 1, 2, 3)}


SAMPLES = [PLAIN, encoders.message(3, 0, b"key", b"value"), *(wrap(1, 1, TWO, codec) for codec in (1, 2, 3, 4))]


@given(damaged(SAMPLES))
@quick
def test_fuzz(data):
    messages, error = outcome(lambda: list(read_messages(data)))
    assert error is None or 0 <= error.position <= len(data)
    for message in messages or ():
        records, error = outcome(lambda message=message: list(read_legacy_records(message, limit=10_000)))
        assert error is not None or len(records) >= 1


INNER = encoders.message(0, 1, b"k", b"v") + encoders.message(1, 1, b"k", b"w")


@pytest.mark.parametrize(
    ("inner", "good", "reason"),
    [
        (INNER + bytes(11), 0, Reason.TRUNCATED),  # where the next one ends cannot be known
        (INNER + struct.pack(">qi", 2, 14), 2, Reason.TRUNCATED),  # an offset and a size, and no more
        (INNER + struct.pack(">qi", 2, 0), 0, Reason.LENGTH),
        (INNER + struct.pack(">qi", 2, -1), 0, Reason.LENGTH),
        (INNER[:-1], 1, Reason.TRUNCATED),
        (INNER + encoders.message(2, 0, b"k", b"v"), 2, Reason.VERSION),
        (INNER + encoders.message(2, 1, None, encoders.COMPRESS[1](INNER), 1), 2, Reason.CODEC),
        (INNER + encoders.message(1, 1), 2, Reason.ORDER),
    ],
)
def test_a_message_set_in_a_wrapper_that_goes_wrong(inner, good, reason):
    last = 2 if len(inner) > len(INNER) and reason is not Reason.ORDER else 1
    message = parse_message(encoders.message(500 + last, 1, None, encoders.COMPRESS[1](inner), 1))
    records: list[LegacyRecord] = []
    with pytest.raises(WireError) as caught:
        records.extend(read_legacy_records(message))
    assert caught.value.reason is reason
    reader = read_legacy_records(message)
    assert [next(reader).offset for _ in range(good)] == [500, 501][:good]
    with pytest.raises(WireError):
        next(reader)


@pytest.mark.parametrize(("magic", "size", "good"), [(0, 13, False), (0, 14, True), (1, 21, False), (1, 22, True)])
def test_the_shortest_message(magic, size, good):
    """LegacyRecord.RECORD_OVERHEAD_V0 and V1: without key and value."""
    whole = encoders.message(5, magic)
    assert len(whole) == 12 + (22 if magic else 14)
    changed = whole[:8] + struct.pack(">i", size) + whole[12:]
    if good:
        assert parse_message(changed) == parse_message(whole)
    else:
        with pytest.raises(WireError) as caught:
            parse_message(changed)
        assert (caught.value.reason, caught.value.position) == (Reason.LENGTH, 8)


@pytest.mark.parametrize("at", [0, 3])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_cut_anywhere(magic, at):
    whole = bytes(at) + encoders.message(5, magic, b"key", b"value")
    assert parse_message(whole, at).size == len(whole) - at
    for size in range(len(whole)):
        with pytest.raises(WireError) as caught:
            parse_message(whole[:size], at)
        assert (caught.value.reason, caught.value.position) == (Reason.TRUNCATED, size)
