"""Small pieces of text that several formats share, each by a table."""

import json
import os
import termios
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kaudit.model.application_logs import ClockAnchors, LogClock, UnalignedLog
from kaudit.model.evidence import StoredEvidence
from kaudit.report.console import Console, wanted_width
from kaudit.report.json_documents import pretty
from kaudit.report.machine.locations import base_directory, in_repository, path_of, uri_of
from kaudit.report.text.formatting import (
    clock_time,
    counts_text,
    date_and_clock,
    duration,
    plural,
    span,
    timestamp_of,
    timestamp_text,
)
from kaudit.report.text.log_events import clock_text, unaligned_text
from kaudit.report.text.not_checked import closing_line
from kaudit.report.text.producers import histogram_lines
from kaudit.results.scope import extent, size
from tests.scan_results import scan_result


@pytest.mark.parametrize(("number", "text"), [
    (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1049, "1.0 kB"), (1050, "1.1 kB"), (999_949, "999.9 kB"),
    # never 1000.0 of a unit
    (999_950, "1.0 MB"), (10**6, "1.0 MB"), (10**9, "1.0 GB"), (999_999_999, "1.0 GB"), (10**12, "1.0 TB"),
    (10**15, "1.0 PB"), (2 * 10**18, "2000.0 PB"),
])  # fmt: skip
def test_sizes(number, text):
    assert size(number) == text


@pytest.mark.parametrize(("seconds", "text"), [
    (0, "0.0 s"), (9.94, "9.9 s"), (9.95, "10 s"), (59.4, "59 s"), (59.5, "1 min 0 s"), (725, "12 min 5 s"), (3599, "59 min 59 s"),
    (3600, "1 h 0 min"), (12_000, "3 h 20 min"), (86_399, "23 h 59 min"), (86_400, "1 d 0 h"), (1_051_200, "12 d 4 h"),
])  # fmt: skip
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(("first", "last", "text"), [
    (None, 4, "-"), ("", 4, "-"), (0, 0, "0"), (7, None, "7"), (7, 7, "7"), (7, 9, "7..9"), (0, 1, "0..1"),
])  # fmt: skip
def test_spans(first, last, text):
    assert span(first, last) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 batches"), (1, "1 batch"), (2000, "2,000 batches")])
def test_plurals(number, text):
    assert plural(number, "batch", "batches") == text
    assert plural(number, "id") == text.replace("batches", "ids").replace("batch", "id")


@pytest.mark.parametrize(("milliseconds", "date", "clock"), [
    (0, "1970-01-01", "00:00:00.000"), (1_763_705_045_019, "2025-11-21", "06:04:05.019"), (-1, "", "-"), (None, "", "-"),
    # 9999 is the last year of calendars
    (253_402_300_799_999, "9999-12-31", "23:59:59.999"), (253_402_300_800_000, "", "253402300800000 ms"),
])  # fmt: skip
def test_dates(milliseconds, date, clock):
    assert date_and_clock(milliseconds) == (date, clock)
    if milliseconds is not None:
        assert clock_time(milliseconds) == clock.partition(".")[0]
        assert timestamp_text(milliseconds) == (f"{date} {clock.partition('.')[0]}" if date else clock)


@pytest.mark.parametrize(("evidence", "timestamp"), [
    ({}, None),
    ({"offending": {"timestamp": 5}, "timestamp": 7}, 5),
    ({"offending": {"timestamp": -1}, "timestamp": 7}, 7),
    ({"offending": None, "first_timestamp": 0}, 0),
    ({"first_timestamp": 3, "last_timestamp": 4}, 3),
    ({"timestamp": "5"}, None),
])  # fmt: skip
def test_when_a_finding_was(evidence, timestamp):
    assert timestamp_of(cast("Any", SimpleNamespace(evidence=StoredEvidence(evidence)))) == timestamp


@pytest.mark.parametrize(("likely_ms", "zone_minutes", "text"), [
    (0, None, "the log clock is that of the batches, to 1.0 s"),
    (1000, None, "the log clock is that of the batches, to 1.0 s"),
    (-1000, 0, "the log clock is that of the batches, to 1.0 s"),
    # what is added to the log's times is what its clock is behind
    (1001, None, "the log clock is 1.0 s behind the batches"),
    (-90_000, None, "the log clock is 1 min 30 s ahead of the batches"),
    (-3_600_000, 60, "the log clock is 1 h 0 min ahead of the batches: a time zone, UTC+01:00"),
    (19_800_000, -330, "the log clock is 5 h 30 min behind the batches: a time zone, UTC-05:30"),
])  # fmt: skip
def test_clocks_of_logs(likely_ms, zone_minutes, text):
    for directory, name in (("/var/log/kafka", "kafka"), ("kafka", "kafka"), ("", "."), ("/", "/")):
        clock = LogClock(directory, likely_ms - 5, likely_ms + 5, likely_ms, zone_minutes, 3, 3)
        assert clock_text(clock) == f"{name}: {text}"
    named = LogClock("logs", 0, 0, likely_ms, zone_minutes, 3, 3, broker_id=2)
    assert clock_text(named) == f"logs (broker 2): {text}"


@pytest.mark.parametrize(("clock", "text"), [
    (LogClock("logs", -19_805_000, -19_790_000, -19_800_000, 330, 9, 8, aligned_by=(
        ClockAnchors("groups", 6, 6), ClockAnchors("metadata", 2, 1), ClockAnchors("quorum", 1, 1)), spread_ms=1_200),
     ("the log clock is 5 h 30 min ahead of the batches: a time zone, UTC+05:30 (by 6 lines about groups, 1 line about "
      "metadata, 1 line about the controller's election; 1 line contradicts; spread 1,200 ms)")),
    (LogClock("logs", -19_840_000, -19_840_000, -19_840_000, 330, 3, 3),
     "the log clock is 5 h 30 min ahead of the batches: a time zone, UTC+05:30, beside it 40 s ahead"),
    (LogClock("logs", -3_600_000, 1_800_000, 0, None, 5, 5, exact=False, time_zones=("UTC-00:30", "UTC+00:00", "UTC+01:00"),
              aligned_by=(ClockAnchors("batches", 5, 5),)),
     ("the log clock is 30 min 0 s behind to 1 h 0 min ahead of the batches: time zones UTC-00:30 to UTC+01:00; times are "
      "taken as UTC (by 5 lines among batches that brokers stamped)")),
    (LogClock("logs", 0, 0, -7_200_000, 120, 2, 2, until_ms=1_792_889_999_999),
     "until 2026-10-25 00:59:59.999, the log clock is 2 h 0 min ahead of the batches: a time zone, UTC+02:00"),
    (LogClock("logs", 0, 0, 0, 0, 2, 2, since_ms=1_792_890_000_000),
     "from 2026-10-25 01:00:00.000, the log clock is that of the batches, to 1.0 s"),
])  # fmt: skip
def test_what_is_known_of_a_clock_and_by_what(clock, text):
    assert clock_text(clock) == f"logs: {text}"


def test_logs_whose_times_are_taken_as_utc():
    assert unaligned_text(UnalignedLog("/var/log/kafka", 3, "no-anchor", 0)) == (
        "kafka (broker 3): nothing that was read shows how its clock goes; times are taken as UTC"
    )
    assert unaligned_text(UnalignedLog("b1", None, "contradiction", 4)) == (
        "b1: 4 lines of it and the bytes contradict one another: another cluster or time, or brokers whose clocks differ; times "
        "are taken as UTC"
    )


@pytest.mark.parametrize(("columns", "width"), [(132, 132), (41, 41), (40, 40), (20, 40)])
def test_a_terminals_width(columns, width):
    parent, child = os.openpty()
    termios.tcsetwinsize(child, (24, columns))
    with os.fdopen(child, "w") as terminal:
        assert wanted_width(terminal, {}) == width
        assert wanted_width(terminal, {"COLUMNS": "0"}) == width
        assert wanted_width(terminal, {"COLUMNS": "77"}) == 77
    os.close(parent)


def test_a_terminal_that_does_not_say_its_width_has_80():
    class Unknown:
        def isatty(self):
            return True

        def fileno(self):
            return 10**6

    assert wanted_width(cast("Any", Unknown()), {}) == 80


def test_bars_are_in_proportion_and_never_empty():
    buckets = [{"from": number, "to": number, "ids": ids} for number, ids in enumerate((400, 200, 100, 50, 1), start=1)]
    lines = histogram_lines({"batches": buckets}, Console(color=False, width=80, draws=False))
    bars = [line.rpartition("  ")[2] for line in lines[1:]]
    assert [set(bar) for bar in bars] == [{"#"}] * 5
    # 50 columns at most, rounded up
    assert [len(bar) for bar in bars] == [50, 25, 13, 7, 1]
    drawn = histogram_lines({"batches": buckets}, Console(color=False, width=80, draws=True))
    # in eighths of a column: 400, 200, 100, 50 and 1 of them
    assert [line.rpartition("  ")[2] for line in drawn[1:]] == ["█" * 50, "█" * 25, "█" * 12 + "▌", "█" * 6 + "▎", "▏"]
    assert histogram_lines({"batches": buckets[:1]}, Console(color=False, width=80)) == []


@pytest.mark.parametrize(("name", "first", "last", "label"), [
    ("batches", 1, 1, "1"), ("batches", 1000, 1999, "1,000 to 1,999"), ("batches", 1000, None, "1,000 and more"),
    ("lifetime_ms", 0, 59_999, "under 1 min"), ("idle_ms", 60_000, 3_599_999, "1 min to 1 h"),
    ("idle_ms", 3_600_000, 86_399_999, "1 h to 1 day"), ("idle_ms", 604_800_000, None, "7 days and more"),
    ("idle_ms", 0, 999, "under 1 s"),
])  # fmt: skip
def test_labels_of_bars(name, first, last, label):
    buckets = [{"from": first, "to": last, "ids": 1_000}] * 2
    _, line, _ = histogram_lines({name: buckets}, Console(width=80, draws=False))
    assert line.startswith(f"    {label}  1,000  #")


def test_a_name_that_is_no_text_does_not_break_a_document():
    for name in ("orders", "caf\u00e9", "half \udce9", "\x1b[2J"):
        document: dict[str, object] = {"topic": name, "first_timestamp": 0, "last_timestamp": -1, "z": [], "a": {}}
        text = pretty(document)
        assert text.isascii()
        assert "\x1b" not in text
        assert json.loads(text) == {**document, "first_timestamp": "1970-01-01T00:00:00.000Z", "last_timestamp": None}
        assert text == json.dumps(json.loads(text), sort_keys=True, indent=2) + "\n"


@pytest.mark.parametrize(("file", "log_dir", "base", "path"), [
    ("orders-0/0.log", "/data/kafka", "/data/kafka", "/data/kafka/orders-0/0.log"),
    ("kafka/orders-0/0.log", "/data/kafka", "/data", "/data/kafka/orders-0/0.log"),
    ("data/kafka/orders-0/0.log", "/data/kafka", "/", "/data/kafka/orders-0/0.log"),
    ("data/kafka/orders-0/0.log", "data/kafka", ".", "data/kafka/orders-0/0.log"),
    ("0.log", "/data/kafka/", "/data/kafka/orders-0", "/data/kafka/orders-0/0.log"),
    ("recovery-point-offset-checkpoint", "/data/kafka", "/data/kafka", "/data/kafka/recovery-point-offset-checkpoint"),
    ("kafka/recovery-point-offset-checkpoint", "/data/kafka", "/data", "/data/kafka/recovery-point-offset-checkpoint"),
    ("orders-0/0.log", "hdfs://nn/kafka", "hdfs://nn/kafka", "hdfs://nn/kafka/orders-0/0.log"),
    # names that do not fit together
    ("other/orders-0/0.log", "/data/kafka", None, None),
    ("orders-1/0.log", "/data/kafka", None, None),
    (None, "/data/kafka", None, "/data/kafka/orders-0"),
    (None, None, None, None),
])  # fmt: skip
def test_where_a_findings_file_is(file, log_dir, base, path):
    finding = cast("Any", SimpleNamespace(file=file, log_dir=log_dir, topic="orders", partition=0, place="orders-0"))
    assert base_directory(finding) == base
    assert path_of(finding) == path


@pytest.mark.parametrize(("path", "inside"), [
    ("/repo/logs/orders-0", "logs/orders-0"), ("/repo", "."), ("/repository/logs", None), ("/", None),
    ("/repo/..data", "..data"), ("hdfs://repo/logs", None),
])  # fmt: skip
def test_paths_in_a_repository(path, inside):
    assert in_repository(path, "/repo") == inside


def test_uris():
    assert uri_of("s3://bucket/a b") == "s3://bucket/a b"
    assert uri_of("/data/a b#c%") == "file:///data/a%20b%23c%25"


def test_only_whole_numbers_under_keys_of_timestamps_are_times():
    second = 1_000
    document = {
        "first_timestamp": second,
        "timestamp": True,
        "last_timestamp": 1.5,
        "min_timestamp": 1 << 62,  # no calendar has it
        "message": 'he said "timestamp": 1000, and {"timestamp": 1000}',
        "timestamp_ms": second,
        "inner": [{"max_timestamp": -second}, {"max_timestamp": -1}],
    }
    times = {"first_timestamp": "1970-01-01T00:00:01.000Z"}
    inner = [{"max_timestamp": "1969-12-31T23:59:59.000Z"}, {"max_timestamp": None}]
    assert json.loads(pretty(document)) == {**document, **times, "inner": inner}


@pytest.mark.parametrize(("counts", "shown", "hidden"), [
    ({}, "no findings", "no findings"),
    ({"error": 0, "warning": 0, "note": 0}, "no findings", "no findings"),
    ({"error": 1, "warning": 2000, "note": 1}, "1 error, 2,000 warnings, 1 note", "1 error, 2,000 warnings, 1 note (hidden; -v shows)"),
    ({"error": 2, "warning": 0, "note": 0}, "2 errors", "2 errors"),
    ({"note": 3}, "3 notes", "3 notes (hidden; -v shows)"),
])  # fmt: skip
def test_verdicts(counts, shown, hidden):
    result = scan_result()
    result = replace(result, summary=replace(result.summary, findings=counts, statuses={}))
    assert counts_text(result, notes_hidden=False) == shown
    assert counts_text(result, notes_hidden=True) == hidden


@pytest.mark.parametrize(("statuses", "text"), [
    ({"new": 5}, ""), ({"new": 5, "known": 0, "suppressed": 0}, ""), ({"new": 1, "known": 2000}, " (1 new, 2,000 in the baseline)"),
    ({"suppressed": 1}, " (0 new, 1 suppressed)"), ({"new": 3, "known": 1, "suppressed": 2}, " (3 new, 1 in the baseline, 2 suppressed)"),
])  # fmt: skip
def test_what_is_accepted_is_counted(statuses, text):
    result = scan_result()
    result = replace(result, summary=replace(result.summary, statuses=statuses))
    assert counts_text(result, notes_hidden=False) == "no findings" + text


@pytest.mark.parametrize(("segments", "partitions", "text"), [
    (0, 0, "in 0 segments, 0 partitions, 1.2 MB"), (1, 1, "in 1 segment, 1 partition, 1.2 MB"),
    (2, 0, "in 2 segments, 0 partitions, 1.2 MB"),
    # brokers send batches, not segments
    (0, 2, "in 2 partitions, 1.2 MB"),
])  # fmt: skip
def test_what_was_read(segments, partitions, text):
    result = scan_result()
    result = replace(result, summary=replace(result.summary, segments=segments, partitions=partitions))
    assert extent(result) == text
    assert closing_line(result, notes_hidden=True, seconds=None) == f"no findings {text}"
    incomplete = replace(result, incomplete=True)
    assert closing_line(incomplete, notes_hidden=True, seconds=0) == f"no findings {text}, 0.0 s; incomplete"
    assert closing_line(result, notes_hidden=True, seconds=61) == f"no findings {text}, 1 min 1 s"
