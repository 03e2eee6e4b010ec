"""What costs time takes a share of the time at most, and what a watch shows of the last ten seconds."""

import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kaudit.watch import findings
from kaudit.watch.findings import Due
from kaudit.watch.watcher import Round, StatusTracker
from tests.logs import Log, data, marker
from tests.watch.growing import GrowingLog, Watching

IS_NOW = Due.is_now
"""As it is outside these tests, where nothing is put off."""
SAMPLE = Path(__file__).parents[2] / "samples" / "coordinator"


class Clock:
    now = 50.0

    def __call__(self):
        return self.now


def test_after_two_seconds_of_work_at_a_tenth_twenty_seconds_pass():
    clock = Clock()
    due = Due(0.1, clock)
    assert IS_NOW(due)
    with due:
        clock.now = 52.0
    assert due.longest == 2
    for now, expected in ((52.0, False), (71.9, False), (72.0, True), (80.0, True)):
        clock.now = now
        assert IS_NOW(due) is expected
    with due:
        clock.now = 80.5
    assert due.longest == 2
    for now, expected in ((85.4, False), (85.5, True)):
        clock.now = now
        assert IS_NOW(due) is expected


def test_the_rate_of_the_last_ten_seconds(monkeypatch):
    tracker = StatusTracker([], cast("Any", SimpleNamespace()))
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    rates = []
    for now, read in ((50, 0), (52, 100), (60, 500), (61, 600), (63, 600), (80, 600), (81, 610)):
        clock.now = now
        rates.append(tracker._rate(read))
    # since the oldest look not older than ten seconds, or the last but one
    assert rates == [0, 50, 50, (600 - 100) / 9, (600 - 500) / 3, 0, 10]


def test_partitions_as_they_stand(tmp_path):
    written = Log()
    for number in range(3):
        written.append(data(7, 0, number))
    opened = [written.append(data(8, 0, number, transactional=True)) for number in range(2)]
    written.append(data(9, 0, 0, transactional=True))
    written.append(marker(9, 0))
    log = GrowingLog(tmp_path / "orders-3")
    log.roll(0)
    for batch in written.batches:
        log.append(batch)
    watching = Watching(tmp_path)
    watching.look()
    tracker = StatusTracker(["logs"], watching.watcher)
    shown = tracker.after(Round((), 0, watching.watcher.result), 0.25)
    (partition,) = shown.partitions
    assert (partition.topic, partition.partition, partition.producers) == ("orders", 3, 3)
    # three batches, then the first of the open transaction: nothing behind it is stable
    assert (partition.log_end_offset, partition.last_stable_offset, partition.last_stable_offset_lag) == (7, 3, 4)
    assert (partition.open_transactions, partition.open_since) == (1, opened[0].timestamp)
    assert (shown.inputs, shown.round_seconds, shown.unreadable) == (["logs"], 0.25, 0)
    assert shown.read_bytes == sum(len(batch.encode()) for batch in written.batches)
    assert shown.waiting == len(watching.watcher.waiting.held)
    # the newest time of a batch, as nothing has stood still for long
    assert shown.clock_ms == written.batches[-1].timestamp


def test_what_was_reported_and_what_is_there_now(tmp_path):
    written = Log()
    for number in (0, 1, 2, 4):
        written.append(data(7, 0, number))
    log = GrowingLog(tmp_path / "orders-0")
    log.roll(0)
    for batch in written.batches:
        log.append(batch)
    watching = Watching(tmp_path)
    tracker = StatusTracker(["logs"], watching.watcher)
    found = watching.watcher.round(last=True)
    assert [finding.code for finding in found.new] == ["KA104"]
    shown = tracker.after(found, 1)
    assert (shown.reported, shown.present) == ({("KA104", "error"): 1}, {("KA104", "error"): 1})
    assert [entry.finding.code for entry in shown.newest] == ["KA104"]
    gone = tracker.after(Round((), 0, None), 1)
    assert (gone.reported, gone.present) == ({("KA104", "error"): 1}, {("KA104", "error"): 0})
    assert [entry.finding.code for entry in gone.newest] == ["KA104"]


def codes(watching):
    result = watching.watcher.result
    assert result is not None
    return [finding.code for finding in result.findings]


@pytest.mark.parametrize("again", [False, True])
def test_the_coordinators_log_is_read_again_when_it_has_changed(tmp_path, monkeypatch, again):
    """Findings stay what a scan finds, whether it is read again or not."""
    reads = []
    reader = vars(findings)["CoordinatorReader"]

    def noted(open_source):
        reads.append(open_source)
        return reader(open_source)

    monkeypatch.setattr(findings, "CoordinatorReader", noted)
    sample = SAMPLE if not again else tmp_path / "copy"
    if again:
        shutil.copytree(SAMPLE, sample)
    watching = Watching(sample)
    watching.look()
    found = codes(watching)
    assert len(reads) == 1
    if again:
        os.utime(sample / "__transaction_state-0" / f"{0:020}.log")
    watching.watcher.round(last=True)
    assert len(reads) == 1 + again
    assert codes(watching) == found
    assert watching.end() == watching.scanned()
