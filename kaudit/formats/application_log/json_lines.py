"""A log entry that is a JSON object, whoever made it: a logging framework, a container engine, journald, a log shipper."""

from collections.abc import Mapping
from typing import Final

import msgspec

from kaudit.formats.application_log.timestamps import LogTime, parse_time

_TIMES: Final = (
    "__REALTIME_TIMESTAMP", "@timestamp", "timestamp", "time", "ts", "timeMillis", "instant", "epochMillis", "t",
    "datetime",
)  # fmt: skip
_MESSAGES: Final = (
    "message", "formattedMessage", "msg", "MESSAGE", "log", "full_message", "short_message", "textPayload", "line", "body",
)  # fmt: skip
_LEVELS: Final = ("level", "log.level", "severity", "levelname", "lvl")
_LOGGERS: Final = ("logger_name", "log.logger", "loggerName", "logger", "name", "LoggerName")
_TRACES: Final = (
    "stack_trace",
    "error.stack_trace",
    "stackTrace",
    "exception",
    "exc_info",
    "extendedStackTrace",
    "stack",
)
_NESTED: Final = ("jsonPayload", "json_payload", "error", "thrown", "throwable", "exception", "log", "fields")
"""Objects whose members are read like the entry's own."""
_MAX_FIELDS: Final = 40
_MAX_MILLISECONDS: Final = 253_402_300_799_999  # the end of the year 9999


class JsonEntry(msgspec.Struct, frozen=True):
    """`text` is the entry as a line, `LEVEL logger: message; field: value, ...`, and the lines of its stack trace."""

    text: bytes
    time: LogTime | None


def parse_json_line(line: bytes) -> JsonEntry | None:
    """Read one line; None if it is not an object with a message."""
    try:
        decoded = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(decoded, dict):
        return None
    entry = _flat(decoded)
    time = _time(_first(entry, _TIMES))
    level, logger, trace = _first(entry, _LEVELS), _first(entry, _LOGGERS), _first(entry, _TRACES)
    message = _first(entry, _MESSAGES)
    if isinstance(message, list):  # journald's form of a message that is not UTF-8
        message = bytes(byte for byte in message if isinstance(byte, int) and 0 <= byte < 256).decode(
            "utf-8", "replace"
        )
    if not isinstance(message, str):
        return None
    wrapped = level is None or "log" in decoded or "MESSAGE" in decoded
    text = message.rstrip("\n")
    if not wrapped:
        prefix = f"{level}" if logger is None else f"{level} {logger}:"
        fields = ", ".join(
            f"{key}: {value}"
            for key, value in list(entry.items())[:_MAX_FIELDS]
            if isinstance(value, str | int | float | bool)
        )
        text = f"{prefix} {text}" + (f"; {fields}" if fields else "")
    if isinstance(trace, str):
        text += "\n" + trace.rstrip("\n")
    return JsonEntry(text.encode("utf-8", "replace"), time)


def _flat(decoded: dict[str, object]) -> dict[str, object]:
    """The members, and those of the objects that are read like them; what a stack trace says is not said twice."""
    entry = dict(decoded)
    for name in _NESTED:
        nested = entry.get(name)
        if isinstance(nested, dict):
            del entry[name]
            traces = {key: value for key, value in nested.items() if key in _TRACES and isinstance(value, str)}
            entry = {
                f"{name}.{key}" if key in entry else key: value for key, value in (traces or nested).items()
            } | entry
    if any(name in entry for name in _TRACES):
        entry = {key: value for key, value in entry.items() if key in _TRACES or not key.startswith("error.")}
    return entry


def _first(entry: dict[str, object], names: tuple[str, ...]) -> object:
    """Take the first of the members out of the entry."""
    for name in names:
        if entry.get(name) is not None:
            return entry.pop(name)
    return None


def _time(value: object) -> LogTime | None:
    if isinstance(value, str):
        if value.isascii() and value.isdigit() and len(value) <= 20:
            return _from_number(int(value))
        return parse_time(value.encode("utf-8", "replace"))
    if isinstance(value, Mapping):  # log4j2's instant
        seconds, nanos = value.get("epochSecond"), value.get("nanoOfSecond")
        if isinstance(seconds, int):
            return _from_number(seconds * 1000 + (nanos // 1_000_000 if isinstance(nanos, int) else 0))
        return None
    return _from_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _from_number(value: float) -> LogTime | None:
    """Seconds, milliseconds, microseconds or nanoseconds since the epoch, by their size."""
    if not 0 < value < 10**20:
        return None
    while value > _MAX_MILLISECONDS:
        value /= 1000
    if value < 10**11:
        value *= 1000
    return LogTime(int(value), True)
