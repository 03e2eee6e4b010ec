"""The records of a produce request: found, checked and refused as a broker of each version does.

Source: ByteBufferLogInputStream, ProduceRequest.validateRecords, RequestUtils.flag, UnifiedLog.analyzeAndValidateRecords
and LogValidator; what a version does with which is RULES.md 3.1 and section 11.
"""

from typing import TypeVar

from crc32c import crc32c
from msgspec import Struct

from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.profile import Profile
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.log.batch_header import (
    ATTRIBUTES_OFFSET,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MIN_LENGTH_LEGACY,
    batch_size,
)
from kaudit.formats.log.codecs import Codec
from kaudit.formats.log.records import read_records
from kaudit.model.batch_fields import CODEC_MASK, CONTROL_FLAG, LOG_APPEND_TIME_FLAG, NO_TIMESTAMP, TRANSACTIONAL_FLAG
from kaudit.model.sequence import add as add_sequence

_HEADER = HEADER.struct()
_FIRST_WITH_BATCHES = 3
"""Produce version from which a record set must be exactly one batch of magic 2."""
_FIRST_WITH_ZSTD = 7
_VARINT_STOP = 0x80
_NOT_UNPACKED = (Reason.CODEC, Reason.DECOMPRESSION)

DEFAULT_MAX_MESSAGE_BYTES = 1048588
DEFAULT_SEGMENT_BYTES = 1 << 30

_Default = TypeVar("_Default", int, int | None)


def config_number(config: dict[str, str], name: str, default: _Default) -> int | _Default:
    """Return a number of a configuration; raises ValueError, saying what was expected."""
    value = config.get(name)
    if value is None:
        return default
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{name} to be a number, not {value!r}") from None


_BROKER_DEFAULTS = {
    "cleanup.policy": "log.cleanup.policy",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms": "log.message.timestamp.difference.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "segment.bytes": "log.segment.bytes",
}
"""Topic configuration, and the broker's for topics that do not say."""


def topic_config(own: dict[str, str], broker: dict[str, str]) -> dict[str, str]:
    """Return a topic's configuration with the broker's own for what it leaves out."""
    defaults = {name: broker[of_broker] for name, of_broker in _BROKER_DEFAULTS.items() if of_broker in broker}
    return {**defaults, **own}


class TopicLimits(Struct, frozen=True):
    """Topic configuration that decides about batches: sizes in bytes, times in ms, None for no limit."""

    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    compacted: bool = False
    deletes: bool = True
    log_append_time: bool = False
    ahead_ms: int | None = None
    behind_ms: int | None = None

    @classmethod
    def of(cls, config: dict[str, str], profile: Profile) -> "TopicLimits":
        """Read a topic's configuration; what it leaves out is the release's default.

        Raises ValueError for a number that is none.
        """
        policy = config.get("cleanup.policy", "delete")
        both = config_number(config, "message.timestamp.difference.max.ms", None)
        ahead = profile.timestamp_after_max_ms if both is None else both
        return cls(
            config_number(config, "max.message.bytes", DEFAULT_MAX_MESSAGE_BYTES),
            config_number(config, "segment.bytes", DEFAULT_SEGMENT_BYTES),
            "compact" in policy,
            "delete" in policy,
            config.get("message.timestamp.type") == "LogAppendTime",
            config_number(config, "message.timestamp.after.max.ms", ahead),
            config_number(config, "message.timestamp.before.max.ms", both),
        )


class WireBatch(Struct, frozen=True, gc=False):
    """A batch of a produce request; `data` is empty when the attempt gives fields instead of bytes."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    last_offset_delta: int
    base_offset: int
    attributes: int
    max_timestamp: int
    magic: int
    crc: int
    data: bytes

    @property
    def is_transactional(self) -> bool:
        """Whether it claims to belong to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def last_sequence(self) -> int:
        """Sequence of its last record, -1 when it has none."""
        return (
            self.base_sequence if self.base_sequence < 0 else add_sequence(self.base_sequence, self.last_offset_delta)
        )


class Refusal(Struct, frozen=True, gc=False):
    """Why a request got no further; no error when the connection is closed instead of an answer."""

    error: KafkaError | None
    why: str


class RecordSet(Struct, frozen=True, gc=False):
    """What lies in a record set up to its end or the first corrupt header."""

    batches: list[WireBatch]
    corrupt: str | None


def split(data: bytes) -> RecordSet:
    """Find the batches of a record set; trailing bytes that are no whole batch are ignored, as brokers do."""
    batches: list[WireBatch] = []
    at, end = 0, len(data)
    while end - at >= LOG_OVERHEAD:
        size = batch_size(data, at) - LOG_OVERHEAD
        if size < MIN_LENGTH_LEGACY:
            return RecordSet(batches, f"a record of {size} bytes")
        if end - at <= MAGIC_OFFSET:
            break
        magic = data[at + MAGIC_OFFSET]
        if magic > CURRENT_MAGIC:
            return RecordSet(batches, f"magic {magic - 256 if magic >= 128 else magic}")
        following = at + size + LOG_OVERHEAD
        if following > end:
            break
        batches.append(_read(data[at:following], magic))
        at = following
    return RecordSet(batches, None)


def _read(data: bytes, magic: int) -> WireBatch:
    if magic < CURRENT_MAGIC or len(data) < HEADER_SIZE:
        return WireBatch(-1, -1, -1, 1, 0, 0, 0, NO_TIMESTAMP, magic, 0, data)
    (base_offset, _, _, _, crc, attributes, delta, _, max_timestamp, producer_id, epoch, sequence, count) = (
        _HEADER.unpack_from(data)
    )
    return WireBatch(
        producer_id, epoch, sequence, count, delta, base_offset, attributes, max_timestamp, magic, crc, data
    )


def check_request(
    records: RecordSet, profile: Profile, api_version: int, transactional_id: str | None
) -> Refusal | None:
    """Check what is checked before any log is looked at; return why the request is refused, None when it passes."""
    batches, corrupt = records.batches, records.corrupt
    if profile.unreadable_records_close_connection and not batches:
        return Refusal(None, f"the first batch cannot be read: {corrupt or 'the record set is empty or cut'}")
    shape = _check_shape(records, profile, api_version)
    if profile.bad_record_set_closes_connection and shape is not None:
        return Refusal(None, shape.why)
    if corrupt is not None and not batches:
        return Refusal(KafkaError.CORRUPT_MESSAGE, f"the first batch cannot be read: {corrupt}")
    if profile.needs_transactional_id and transactional_id is None and batches and batches[0].is_transactional:
        return Refusal(
            KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "a transactional batch in a request without a transactional id",
        )
    return shape


def _check_shape(records: RecordSet, profile: Profile, api_version: int) -> Refusal | None:
    batches, corrupt = records.batches, records.corrupt
    if api_version < _FIRST_WITH_BATCHES:
        return None
    if not batches:
        if corrupt is not None:
            return Refusal(KafkaError.CORRUPT_MESSAGE, f"the first batch cannot be read: {corrupt}")
        return Refusal(profile.invalid_record_error, "the record set holds no whole batch")
    first = batches[0]
    if first.magic != CURRENT_MAGIC:
        return Refusal(profile.invalid_record_error, f"magic {first.magic}, from Produce version 3 on it must be 2")
    if profile.supports_zstd and api_version < _FIRST_WITH_ZSTD and first.attributes & CODEC_MASK == Codec.ZSTD:
        return Refusal(KafkaError.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7")
    if len(batches) > 1:
        return Refusal(profile.invalid_record_error, f"{len(batches)} batches, it must be exactly one")
    if corrupt is not None:
        return Refusal(KafkaError.CORRUPT_MESSAGE, f"behind the first batch: {corrupt}")
    return None


def check_batch(batch: WireBatch, profile: Profile, limits: TopicLimits, now: int) -> Refusal | None:
    """Check one batch as the log and its validator do before they look at the producer."""
    data = batch.data
    if data and batch.magic == CURRENT_MAGIC:
        if batch.base_offset != 0:
            return Refusal(profile.invalid_record_error, f"base offset {batch.base_offset}, from a client it must be 0")
        size = len(data)
        if size > limits.max_message_bytes:
            return Refusal(
                KafkaError.MESSAGE_TOO_LARGE, f"a batch of {size} bytes, {limits.max_message_bytes} are allowed"
            )
        if size < HEADER_SIZE or crc32c(memoryview(data)[ATTRIBUTES_OFFSET:]) != batch.crc:
            return Refusal(KafkaError.CORRUPT_MESSAGE, f"the CRC {batch.crc:#010x} does not match the bytes")
    problem = _header_problem(batch, profile)
    if problem is not None:
        return Refusal(profile.invalid_record_error, problem)
    refusal = _check_records(batch, profile, limits) if data and batch.magic == CURRENT_MAGIC else None
    refusal = refusal or _check_timestamp(batch, profile, limits, now)
    if refusal is None and len(data) > limits.segment_bytes:
        return Refusal(
            KafkaError.RECORD_LIST_TOO_LARGE, f"a batch of {len(data)} bytes, a segment holds {limits.segment_bytes}"
        )
    return refusal


def _header_problem(batch: WireBatch, profile: Profile) -> str | None:
    if batch.attributes & CONTROL_FLAG:
        return "clients must not write control batches"
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        return f"sequence {batch.base_sequence} with producer id {batch.producer_id}"
    if batch.record_count == 0 or (batch.record_count < 0 and profile.validates_offset_range):
        return f"{batch.record_count} records"
    if profile.validates_offset_range and batch.last_offset_delta + 1 != batch.record_count:
        return f"{batch.record_count} records but a last offset delta of {batch.last_offset_delta}"
    return None


def _check_records(batch: WireBatch, profile: Profile, limits: TopicLimits) -> Refusal | None:
    """Look into the records: their number, and that a compacted topic's have keys.

    What a codec cannot unpack is no error of Kafka's own, hence -1.
    """
    if not limits.compacted and batch.attributes & CODEC_MASK == Codec.NONE:
        if holds(batch.data, batch.record_count):
            return None
        return Refusal(profile.invalid_record_error, f"the bytes do not hold {batch.record_count} records")
    if batch.attributes & CODEC_MASK == Codec.ZSTD and not profile.supports_zstd:
        return Refusal(KafkaError.UNKNOWN_SERVER_ERROR, f"unknown compression codec {Codec.ZSTD}")
    try:
        for record in read_records(batch.data):
            if limits.compacted and record.key is None:
                return Refusal(profile.invalid_record_error, "a record without a key for a compacted topic")
    except WireError as error:
        unpacked = error.reason not in _NOT_UNPACKED
        code = profile.invalid_record_error if unpacked else KafkaError.UNKNOWN_SERVER_ERROR
        return Refusal(code, f"the records cannot be read: {error}")
    return None


def holds(data: bytes, count: int) -> bool:
    """Tell whether the uncompressed records of a batch are `count` of them and nothing else, by their lengths."""
    at, end = HEADER_SIZE, len(data)
    for _ in range(count):
        if at >= end:
            return False
        byte = data[at]
        at += 1
        if byte < _VARINT_STOP:
            at += byte >> 1
            continue
        raw, shift = byte & 0x7F, 7
        while at < end:
            byte = data[at]
            at += 1
            raw |= (byte & 0x7F) << shift
            shift += 7
            if byte < _VARINT_STOP:
                break
        at += raw >> 1
    return at == end


def _check_timestamp(batch: WireBatch, profile: Profile, limits: TopicLimits, now: int) -> Refusal | None:
    unstamped = limits.log_append_time or batch.max_timestamp == NO_TIMESTAMP
    if batch.attributes & LOG_APPEND_TIME_FLAG and (unstamped or not profile.takes_append_time_from_clients):
        return Refusal(KafkaError.INVALID_TIMESTAMP, "a client must not set the timestamp type to LogAppendTime")
    timestamp = batch.max_timestamp
    if limits.log_append_time or timestamp == NO_TIMESTAMP:
        return None
    if limits.ahead_ms is not None and timestamp - now > limits.ahead_ms:
        return Refusal(
            KafkaError.INVALID_TIMESTAMP,
            f"timestamp {timestamp} is {timestamp - now} ms ahead of the broker, {limits.ahead_ms} are allowed",
        )
    if limits.behind_ms is not None and now - timestamp > limits.behind_ms:
        return Refusal(
            KafkaError.INVALID_TIMESTAMP,
            f"timestamp {timestamp} is {now - timestamp} ms behind the broker, {limits.behind_ms} are allowed",
        )
    return None
