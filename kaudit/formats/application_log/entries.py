"""What one entry of a log says: its message, the exception behind it and the context that the logger puts before it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from kaudit.formats.application_log.errors import described_error, error_name, error_of, exception_in, refusal
from kaudit.formats.application_log.patterns import Pattern, PatternSet
from kaudit.model.application_logs import LogEventKind

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
