"""Batches no check of a request and no validator has anything against, found in one look.

What is not among them is not refused: produce.py and record_set.py then look at it check by check, and have the words.
"""

from binascii import unhexlify

from crc32c import crc32c
from msgspec import UNSET

from kaudit.broker.attempts.fast_path import PlainProduce
from kaudit.broker.partition.record_set import TopicLimits, holds
from kaudit.broker.producer_state.producer_state_entry import DataBatch
from kaudit.formats.log.batch_header import ATTRIBUTES_OFFSET, CURRENT_MAGIC, HEADER, HEADER_SIZE, LOG_OVERHEAD
from kaudit.model.batch_fields import NO_TIMESTAMP, TRANSACTIONAL_FLAG
from kaudit.model.sequence import MAX_SEQUENCE
from kaudit.model.sequence import add as add_sequence

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


def valid_batch(plain: PlainProduce, limits: TopicLimits, now: int, offset: int) -> DataBatch | None:
    """Return the batch an attempt sends as it lies in the log at `offset`; None where some check has to look at it.

    `now` is the broker's clock in ms.
    """
    if plain.acks not in _ANSWERED_ACKS or limits.behind_ms is not None:
        return None
    if plain.records_hex is not UNSET:
        return _sound_bytes(plain.records_hex, limits, now, offset)
    timestamp, count = plain.timestamp, plain.record_count
    if timestamp is None:
        timestamp = NO_TIMESTAMP
    if count <= 0 or plain.base_sequence < 0 or plain.producer_id < 0:
        return None
    if limits.log_append_time:
        timestamp = now
    elif limits.ahead_ms is not None and timestamp - now > limits.ahead_ms and timestamp != NO_TIMESTAMP:
        return None
    sequence = plain.base_sequence
    last_sequence = sequence + count - 1
    if last_sequence > MAX_SEQUENCE:
        last_sequence = add_sequence(sequence, count - 1)
    return DataBatch(
        plain.producer_id,
        plain.producer_epoch,
        sequence,
        last_sequence,
        offset,
        offset + count - 1,
        timestamp,
        plain.is_transactional,
    )


def _sound_bytes(sent: str, limits: TopicLimits, now: int, offset: int) -> DataBatch | None:
    """Do the same for the bytes of a record set."""
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
    if base_offset != 0 or length + LOG_OVERHEAD != size or magic != CURRENT_MAGIC:
        return None
    if attributes not in (0, TRANSACTIONAL_FLAG) or delta + 1 != count or count <= 0 or sequence < 0 or producer_id < 0:
        return None
    if crc32c(data[ATTRIBUTES_OFFSET:]) != crc or not holds(data, count):
        return None
    if limits.log_append_time:
        timestamp = now
    elif limits.ahead_ms is not None and timestamp - now > limits.ahead_ms and timestamp != NO_TIMESTAMP:
        return None
    last_sequence = sequence + delta
    if last_sequence > MAX_SEQUENCE:
        last_sequence = add_sequence(sequence, delta)
    return DataBatch(
        producer_id,
        epoch,
        sequence,
        last_sequence,
        offset,
        offset + delta,
        timestamp,
        attributes == TRANSACTIONAL_FLAG,
    )
