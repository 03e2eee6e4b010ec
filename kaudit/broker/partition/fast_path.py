"""The fast path of produce requests: a request of one batch that passes every check, found without making them all.

A batch that is not valid here is not refused: produce.py then checks it step by step, which also gives the reason.
"""

from binascii import unhexlify

from crc32c import crc32c

from kaudit.broker.attempts import Produce
from kaudit.broker.partition.log_validator import holds_records
from kaudit.broker.partition.topic_config import TopicLimits
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

_Fields = tuple[int, int, int, int, int, bool]
"""Producer id, epoch, first sequence, last offset delta, timestamp in ms, whether it is transactional."""


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
