"""How the local engine reads: in how many processes, and how these are started."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.engines.ranges import read_here
from kaudit.scanning.options import ScanOptions
from tests.engines.faulty_logs import gap, healthy


class Progress(SilentProgress):
    def __init__(self) -> None:
        self.total, self.read = -1, 0

    def start(self, total_bytes: int) -> None:
        self.total = total_bytes

    def advance(self, bytes_read: int) -> None:
        self.read += bytes_read


@pytest.fixture
def logs(tmp_path):
    healthy(tmp_path / "orders-0")
    gap(tmp_path / "orders-1")
    return tmp_path


def bytes_of(logs):
    return sum(path.stat().st_size for path in logs.rglob("*.log"))


@pytest.mark.parametrize(("jobs", "cores", "beyond", "expected"), [
    (3, 8, 0, 3),
    (3, 8, -1, 3),
    (3, 8, 1, None),  # starting others costs more than it saves
    (None, 2, 0, 2),
    (0, 2, 0, 2),
    (None, None, 0, None),
    (1, 8, 0, None),
])  # fmt: skip
def test_a_log_is_read_by_as_many_at_a_time_as_pay(logs, monkeypatch, jobs, cores, beyond, expected):
    """None: one after the other. `beyond`: from how many bytes on reading side by side pays, more than the log has."""
    asked: list[tuple[int, str]] = []

    def read_side_by_side(found, count, start_method):
        asked.append((count, start_method))
        return read_here(found)

    monkeypatch.setattr(local, "_read_side_by_side", read_side_by_side)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(local, "PROCESSES_PAY_BYTES", bytes_of(logs) + beyond)
    progress = Progress()
    result = local.scan(ScanOptions([str(logs)], jobs=jobs), progress)
    assert asked == ([] if expected is None else [(expected, "fork")])
    assert (progress.total, progress.read) == (bytes_of(logs), bytes_of(logs))
    assert [finding.code for finding in result.findings] == ["KA104"]


@pytest.mark.parametrize(("directories", "method"), [
    (["/logs/a-0", "file:///logs/a-1"], "fork"),
    (["/logs/a-0", "s3://bucket/a-1"], "spawn"),  # its client has threads
    (["hdfs://nn/a-0"], "spawn"),
    ([], "fork"),
])  # fmt: skip
def test_processes_are_forked_where_no_client_has_threads(directories, method):
    layout: Any = SimpleNamespace(
        partitions=[SimpleNamespace(segments=[SimpleNamespace(path=directory)]) for directory in directories]
    )
    assert local._start_method(layout.partitions) == method
