"""One refusal, written by a broker whose clock shows an hour more than UTC, as logging frameworks and collectors keep it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kaudit.formats.application_log import pieces
from kaudit.formats.application_log.errors import described_error, error_name
from kaudit.formats.application_log.layouts import LineReader, Lines, entry_time, structured_entry
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.formats.application_log.reader import read_events
from kaudit.formats.application_log.timestamps import LogTime, parse_time
from kaudit.model.application_logs import LogEvent, LogEventKind

HEAD = (
    "[2026-11-22 19:45:04,073] ERROR [ReplicaManager broker=1] Error processing append operation on partition orders-0 "
    "(kafka.server.ReplicaManager)"
)
CAUSE = (
    "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for producer 1001 at "
    "offset 345 in partition orders-0: 17 (incoming seq. number), 11 (current end sequence number)"
)
ENTRY = [HEAD, CAUSE, "\tat kafka.server.ReplicaManager.appendToLocalLog(ReplicaManager.scala:1400)"]
BEFORE = (
    "[2026-11-22 19:45:03,999] INFO [GroupCoordinator 1]: Stabilized group g (kafka.coordinator.group.GroupCoordinator)"
)
AFTER = "[2026-11-22 19:45:05,000] INFO [LogCleaner]: Starting the log cleaner (kafka.log.LogCleaner)"
LINES = [BEFORE, *ENTRY, AFTER]
UTC_MS = int(datetime(2026, 11, 22, 18, 45, 4, 73000, UTC).timestamp() * 1000)
HOUR_MS = 3_600_000


def each(template: str) -> Callable[[list[str]], str]:
    return lambda lines: "".join(template.replace("LINE", line) + "\n" for line in lines)


def json_each(**members: str) -> Callable[[list[str]], str]:
    def wrap(lines: list[str]) -> str:
        return "".join(
            json.dumps({key: value.replace("LINE", line) for key, value in members.items()}) + "\n" for line in lines
        )

    return wrap


def journal_export(lines: list[str]) -> str:
    return "".join(
        f"__CURSOR=s=1;i={number}\n__REALTIME_TIMESTAMP=1795373104100000\n_BOOT_ID=1\n_HOSTNAME=broker-1\nMESSAGE={line}\n"
        f"SYSLOG_IDENTIFIER=kafka\n\n"
        for number, line in enumerate(lines)
    )


COLLECTORS: dict[str, tuple[Callable[[list[str]], str], int]] = {
    "kubectl logs --timestamps": (each("2026-11-22T18:45:04.123456789Z LINE"), 2),
    "kubectl logs --timestamps --prefix": (each("[pod/kafka-0/kafka] 2026-11-22T18:45:04.123456789Z LINE"), 2),
    "containerd": (each("2026-11-22T19:45:04.123456789+01:00 stdout F LINE"), 2),
    "docker compose logs --timestamps": (each("kafka-1  | 2026-11-22T18:45:04.123456789Z LINE"), 2),
    "docker json-file": (json_each(log="LINE\n", stream="stdout", time="2026-11-22T18:45:04.123456789Z"), 2),
    "journalctl -o short-iso": (each("2026-11-22T19:45:04+0100 broker-1 kafka[4711]: LINE"), 2),
    "journalctl -o json": (json_each(__REALTIME_TIMESTAMP="1795373104100000", MESSAGE="LINE", PRIORITY="6"), 2),
    "journalctl -o export": (journal_export, 12),
    "RFC 5424": (each("<14>1 2026-11-22T18:45:04.100Z broker-1 kafka 4711 - - LINE"), 2),
    "Stackdriver": (json_each(textPayload="LINE", timestamp="2026-11-22T18:45:04.123456789Z", logName="kafka"), 2),
}


def only(log: str, year_before_ms: int | None = None) -> LogEvent:
    (event,) = read_events([log.encode()], "server", path="server.log", year_before_ms=year_before_ms)
    return event


def assert_refusal(event: LogEvent) -> None:
    assert event.event is LogEventKind.OUT_OF_ORDER_SEQUENCE
    assert event.error == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert (event.topic, event.partition, event.producer_id, event.offset) == ("orders", 0, 1001, 345)
    assert (event.base_sequence, event.last_sequence, event.broker_id) == (17, 11, 1)
    assert event.level == "ERROR"
    assert "append operation" in event.text
    assert "1001" in event.text


@pytest.mark.parametrize("name", COLLECTORS)
def test_collectors_prefix_every_line_and_know_the_zone(name: str) -> None:
    wrap, line = COLLECTORS[name]
    counts = LogCounts()
    (event,) = read_events([wrap(LINES).encode()], "server", path="server.log", counts=counts)
    assert_refusal(event)
    assert (event.timestamp_ms, event.zone_known, event.line) == (UTC_MS, True, line)
    assert (counts.entries, counts.events, counts.unknown_lines) == (3, 1, 0)


@pytest.mark.parametrize("name", ["kafka", "docker compose logs", "syslog"])
def test_without_a_zone_the_time_is_read_as_utc(name: str) -> None:
    template = {
        "kafka": "LINE",
        "docker compose logs": "kafka-1  | LINE",
        "syslog": "Nov 22 19:45:04 broker-1 kafka[4711]: LINE",
    }
    event = only(each(template[name])(LINES), year_before_ms=UTC_MS + 40 * 86_400_000)
    assert_refusal(event)
    assert (event.timestamp_ms, event.zone_known, event.line) == (UTC_MS + HOUR_MS, False, 2)


JSON_LAYOUTS = {
    "logstash-logback-encoder": {
        "@timestamp": "2026-11-22T18:45:04.073Z", "@version": "1", "message": "MESSAGE", "logger_name": "kafka.server.ReplicaManager",
        "thread_name": "main", "level": "ERROR", "stack_trace": "TRACE",
    },
    "ECS": {
        "@timestamp": "2026-11-22T18:45:04.073Z", "log.level": "ERROR", "message": "MESSAGE", "ecs.version": "1.2.0",
        "log.logger": "kafka.server.ReplicaManager", "error.type": "org.apache.kafka.common.errors.OutOfOrderSequenceException",
        "error.message": "Out of order", "error.stack_trace": "TRACE",
    },
    "ECS, nested": {
        "@timestamp": "2026-11-22T18:45:04.073Z", "message": "MESSAGE", "log": {"level": "ERROR", "logger": "kafka.server.ReplicaManager"},
        "error": {"stack_trace": "TRACE"},
    },
    "log4j2 JsonLayout": {
        "instant": {"epochSecond": 1795373104, "nanoOfSecond": 73000000}, "thread": "main", "level": "ERROR",
        "loggerName": "kafka.server.ReplicaManager", "message": "MESSAGE", "thrown": {"message": "Out", "extendedStackTrace": "TRACE"},
    },
    "GELF": {"version": "1.1", "host": "b1", "short_message": "MESSAGE\nTRACE", "timestamp": 1795373104.073, "level": 3},
    "Stackdriver": {
        "severity": "ERROR", "timestamp": "2026-11-22T18:45:04.073Z", "jsonPayload": {"message": "MESSAGE\nTRACE", "logger": "kafka"},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", JSON_LAYOUTS)
def test_frameworks_write_an_entry_as_one_json_object(name: str) -> None:
    message = HEAD.partition("ERROR ")[2].rpartition(" (")[0]
    text = (
        json.dumps(JSON_LAYOUTS[name])
        .replace("MESSAGE", message)
        .replace("TRACE", "\\n".join(ENTRY[1:]).replace("\t", "\\t"))
    )
    event = only(f'{{"level":"INFO","message":"before"}}\n{text}\n')
    assert (event.event, event.producer_id, event.base_sequence, event.broker_id) == (
        "out_of_order_sequence",
        1001,
        17,
        1,
    )
    assert (event.timestamp_ms, event.zone_known, event.line) == (UTC_MS, True, 2)


FRAMEWORKS = {
    "2026-11-22 18:45:04.073 ERROR 4711 --- [main] k.s.R : MESSAGE": False,
    "2026-11-22T19:45:04.073+01:00 ERROR 4711 --- [main] k.s.R : MESSAGE": True,
    "2026-11-22T18:45:04,073Z ERROR MESSAGE": True,
    "2026-11-22 18:45:04,073 [main] ERROR kafka.server.ReplicaManager - MESSAGE": False,
    "22 Nov 2026 18:45:04,073 ERROR MESSAGE": False,
    "ERROR 2026-11-22 18:45:04,073 kafka MESSAGE": False,
    "[main] ERROR kafka.server.ReplicaManager - MESSAGE": None,
    "18:45:04.073 [main] ERROR k.s.ReplicaManager -- MESSAGE": None,
    'time="2026-11-22T18:45:04.073Z" level=error msg="MESSAGE"': True,
    "\x1b[31m[2026-11-22 18:45:04,073] ERROR\x1b[0m MESSAGE": False,
}


@pytest.mark.parametrize("layout", FRAMEWORKS)
def test_layouts_of_frameworks(layout: str) -> None:
    message = HEAD.partition("ERROR ")[2].rpartition(" (")[0]
    event = only("\n".join([layout.replace("MESSAGE", message), *ENTRY[1:]]) + "\n")
    assert_refusal(event)
    zone_known = FRAMEWORKS[layout]
    assert event.timestamp_ms == (None if zone_known is None else UTC_MS)
    assert event.zone_known is bool(zone_known)


@pytest.mark.parametrize("late_ms", [0, 1000, 7 * 60_000, -7 * 60_000])
@pytest.mark.parametrize("minutes", [-14 * 60, -90, 0, 60, 345, 14 * 60])
def test_the_collectors_zone_goes_with_the_entrys_own_time(minutes: int, late_ms: int) -> None:
    """Zones are quarters of an hour apart, and a collector is a little late."""
    inner = UTC_MS + HOUR_MS
    collected = LogTime(inner - minutes * 60_000 + late_ms, True)
    assert entry_time(HEAD.encode(), collected, None) == LogTime(inner - minutes * 60_000, True)


@pytest.mark.parametrize("minutes", [-14 * 60 - 15, 14 * 60 + 15, 3 * 24 * 60])
def test_no_zone_is_further_than_fourteen_hours_from_utc(minutes: int) -> None:
    collected = LogTime(UTC_MS + HOUR_MS - minutes * 60_000, True)
    assert entry_time(HEAD.encode(), collected, None) == collected


TEXT = "".join(line + "\n" for line in LINES)


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode().replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + TEXT.encode(),
        b"\xff\xfe" + TEXT.encode("utf-16-le"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        bytes(5000) + TEXT.encode(),
        TEXT.encode().replace(b"Stabilized group g", b"Stabilized \xff\xfe group \xe4"),
    ],
    ids=["CRLF", "UTF-8 BOM", "UTF-16LE", "UTF-16BE", "NULs", "not UTF-8"],
)
@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
def test_bytes_of_any_encoding_in_pieces_of_any_size(data: bytes, size: int) -> None:
    counts = LogCounts()
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    (event,) = read_events(parts, "server", path="server.log", counts=counts)
    assert_refusal(event)
    assert (counts.lines, counts.entries, counts.unknown_lines) == (5, 3, 0)
    assert event.line == 2


def test_a_log_cut_anywhere_in_a_line_gives_the_rest() -> None:
    data = TEXT.encode()
    found = [list(read_events([data[cut:]], "server", path="log")) for cut in range(len(data))]
    assert {len(events) for events in found} == {0, 1}
    for cut, events in enumerate(found):
        cause = data.index(b"Out of order sequence number for")
        assert bool(events) == (cut <= cause), cut


def test_what_was_read_is_counted_and_the_time_it_covers():
    other = "2026-11-22 19:46:00,000 INFO [main] org.example.App: ready"
    for lines in ([*LINES, other, "no layout at all"], ["no layout at all", other, *LINES[::-1]]):
        counts = LogCounts()
        list(read_events(["\n".join(lines).encode()], "server", path="server.log", counts=counts))
        assert (counts.lines, counts.entries, counts.other_entries, counts.unknown_lines) == (7, 4, 1, 1)
        # 19:45:03.999 and 19:46:00.000, of which no zone is known, against 19:45:04.073
        assert (counts.first_ms, counts.last_ms) == (UTC_MS + HOUR_MS - 74, UTC_MS + HOUR_MS + 55_927)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("org.apache.kafka.common.errors.OutOfOrderSequenceException", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("org.apache.kafka.common.errors.NotCoordinatorException.", "NOT_COORDINATOR"),
        ("UnstableOffsetCommitException", "UNSTABLE_OFFSET_COMMIT"),
        ("java.lang.IllegalStateException", "IllegalStateException"),
        ("org.apache.kafka.common.errors.Other", "Other"),
        ("Other", "Other"),
        ("NOT_COORDINATOR", "NOT_COORDINATOR"),
    ],
)
def test_an_exception_is_named_as_the_protocol_names_its_error(text, error):
    assert error_name(text) == error


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("_INVALID_TXN_STATE (Local)", "_INVALID_TXN_STATE"),
        ("Broker: Producer attempted a transactional operation in an invalid state", "INVALID_TXN_STATE"),
        ("request timed out", "REQUEST_TIMED_OUT"),
        ("x" * 121, "x" * 120),
    ],
)
def test_a_description_is_that_of_an_error_or_itself(text, error):
    assert described_error(text) == error


def test_a_stack_trace_without_its_head_is_an_event_without_a_time() -> None:
    event = only("\n".join(ENTRY[1:]) + "\n")
    assert (event.event, event.timestamp_ms, event.line, event.error) == (
        "out_of_order_sequence", None, 1, "OUT_OF_ORDER_SEQUENCE_NUMBER",
    )  # fmt: skip


@pytest.mark.parametrize(("frames", "line"), [(198, 1), (199, 201)])
def test_a_cause_belongs_to_the_entry_that_began_less_than_200_lines_before(frames: int, line: int) -> None:
    event = only("\n".join([BEFORE, *["\tat x.Y.z(Y.java:1)"] * frames, CAUSE]) + "\n")
    assert (event.line, event.text.splitlines()[-1] == CAUSE) == (line, line == 201)


@pytest.mark.parametrize("between", [["no layout at all"], ["\tat a.B.c(B.java:1)", "", "no layout at all"]])
def test_what_cannot_go_on_with_an_entry_ends_it(between: list[str]) -> None:
    event = only("\n".join([BEFORE, *between, CAUSE]) + "\n")
    assert (event.line, event.timestamp_ms, event.text) == (2 + len(between), None, CAUSE)
    event = only("\n".join([*ENTRY, *between, ENTRY[-1]]) + "\n")
    kept = [text for text in between if text.startswith("\tat")]
    assert event.text == "\n".join([*ENTRY, *kept])
    event = only("\n".join([CAUSE, *between, ENTRY[-1]]) + "\n")
    assert event.text == "\n".join([CAUSE, *kept])


def test_empty_lines_do_not_end_an_entry_before_its_cause() -> None:
    event = only(f"{BEFORE}\n\n\tat a.B.c(B.java:1)\n\n{CAUSE}\n")
    assert (event.line, event.timestamp_ms) == (1, UTC_MS + HOUR_MS - 74)


def test_the_stack_trace_says_the_error_not_what_its_head_quotes() -> None:
    quoting = HEAD.replace("(kafka.server.ReplicaManager)", "after a org.example.QuotedException")
    event = only("\n".join([quoting, *ENTRY[1:]]) + "\n")
    assert (event.error, event.event) == ("OUT_OF_ORDER_SEQUENCE_NUMBER", LogEventKind.OUT_OF_ORDER_SEQUENCE)


@pytest.mark.parametrize(
    ("line", "of_kafka"),
    [
        ("INFO [main] org.apache.kafka.Foo: ready", True),
        ("INFO o.a.k.clients.Foo: ready", True),
        ("INFO state.change.logger: ready", True),
        ("INFO zookeeper is there", True),
        ("INFO |rdkafka#x| ready", True),
        ("INFO x#producer-1 ready", True),
        ("INFO x#consumer-1 ready", True),
        ("INFO sarama ready", True),
        ("INFO x#admin-1 ready", False),
        ("INFO oXaXk.Foo: ready", False),
    ],
)
def test_entries_that_name_no_part_of_kafka_are_counted(line: str, of_kafka: bool) -> None:
    counts = LogCounts()
    assert (
        list(read_events([f"2026-11-22 19:46:00,000 {line}\n".encode() * 3], "server", path="x", counts=counts)) == []
    )
    assert (counts.entries, counts.other_entries) == (3, 0 if of_kafka else 3)


@pytest.mark.parametrize("value", ["2026-11-22T18:45:04Z", "2026-11-22 18:45:04"])
def test_a_short_time_in_json_is_no_number(value: str) -> None:
    parsed = structured_entry(json.dumps({"message": "m", "timestamp": value}).encode())
    assert parsed is not None
    assert parsed.time == LogTime(UTC_MS - 73, value.endswith("Z"))


def test_pieces_are_put_together_and_cut_to_one_size() -> None:
    assert list(pieces._regular([b"abcdefg", b"", b"hi", b"j", b"klm"], 3)) == [b"abc", b"def", b"ghi", b"jkl", b"m"]
    assert list(pieces._regular([b"ab", b"c"], 3)) == [b"abc", b""]


def test_an_entry_may_lie_on_two_blocks() -> None:
    filler = f"{BEFORE}\n" * 20_000
    for shift in range(0, 400, 97):
        log = filler[shift:] + TEXT
        for size in (65_536, len(log)):
            blocks = [log.encode()[at : at + size] for at in range(0, len(log), size)]
            (event,) = read_events(blocks, "server", path="log")
            assert_refusal(event)
            assert event.line == log.count("\n", 0, log.index(HEAD)) + 1


@pytest.mark.parametrize(
    ("text", "expected", "zone_known"),
    [
        ("2026-11-22 18:45:04", (2026, 11, 22, 18, 45, 4, 0), False),
        ("2026/11/22 18:45:04", (2026, 11, 22, 18, 45, 4, 0), False),
        ("2026-11-22T18:45:04.123456789Z", (2026, 11, 22, 18, 45, 4, 123000), True),
        ("2026-11-22T18:45:04.1-0530", (2026, 11, 23, 0, 15, 4, 100000), True),
        ("2026-11-22 18:45:04,073 UTC", (2026, 11, 22, 18, 45, 4, 73000), True),
        ("06 Nov 2026 14:34:02,781", (2026, 11, 6, 14, 34, 2, 781000), False),
        ("Nov 22, 2026 6:46:52 PM", (2026, 11, 22, 18, 46, 52, 0), False),
        ("Nov 22, 2026, 12:46:52 AM", (2026, 11, 22, 0, 46, 52, 0), False),
        ("Dec 31 23:59:60", (2025, 12, 31, 23, 59, 59, 0), False),
        ("Jan  2 00:00:01", (2026, 1, 2, 0, 0, 1, 0), False),
        ("1795373104.073", (2026, 11, 22, 18, 45, 4, 73000), True),
        ("Jan  3 00:00:01", (2026, 1, 3, 0, 0, 1, 0), False),
        ("Jan  4 00:00:01", (2025, 1, 4, 0, 0, 1, 0), False),
        ("2026-11-22T18:45:04.1+23:59", (2026, 11, 21, 18, 46, 4, 100000), True),
        ("2026-11-22T18:45:04.1+24:00", (2026, 11, 22, 18, 45, 4, 100000), False),
    ],
)
def test_times(text: str, expected: tuple[int, int, int, int, int, int, int], zone_known: bool) -> None:
    reference = int(datetime(2026, 1, 2, 12, tzinfo=UTC).timestamp() * 1000)
    milliseconds = int(datetime(*expected, tzinfo=UTC).timestamp() * 1000)
    assert parse_time(text.encode(), reference) == LogTime(milliseconds, zone_known)


@pytest.mark.parametrize(
    "text", ["2026-02-30 18:45:04", "2026-13-01 00:00:00", "18:45:04.073", "Foo 22 18:45:04", "", "Feb 29 10:00:00"]
)
def test_what_is_no_time(text: str) -> None:
    assert parse_time(text.encode(), UTC_MS) is None


@pytest.mark.parametrize(
    ("time", "timestamp_ms"),
    [
        (b"__REALTIME_TIMESTAMP=1795373104100999", 1_795_373_104_100),
        (b"__REALTIME_TIMESTAMP=" + b"9" * 17, 99_999_999_999_999),
        (b"__REALTIME_TIMESTAMP=" + b"9" * 18, None),
        (b"__REALTIME_TIMESTAMP=-5", None),
        (b"_PID=5", None),
    ],
)
def test_the_time_of_a_journal_entry(time, timestamp_ms):
    lines = LineReader().read([b"__CURSOR=s=1", time, b"MESSAGE=Producer fenced", b"PRIORITY=6", b""])
    assert lines.texts == [b"Producer fenced"]
    known = lines.times.get(0)
    assert (known.timestamp_ms if isinstance(known, LogTime) else None) == timestamp_ms


def test_a_journal_entry_of_several_lines_and_text_behind_the_journal():
    """The journal export format: a field with line feeds is its name alone, eight bytes of length, and the text."""
    export = [
        b"__CURSOR=s=1",
        b"__REALTIME_TIMESTAMP=1795373104100999",
        b"MESSAGE",
        (9).to_bytes(8, "little") + b"ERROR one",
        b"PRIORITY=3",
        b"",
    ]
    later = [b"__CURSOR=s=2", b"MESSAGE=two", b"", b"[2026-11-22 19:45:04,073] ERROR three", b"four"]
    lines = LineReader().read(export + later)
    assert (lines.texts, lines.numbers) == (
        [b"ERROR one", b"two", b"[2026-11-22 19:45:04,073] ERROR three", b"four"],
        [4, 8, 10, 11],
    )
    assert lines.heads == [0, 1, 2]
    reader = LineReader()
    assert [text for part in (export[:3], export[3:] + later) for text in reader.read(part).texts] == lines.texts


def test_a_message_that_is_not_utf_8_is_a_list_of_bytes_to_journald():
    parsed = structured_entry(json.dumps({"MESSAGE": [0x66, 0xE4, 256, -1, "x", 255, 0, 0x6F]}).encode())
    assert parsed is not None
    assert parsed.text == "f\ufffd\ufffd\0o".encode()


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"error": {"type": "T", "message": "m", "stack_trace": "T: m\n at x\n"}}, "ERROR boom\nT: m\n at x"),
        ({"error.type": "T", "error.message": "m", "error.stack_trace": "T: m"}, "ERROR boom\nT: m"),
        ({"error.type": "T", "error.message": "m"}, "ERROR boom; error.type: T, error.message: m"),
        ({"error": {"type": "T", "message": "m"}}, "ERROR boom; type: T, error.message: m"),
        ({"error": "text", "host": "b1"}, "ERROR boom; error: text, host: b1"),
        ({"errors": 3, "errors.stack_trace": "x"}, "ERROR boom; errors: 3, errors.stack_trace: x"),
        ({"thrown": {"extendedStackTrace": "T: m", "name": "T"}}, "ERROR boom\nT: m"),
        ({"a": None, "b": True, "c": 1.5, "d": [1], "e": {"f": 1}}, "ERROR boom; b: True, c: 1.5"),
    ],
)
def test_what_a_stack_trace_says_is_not_said_twice(entry, text):
    parsed = structured_entry(json.dumps({"message": "boom\n", "level": "ERROR", **entry}).encode())
    assert parsed is not None
    assert parsed.text.decode() == text


@pytest.mark.parametrize(
    ("number", "timestamp_ms"),
    [
        (1, 1000),
        (1795373104.073, 1_795_373_104_073),
        (10**11 - 1, (10**11 - 1) * 1000),
        (10**11, 10**11),
        (1_795_373_104_073, 1_795_373_104_073),
        (253_402_300_799_999, 253_402_300_799_999),
        (253_402_300_800_000, 253_402_300_800),
        (1_795_373_104_073_000, 1_795_373_104_073),
        (1_795_373_104_073_000_000, 1_795_373_104_073),
        (0, None),
        (-1, None),
        (10**20, None),
        (True, None),
    ],
)
def test_numbers_are_seconds_or_parts_of_them_by_their_size(number, timestamp_ms):
    """Milliseconds up to the end of the year 9999, microseconds and nanoseconds above; what would be before 1973, seconds."""
    expected = None if timestamp_ms is None else LogTime(timestamp_ms, True)
    for value in (number, str(number)) if type(number) is int else (number,):
        parsed = structured_entry(json.dumps({"message": "m", "timestamp": value}).encode())
        assert parsed is not None
        assert parsed.time == expected, value


@pytest.mark.parametrize(
    ("line", "text", "starts", "bare"),
    [
        (b"plain text", b"plain text", False, False),
        (b"kafka-1  | plain text", b"plain text", True, True),
        (b"[pod/kafka-0/kafka] plain text", b"plain text", True, True),
        (b"<14>plain text", b"plain text", True, True),
        (b"Nov 22 19:45:04 broker-1 kafka[4711]: plain text", b"plain text", True, True),
        (b"2026-11-22T18:45:04Z stdout F plain text", b"plain text", True, True),
        (b"kafka-1  | \tat x", b"\tat x", False, False),
        (b"kafka-1  | INFO [x] y", b"INFO [x] y", True, True),
        (b"kafka-1  | [2026-11-22 19:45:04,073] INFO x", b"[2026-11-22 19:45:04,073] INFO x", True, False),
        (b"[2026-11-22 19:45:04,073] INFO x", b"[2026-11-22 19:45:04,073] INFO x", True, False),
    ],
)
def test_what_a_collector_puts_before_a_line_begins_an_entry(line, text, starts, bare):
    reader = LineReader()
    found = reader.read([line])
    assert (found.texts, found.numbers, found.heads, reader.bare) == ([text], [1], [0] * starts, {0} if bare else set())
    again = reader.read([b"", line])
    assert again.numbers[-1] == 3


def test_lines_are_cut_and_followed_by_others():
    lines = Lines([b"a", b"b", b"c", b"d"], [1, 2, 5, 6], [0, 2], {0: b"t0", 2: b"t2", 3: b"t3"})
    for at in range(5):
        before, after = lines.cut(at)
        assert (before.texts, after.texts) == (lines.texts[:at], lines.texts[at:])
        assert (before.numbers, after.numbers) == (lines.numbers[:at], lines.numbers[at:])
        assert before.heads == [head for head in lines.heads if head < at]
        assert after.heads == [head - at for head in lines.heads if head >= at]
        assert before.followed_by(after) == lines
        assert before.times == {index: time for index, time in lines.times.items() if index < at}


def test_lines_of_entries_of_other_programs():
    other, own = "2026-11-22 19:46:00,000 INFO x", "2026-11-22 19:46:00,000 INFO kafka.x"
    log = [own, other, "\tat a", "\tat b", own, "\tat c", other, "", other, "\tat d"]
    counts = LogCounts()
    assert list(read_events(["".join(f"{line}\n" for line in log).encode()], "server", path="x", counts=counts)) == []
    assert (counts.lines, counts.entries, counts.other_entries, counts.unknown_lines) == (len(log), 5, 3, 0)
    assert counts.other_lines == 3 + 2 + 2


@pytest.mark.parametrize("offset_ms", [0, 14 * HOUR_MS, 14 * HOUR_MS + 15 * 60_000])
def test_a_time_with_a_collectors_has_a_zone(offset_ms):
    found = entry_time(HEAD.encode(), LogTime(UTC_MS + HOUR_MS - offset_ms, True), None)
    assert found is not None
    assert found.zone_known
