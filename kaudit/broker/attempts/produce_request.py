"""A produce request as an attempt states it: its fields, its record set, and the fast path for one valid batch.

A batch that is not valid on the fast path is not refused: produce.py then checks it step by step, which also gives the reason.
"""

from binascii import unhexlify

from msgspec import Struct

from kaudit.broker.attempts.base import (
    NOT_STATED,
    ApiVersion,
    Int16,
    Int32,
    Int64,
    PartitionAttemptBase,
    PartitionNumber,
)
from kaudit.broker.config import TopicLimits
from kaudit.broker.partition.log_validator import holds_records
from kaudit.broker.partition.record_set import RecordSet, WireBatch, split
from kaudit.broker.producer_state.producer_state_entry import DataBatch
from kaudit.crc import crc32c
from kaudit.formats.log.batch_header import ATTRIBUTES_OFFSET, CURRENT_MAGIC, HEADER, HEADER_SIZE, LOG_OVERHEAD
from kaudit.model.batch_fields import NO_TIMESTAMP, TRANSACTIONAL_FLAG
from kaudit.model.sequence import MAX_SEQUENCE
from kaudit.model.sequence import add as add_sequence

BATCH_FIELDS = ("producer_id", "producer_epoch", "base_sequence", "record_count")
"""The fields that describe a batch instead of its bytes."""
_ANSWERED_ACKS = (-1, 1)
_read_header = HEADER.struct(
    "base_offset",
    "batch_length",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
).unpack_from

_Fields = tuple[int, int, int, int, int, bool]
"""Producer id, epoch, first sequence, last offset delta, timestamp in ms, whether it is transactional."""


class SentBatch(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One of several batches of a request: as bytes, or described by its four fields, which are then all there."""

    producer_id: Int64 | None = None
    producer_epoch: Int16 | None = None
    base_sequence: Int32 | None = None
    record_count: Int32 | None = None
    is_transactional: bool = False
    timestamp: Int64 | None = None
    records_hex: str | None = None


class SentElsewhere(SentBatch, kw_only=True, omit_defaults=True, gc=False):
    """The part of a produce request for another partition than the attempt's own: one batch, or several `batches`."""

    partition: PartitionNumber
    topic: str | None = None
    """The topic; where absent, the attempt's own."""
    batches: list[SentBatch] | None = None


class Produce(PartitionAttemptBase, tag="produce", kw_only=True):
    """A produce request: one batch as bytes (`records_hex`) or described by its four fields, or several `batches`."""

    producer_id: Int64 | None = None
    producer_epoch: Int16 | None = None
    base_sequence: Int32 | None = None
    record_count: Int32 | None = None
    is_transactional: bool = False
    timestamp: Int64 | None = None
    records_hex: str | None = None
    batches: list[SentBatch] | None = None
    other_partitions: list[SentElsewhere] | None = None
    """The same request's parts for more partitions."""
    transactional_id: str | None = None
    acks: Int16 = -1
    api_version: ApiVersion = NOT_STATED
    """Where absent, 8, or the nearest version that the release answers."""


def record_set(attempt: Produce) -> RecordSet:
    """Return the record set an attempt sends; raises ValueError, saying what was expected."""
    if attempt.records_hex is not None:
        return split(_from_hex(attempt.records_hex, "records_hex"))
    if attempt.batches is None:
        return RecordSet([_stated_batch(attempt, "")], None)
    sent = [
        None if batch.records_hex is None else _from_hex(batch.records_hex, f"batches[{number}].records_hex")
        for number, batch in enumerate(attempt.batches)
    ]
    if None not in sent:
        return split(b"".join(data for data in sent if data is not None))
    return RecordSet(
        [_stated_batch(batch, f"batches[{number}].") for number, batch in enumerate(attempt.batches)], None
    )


def _from_hex(digits: str, name: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise ValueError(f"{name} to be hexadecimal digits, two a byte") from None


def _stated_batch(batch: Produce | SentBatch, prefix: str) -> WireBatch:
    """Return a valid batch of the fields an attempt states; raises ValueError with the name of a missing one."""
    fields = [getattr(batch, name) for name in BATCH_FIELDS]
    for name, value in zip(BATCH_FIELDS, fields, strict=True):
        if value is None:
            raise ValueError(f"the field {prefix}{name}, or {prefix}records_hex")
    producer_id, producer_epoch, base_sequence, record_count = fields
    return WireBatch(
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
        record_count - 1,
        0,
        TRANSACTIONAL_FLAG if batch.is_transactional else 0,
        NO_TIMESTAMP if batch.timestamp is None else batch.timestamp,
        CURRENT_MAGIC,
        0,
        b"",
    )


def valid_batch(attempt: Produce, limits: TopicLimits, now: int, offset: int) -> DataBatch | None:
    """Return the batch an attempt sends as it lies in the log at `offset`; None where the checks have to decide.

    `now` is the broker's clock in ms.
    """
    if attempt.acks not in _ANSWERED_ACKS or limits.checks_more or attempt.batches is not None:
        return None
    if attempt.records_hex is None:
        producer_id, epoch, sequence = attempt.producer_id, attempt.producer_epoch, attempt.base_sequence
        count, timestamp, is_transactional = attempt.record_count, attempt.timestamp, attempt.is_transactional
        if producer_id is None or epoch is None or sequence is None or count is None:
            return None
        delta = count - 1
        if timestamp is None:
            timestamp = NO_TIMESTAMP
    else:
        fields = _decoded(attempt.records_hex, limits)
        if fields is None:
            return None
        producer_id, epoch, sequence, delta, timestamp, is_transactional = fields
    if delta < 0 or sequence < 0 or producer_id < 0:
        return None
    if limits.log_append_time:
        timestamp = now
    elif limits.ahead_ms is not None and timestamp - now > limits.ahead_ms and timestamp != NO_TIMESTAMP:
        return None
    last_sequence = sequence + delta
    if last_sequence > MAX_SEQUENCE:
        last_sequence = add_sequence(sequence, delta)
    return DataBatch(producer_id, epoch, sequence, last_sequence, offset, offset + delta, timestamp, is_transactional)


def _decoded(sent: str, limits: TopicLimits) -> _Fields | None:
    """Return the fields in the bytes of a record set; None unless it is one intact batch that a broker writes as it is."""
    try:
        data = unhexlify(sent)
    except ValueError:
        return None
    size = len(data)
    if size < HEADER_SIZE or size > limits.max_message_bytes or limits.compacted or size > limits.segment_bytes:
        return None
    base_offset, length, magic, crc, attributes, delta, timestamp, producer_id, epoch, sequence, count = _read_header(
        data
    )
    is_current = base_offset == 0 and length + LOG_OVERHEAD == size and magic == CURRENT_MAGIC
    if not is_current or attributes not in (0, TRANSACTIONAL_FLAG) or delta + 1 != count:
        return None
    if crc32c(data[ATTRIBUTES_OFFSET:]) != crc or not holds_records(data, count):
        return None
    return producer_id, epoch, sequence, delta, timestamp, attributes == TRANSACTIONAL_FLAG
