"""Records of the __transaction_state topic: what the transaction coordinator keeps of each transactional id.

Source of the format: Kafka's TransactionLog (0.11 to 2.x: TransactionLog.scala's schemas; later TransactionLogKey.json
and TransactionLogValue.json). Value version 1 is the flexible one, written when transaction.version >= 1 (4.0+).
"""

from typing import Final, NamedTuple

from kaudit.formats.byte_reader import Buffer, Reader
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.java_hash import string_hash
from kaudit.formats.wire_format import WireFormat
from kaudit.model.coordinator import TopicPartitions, TransactionRecord, TransactionStatus, TransactionValue
from kaudit.model.schema import Int8, Int16, Int32, Int64

DEFAULT_PARTITIONS: Final = 50
"""Default of transaction.state.log.num.partitions."""

KEY_VERSION: Final = 0
VALUE_VERSION_FIXED: Final = 0
VALUE_VERSION_FLEXIBLE: Final = 1
TAG_PREVIOUS_PRODUCER_ID: Final = 0
TAG_NEXT_PRODUCER_ID: Final = 1
TAG_CLIENT_TRANSACTION_VERSION: Final = 2
TAG_NEXT_PRODUCER_EPOCH: Final = 3
_MIN_TOPIC_BYTES: Final = 2  # an empty name and an empty array, flexible


class ValueHead(NamedTuple):
    """The beginning of every value; the transaction's partitions follow."""

    version: Int16
    producer_id: Int64
    producer_epoch: Int16
    timeout_ms: Int32
    status: Int8


class ValueTimes(NamedTuple):
    """The fields after the partitions; a flexible value ends with its tagged fields."""

    last_update_timestamp: Int64
    start_timestamp: Int64


VALUE_HEAD: Final = WireFormat(ValueHead)
VALUE_TIMES: Final = WireFormat(ValueTimes)


_KNOWN_STATUS: Final = {member.value: member for member in TransactionStatus if member is not TransactionStatus.UNKNOWN}


def parse_transaction_record(key: Buffer | None, value: Buffer | None) -> TransactionRecord:
    """Decode one record of __transaction_state; raises WireError as the parsers of key and value do."""
    return TransactionRecord(parse_transaction_key(key), None if value is None else parse_transaction_value(value))


def parse_transaction_key(key: Buffer | None) -> str:
    """Decode a key to its transactional id; raises WireError for a null key, another version, or broken bytes."""
    if key is None:
        raise WireError(0, Reason.TRUNCATED, "a record of __transaction_state without a key")
    reader = Reader(key)
    version = reader.int16("key version")
    if version != KEY_VERSION:
        raise WireError(0, Reason.VERSION, f"key version {version}, only {KEY_VERSION} is known")
    transactional_id = reader.string("transactional id")
    reader.expect_end()
    return transactional_id


def parse_transaction_value(value: Buffer) -> TransactionValue:
    """Decode a value of version 0 or 1; raises WireError for other versions and broken bytes."""
    reader = Reader(value)
    version = reader.int16("value version")
    if version not in (VALUE_VERSION_FIXED, VALUE_VERSION_FLEXIBLE):
        raise WireError(0, Reason.VERSION, f"value version {version}, known are 0 and 1")
    reader.position = 0
    _, producer_id, producer_epoch, timeout_ms, status_id = reader.fields(VALUE_HEAD)
    flexible = version == VALUE_VERSION_FLEXIBLE
    partitions = _partitions(reader, flexible=flexible)
    last_update_timestamp, start_timestamp = reader.fields(VALUE_TIMES)
    tags = reader.tagged_fields() if flexible else {}
    reader.expect_end()
    return TransactionValue(
        version,
        producer_id,
        producer_epoch,
        timeout_ms,
        _KNOWN_STATUS.get(status_id, TransactionStatus.UNKNOWN),
        status_id,
        partitions,
        last_update_timestamp,
        start_timestamp,
        _tagged_integer(tags, TAG_PREVIOUS_PRODUCER_ID, 8),
        _tagged_integer(tags, TAG_NEXT_PRODUCER_ID, 8),
        _tagged_integer(tags, TAG_CLIENT_TRANSACTION_VERSION, 2),
        _tagged_integer(tags, TAG_NEXT_PRODUCER_EPOCH, 2),
        tuple(tags.items()),
    )


def _partitions(reader: Reader, *, flexible: bool) -> tuple[TopicPartitions, ...] | None:
    string = reader.compact_string if flexible else reader.string
    count = reader.compact_array_count if flexible else reader.array_count
    topics = count("partitions", _MIN_TOPIC_BYTES)
    if topics is None:
        return None
    found = []
    for _ in range(topics):
        topic = string("topic")
        partitions = count(f"partitions of {topic}", 4)
        if partitions is None:
            raise WireError(reader.position, Reason.COUNT, f"the partitions of {topic} must not be null")
        found.append(TopicPartitions(topic, tuple(reader.int32("partition") for _ in range(partitions))))
        if flexible:
            reader.tagged_fields()  # of the topic's own structure: none is defined
    return tuple(found)


def _tagged_integer(tags: dict[int, bytes], tag: int, size: int) -> int | None:
    """Take a tag out of `tags` and decode it as a signed integer of `size` bytes."""
    raw = tags.pop(tag, None)
    if raw is None:
        return None
    if len(raw) != size:
        raise WireError(0, Reason.LENGTH, f"tag {tag} has {len(raw)} bytes where {size} belong")
    return int.from_bytes(raw, "big", signed=True)


def coordinator_partition(transactional_id: str, partitions: int = DEFAULT_PARTITIONS) -> int:
    """Partition of __transaction_state that holds this id: Java's String.hashCode, absolute, modulo `partitions` (>= 1)."""
    code = abs(string_hash(transactional_id))
    return 0 if code == 1 << 31 else code % partitions  # Utils.abs maps -2^31, whose absolute value no int holds, to 0
