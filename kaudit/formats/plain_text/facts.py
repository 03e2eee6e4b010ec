"""Whether a line that was not understood says something about producers, so that an audit without it is not complete."""

import re
from collections.abc import Collection
from typing import Final

_ERRORS: Final = (
    "OUT_OF_ORDER_SEQUENCE_NUMBER", "DUPLICATE_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED",
    "UNKNOWN_PRODUCER_ID", "INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING", "CONCURRENT_TRANSACTIONS",
    "TRANSACTION_COORDINATOR_FENCED", "TRANSACTIONAL_ID_NOT_FOUND", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "TRANSACTION_ABORTABLE", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "NOT_LEADER_OR_FOLLOWER",
    "NOT_LEADER_FOR_PARTITION", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "REQUEST_TIMED_OUT", "CORRUPT_MESSAGE",
    "INVALID_RECORD", "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "KAFKA_STORAGE_ERROR", "OFFSET_OUT_OF_RANGE",
    "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "NETWORK_EXCEPTION", "INVALID_REQUIRED_ACKS",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT", "INVALID_TRANSACTION_TIMEOUT", "FENCED_INSTANCE_ID", "UNKNOWN_SERVER_ERROR",
)  # fmt: skip
"""Names in Kafka's `Errors` that a produce request, or a request about transactions, may be answered with."""
_FACT: Final = re.compile(
    rb"(?i:producer[ _-]?(?:id|epoch)\b[^\n]{0,16}?\d)|\b[pP]roducer \d|base(?:Offset|Sequence)\b|(?i:\bseq(?:uence)?\.?(?: number)?\b[^\n]{0,12}\d)"
    rb"|(?i:\bepoch\b[ =:(]{1,3}-?\d)|\b[A-Z]\w{2,100}Exception\b|\bkafka\.common\.errors\.|\b(?:"
    + "|".join(_ERRORS).encode()
    + rb")\b"
)


_PARTITION: Final = re.compile(rb"[\w.-]{1,249}-\d{1,10}(?!\w)")
_REASON: Final = re.compile(
    rb"(?:OutOfOrderSequence|DuplicateSequenceNumber|InvalidProducerEpoch|ProducerFenced|UnknownProducerId)Exception\b[^\n]*?(?i:\bproducer(?:[ _-]?id)?[ =:]{1,3}\d|\(incoming seq|\(request epoch|\bseen epoch \d)"
)
_MAX_BYTES: Final = 1 << 14
"""Bytes of a line that are looked at."""


def has_facts(line: bytes, partitions: Collection[bytes] = ()) -> bool:
    """Return whether a line holds a producer id, an epoch, a sequence, an exception's class, an error's name, or one of `partitions`."""
    text = line[:_MAX_BYTES]
    if _FACT.search(text) is not None:
        return True
    return bool(partitions) and any(name in partitions for name in _PARTITION.findall(text))


def gives_a_reason(line: bytes) -> bool:
    """Return whether an exception on a line says which producer, sequence or epoch it is about."""
    return _REASON.search(line[:_MAX_BYTES]) is not None
