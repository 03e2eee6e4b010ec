"""Errors as logs name them: by their name in the protocol, or by Kafka's exception class."""

import re
from typing import Final

from kaudit.model.application_logs import LogEventKind

_REFUSALS: Final = {
    "OUT_OF_ORDER_SEQUENCE_NUMBER": LogEventKind.OUT_OF_ORDER_SEQUENCE,
    "DUPLICATE_SEQUENCE_NUMBER": LogEventKind.DUPLICATE_SEQUENCE,
    "INVALID_PRODUCER_EPOCH": LogEventKind.INVALID_PRODUCER_EPOCH,
    "PRODUCER_FENCED": LogEventKind.FENCED_PRODUCER,
    "UNKNOWN_PRODUCER_ID": LogEventKind.UNKNOWN_PRODUCER_ID,
    "INVALID_TXN_STATE": LogEventKind.INVALID_TXN_STATE,
    "CONCURRENT_TRANSACTIONS": LogEventKind.CONCURRENT_TRANSACTIONS,
    "TRANSACTION_COORDINATOR_FENCED": LogEventKind.TRANSACTION_COORDINATOR_FENCED,
    "INVALID_PRODUCER_ID_MAPPING": LogEventKind.INVALID_PRODUCER_ID_MAPPING,
    "INVALID_RECORD": LogEventKind.RECORD_REJECTED,
}
_ERRORS: Final = {kind: error for error, kind in _REFUSALS.items()}
_EXCEPTIONS: Final = {
    "OutOfOrderSequenceException": "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "DuplicateSequenceException": "DUPLICATE_SEQUENCE_NUMBER",
    "DuplicateSequenceNumberException": "DUPLICATE_SEQUENCE_NUMBER",
    "TimeoutException": "REQUEST_TIMED_OUT",
    "NotEnoughReplicasAfterAppendException": "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "RecordTooLargeException": "MESSAGE_TOO_LARGE",
    "CorruptRecordException": "CORRUPT_MESSAGE",
    "InvalidRecordException": "INVALID_RECORD",
    "InvalidPidMappingException": "INVALID_PRODUCER_ID_MAPPING",
    "UnknownServerException": "UNKNOWN_SERVER_ERROR",
    "NotLeaderForPartitionException": "NOT_LEADER_OR_FOLLOWER",
    "InvalidTopicException": "INVALID_TOPIC_EXCEPTION",
    "KafkaStorageException": "KAFKA_STORAGE_ERROR",
    "NetworkException": "NETWORK_EXCEPTION",
    "RecordBatchTooLargeException": "RECORD_LIST_TOO_LARGE",
    "InvalidTxnTimeoutException": "INVALID_TRANSACTION_TIMEOUT",
    "TopicAuthorizationException": "TOPIC_AUTHORIZATION_FAILED",
    "ClusterAuthorizationException": "CLUSTER_AUTHORIZATION_FAILED",
    "TransactionalIdAuthorizationException": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}
"""Classes of org.apache.kafka.common.errors whose error is not called like the class."""
_DESCRIPTIONS: Final = (
    ("out of order sequence", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    ("duplicate sequence", "DUPLICATE_SEQUENCE_NUMBER"),
    ("with an old epoch", "INVALID_PRODUCER_EPOCH"),
    ("newer producer with the same transactional", "PRODUCER_FENCED"),
    ("could not locate the producer metadata", "UNKNOWN_PRODUCER_ID"),
    ("Unknown Producer Id", "UNKNOWN_PRODUCER_ID"),
    ("transactional operation in an invalid state", "INVALID_TXN_STATE"),
    ("not currently assigned to its transactional", "INVALID_PRODUCER_ID_MAPPING"),
    ("another concurrent operation on the same transaction", "CONCURRENT_TRANSACTIONS"),
    ("no longer the current coordinator for a given producer", "TRANSACTION_COORDINATOR_FENCED"),
    ("not the leader", "NOT_LEADER_OR_FOLLOWER"),
    ("Not leader for partition", "NOT_LEADER_OR_FOLLOWER"),
    ("timed out", "REQUEST_TIMED_OUT"),
    ("i/o timeout", "REQUEST_TIMED_OUT"),
)
"""What librdkafka, kafkajs and sarama say of an error, all from the protocol's descriptions."""
_NAME: Final = re.compile(r"_?[A-Z]+(?:_[A-Z]+)+\b").match
_LONGEST_DESCRIPTION: Final = 120
_EXCEPTION: Final = re.compile(r"((?:[a-z][\w$]*\.){1,20}|\b)([A-Z]\w{1,100}Exception)\b")
_PACKAGE: Final = "org.apache.kafka.common.errors"
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def error_name(text: str) -> str:
    """An error's name in Kafka's `Errors`, from that name or from the exception's class; another class by its simple name."""
    package, _, simple = text.rstrip(".").rpartition(".")
    if simple in _EXCEPTIONS:
        return _EXCEPTIONS[simple]
    if simple.endswith("Exception") and package in ("", _PACKAGE):
        return _CAPITAL.sub("_", simple.removesuffix("Exception")).upper()
    return simple


def exception_in(line: str) -> str | None:
    """The error of the exception class that a line names, None if it names none."""
    found = _EXCEPTION.search(line)
    return None if found is None else error_name(found[1] + found[2])


def refusal(event: LogEventKind, error: str | None) -> LogEventKind:
    """The class of a refused request by the error it was answered with, which says more than the words around it."""
    return _REFUSALS.get(error or "", event) if event in _ERRORS or event is LogEventKind.REQUEST_ERROR else event


def error_of(event: LogEventKind) -> str | None:
    """The error a refusal of this class is answered with, None for other events."""
    return _ERRORS.get(event)


def described_error(text: str) -> str:
    """An error's name in Kafka's `Errors` from a description of it; the description where it is not known."""
    if named := _NAME(text):
        return named[0]
    known = (name for words, name in _DESCRIPTIONS if words in text)
    return next(known, text[:_LONGEST_DESCRIPTION])
