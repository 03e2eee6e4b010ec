"""What a record set may hold: sizes, keys, timestamps and counts, each at its bound, as LogValidator and Log check them.

A batch given by its bytes and the same batch given by its fields take different paths in kaudit: both are asked.
"""

import gzip
import struct
import zlib
from dataclasses import replace

import crc32c
import pytest

from kaudit.broker.partition.log_validator import holds_records
from tests.broker.client import PartitionClient
from tests.logs import BASE_TIMESTAMP, TRANSACTIONAL, Batch, data, record, sealed_records

TOO_LARGE, SEGMENT_TOO_LARGE, INVALID_TIMESTAMP, CORRUPT, INVALID_RECORD, NOT_AUTHORISED = 10, 18, 32, 2, 87, 53
HOUR = 3_600_000
COMPACTED = {"cleanup.policy": "compact"}


def sent(client, batch: Batch, raw: bytes | None = None, **fields):
    return client.produce(0, records_hex=(batch.encode() if raw is None else raw).hex(), **fields)


def batch(count=1, **more) -> Batch:
    return data(900001, 0, 0, count, timestamp=BASE_TIMESTAMP, **more)


@pytest.mark.parametrize(
    ("version", "compressed", "key", "answer"),
    [
        ("2.3.1", False, None, CORRUPT),
        ("2.4.0", False, None, INVALID_RECORD),
        ("3.9.1", False, None, INVALID_RECORD),
        ("3.9.1", True, None, INVALID_RECORD),
        ("3.9.1", False, b"k", 0),
        ("3.9.1", True, b"k", 0),
    ],
)
def test_records_of_a_compacted_topic_have_keys(version, compressed, key, answer):
    """LogValidator.validateKey; 87 from KIP-467 on."""
    client = PartitionClient(version, topic_config=COMPACTED)
    batch_ = batch(2, key=key)
    if compressed:
        records = b"".join(record(number, key, b"x") for number in range(2))
        raw = sealed_records(replace(batch_, attributes=1), [gzip.compress(records, mtime=0), b""])
    else:
        raw = batch_.encode()
    assert sent(client, batch_, raw, api_version=8) == answer


@pytest.mark.parametrize("config", [{}, {"cleanup.policy": "delete"}])
def test_other_topics_do_without(config):
    assert sent(PartitionClient("3.9.1", topic_config=config), batch(2), api_version=8) == 0


@pytest.mark.parametrize(("setting", "error"), [("max.message.bytes", TOO_LARGE), ("segment.bytes", SEGMENT_TOO_LARGE)])
def test_a_batch_may_be_as_large_as_the_limit(setting, error):
    """Log.append: larger than is too large, as large as is not."""
    size = len(batch(40).encode())
    for limit, answer in ((size, 0), (size - 1, error)):
        client = PartitionClient("3.9.1", topic_config={setting: str(limit)})
        assert sent(client, batch(40), api_version=8) == answer


@pytest.mark.parametrize(("version", "ahead", "answer"), [
    ("4.0.0", HOUR, 0),
    ("4.0.0", HOUR + 1, INVALID_TIMESTAMP),
    ("3.9.1", 365 * 24 * HOUR, 0),
])  # fmt: skip
def test_from_4_0_on_a_timestamp_is_at_most_an_hour_ahead(version, ahead, answer):
    """The default of message.timestamp.after.max.ms (KIP-1030)."""
    client = PartitionClient(version)
    at = client.at + 2
    client.at += 1
    assert sent(client, batch(), replace(batch(), timestamp=at + ahead).encode(), api_version=8) == answer
    other = PartitionClient(version)
    other.at = at - 1
    assert other.produce(0, timestamp=at + ahead) == answer


@pytest.mark.parametrize(("difference", "answer"), [(1000, 0), (1001, INVALID_TIMESTAMP), (-1000, 0)])
def test_how_far_a_timestamp_may_differ(difference, answer):
    """message.timestamp.difference.max.ms counts both ways."""
    for sign in (1, -1):
        client = PartitionClient("2.8.2", topic_config={"message.timestamp.difference.max.ms": "1000"})
        assert client.produce(0, timestamp=client.at + 1 + sign * difference) == answer


@pytest.mark.parametrize(
    ("kind", "timestamp", "answer"),
    [
        ("CreateTime", -1, 0),
        ("CreateTime", BASE_TIMESTAMP - HOUR, INVALID_TIMESTAMP),
        ("CreateTime", BASE_TIMESTAMP + HOUR, INVALID_TIMESTAMP),
        ("LogAppendTime", BASE_TIMESTAMP - HOUR, 0),
        ("LogAppendTime", BASE_TIMESTAMP + HOUR, 0),
    ],
)
@pytest.mark.parametrize("behind", [b"", b"\0\0\0"])
def test_no_timestamp_is_never_too_far(kind, timestamp, answer, behind):
    """LogValidator.validateTimestamp looks at neither NO_TIMESTAMP nor at topics that the broker stamps."""
    config = {"message.timestamp.difference.max.ms": "1000", "message.timestamp.type": kind}
    client = PartitionClient("2.8.2", topic_config=config, at=BASE_TIMESTAMP)
    sent_ = replace(batch(), timestamp=timestamp)
    assert sent(client, sent_, sent_.encode() + behind) == answer
    assert PartitionClient("2.8.2", topic_config=config, at=BASE_TIMESTAMP).produce(0, timestamp=timestamp) == answer


@pytest.mark.parametrize(
    ("version", "transactional_id", "attributes", "answer"),
    [
        ("2.0.1", None, TRANSACTIONAL, 0),
        ("2.1.0", None, TRANSACTIONAL, NOT_AUTHORISED),
        ("2.1.0", "x", TRANSACTIONAL, 0),
        ("2.1.0", None, 0, 0),
        ("3.9.1", None, TRANSACTIONAL, NOT_AUTHORISED),
        ("3.9.1", None, 0, 0),
    ],
)
def test_transactional_batches_name_their_transactional_id(version, transactional_id, attributes, answer):
    """KafkaApis.handleProduceRequest; whatever lies behind the batch."""
    for behind in (b"", b"\0\0\0"):
        sent_ = replace(batch(), attributes=attributes)
        client = PartitionClient(version)
        assert sent(client, sent_, sent_.encode() + behind, transactional_id=transactional_id) == answer


@pytest.mark.parametrize("size", [0, 1, 55, 56, 57, 63, 64, 8183, 8184, 8185, 8192, 70_000])
def test_lengths_of_any_number_of_bytes_are_followed(size):
    """A record's length is a varint: one byte up to 63, two up to 8191."""
    raw = batch(3, payload=b"x" * size).encode()
    assert holds_records(raw, 3)
    assert not holds_records(raw, 2)
    assert not holds_records(raw, 4)
    assert not holds_records(raw + b"\0", 3)
    assert not holds_records(raw[:-1], 3)


def test_no_records_are_no_bytes():
    empty = batch(1).encode()[:61]
    assert holds_records(empty, 0)
    assert not holds_records(empty, 1)


@pytest.mark.parametrize(("version", "answer"), [("0.11.0.2", CORRUPT), ("2.3.1", CORRUPT), ("2.4.0", INVALID_RECORD)])
def test_a_count_that_the_records_do_not_have(version, answer):
    whole = batch(3)
    fewer = sealed_records(whole, [record(number, None, b"x") for number in range(2)])
    raw = bytearray(fewer)
    raw[57:61] = (3).to_bytes(4, "big")
    raw[17:21] = crc32c.crc32c(bytes(raw[21:])).to_bytes(4, "big")
    assert sent(PartitionClient(version), whole, bytes(raw), api_version=7 if version < "2" else 8) == answer


def test_a_batch_of_exactly_its_header_is_no_record_set_to_trust():
    client = PartitionClient("3.9.1")
    assert sent(client, batch(), batch().encode()[:60], api_version=8) == INVALID_RECORD
    assert sent(client, batch(), b"", api_version=8) == INVALID_RECORD


@pytest.mark.parametrize(("change", "answer"), [
    (lambda raw: b"\0" * 7 + b"\5" + raw[8:], INVALID_RECORD),  # Log.analyzeAndValidateRecords: the base offset is 0
    (lambda raw: raw + b"\0\0\0", 0),  # less than a header behind it
])  # fmt: skip
def test_bytes_around_a_batch(change, answer):
    assert sent(PartitionClient("3.9.1"), batch(), change(batch().encode()), api_version=8) == answer


def test_granted_producer_ids_are_counted_on_from():
    """ProducerIdManager hands out the next id of its block."""
    client = PartitionClient("3.9.1")

    def init(**more):
        return client.ask("init_producer_id", api_version=1, **more)["producer_id"]

    assert [init(), init(), init(granted_producer_id=7), init(), init(granted_producer_id=3), init()] == [
        0,
        1,
        7,
        8,
        3,
        9,
    ]


@pytest.mark.parametrize("config", [{}, {"compression.type": "gzip"}])
@pytest.mark.parametrize("producer_id", [0, 5])
def test_producer_id_0_is_a_producer(producer_id, config):
    client = PartitionClient("3.9.1", topic_config=config)
    assert [client.produce(0, pid=producer_id), client.produce(0, pid=producer_id)] == [0, (0,)]
    assert client.produce(3, pid=producer_id) == 45


APPEND_TIME = 0x08


@pytest.mark.parametrize(
    ("version", "config", "timestamp", "answer"),
    [
        ("3.9.1", {}, BASE_TIMESTAMP, 0),  # KIP-937: LogValidator.validateTimestamp no longer looks
        ("3.5.2", {}, BASE_TIMESTAMP, INVALID_TIMESTAMP),
        ("3.9.1", {}, -1, INVALID_TIMESTAMP),
        ("3.9.1", {"message.timestamp.type": "LogAppendTime"}, BASE_TIMESTAMP, INVALID_TIMESTAMP),
    ],
)
def test_a_client_that_sets_the_time_of_append(version, config, timestamp, answer):
    client = PartitionClient(version, topic_config=config)
    sent_ = replace(batch(), attributes=APPEND_TIME, timestamp=timestamp)
    assert sent(client, sent_, api_version=8) == answer


@pytest.mark.parametrize(("version", "answer"), [("2.8.2", CORRUPT), ("3.9.1", CORRUPT)])
def test_a_corrupt_header_behind_a_good_batch_is_not_an_unreadable_request(version, answer):
    """RequestUtils looks at the first batch only; ProduceRequest.validateRecords at what follows."""
    client = PartitionClient(version)
    magic_3 = bytearray(batch().encode())
    magic_3[16] = 3
    assert sent(client, batch(), batch().encode() + bytes(magic_3), api_version=8) in (answer, INVALID_RECORD)
    assert client.produce(0) == 0  # nothing of it was written


@pytest.mark.parametrize("version", ["2.8.2", "3.9.1"])
@pytest.mark.parametrize("api_version", [2, 3, 8])
def test_a_first_batch_that_cannot_be_read_is_corrupt_whatever_the_request_may_hold(version, api_version):
    """Before Produce version 3 a record set may be of older messages; RequestUtils.flag reads the first all the same."""
    client = PartitionClient(version)
    magic_3 = bytearray(batch().encode())
    magic_3[16] = 3
    assert sent(client, batch(), bytes(magic_3), api_version=api_version) == CORRUPT
    assert client.ask("describe")["high_watermark"] == 0


@pytest.mark.parametrize(("magic", "api_version"), [(0, 0), (0, 2), (1, 2)])
def test_a_message_of_old_is_one_record_and_takes_one_offset(magic, api_version):
    """Produce version 2 and below sends messages (RecordVersion V0 and V1), which know neither counts nor producers."""
    timestamp = struct.pack(">q", BASE_TIMESTAMP) if magic else b""
    content = bytes((magic, 0)) + timestamp + struct.pack(">ii", -1, 5) + b"value"
    message = struct.pack(">qiI", 0, 4 + len(content), zlib.crc32(content)) + content
    client = PartitionClient("3.9.1")
    assert [client.produce(0, records_hex=message.hex(), api_version=api_version) for _ in range(2)] == [0, 1]
