"""The live table at the widths of terminals: every column is there, nothing is wider, and text from logs drives nothing."""

import pytest
from rich.console import Console

from kaudit.model.watch_status import ReportedAt, WatchedPartition, WatchStatus
from kaudit.report.watch.live_table import live_table
from kaudit.report.watch.metrics import render_metrics
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
