"""Finds where entries begin: layouts of logging frameworks, prefixes of log collectors, and entries that are JSON."""

import re
from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from kaudit.formats.application_log.timestamps import (
    DATED,
    DAY_FIRST,
    EPOCH_SECONDS,
    SYSLOG,
    TIME_OF_DAY,
    TWELVE_HOURS,
    LogTime,
    parse_time,
)

_LEVEL: Final = (
    rb"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|SEVERE|CRITICAL|FATAL|trace|debug|info|warn(?:ing)?|error|fatal)"
)
_USUAL: Final = re.compile(rb"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d{3}(?!\d|Z| ?[+-]\d\d:?\d\d| UTC| GMT)").match
"""A time without a zone at the beginning: nothing can stand before it, so that no more has to be asked."""
_TIMED: Final = (
    rb"(?:%[0-7]\||" + _LEVEL + rb"[\s:|,-]{0,3}|\[[\w-]{1,40}\]\s|(?:time|ts|t)=\"?)?[\[(|]?(?P<time>"
    + b"|".join((DATED, EPOCH_SECONDS, DAY_FIRST, TWELVE_HOURS, TIME_OF_DAY)) + rb")"
)  # fmt: skip
_HEADS: Final = (
    _TIMED + rb"|\[" + _LEVEL + rb"\s?\]\s|\[[^\]\n]{1,120}\]\s" + _LEVEL + rb"\s|" + _LEVEL + rb":[\w.]{1,200}:"
    rb"|(?:trce|dbug|info|warn|fail|crit): [\w.]{1,200}\[\d"
)  # fmt: skip
_HEAD: Final = re.compile(_HEADS).match
ENTRY_START: Final = re.compile(rb"(?<![\w.])(?:\{\"|" + SYSLOG + rb"|" + _HEADS + rb")")
"""What entries begin with, wherever it stands in a line."""
_STRONG_HEAD: Final = re.compile(
    rb"\{\"|%[0-7]\||[\[(|]?(?:" + b"|".join((DATED, EPOCH_SECONDS, DAY_FIRST, TWELVE_HOURS, SYSLOG)) + rb")"
    rb"|\[[^\]\n]{1,120}\]\s" + _LEVEL + rb"\s|" + _LEVEL + rb":[\w.]{1,200}:"
).match
_ENVELOPE: Final = re.compile(
    rb"(?P<priority><\d{1,3}>(?:1 )?)?"
    rb"(?P<container>\[pod/[^\]\s]{1,300}\](?: |$)|[\w.-]{1,64} {1,40}\|(?: |$))?"
    rb"(?:(?P<syslog>" + SYSLOG + rb") [\w.-]{1,255} [\w./@-]{1,128}(?:\[\d{1,10}\])?:(?: |$)"
    rb"|(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d))(?: |$)"
    rb"(?:std(?:out|err) [FP](?: |$)|[\w.-]{1,255} [\w./@-]{1,128}\[\d{1,10}\]:(?: |$)"
    rb"|[\w.-]{1,255} [\w.-]{1,48} [\w-]{1,128} [\w-]{1,32} (?:-|\[[^\]]{0,500}\]) (?:\xef\xbb\xbf)?)?)?"
).match
"""syslog and journalctl name the host and the program; RFC 5424 has five words in front; container engines name the stream."""
_CONTINUATION: Final = re.compile(
    rb"\t|\s+(?:at |\.\.\. \d)|Topic and partition to exceptions: |(?:SEVERE|WARNING|INFO|CONFIG|FINE(?:R|ST)?): |\s*(?:[Cc]aused by|Suppressed): |(?:[a-z][\w$]*\.){1,20}[\w$]*(?:Exception|Error)\b"
    rb"|Traceback \(most recent call last\):|The above exception was |During handling of the above exception|(?:future|task): <"
    rb"|(?:[A-Z]\w*\.){1,20}\w*Exception\b|(?:(?:aio)?kafka\.errors|cimpl)\.[A-Z]|[A-Z]\w{1,80}(?:Exception|Error)(?::|$)"
    rb"|(?:[\w.-]{1,100}/){0,10}[\w-]{1,100}\.(?:\(\*\w{1,100}\)\.)?[\w.]{1,200}$"
).match
"""Lines of stack traces and of chained exceptions of Java, Python, JavaScript, .NET and Go, and the second line of java.util.logging."""
_LEVEL_WORD: Final = re.compile(rb"(?<![\w.])(" + _LEVEL + rb")(?![\w.])").search
_LEVEL_NAMES: Final = {b"WARNING": b"WARN", b"SEVERE": b"ERROR", b"CRITICAL": b"FATAL", b"NOTICE": b"INFO"}
_INDENTED: Final = re.compile(rb"[ \t]|[\]})]").match
_JOURNAL_START: Final = (b"__CURSOR=", b"__REALTIME_TIMESTAMP=")
_JOURNAL_TIME: Final = b"__REALTIME_TIMESTAMP="
_JOURNAL_MESSAGE: Final = b"MESSAGE="
_JOURNAL_BINARY_MESSAGE: Final = b"MESSAGE"


_LONGEST_TIME: Final = 60
_MAX_BETWEEN: Final = 3


class Lines(Struct):
    """Consecutive lines of text without what a collector put before each.

    `numbers` are their numbers in the file, `heads` the indexes of those at which an entry begins, ascending. `times` has
    the collector's time by index.
    """

    texts: list[bytes]
    numbers: list[int]
    heads: list[int]
    times: dict[int, bytes | LogTime]

    def add(self, text: bytes, number: int, *, starts: bool, time: bytes | LogTime | None = None) -> None:
        """Add a line."""
        index = len(self.texts)
        self.texts.append(text)
        self.numbers.append(number)
        if starts:
            self.heads.append(index)
        if time is not None:
            self.times[index] = time

    def cut(self, index: int) -> "tuple[Lines, Lines]":
        """Return the lines before `index` and those from there on."""
        heads = bisect_left(self.heads, index)
        before = {at: time for at, time in self.times.items() if at < index}
        after = {at - index: time for at, time in self.times.items() if at >= index}
        return (
            Lines(self.texts[:index], self.numbers[:index], self.heads[:heads], before),
            Lines(self.texts[index:], self.numbers[index:], [at - index for at in self.heads[heads:]], after),
        )

    def followed_by(self, other: "Lines") -> "Lines":
        """Return these lines followed by the other ones."""
        shift = len(self.texts)
        return Lines(
            self.texts + other.texts,
            self.numbers + other.numbers,
            self.heads + [at + shift for at in other.heads],
            self.times | {at + shift: time for at, time in other.times.items()},
        )


def begins_with_date(line: bytes) -> bool:
    """Return whether an entry begins here whose layout begins with a day and a time, with a thread and a level, or as an object."""
    return _STRONG_HEAD(line) is not None


def time_before_entry(line: bytes) -> bytes | None:
    """Return the time that a collector put before an entry that has one itself, and what follows it; None if no collector is known for it."""
    outer = ENTRY_START.match(line)
    envelope = _ENVELOPE(line)
    if outer is None or (envelope is not None and (envelope["time"] or envelope["syslog"])):
        return None
    inner = ENTRY_START.search(line, outer.end(), outer.end() + _LONGEST_TIME)
    is_next = inner is not None and inner.start() - outer.end() <= _MAX_BETWEEN and inner["time"] is not None
    return line[: inner.start()] if inner is not None and is_next else None


def looks_like_continuation(text: bytes) -> bool:
    """Return whether a line may continue the entry before it: it is indented or of a stack trace."""
    return _CONTINUATION(text) is not None or _INDENTED(text) is not None


class LineReader:
    """Reads the lines of one file in blocks; keeps state between blocks."""

    def __init__(self) -> None:
        self.bare: set[int] = set()
        """Of the lines last read those, by index, that begin an entry only because a collector put its own before them."""
        self._number = 0
        self._journal_time: bytes | None = None
        self._in_journal = self._binary_message = False

    def read(self, lines: list[bytes]) -> Lines:
        """Return the next lines of the file."""
        self.bare = set()
        heads = [index for index, line in enumerate(lines) if _USUAL(line)]
        if not self._in_journal and _only_continuations(lines, heads):
            start = self._number + 1
            self._number += len(lines)
            return Lines(lines, list(range(start, start + len(lines))), heads, {})
        found = Lines([], [], [], {})
        for raw in lines:
            self._number += 1
            if not raw and not self._in_journal:
                continue
            if _USUAL(raw):
                self._in_journal = False
                found.add(raw, self._number, starts=True)
            elif (
                (_MAY_BE_STRUCTURED(raw) or raw.endswith(b"}"))
                and not self._in_journal
                and (entry := structured_entry(raw)) is not None
            ):
                head, *trace = entry.text.split(b"\n")
                self._add_collected(head, found, entry.time)
                for text in trace:
                    found.add(text, self._number, starts=False)
            elif self._in_journal or raw.startswith(_JOURNAL_START):
                self._add_journal_field(raw, found)
            else:
                self._add_enveloped(raw, found)
        return found

    def _add_enveloped(self, raw: bytes, found: Lines) -> None:
        envelope = _ENVELOPE(raw)
        assert envelope is not None, "every part is optional"
        time = envelope["time"] or envelope["syslog"]
        if time is None and not envelope["container"] and not envelope["priority"]:
            found.add(raw, self._number, starts=_HEAD(raw) is not None)
            return
        text = raw[envelope.end() :]
        self._add_collected(text, found, time)

    def _add_collected(self, text: bytes, found: Lines, time: bytes | LogTime | None) -> None:
        has_head = _HEAD(text) is not None
        starts = has_head or _CONTINUATION(text) is None
        if starts and not has_head:
            self.bare.add(len(found.texts))
        found.add(text, self._number, starts=starts, time=time)

    def _add_journal_field(self, raw: bytes, found: Lines) -> None:
        """Add a line of the journal export format: fields of an entry, one per line, then an empty line."""
        self._in_journal = bool(raw)
        if raw.startswith(_JOURNAL_TIME):
            self._journal_time = raw[len(_JOURNAL_TIME) :]
        if raw.startswith(_JOURNAL_MESSAGE):
            text = raw[len(_JOURNAL_MESSAGE) :]
        elif self._binary_message:
            text = raw[8:]  # the length of a message with line feeds stands before it, in binary
        else:
            self._binary_message = raw == _JOURNAL_BINARY_MESSAGE
            return
        self._binary_message = False
        time = self._journal_time
        known = LogTime(int(time) // 1000, True) if time is not None and time.isdigit() and len(time) < 18 else None
        found.add(text, self._number, starts=_HEAD(text) is not None or _CONTINUATION(text) is None, time=known)


def _only_continuations(lines: list[bytes], heads: list[int]) -> bool:
    """Return whether all lines but `heads` are indented or of stack traces, and so have no collector's prefix."""
    if not heads or len(heads) < len(lines) // 64:
        return False
    others = set(range(len(lines))).difference(heads) if len(heads) < len(lines) else ()
    return all(not lines[index] or looks_like_continuation(lines[index]) for index in others)


def entry_time(text: bytes, collected: bytes | LogTime | None, year_before_ms: int | None) -> LogTime | None:
    """Return when an entry was written, by its own head, which may lack its zone, and by the collector's time, which has one."""
    outer = parse_time(collected, year_before_ms) if isinstance(collected, bytes) else collected
    head = _HEAD(text)
    inner = None if head is None or head["time"] is None else parse_time(head["time"], year_before_ms)
    if inner is None or outer is None or inner.zone_known or not outer.zone_known:
        return inner or outer
    quarter = 15 * 60_000
    offset = round((inner.timestamp_ms - outer.timestamp_ms) / quarter) * quarter
    return LogTime(inner.timestamp_ms - offset, True) if abs(offset) <= 14 * 3_600_000 else outer


def entry_level(text: bytes) -> str | None:
    """Return the level of an entry by log4j's name."""
    found = _LEVEL_WORD(text, 0, 200)
    return None if found is None else _LEVEL_NAMES.get(found[1].upper(), found[1].upper()).decode()


_TIMES: Final = (
    "__REALTIME_TIMESTAMP", "@timestamp", "timestamp", "time", "ts", "timeMillis", "instant", "epochMillis", "timeUnixNano", "t",
    "datetime", "asctime", "Timestamp", "@t",
)  # fmt: skip
_MESSAGES: Final = (
    "message", "formattedMessage", "msg", "MESSAGE", "log", "full_message", "short_message", "textPayload", "line", "body",
    "stringValue", "RenderedMessage", "@m", "MessageTemplate", "@mt", "Message",
)  # fmt: skip
_NUMBERED_LEVELS: Final = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}
"""pino's and bunyan's."""
_LEVELS: Final = ("level", "log.level", "severity", "levelname", "lvl", "Level", "@l", "LogLevel")
_LOGGERS: Final = (
    "logger_name",
    "log.logger",
    "loggerName",
    "logger",
    "name",
    "LoggerName",
    "SourceContext",
    "Category",
)
_TRACES: Final = (
    "stack_trace",
    "error.stack_trace",
    "stackTrace",
    "exception",
    "exc_info",
    "extendedStackTrace",
    "stack",
    "Exception",
    "@x",
)
_NESTED: Final = ("jsonPayload", "json_payload", "error", "err", "thrown", "throwable", "exception", "log", "fields")
"""Objects whose members are read like the entry's own."""
MEMBERS: Final = frozenset((*_TIMES, *_MESSAGES, *_LEVELS, *_LOGGERS, *_TRACES, *_NESTED))
"""Names that loggers give the members of an entry."""
_MAX_FIELDS: Final = 40
_MAX_DEPTH: Final = 8
_MAX_MILLISECONDS: Final = 253_402_300_799_999  # the end of the year 9999


class StructuredEntry(Struct, frozen=True):
    """`text` is the entry as a line, `LEVEL logger: message; field: value, ...`, and the lines of its stack trace."""

    text: bytes
    time: LogTime | None


_ASSIGNMENT: Final = rb"(?P<name>[\w.@-]{1,100})=(?:\"(?P<quoted>(?:[^\"\\]|\\.)*+)\"|(?P<bare>[^\s\"]*+))(?: |$)"
_ASSIGNMENTS: Final = re.compile(_ASSIGNMENT).finditer
_LOGFMT: Final = re.compile(rb"(?:time|ts|t|level|lvl)=[^ ]").match
_MAY_BE_STRUCTURED: Final = re.compile(rb"[{tl]|(?>\S{1,40})(?: [AP]M)? (?:TRC|DBG|INF|WRN|ERR|FTL|PNC) ").match
_ZEROLOG: Final = re.compile(
    rb"(?P<time>(?>\S{1,40})(?: [AP]M)?) (?P<level>TRC|DBG|INF|WRN|ERR|FTL|PNC) (?P<message>.*?) (?=[\w.]{1,100}=)"
).match
_ZEROLOG_LEVELS: Final = {
    b"TRC": "TRACE", b"DBG": "DEBUG", b"INF": "INFO", b"WRN": "WARN", b"ERR": "ERROR", b"FTL": "FATAL", b"PNC": "FATAL",
}  # fmt: skip
_ZAP: Final = re.compile(rb"(?P<head>[^{]*\t[^\t{]+)\t(?P<members>\{.*\})$").match
_ESCAPED: Final = re.compile(r"\\(.)").sub
_MEANT: Final = {"n": "\n", "t": "\t"}


def structured_entry(line: bytes) -> StructuredEntry | None:
    """Read one line that is an object, assignments, or a message with them after it; None if it is none with a message.

    These are JSON of any framework; logfmt, as slog, logrus and go-kit write it; the consoles of zap (`message {members}`
    between tabs) and of zerolog (`INF message name=value`).
    """
    if line.startswith((b"{", b"[{")):
        members = _object(line.removeprefix(b"[").rstrip(b" ,]"))
        return None if members is None else _entry(members) or _inner_entry(members, 0)
    if _LOGFMT(line):
        return _entry(_assigned(line))
    if line.endswith(b"}") and (zap := _ZAP(line)) and (members := _object(zap["members"])) is not None:
        return StructuredEntry(zap["head"] + _listed(members), None)
    if zerolog := _ZEROLOG(line):
        head = f"{_ZEROLOG_LEVELS[zerolog['level']]} {zerolog['message'].decode('utf-8', 'replace')}"
        return StructuredEntry(head.encode() + _listed(_assigned(line[zerolog.end() :])), parse_time(zerolog["time"]))
    return None


def _object(line: bytes) -> dict[str, object] | None:
    try:
        decoded = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return decoded if isinstance(decoded, dict) else None


def _assigned(line: bytes) -> dict[str, object]:
    """Return `name=value name="value"` as members."""
    found = (part.groupdict() for part in _ASSIGNMENTS(line))
    return {
        part["name"].decode(): _ESCAPED(
            lambda one: _MEANT.get(one[1], one[1]), part["quoted"].decode("utf-8", "replace")
        )
        if part["quoted"] is not None
        else part["bare"].decode("utf-8", "replace")
        for part in found
    }


def _listed(members: Mapping[str, object]) -> bytes:
    fields = ", ".join(
        f"{key}: {value}"
        for key, value in list(members.items())[:_MAX_FIELDS]
        if isinstance(value, str | int | float | bool)
    )
    return f"; {fields}".replace("\n", " ").encode("utf-8", "replace") if fields else b""


def _entry(decoded: dict[str, object]) -> StructuredEntry | None:
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
    namespace = entry.pop("namespace", None)
    others = {name: value for name, value in entry.items() if value != message}
    if isinstance(namespace, str) and not message.startswith("["):  # as kafkajs's own logger writes it
        message = f"[{namespace}] {message}"
    text = message.rstrip("\n").encode("utf-8", "replace")
    if level is not None and "log" not in decoded and "MESSAGE" not in decoded:  # else a collector wrapped a line
        named = _NUMBERED_LEVELS.get(level, level) if isinstance(level, int) else str(level).upper()
        prefix = f"{named} " if logger is None else f"{named} {logger}: "
        text = prefix.encode("utf-8", "replace") + text + _listed(others)
    if isinstance(trace, str):
        text += b"\n" + trace.rstrip("\n").encode("utf-8", "replace")
    return StructuredEntry(text, time)


def _inner_entry(members: Mapping[str, object], depth: int) -> StructuredEntry | None:
    """Return the entry in an object that has none of its own, as stores of logs hand it out: the first object in it with a message."""
    for member in members.values() if depth < _MAX_DEPTH else ():
        if isinstance(member, dict):
            entry = _entry(member) or _inner_entry(member, depth + 1)
            if entry is not None:
                return (
                    entry if entry.time is not None else StructuredEntry(entry.text, _time(_first({**members}, _TIMES)))
                )
    return None


def _flat(decoded: dict[str, object]) -> dict[str, object]:
    """Return the members, with those of nested objects; fields that repeat a stack trace are left out."""
    entry = dict(decoded)
    for name in _NESTED:
        nested = entry.get(name)
        if isinstance(nested, dict):
            del entry[name]
            traces = {key: value for key, value in nested.items() if key in _TRACES and isinstance(value, str)}
            if not traces and (thrown := _thrown(nested)):
                traces = {"stack_trace": thrown}
            entry = {
                f"{name}.{key}" if key in entry else key: value for key, value in (traces or nested).items()
            } | entry
    if any(name in entry for name in _TRACES):
        entry = {key: value for key, value in entry.items() if key in _TRACES or not key.startswith("error.")}
    return entry


_MAX_CAUSES: Final = 20


def _thrown(thrown: dict[str, object]) -> str:
    """Return exceptions that are objects, of logback and log4j2, as the first lines of their stack traces."""
    lines: list[str] = []
    one: object = thrown
    while isinstance(one, dict) and len(lines) < _MAX_CAUSES:
        named = one.get("className", one.get("name"))
        if not isinstance(named, str):
            break
        lines.append(f"{'Caused by: ' if lines else ''}{named}: {one.get('message')}")
        one = one.get("cause")
    return "\n".join(lines)


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
