"""Errors as logs name them - by the protocol's name or number, an exception's class, or a client's description - and what they are called here."""

import re
from functools import cache
from typing import Final

import msgspec
from msgspec import Struct

from kaudit.formats.protocol_errors import error_named, error_numbered
from kaudit.formats.toml import packaged_toml
from kaudit.model.application_logs import LogEventKind


class _Words(Struct, frozen=True, forbid_unknown_fields=True):
    """errors.toml, which says what the fields mean."""

    of_writes: frozenset[str]
    texts: dict[str, tuple[str, ...]]


@cache
def _words() -> _Words:
    return msgspec.convert(packaged_toml("kaudit.formats.application_log", "patterns/errors.toml"), _Words)


@cache
def _by_text() -> dict[str, str]:
    return {known: name for name, texts in _words().texts.items() for known in texts}


def _named(name: str) -> str | None:
    """Return the name in the protocol of what a client calls an error; None if it is none of the protocol's."""
    error = error_named(name)
    return None if error is None or error.program is not None else error.name


_OF_ERRORS: Final = ("", "org.apache.kafka.common.errors")
_OF_KAFKA: Final = re.compile(r"\.|org\.apache\.kafka\.|(?:aio)?kafka\.").match
"""The packages of kafka-clients, of old brokers (kafka.common), of kafka-python and of aiokafka."""
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NAME: Final = re.compile(r"_?[A-Z]+(?:_[A-Z]+)+\b").match
_NUMBER: Final = re.compile(
    r"(?:\[Error |[Uu]nknown error code |\b[Ee]rror code = |\b(?:Err-|ERR_))(-?\d{1,4})\b"
).search
"""kafka-python and aiokafka; kafkajs, sarama and librdkafka for errors that are younger than they."""
_CLASS: Final = re.compile(r"\b[A-Z]\w{1,100}(?:Exception|Error)\b|\b[A-Z][a-z]+[A-Z][a-zA-Z]{1,100}\b")
_THROWN: Final = re.compile(
    r"((?:[a-z][\w$]*\.){1,20}|\b)([A-Z]\w{1,100}(?:Exception|Error))\b|\b((?:aio)?kafka\.errors\.)([A-Z]\w{1,100})"
)
_LONGEST_DESCRIPTION: Final = 120


def error_name(text: str) -> str:
    """Return an error's name in Kafka's `Errors`, from that name or from the exception's class; another class by its simple name."""
    package, _, simple = text.rstrip(".").rpartition(".")
    if _OF_KAFKA(package + ".") and (name := _named(simple)) is not None:
        return name
    bare = simple.removesuffix("Exception")
    return _CAPITAL.sub("_", bare).upper() if bare != simple and package in _OF_ERRORS else simple


def described_error(text: str) -> str:
    """Return an error's name in Kafka's `Errors` from a client's words: the name, number, class or description; unknown words themselves."""
    if named := _NAME(text):
        return _named(named[0]) or named[0]
    if (numbered := _NUMBER(text)) and (error := error_numbered(int(numbered[1]))) and error.program is None:
        return error.name
    if (name := next(filter(None, map(_named, _CLASS.findall(text))), None)) is not None:
        return name
    lower = text.casefold()
    known = max((words for words in _by_text() if words in lower), key=len, default=None)
    return text[:_LONGEST_DESCRIPTION] if known is None else _by_text()[known]


def exception_in(line: str) -> str | None:
    """Return the error of the exception class that a line names: the first of Kafka's protocol, else the first; None if it names none."""
    found = [error_name("".join(part or "" for part in parts)) for parts in _THROWN.findall(line)]
    return next((name for name in found if is_known(name)), found[0] if found else None)


def is_known(name: str) -> bool:
    """Return whether the protocol has an error of this name."""
    return _named(name) == name


def is_of_writes(name: str) -> bool:
    """Return whether a producer, a transaction or a position in a log can meet this error of the protocol."""
    return name in _words().of_writes


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


_NAMED_BY_ERROR: Final = frozenset({LogEventKind.REQUEST_ERROR, LogEventKind.DELIVERY_FAILED, *_ERRORS})


def refusal(event: LogEventKind, error: str | None) -> LogEventKind:
    """Return the class of a refused request by its error, which is more precise than the words around it."""
    return _REFUSALS.get(error or "", event) if event in _NAMED_BY_ERROR else event


def error_of(event: LogEventKind) -> str | None:
    """Return the error of a refusal of this class, None for other events."""
    return _ERRORS.get(event)
