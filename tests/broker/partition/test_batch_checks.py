"""Checks of a produce request's batches, one by one: both sides of each bound, and the values that a refusal names."""

import gzip
import struct
from typing import Any

import cramjam
import crc32c
import pytest
from msgspec.structs import replace

from kaudit.broker.config import TopicLimits
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.log_validator import check_batch, check_batches, holds_records, written_size
from kaudit.broker.partition.record_set import RecordSet, Refusal, WireBatch, check_request, split
from kaudit.broker.releases.profile import profile_for
from kaudit.formats.log.codecs import Codec
from tests.logs import TRANSACTIONAL, Batch, record, sealed_records

OLDEST, MIDDLE, NEW = (profile_for(version) for version in ("0.11.0.0", "2.3.1", "3.9.1"))
NOW = 100_000
FIELDS = WireBatch(7, 0, 0, 3, 2, 0, 0, NOW, 2, 0, b"")
"""A batch of three records that an attempt gives by its fields."""
GOOD = sealed_records(Batch(7, 0, 0, 2, timestamp=NOW), [record(0, b"k", b"v"), record(1, b"k", b"v")])


def field(**fields: Any) -> WireBatch:
    return replace(FIELDS, **fields)


def read(data: bytes) -> WireBatch:
    (batch,) = split(data).batches
    return batch


def patched(data: bytes, **places: tuple[int, bytes]) -> bytes:
    """Bytes with others at some places, and the CRC that then matches."""
    changed = bytearray(data)
    for at, new in places.values():
        changed[at : at + len(new)] = new
    changed[17:21] = struct.pack(">I", crc32c.crc32c(bytes(changed[21:])))
    return bytes(changed)


def refused(batch: WireBatch, limits: TopicLimits | None = None, profile=NEW) -> tuple[KafkaError | None, str] | None:
    found = check_batch(batch, profile, TopicLimits() if limits is None else limits, NOW)
    return None if found is None else (found.error, found.why)


INVALID = KafkaError.INVALID_RECORD


@pytest.mark.parametrize(
    ("batch", "why"),
    [
        (FIELDS, None),
        (field(attributes=0x20), "clients must not write control batches"),
        (field(base_sequence=-1), "sequence -1 with producer id 7"),
        (field(producer_id=0, base_sequence=-2), "sequence -2 with producer id 0"),
        (field(producer_id=-1, base_sequence=-1), None),
        (field(record_count=0, last_offset_delta=-1), "no records"),
        (field(record_count=1, last_offset_delta=0), None),
        (field(record_count=-1, last_offset_delta=-2), "-1 records"),
        (field(last_offset_delta=3), "3 records but a last offset delta of 3"),
        (field(last_offset_delta=1), "3 records but a last offset delta of 1"),
    ],
)
def test_headers(batch, why):
    assert refused(batch) == (None if why is None else (INVALID, why))


def test_what_older_releases_let_pass():
    """LogValidator.validateBatch: offsets since 1.1, empty batches since 0.11.0.1; INVALID_RECORD since 2.4."""
    assert refused(field(last_offset_delta=3), profile=OLDEST) is None
    assert refused(field(record_count=-1), profile=OLDEST) is None
    assert refused(field(record_count=0), profile=OLDEST) is None
    assert refused(field(last_offset_delta=3), profile=MIDDLE) == (
        KafkaError.CORRUPT_MESSAGE,
        "3 records but a last offset delta of 3",
    )


LIMITS = TopicLimits(ahead_ms=100, behind_ms=200)


@pytest.mark.parametrize(
    ("time", "why"),
    [
        (NOW + 100, None),
        (NOW + 101, "timestamp 100101 is 101 ms ahead of the broker, 100 are allowed"),
        (NOW - 200, None),
        (NOW - 201, "timestamp 99799 is 201 ms behind the broker, 200 are allowed"),
        (-1, None),
    ],
)
def test_timestamps(time, why):
    found = check_batch(field(max_timestamp=time), NEW, LIMITS, NOW)
    assert found == (None if why is None else Refusal(KafkaError.INVALID_TIMESTAMP, why, of_records=True))
    assert refused(field(max_timestamp=time)) is None
    assert refused(field(max_timestamp=time), replace(LIMITS, log_append_time=True)) is None


@pytest.mark.parametrize(
    ("version", "time", "append_time", "is_refused"),
    [
        ("3.5.2", NOW, False, True),
        ("3.6.2", NOW, False, False),  # KIP-937
        ("3.6.2", -1, False, True),
        ("3.6.2", NOW, True, True),
    ],
)
def test_a_timestamp_type_that_only_brokers_set(version, time, append_time, is_refused):
    batch, limits = field(attributes=0x08, max_timestamp=time), TopicLimits(log_append_time=append_time)
    found = check_batch(batch, profile_for(version), limits, NOW)
    why = "a client must not set the timestamp type to LogAppendTime"
    assert found == (Refusal(KafkaError.INVALID_TIMESTAMP, why, of_records=True) if is_refused else None)


SIZE = len(GOOD)


@pytest.mark.parametrize(
    ("data", "limits", "expected"),
    [
        (GOOD, {}, None),
        (GOOD, {"max_message_bytes": SIZE, "segment_bytes": SIZE}, None),
        (
            GOOD,
            {"max_message_bytes": SIZE - 1},
            (KafkaError.MESSAGE_TOO_LARGE, f"a batch of {SIZE} bytes, {SIZE - 1} are allowed"),
        ),
        (
            GOOD,
            {"segment_bytes": SIZE - 1},
            (KafkaError.RECORD_LIST_TOO_LARGE, f"a batch of {SIZE} bytes, a segment holds {SIZE - 1}"),
        ),
        (GOOD[:7] + b"\1" + GOOD[8:], {}, (INVALID, "base offset 1, from a client it must be 0")),
        (
            GOOD[:17] + b"\0\0\0\x0f" + GOOD[21:],
            {},
            (KafkaError.CORRUPT_MESSAGE, "the CRC 0x0000000f does not match the bytes"),
        ),
        (
            patched(GOOD, codec=(21, b"\0\5")),
            {},
            (KafkaError.UNKNOWN_SERVER_ERROR, "unknown compression codec 5"),
        ),
        (
            patched(GOOD, delta=(23, struct.pack(">i", 2)), count=(57, struct.pack(">i", 3))),
            {},
            (INVALID, "the bytes do not hold 3 records"),
        ),
        (
            patched(GOOD, delta=(23, struct.pack(">i", 0)), count=(57, struct.pack(">i", 1))),
            {},
            (INVALID, "the bytes do not hold 1 records"),
        ),
    ],
)
def test_bytes(data, limits, expected):
    assert refused(read(data), TopicLimits(**limits)) == expected


def test_codecs_of_releases():
    """KIP-110: zstd since 2.1. A codec that cannot decompress has no error code."""
    zstd, lz4 = (patched(GOOD, codec=(21, bytes((0, codec)))) for codec in (4, 3))
    old = profile_for("2.0.1")
    assert refused(read(zstd), profile=old) == (KafkaError.UNKNOWN_SERVER_ERROR, "unknown compression codec 4")
    for found in (refused(read(lz4), profile=old), refused(read(zstd))):
        assert found is not None
        assert found[0] is KafkaError.UNKNOWN_SERVER_ERROR
        assert found[1].startswith("the records cannot be read: ")


def test_records_of_a_compacted_topic_have_keys():
    without = sealed_records(Batch(7, 0, 0, 2, timestamp=NOW), [record(0, b"k", b"v"), record(1, None, b"v")])
    limits = TopicLimits(compacted=True)
    why = "a record without a key for a compacted topic"
    assert check_batch(read(without), NEW, limits, NOW) == Refusal(INVALID, why, of_records=True)
    assert refused(read(GOOD), limits) is None
    assert refused(read(without)) is None


@pytest.mark.parametrize("value", [b"", b"v" * 50, b"v" * 63, b"v" * 64, b"v" * 8000, b"v" * 20_000])
def test_how_many_records_bytes_hold(value):
    """Lengths of one, two and three bytes."""
    data = bytes(61) + record(0, b"k", value) + record(1, None, value)
    assert holds_records(data, 2)
    assert not holds_records(data, 1)
    assert not holds_records(data, 3)
    assert not holds_records(data[:-1], 2)
    assert not holds_records(data + b"\0", 2)
    assert holds_records(bytes(61), 0)


def test_sets_of_batches_of_older_requests():
    """KAFKA-8106: since 2.4 a record set is uniform."""
    old = field(magic=1)
    for batches, why in (
        ([old, old], None),
        ([FIELDS], None),
        ([FIELDS, FIELDS], "more than one batch, of magic 2 or compressed"),
        ([old, field(magic=1, attributes=1)], "more than one batch, of magic 2 or compressed"),
        ([old, field(magic=0)], "batches of several magics"),
    ):
        found = check_batches(batches, NEW, TopicLimits(), NOW)
        assert (None if found is None else (found.error, found.why)) == (None if why is None else (INVALID, why))
        assert check_batches(batches, MIDDLE, TopicLimits(), NOW) is None
    broken = check_batches([FIELDS, field(record_count=0)], MIDDLE, TopicLimits(), NOW)
    assert broken is not None
    assert broken.why == "no records"


AGAIN = "encoding it again: "
SERVER = KafkaError.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    ("batch", "limits", "expected"),
    [
        (FIELDS, {"codec": Codec.GZIP}, None),
        (field(producer_epoch=-1), {"codec": Codec.GZIP}, (SERVER, AGAIN + "invalid negative producer epoch")),
        (field(producer_epoch=-1, attributes=1), {"codec": Codec.GZIP}, None),
        (field(producer_epoch=-1), {}, None),
        (field(producer_id=-1, producer_epoch=-1, base_sequence=-1), {"codec": Codec.GZIP}, None),
        (
            field(producer_id=-1, producer_epoch=-1, base_sequence=-1, attributes=TRANSACTIONAL),
            {"codec": Codec.GZIP},
            (SERVER, AGAIN + "a transactional batch without a producer id"),
        ),
        (
            field(producer_id=-2, base_sequence=-1),
            {"codec": Codec.GZIP},
            (SERVER, AGAIN + "invalid negative sequence number"),
        ),
        (
            FIELDS,
            {"older_format": True},
            (KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT, AGAIN + "the topic's message format has no producer ids"),
        ),
        (
            field(attributes=TRANSACTIONAL),
            {"older_format": True},
            (SERVER, AGAIN + "the topic's message format has no producer ids"),
        ),
        (
            field(attributes=TRANSACTIONAL),
            {"older_format": True, "codec": Codec.NONE},
            (SERVER, AGAIN + "the topic's message format has no producer ids"),
        ),
        (
            field(attributes=TRANSACTIONAL),
            {"older_format": True, "codec": Codec.GZIP},
            (KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT, AGAIN + "the topic's message format has no producer ids"),
        ),
        (
            field(attributes=TRANSACTIONAL | 1),
            {"older_format": True},
            (KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT, AGAIN + "the topic's message format has no producer ids"),
        ),
        (field(producer_id=-1, base_sequence=-1), {"older_format": True}, None),
    ],
)
def test_batches_that_are_encoded_again(batch, limits, expected):
    assert refused(batch, TopicLimits(**limits)) == expected


def test_the_size_of_a_batch_that_is_encoded_again():
    long = sealed_records(Batch(7, 0, 0, timestamp=NOW), [record(0, None, b"v" * 5000)])
    assert written_size(read(long), TopicLimits()) == len(long)
    assert written_size(FIELDS, TopicLimits(codec=Codec.GZIP)) == 0
    packed = patched(long[:61] + gzip.compress(long[61:]), codec=(21, b"\0\1"))
    packed = packed[:8] + struct.pack(">i", len(packed) - 12) + packed[12:]
    assert written_size(read(packed), TopicLimits(codec=Codec.GZIP)) == len(packed)
    assert written_size(read(packed), TopicLimits(codec=Codec.NONE)) == len(long)
    assert abs(written_size(read(long), TopicLimits(codec=Codec.GZIP)) - len(packed)) < 20
    # blocks of 32 KiB, each with its length, after a header of 16 bytes (SnappyOutputStream)

    body = record(0, None, bytes(range(256)) * 300)
    wide = sealed_records(Batch(7, 0, 0, timestamp=NOW), [body])
    blocks = [len(cramjam.snappy.compress_raw(body[at : at + 32_768])) + 4 for at in range(0, len(body), 32_768)]
    assert written_size(read(wide), TopicLimits(codec=Codec.SNAPPY)) == 61 + 16 + sum(blocks)


def header(size: int, magic: int, more: int) -> bytes:
    return struct.pack(">qiiB", 0, size, 0, magic) + bytes(more)


@pytest.mark.parametrize(
    ("data", "batches", "corrupt"),
    [
        (b"", 0, None),
        (bytes(11), 0, None),
        (header(13, 2, 9), 0, "a record of 13 bytes"),
        (header(14, 0, 9)[:16], 0, None),
        (header(14, 0, 9), 1, None),
        (header(14, 0, 8), 0, None),
        (header(60, 3, 60), 0, "magic 3"),
        (header(60, 128, 60), 0, "magic -128"),
        (header(60, 127, 60), 0, "magic 127"),
        (GOOD, 1, None),
        (GOOD + GOOD, 2, None),
        (GOOD + GOOD[:-1], 1, None),
        (GOOD + header(13, 2, 9), 1, "a record of 13 bytes"),
    ],
)
def test_where_batches_of_a_record_set_begin(data, batches, corrupt):
    found = split(data)
    assert (len(found.batches), found.corrupt, found.first_is_unreadable) == (
        batches,
        corrupt,
        batches == 0 and corrupt is not None,
    )


def test_the_fields_of_a_batch():
    data = sealed_records(
        Batch(7, 3, 5, 2, timestamp=NOW, attributes=TRANSACTIONAL), [record(0, None, b"v"), record(1, None, b"v")]
    )
    crc = struct.unpack(">I", data[17:21])[0]
    found = read(data)
    assert found == WireBatch(7, 3, 5, 2, 1, 0, TRANSACTIONAL, NOW, 2, crc, data)
    assert (found.is_transactional, found.last_sequence) == (True, 6)
    assert replace(found, base_sequence=-1).last_sequence == -1
    assert replace(found, base_sequence=2**31 - 1).last_sequence == 0
    short = header(40, 2, 35)
    assert read(short) == WireBatch(-1, -1, -1, 1, 0, 0, 0, -1, 2, 0, short)


TWO = RecordSet([read(GOOD), read(GOOD)], None)
ONE = RecordSet([read(GOOD)], None)
NONE = RecordSet([], None)
DAMAGED = RecordSet([], "magic 3")
OF_TRANSACTION = RecordSet([field(attributes=TRANSACTIONAL)], None)
UNREADABLE = "the first batch cannot be read: magic 3"


@pytest.mark.parametrize(
    ("records", "version", "api", "transactional_id", "expected"),
    [
        (ONE, "3.9.1", 9, None, None),
        (TWO, "3.9.1", 9, None, (INVALID, "2 batches, it must be exactly one")),
        (TWO, "3.9.1", 3, None, (INVALID, "2 batches, it must be exactly one")),
        (TWO, "3.9.1", 2, None, None),
        (NONE, "3.9.1", 9, None, (INVALID, "the record set holds no whole batch")),
        (NONE, "3.9.1", 2, None, None),
        (DAMAGED, "3.9.1", 9, None, (KafkaError.CORRUPT_MESSAGE, UNREADABLE)),
        (DAMAGED, "3.9.1", 2, None, (KafkaError.CORRUPT_MESSAGE, UNREADABLE)),
        (
            RecordSet([read(GOOD)], "magic 3"),
            "3.9.1",
            9,
            None,
            (KafkaError.CORRUPT_MESSAGE, "after the first batch: magic 3"),
        ),
        # RequestUtils.flag, until 2.8
        (DAMAGED, "2.7.2", 9, None, (None, UNREADABLE)),
        (NONE, "2.7.2", 2, None, (None, "the first batch cannot be read: the record set is empty or cut")),
        # KAFKA-7549: until 2.1.1
        (TWO, "2.0.1", 3, None, (None, "2 batches, it must be exactly one")),
        (
            OF_TRANSACTION,
            "3.9.1",
            9,
            None,
            (
                KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "a transactional batch in a request without a transactional id",
            ),
        ),
        (OF_TRANSACTION, "3.9.1", 9, "tx", None),
        (OF_TRANSACTION, "2.0.1", 5, None, None),
        (
            RecordSet([field(magic=1)], None),
            "3.9.1",
            3,
            None,
            (INVALID, "magic 1, from Produce version 3 on it must be 2"),
        ),
        (RecordSet([field(magic=1)], None), "3.9.1", 2, None, None),
        (RecordSet([field(attributes=4)], None), "3.9.1", 7, None, None),
        (
            RecordSet([field(attributes=4)], None),
            "3.9.1",
            6,
            None,
            (KafkaError.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7"),
        ),
        (RecordSet([field(attributes=5)], None), "3.9.1", 6, None, (SERVER, "unknown compression codec 5")),
        (RecordSet([field(attributes=5)], None), "3.9.1", 7, None, None),
        (RecordSet([field(attributes=3)], None), "3.9.1", 6, None, None),
        (RecordSet([field(attributes=4)], None), "2.0.1", 6, None, None),
    ],
)
def test_requests(records, version, api, transactional_id, expected):
    found = check_request(records, profile_for(version), api, transactional_id)
    assert (None if found is None else (found.error, found.why)) == expected
