"""Every message in every layout that its program's logs have: an example, taken apart and laid out again.

The layouts are those of the recordings, whose names they have: the frameworks' own defaults; and Flink's and .NET's.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Final

from msgspec import Struct

from kaudit.formats.application_log.patterns import Pattern, read_patterns
from kaudit.formats.application_log.reader import read_events
from kaudit.model.application_logs import Origin

TIME: Final = datetime(2026, 11, 22, 18, 45, 4, 73000, UTC)
TIME_MS: Final = int(TIME.timestamp() * 1000)
_STAMP: Final = "2026-11-22 18:45:04,073"
_DOTTED: Final = "2026-11-22 18:45:04.073"
_ISO: Final = "2026-11-22T18:45:04.073Z"
_LOGGER: Final = "com.example.orders.Orders"


class Entry(Struct, frozen=True):
    """One entry: its message, its members where it is a structured one, and the lines of its stack trace."""

    level: str
    message: str
    logger: str = _LOGGER
    members: Mapping[str, object] = {}
    trace: Sequence[str] = ()

    @property
    def exception(self) -> str:
        """The stack trace as one text."""
        return "\n".join(self.trace)

    @property
    def thrown(self) -> tuple[str, str, str]:
        """The exception's class, what stands between, and its message."""
        return self.trace[0].removeprefix("Caused by: ").partition(": ")

    @property
    def below(self) -> str:
        """The stack trace as lines below the message."""
        return "".join(f"\n{line}" for line in self.trace)

    @property
    def listed(self) -> str:
        """The message with its members as kgo lists them."""
        listed = ", ".join(f"{name}: {value}" for name, value in self.members.items())
        return self.message + (f"; {listed}" if listed else "")


_JAVA_HEAD: Final = (
    re.compile(r"\[[^\]]+\] (?P<level>[A-Z]+) (?P<message>.*?)(?: \((?P<logger>[\w.$]+)(?::\d+)?\))?$"),
    re.compile(r"\S+ \S+ +(?P<level>[A-Z]+) \d+ --- \[[^\]]*\] (?P<logger>\S+) +: (?P<message>.*)$"),
    re.compile(r"\S+ \S+ (?P<level>[A-Z]+) +(?P<logger>\S+) +\[\] - (?P<message>.*)$"),
)
_PYTHON_HEAD: Final = re.compile(r"\S+ \S+ (?P<level>[A-Z]+) (?P<logger>[\w.]+) (?P<message>.*)$")
_LIBRDKAFKA_HEAD: Final = re.compile(r"%(?P<number>\d)\|[\d.]+\|(?P<facility>\w+)\|(?P<name>[^|]*)\| (?P<message>.*)$")
_GO_HEAD: Final = re.compile(r"(?:\[(?P<level>[A-Z]+)\] |\S+ \S+ )(?P<message>.*)$")
_SARAMA_HEAD: Final = re.compile(r"(?:\[sarama\] )?\S+ \S+ (?P<message>.*)$")


def entry_of(pattern: Pattern) -> Entry:
    """Take a pattern's example apart."""
    example, level = pattern.example, pattern.level or "ERROR"
    if pattern.program in ("java", "server"):
        found = next(filter(None, (head.match(example) for head in _JAVA_HEAD)), None)
        if found is None:
            return Entry(level, "Send failed", trace=[example, "\tat com.example.orders.Orders.send(Orders.java:17)"])
        return Entry(found["level"], found["message"], found["logger"] or _LOGGER)
    if pattern.program == "kafkajs":
        if not example.startswith("{"):
            return Entry(level, "send failed", trace=[example, "    at async send (/app/orders.js:17:5)"])
        members = json.loads(example)
        message = members.pop("message")
        return Entry(
            level,
            message,
            members={name: value for name, value in members.items() if name not in ("level", "timestamp")},
        )
    if pattern.program == "franz-go":
        found = _GO_HEAD.match(example)
        assert found is not None
        message, *listed = re.split(r"; (?=\w+: )", found["message"], maxsplit=1)
        if not listed:
            return Entry(level, message)
        parts = (part.partition(": ") for part in re.split(r", (?=\w+: )", listed[0]))
        return Entry(found["level"], message, members={name: value for name, _, value in parts})
    if pattern.program == "sarama":
        found = _SARAMA_HEAD.match(example)
        assert found is not None
        return Entry(level, found["message"])
    return _of_librdkafka_or_python(example, level)


def _of_librdkafka_or_python(example: str, level: str) -> Entry:
    if found := _LIBRDKAFKA_HEAD.match(example):
        return Entry(
            level,
            found["message"],
            members={"facility": found["facility"], "name": found["name"], "number": found["number"]},
        )
    if found := _PYTHON_HEAD.match(example):
        return Entry(found["level"], found["message"], found["logger"])
    if re.match(r"(?:\w+\.)+\w+: ", example):
        return Entry(
            level,
            "send failed",
            trace=[
                "Traceback (most recent call last):",
                '  File "/app/orders.py", line 17, in send',
                "    raise error",
                example,
            ],
        )
    return Entry(level, example)


Layout = Callable[[Entry], str]
_JUL: Final[Mapping[str, str]] = {"ERROR": "SEVERE", "WARN": "WARNING", "DEBUG": "FINE"}
_JAVA: Final[Mapping[str, Layout]] = {
    "log4j-pattern": lambda of: f"[{_STAMP}] {of.level} {of.message} ({of.logger}){of.below}",
    "flink": lambda of: f"{_STAMP} {of.level:5} {of.logger} [] - {of.message}{of.below}",
    "logback-default": lambda of: f"18:45:04.073 [main] {of.level:5} c.e.orders.Orders -- {of.message}{of.below}",
    "spring": lambda of: f"{_ISO} {of.level:>5} 1 --- [ad | orders-app] c.example.orders.Orders          : {of.message}\n{of.below}",
    "slf4j-simple": lambda of: f"[main] {of.level} {of.logger} - {of.message}{of.below}",
    "jul": lambda of: f"Nov 22, 2026 6:45:04 PM {of.logger} send\n{_JUL.get(of.level, of.level)}: {of.message}{of.below}",
    "logback-logstash": lambda of: json.dumps(
        {"@timestamp": _ISO, "@version": "1", "message": of.message, "logger_name": of.logger, "thread_name": "main", "level": of.level,
         "level_value": 40000} | ({"stack_trace": of.exception} if of.trace else {})
    ),
    "logback-json": lambda of: json.dumps(
        {"sequenceNumber": 0, "timestamp": TIME_MS, "nanoseconds": 73000000, "level": of.level, "threadName": "main", "loggerName": of.logger,
         "context": {"name": "default"}, "mdc": {}, "formattedMessage": of.message, "message": of.message, "throwable": None}
        | ({"throwable": {"className": of.thrown[0], "message": of.thrown[2], "stepArray": []}} if of.trace else {})
    ),
    "log4j2-json": lambda of: json.dumps(
        {"instant": {"epochSecond": TIME_MS // 1000, "nanoOfSecond": 73000000}, "thread": "main", "level": of.level, "loggerName": of.logger,
         "message": of.message} | ({"thrown": {"name": "T", "extendedStackTrace": of.exception}} if of.trace else {})
    ),
    "log4j2-ecs": lambda of: json.dumps(
        {"@timestamp": _ISO, "ecs.version": "1.2.0", "log.level": of.level, "message": of.message, "process.thread.name": "main", "log.logger": of.logger}
        | ({"error.type": "T", "error.message": "m", "error.stack_trace": of.exception} if of.trace else {})
    ),
}  # fmt: skip


def _python_names(of: Entry) -> tuple[str, str, str]:
    """Level, logger and message, as the binding of librdkafka and the clients in Python have them."""
    level = {"WARN": "WARNING", "FATAL": "CRITICAL", "ALERT": "CRITICAL"}.get(of.level, of.level)
    if "facility" in of.members:
        return level, "orders", f"{of.members['facility']} [{of.members['name']}] {of.message}"
    return level, of.logger, of.message


def _python(template: str) -> Layout:
    def laid(of: Entry) -> str:
        level, logger, message = _python_names(of)
        return template.format(level=level, logger=logger, message=message) + of.below

    return laid


def _python_json(of: Entry) -> str:
    level, logger, message = _python_names(of)
    return json.dumps(
        {"asctime": _STAMP, "levelname": level, "name": logger, "message": message}
        | ({"exc_info": of.exception} if of.trace else {})
    )


_PYTHON: Final[Mapping[str, Layout]] = {
    "basic": _python("{level}:{logger}:{message}"),
    "asctime": _python(_STAMP + " {level} {logger} {message}"),
    "dashes": _python(_STAMP + " - {logger} - {level} - {message}"),
    "json": _python_json,
}
_LIBRDKAFKA: Final[Mapping[str, Layout]] = {
    "stderr": lambda of: (
        f"%{of.members['number']}|1795373104.073|{of.members['facility']}|{of.members['name']}| {of.message}"
        if "facility" in of.members
        else of.message
    ),
    "confluent": lambda of: (
        f"[2026-11-22T18:45:04Z][{of.members['name']}][{of.members['facility']}][{of.members['number']}]{of.message}"
        if "facility" in of.members
        else f"2026/11/22 18:45:04 {of.message}"
    ),
    "serilog": lambda of: json.dumps(
        {
            "Timestamp": _ISO,
            "Level": "Error",
            "MessageTemplate": of.message,
            "RenderedMessage": of.message,
            "Properties": {"SourceContext": "Orders"},
        }
        | ({"Exception": of.exception} if of.trace else {})
    ),
    "dotnet-console": lambda of: (
        f"fail: Orders.Worker[0]\n      {of.message}" + "".join(f"\n      {line}" for line in of.trace)
    ),
    **_PYTHON,
}


def _quoted(value: object) -> str:
    text = str(value)
    return json.dumps(text) if re.search(r"[\s=\"]", text) or not text else text


def _assigned(members: Mapping[str, object]) -> str:
    return "".join(f" {name}={_quoted(value)}" for name, value in members.items())


_ZEROLOG: Final[Mapping[str, str]] = {"DEBUG": "DBG", "INFO": "INF", "WARN": "WRN", "ERROR": "ERR"}
_GO: Final[Mapping[str, Layout]] = {
    "kgo": lambda of: f"[{of.level}] {of.listed}",
    "zap-json": lambda of: json.dumps(
        {"level": of.level.lower(), "ts": TIME_MS / 1000, "caller": "kzap@v1.1.2/kzap.go:109", "msg": of.message, **of.members}
    ),
    "zap-console": lambda of: f"{_ISO}\t{of.level}\tkzap@v1.1.2/kzap.go:109\t{of.message}" + (f"\t{json.dumps(of.members)}" if of.members else ""),
    "slog-text": lambda of: f"time={_ISO} level={of.level} msg={_quoted(of.message)}{_assigned(of.members)}",
    "slog-json": lambda of: json.dumps({"time": _ISO, "level": of.level, "msg": of.message, **of.members}),
    "logrus-text": lambda of: f'time="2026-11-22T18:45:04Z" level={of.level.lower()} msg={json.dumps(of.message)}{_assigned(dict(sorted(of.members.items())))}',
    "logrus-json": lambda of: json.dumps(
        dict(sorted({**of.members, "time": "2026-11-22T18:45:04Z", "level": of.level.lower(), "msg": of.message}.items()))
    ),
    "zerolog-json": lambda of: json.dumps({"level": of.level.lower(), **of.members, "time": "2026-11-22T18:45:04Z", "message": of.message}),
    "zerolog-console": lambda of: f"6:45PM {_ZEROLOG[of.level]} {of.message}{_assigned(dict(sorted(of.members.items())))}",
}  # fmt: skip
_SARAMA: Final[Mapping[str, Layout]] = {
    "sarama": lambda of: f"[sarama] 2026/11/22 18:45:04 {of.message}",
    "slog-json": lambda of: json.dumps({"time": _ISO, "level": of.level, "msg": of.message}),
    "zap-console": lambda of: f"{_ISO}\t{of.level}\torders/sarama.go:9\t{of.message}",
}


def _without_namespace(of: Entry) -> tuple[str, dict[str, object]]:
    found = re.match(r"\[(\w+)\] (.*)", of.message)
    return (of.message, {}) if found is None else (found[2], {"namespace": found[1]})


def _pino(of: Entry) -> str:
    message, named = _without_namespace(of)
    error = {"err": {"type": "Error", "message": of.trace[0], "stack": of.exception}} if of.trace else {}
    head = {
        "level": {"DEBUG": 20, "INFO": 30, "WARN": 40}.get(of.level, 50),
        "time": TIME_MS,
        "pid": 7,
        "hostname": "pod-1",
    }
    return json.dumps({**head, **named, **of.members, **error, "msg": message})


_KAFKAJS: Final[Mapping[str, Layout]] = {
    "default": lambda of: (
        f"{of.message} {of.exception}"
        if of.trace
        else json.dumps(
            {"level": of.level, "timestamp": _ISO, "logger": "kafkajs", "message": of.message, **of.members}
        )
    ),
    "pino": _pino,
    "winston": lambda of: json.dumps(
        dict(sorted({**of.members, "level": of.level.lower(), "message": of.message, "timestamp": _ISO}.items()))
        | ({"stack": of.exception} if of.trace else {})
    ),
}
LAYOUTS: Final[Mapping[str, Mapping[str, Layout]]] = {
    "server": _JAVA, "java": _JAVA, "librdkafka": _LIBRDKAFKA, "franz-go": _GO, "kafkajs": _KAFKAJS, "sarama": _SARAMA,
    "kafka-python": _PYTHON, "aiokafka": _PYTHON,
}  # fmt: skip
"""The layouts of each program's logs."""
UNTIMED: Final = frozenset(
    {
        "logback-default",
        "slf4j-simple",
        "basic",
        "kgo",
        "zerolog-console",
        "stderr",
        "confluent",
        "dotnet-console",
        "sarama",
        "default",
        "jul",
    }
)
"""Layouts that have no day, no milliseconds, or no time in some of their lines."""


@cache
def other_events(program: str) -> Mapping[str, set[str]]:
    """Return the layouts in which the example of a program's pattern does not give the same event, by the pattern's id, if any."""
    found = {pattern.id: _with_another_event(pattern) for pattern in read_patterns(program)}
    return {name: layouts for name, layouts in found.items() if layouts}


def _with_another_event(pattern: Pattern) -> set[str]:
    """Return the layouts in which the event has other fields, or another client, error or time."""
    origin: Origin = "server" if pattern.program == "server" else "client"
    entry = entry_of(pattern)
    (expected,) = read_events([pattern.example.encode()], origin, path="log")
    stated = pattern.fields | {"event", "client", "error", "pattern"}
    others = set()
    for name, layout in LAYOUTS[pattern.program].items():
        events = list(read_events([f"{layout(entry)}\n".encode()], origin, path="log"))
        same = len(events) == 1 and all(getattr(events[0], field) == getattr(expected, field) for field in stated)
        if not (same and (name in UNTIMED or abs((events[0].timestamp_ms or 0) - TIME_MS) < 1000)):
            others.add(name)
    return others
