"""The live table at the widths of terminals: every column is there, nothing is wider, and text from logs drives nothing."""

import pytest
from msgspec.structs import replace
from rich.console import Console

from kaudit.checks.registry import CHECKS
from kaudit.model.watch_status import ReportedAt, WatchedPartition, WatchStatus
from kaudit.report.machine.metrics import render_metrics
from kaudit.report.text.live_table import live_table
from tests import scan_results as results

NOW = 1_795_000_000_000


def status(findings, topic="orders"):
    partitions = [
        WatchedPartition(topic, number, "1", 1_000_000, 1_000_000 - 7 * number, 3, number % 3, NOW - 90_000 * number)
        for number in range(12)
    ]
    counts = {(finding.code, finding.severity.value): 1 for finding in findings}
    return WatchStatus(
        inputs=["/var/lib/kafka/data"], started_ms=NOW - 3_725_000, now_ms=NOW, partitions=partitions, reported=counts,
        present=counts, waiting=2, read_bytes=3_412_345_678, read_per_second=1.5e6, repeated_readings=1, unreadable=0,
        round_seconds=0.01, clock_ms=NOW, newest=[ReportedAt(finding, NOW) for finding in findings],
    )  # fmt: skip


def drawn(shown, width):
    console = Console(width=width, record=True, color_system=None, force_terminal=False)
    console.print(live_table(shown))
    return console.export_text()


@pytest.mark.parametrize("width", [80, 140])
def test_every_fact_is_there_and_nothing_is_wider(width, capsys):
    findings = [*results.many().findings, results.retry("a-topic.with.a.name-that-is-longer-than-most-of-them-are", 5)]
    text = drawn(status(findings), width)
    assert max(map(len, text.splitlines())) <= width
    assert "12 partitions, 36 producers, 3.4 GB read, 1.5 MB/s, running 1 h 2 min" in text
    assert "2 findings waiting" in text
    newest = text.partition("Newest findings")[2].splitlines()
    assert newest[1].split() == ["Time", "Code", "Partition", "Finding"]
    assert all(line.startswith("11:06:40  KA") for line in newest[2:] if line.strip())
    assert "12 open transactions in 8 partitions" in text
    (row,) = (line.split() for line in text.splitlines() if line.startswith("orders-11 "))
    assert row == ["orders-11", "2", "16", "min", "30", "s", "999,923", "77"]
    assert "and 3 more" in text


def test_text_from_logs_is_spelled_out():
    hostile = results.HOSTILE
    text = drawn(status([results.retry(hostile, 5)], hostile), 140)
    assert "\x1b" not in text
    assert "[red]boom" in text  # and no markup


def test_labels_of_metrics_are_escaped():
    text = render_metrics(status([], 'a"b\\c\nd'))
    assert 'kaudit_open_transactions{topic="a\\"b\\\\c\\nd",partition="1",replica="1"} 1\n' in text
    assert "kaudit_oldest_open_transaction_seconds 990\n" in text


def watched(number, opened, *, stable=90, since: int | None = NOW - 5000, topic="t"):
    return WatchedPartition(topic, number, "1", 100, stable, 1, opened, since)


@pytest.mark.parametrize(("number", "more"), [(5, None), (6, "and 1 more"), (7, "and 2 more")])
def test_five_partitions_with_open_transactions_are_listed(number, more):
    shown = replace(status([]), partitions=[watched(each, 1) for each in range(number)])
    text = drawn(shown, 140)
    assert f"{number} open transactions in {number} partitions" in text
    assert [line.split()[0] for line in text.splitlines() if line.startswith("t-")] == [
        f"t-{each}" for each in range(5)
    ]
    assert (more in text) if more else ("more" not in text)
    # nothing lies between the rows
    lines = [line[:2] for line in text.splitlines()]
    assert lines[lines.index("t-") :][:5] == ["t-"] * 5


def test_those_that_hold_back_most_first():
    partitions = [
        watched(0, 1, stable=95),
        watched(1, 0, stable=0),
        watched(2, 3, stable=90, since=None),
        watched(3, 1, stable=90),
        watched(3, 1, stable=90, topic="a"),
        WatchedPartition("t", 4, "1", None, None, 1, 1, NOW + 5000),
    ]
    text = drawn(replace(status([]), partitions=partitions), 140).partition("7 open transactions in 5 partitions")[2]
    rows = [line.split() for line in text.splitlines() if line.startswith(("a-", "t-"))]
    assert rows == [
        ["a-3", "1", "5.0", "s", "90", "10"],
        ["t-2", "3", "-", "90", "10"],
        ["t-3", "1", "5.0", "s", "90", "10"],
        ["t-0", "1", "5.0", "s", "95", "5"],
        ["t-4", "1", "0.0", "s", "-", "0"],
    ]


def counted(**more):
    return replace(status([]), partitions=[], **more)


def test_what_is_reported_by_severity():
    counts = {("KA102", "error"): 2, ("KA101", "error"): 1, ("KA203", "note"): 1000}
    lines = [line.rstrip() for line in drawn(counted(reported=counts, waiting=0), 140).splitlines()]
    assert lines[:5] == [
        "kaudit watch /var/lib/kafka/data",
        "0 partitions, 0 producers, 3.4 GB read, 1.5 MB/s, running 1 h 2 min",
        "Reported: 3 errors  0 warnings  1,000 notes  none waiting",
        "",
        "By check",
    ]
    assert "Open" not in "\n".join(lines)
    assert "2 unreadable files" in drawn(counted(unreadable=2), 140)
    assert "unreadable" not in drawn(counted(), 140)
    assert "1 finding waiting" in drawn(counted(waiting=1), 140)


def test_checks_the_gravest_first():
    text = drawn(
        counted(
            reported={("KA203", "note"): 5, ("KA104", "warning"): 2, ("KA104", "error"): 1000, ("KA999", "warning"): 1},
            present={("KA104", "error"): 7, ("KA101", "error"): 0, ("KA106", "warning"): 4},
        ),
        140,
    )
    rows = [line.split() for line in text.partition("By check")[2].splitlines() if line.startswith("KA")]
    assert rows == [
        ["KA104", "sequence-gap", "1,002", "7"],
        ["KA106", "unknown-start", "0", "4"],
        ["KA999", "1", "0"],
        ["KA203", "fencing", "5", "0"],
    ]


@pytest.mark.parametrize(("number", "more"), [(8, None), (9, "and 1 more check"), (11, "and 3 more checks")])
def test_eight_checks_are_listed(number, more):
    codes = sorted(CHECKS)[:number]
    text = drawn(counted(reported={(code, "error"): 1 for code in codes}), 140)
    assert [line[:5] for line in text.splitlines() if line.startswith("KA")] == codes[:8]
    assert (more in text) if more else ("more check" not in text)


def test_nothing_reported_no_table():
    assert "By check" not in drawn(counted(reported={("KA102", "error"): 0}), 140)
    assert "Newest" not in drawn(counted(), 140)


def test_the_newest_eight_the_last_first():
    newest = [ReportedAt(results.old_duplicate(offset=n, message=f"number {n}"), NOW + 1000 * n) for n in range(9)]
    text = drawn(counted(newest=newest), 140).partition("Newest findings")[2]
    assert [line.rstrip() for line in text.splitlines()[2:]] == [
        f"11:06:{40 + n}  KA102  orders-3   old-duplicate: number {n}" for n in range(8, 0, -1)
    ]
    nowhere = [ReportedAt(results.old_duplicate(topic=None, partition=None), NOW)]
    assert "11:06:40  KA102  -          old-duplicate: " in drawn(counted(newest=nowhere), 140)


@pytest.mark.parametrize(("length", "shown"), [(28, "t" * 28 + "-3  old"), (29, "t" * 29 + "…  old")])
def test_long_names_are_cut(length, shown):
    newest = [ReportedAt(results.old_duplicate(topic="t" * length), NOW)]
    assert shown in drawn(counted(newest=newest), 140)
