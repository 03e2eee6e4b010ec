"""What one entry of a log says: its message, the exception behind it and the context that the logger puts before it."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from kaudit.formats.application_log.errors import described_error, error_name, error_of, exception_in, refusal
from kaudit.formats.application_log.patterns import Pattern, PatternSet
from kaudit.model.log_event import LogEventKind

_MAX_LINE: Final = 4096
"""Bytes of one line that are held against patterns."""
_FRAME: Final = re.compile(rb"\s+(?:at |\.\.\. \d)").match
_EXCEPTION_LINE: Final = re.compile(r"(?:[a-z][\w$]*\.){1,20}[A-Z]").match
_CONTEXTS: Final = (
    (re.compile(r"\b[pP]artition[= ](?:[\w-]{22}:)?([\w.-]{1,249})-(\d{1,10})(?=[\],: ])"), ("topic", "partition")),
    (re.compile(r"\[(?:\w{1,40} (?:broker|brokerId|id|nodeId|node)=|Broker id=|KafkaApi-|Transaction State Manager |Controller id=)(\d{1,10})\b"), ("broker_id",)),
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


def match_entry(lines: Sequence[bytes], patterns: PatternSet) -> MatchedEntry | None:
    """Hold the lines of an entry against the patterns; None if none fits.

    The message is the first line. The exception of a stack trace says why: where the message tells only that a request
    failed, the exception gives the class, and in any case the values that the message lacks.
    """
    texts = list(_texts(lines))
    found = patterns.match(texts[0])
    causes = (matched for text in texts[1:] if (matched := patterns.match(text)) is not None)
    cause = next(causes, None)
    if found is None:
        found, cause = cause, None
    if found is None:
        return None
    (pattern, values), event = found, found[0].event
    if cause is not None:
        values = cause[1] | values  # a new dictionary
        if event is LogEventKind.REQUEST_ERROR:
            pattern, event = cause[0], cause[0].event
    error = _stated_error(values) or _thrown(texts)
    if event is LogEventKind.REQUEST_ERROR:
        event = refusal(error)
    return MatchedEntry(event, pattern, _with_context(texts[0], values | {"error": error or error_of(event)}))


def _texts(lines: Sequence[bytes]) -> Iterator[str]:
    """The lines without the frames of stack traces."""
    for index, line in enumerate(lines):
        if not index or not _FRAME(line):
            yield line[:_MAX_LINE].decode("utf-8", "replace")


def _stated_error(values: dict[str, Any]) -> str | None:
    """The error that the message names, or describes in words that are a client's own."""
    described = values.pop("error_text", None)
    if "error" in values:
        return error_name(values["error"])
    return None if described is None else described_error(described)


def _thrown(texts: Sequence[str]) -> str | None:
    """The error of the first exception in a stack trace."""
    traces = texts if _EXCEPTION_LINE(texts[0]) else texts[1:]
    return next((error for text in traces if (error := exception_in(text)) is not None), None)


def _with_context(head: str, values: dict[str, Any]) -> dict[str, Any]:
    """Add what the logger's context before the message says."""
    for expression, names in _CONTEXTS:
        if all(name in values for name in names):
            continue
        if found := expression.search(head):
            read = zip(names, found.groups(), strict=True)
            values = {name: int(value) if name in _NUMBERS else value for name, value in read} | values
    return values
