"""What one entry of a log says: its message, the exception after it, and the context that the logger puts before it.

Errors are named by their name in the protocol, or by Kafka's exception class.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from kaudit.formats.application_log.patterns import Pattern, PatternSet
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


_MAX_LINE: Final = 4096
"""Bytes of one line that are held against patterns."""
_FRAME: Final = re.compile(rb"\s+(?:at |\.\.\. \d)").match
_EXCEPTION_LINE: Final = re.compile(rb"(?:[a-z][\w$]*\.){1,20}[A-Z]").match
_CONTEXTS: Final = (
    (re.compile(r"\b[pP]artition[= ](?:[\w-]{22}:)?([\w.-]{1,249})-(\d{1,10})(?=[\],: ])"), ("topic", "partition")),
    (re.compile(r"\[(?:\w{1,40} (?:broker|brokerId|id|nodeId|node)=|Broker id=|KafkaApi-|Transaction State Manager |Controller id=)(\d{1,10})\b"), ("broker_id",)),
    (re.compile(r"\|([^|#]{1,250})#(?:producer|consumer)-\d{1,10}\|"), ("client_id",)),
    (re.compile(r"\bclientId=([^,\]]{1,250})[,\]]"), ("client_id",)),
    (re.compile(r"\btransactionalId=([^,\]]{1,250})[,\]]"), ("transactional_id",)),
)  # fmt: skip
"""What the context that a logger puts before its messages says: a pattern states only the message."""
_NUMBERS: Final = frozenset({"partition", "broker_id"})


class MatchedEntry(Struct, frozen=True):
    """An entry that is understood: its class, the pattern that says most of it, and the values by field of LogEvent."""

    event: LogEventKind
    pattern: Pattern
    values: dict[str, Any]


def match_entry(
    lines: Sequence[bytes], triggers: Mapping[int, Sequence[int]], patterns: PatternSet
) -> MatchedEntry | None:
    """Hold the lines of an entry against the patterns; None if none fits.

    `triggers` has the triggers of the lines that have any. The message is the first line. The exception of a stack trace
    says why: where the message says only that a request failed, the exception gives the class, and in any case the
    values that the message lacks.
    """
    matches = (
        (index, matched)
        for index, numbers in triggers.items()
        if (matched := patterns.match(_text(lines[index]), numbers)) is not None
    )
    first = next(matches, None)
    if first is None:
        return None
    (index, (pattern, values)), event = first, first[1][0].event
    if index == 0 and (second := next(matches, None)) is not None:
        cause, more = second[1]
        values = more | values
        if event is LogEventKind.REQUEST_ERROR:
            pattern, event = cause, cause.event
    error = _stated_error(values) or _thrown(lines)
    event = refusal(event, error)
    values["error"] = error or error_of(event)
    return MatchedEntry(event, pattern, _with_context(_text(lines[index]), _with_context(_text(lines[0]), values)))


def _text(line: bytes) -> str:
    return line[:_MAX_LINE].decode("utf-8", "replace")


def _stated_error(values: dict[str, Any]) -> str | None:
    """The error that the message names, or describes in words that are a client's own."""
    described = values.pop("error_text", None)
    if "error" in values:
        return error_name(values["error"])
    return None if described is None else described_error(described)


def _thrown(lines: Sequence[bytes]) -> str | None:
    """The error of the first exception in a stack trace."""
    for index, line in enumerate(lines):
        if (index or _EXCEPTION_LINE(line)) and not _FRAME(line) and (error := exception_in(_text(line))) is not None:
            return error
    return None


def _with_context(head: str, values: dict[str, Any]) -> dict[str, Any]:
    """Add what the logger's context before the message says."""
    for expression, names in _CONTEXTS:
        if all(name in values for name in names):
            continue
        if found := expression.search(head):
            read = zip(names, found.groups(), strict=True)
            values = {name: int(value) if name in _NUMBERS else value for name, value in read} | values
    return values
