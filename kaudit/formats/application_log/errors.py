"""Errors as logs name them - by the protocol's name or number, an exception's class, or a description - and what they are called here."""

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Final

import msgspec
from msgspec import Struct

from kaudit.model.application_logs import LogEventKind


class _Error(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of errors.toml, which says what the fields mean."""

    code: int
    name: str
    formerly: str = ""
    classes: tuple[str, ...] = ()
    of_writes: bool = False
    texts: tuple[str, ...] = ()


class _Errors(Struct, frozen=True):
    names: dict[str, str]
    classes: dict[str, str]
    codes: dict[int, str]
    texts: dict[str, str]
    of_writes: frozenset[str]


@lru_cache(maxsize=1)
def _errors() -> _Errors:
    text = (files("kaudit.formats.application_log") / "patterns" / "errors.toml").read_text("utf-8")
    rows = msgspec.convert(tomllib.loads(text)["errors"], list[_Error])
    return _Errors(
        {known: row.name for row in rows for known in (row.name, row.formerly) if known},
        {known: row.name for row in rows for known in (*row.classes, row.name.title().replace("_", ""))},
        {row.code: row.name for row in rows},
        {known: row.name for row in rows for known in row.texts},
        frozenset(row.name for row in rows if row.of_writes),
    )


_OF_ERRORS: Final = ("", "org.apache.kafka.common.errors")
_OF_KAFKA: Final = re.compile(r"\.|org\.apache\.kafka\.|(?:aio)?kafka\.").match
"""The packages of kafka-clients, of old brokers (kafka.common), of kafka-python and of aiokafka."""
_END: Final = re.compile(r"(?:Exception|Error)$")
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NAME: Final = re.compile(r"_?[A-Z]+(?:_[A-Z]+)+\b").match
_NUMBER: Final = re.compile(r"\[Error (-?\d{1,4})\]").search
_CLASS: Final = re.compile(r"\b[A-Z]\w{1,100}(?:Exception|Error)\b|\b[A-Z][a-z]+[A-Z][a-zA-Z]{1,100}\b")
_THROWN: Final = re.compile(
    r"((?:[a-z][\w$]*\.){1,20}|\b)([A-Z]\w{1,100}(?:Exception|Error))\b|\b((?:aio)?kafka\.errors\.)([A-Z]\w{1,100})"
)
_LONGEST_DESCRIPTION: Final = 120


def error_name(text: str) -> str:
    """Return an error's name in Kafka's `Errors`, from that name or from the exception's class; another class by its simple name."""
    package, _, simple = text.rstrip(".").rpartition(".")
    errors = _errors()
    if simple in errors.names:
        return errors.names[simple]
    bare = _END.sub("", simple)
    if _OF_KAFKA(package + ".") and bare in errors.classes:
        return errors.classes[bare]
    return _CAPITAL.sub("_", bare).upper() if simple.endswith("Exception") and package in _OF_ERRORS else simple


def described_error(text: str) -> str:
    """Return an error's name in Kafka's `Errors` from a client's words: the name, number, class or description; unknown words themselves."""
    errors = _errors()
    if named := _NAME(text):
        return errors.names.get(named[0], named[0])
    if (numbered := _NUMBER(text)) and (name := errors.codes.get(int(numbered[1]))):
        return name
    for word in _CLASS.findall(text):
        if (name := errors.classes.get(_END.sub("", word))) is not None:
            return name
    lower = text.casefold()
    known = max((words for words in errors.texts if words in lower), key=len, default=None)
    return text[:_LONGEST_DESCRIPTION] if known is None else errors.texts[known]


def exception_in(line: str) -> str | None:
    """Return the error of the exception class that a line names: the first of Kafka's protocol, else the first; None if it names none."""
    found = [error_name("".join(part or "" for part in parts)) for parts in _THROWN.findall(line)]
    return next((name for name in found if is_known(name)), found[0] if found else None)


def is_known(name: str) -> bool:
    """Return whether the protocol has an error of this name."""
    return name in _errors().names


def is_of_writes(name: str) -> bool:
    """Return whether a producer, a transaction or a position in a log can meet this error of the protocol."""
    return name in _errors().of_writes


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


def refusal(event: LogEventKind, error: str | None) -> LogEventKind:
    """Return the class of a refused request by its error, which is more precise than the words around it."""
    return _REFUSALS.get(error or "", event) if event in _ERRORS or event is LogEventKind.REQUEST_ERROR else event


def error_of(event: LogEventKind) -> str | None:
    """Return the error of a refusal of this class, None for other events."""
    return _ERRORS.get(event)
