"""A watch's metrics: every sample, by name and labels."""

import re

import pytest
from msgspec.structs import replace

from kaudit import __version__
from kaudit.checks.registry import CHECKS
from kaudit.model.watch_status import WatchedPartition, WatchStatus
from kaudit.report.machine.metrics import render_metrics

NOW = 1_795_000_000_500
STATUS = WatchStatus(
    inputs=["/data"],
    started_ms=1_700_000_000_250,
    now_ms=NOW,
    partitions=[
        WatchedPartition("a", 0, "1", 1000, 990, 3, 2, NOW - 5000),
        WatchedPartition("b", 7, "2", None, None, 4, 0, None),
        WatchedPartition("c", 1, "1", 50, 50, 5, 1, NOW - 9000),
    ],
    reported={("KA102", "error"): 4, ("KA104", "warning"): 2, ("KA999", "note"): 1},
    present={("KA102", "error"): 3},
    waiting=6,
    read_bytes=12_345_678_901_234,
    read_per_second=9.0,
    repeated_readings=8,
    unreadable=5,
    round_seconds=0.25,
    clock_ms=NOW + 1500,
)


def samples(status):
    text = render_metrics(status)
    assert text.endswith("\n")
    lines = [line.rpartition(" ")[::2] for line in text.splitlines() if not line.startswith("#")]
    assert len(dict(lines)) == len(lines)
    return {name: float(value) for name, value in lines}


def test_every_figure():
    found = samples(STATUS)
    assert {name: value for name, value in found.items() if "{" not in name} == {
        "kaudit_start_time_seconds": 1_700_000_000.25,
        "kaudit_last_round_timestamp_seconds": 1_795_000_000.5,
        "kaudit_round_duration_seconds": 0.25,
        "kaudit_findings_waiting": 6,
        "kaudit_read_bytes_total": 12_345_678_901_234,
        "kaudit_repeated_readings_total": 8,
        "kaudit_unreadable_files": 5,
        "kaudit_partitions": 3,
        "kaudit_producers": 12,
        "kaudit_oldest_open_transaction_seconds": 10.5,
    }
    assert found[f'kaudit_build_info{{version="{__version__}"}}'] == 1
    by_place = {name: value for name, value in found.items() if "topic=" in name}
    assert by_place == {
        f'{name}{{topic="{topic}",partition="{number}",replica="{replica}"}}': value
        for name, values in (
            ("kaudit_open_transactions", (2, 0, 1)),
            ("kaudit_last_stable_offset_lag", (10, 0, 0)),
            ("kaudit_log_end_offset", (1000, 0, 50)),
        )
        for (topic, number, replica), value in zip((("a", 0, 1), ("b", 7, 2), ("c", 1, 1)), values, strict=True)
    }


def test_every_check_has_its_counters():
    found = samples(STATUS)
    for metric, counts in (("kaudit_findings_total", STATUS.reported), ("kaudit_findings", STATUS.present)):
        pattern = re.compile(metric + r'\{code="(\w+)",name="([^"]+)",severity="(\w+)"\}')
        shown = {match.groups(): value for name, value in found.items() if (match := pattern.fullmatch(name))}
        expected = {(check.code, check.name, check.severity.value): 0 for check in CHECKS.values()}
        names = {code: check.name for code, check in CHECKS.items()}
        expected |= {(code, names.get(code, code), severity): number for (code, severity), number in counts.items()}
        assert shown == expected
        assert list(shown) == sorted(shown)


def test_every_metric_has_its_help_and_type():
    lines = render_metrics(STATUS).splitlines()
    for number, line in enumerate(lines):
        if line.startswith("# HELP"):
            name = line.split()[2]
            assert line == f"# HELP {name} {line.split(maxsplit=3)[3]}"
            assert lines[number + 1] == f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}"
            assert lines[number + 2].startswith((f"{name} ", f"{name}{{"))


@pytest.mark.parametrize(("ahead", "age"), [(-9001, 0), (-9000, 0), (-8999, 0.001), (0, 9)])
def test_the_oldest_transaction_by_the_clock_of_the_logs(ahead, age):
    assert samples(replace(STATUS, clock_ms=NOW + ahead))["kaudit_oldest_open_transaction_seconds"] == age
    nothing = replace(STATUS, clock_ms=NOW + ahead, partitions=STATUS.partitions[1:2])
    assert samples(nothing)["kaudit_oldest_open_transaction_seconds"] == 0
