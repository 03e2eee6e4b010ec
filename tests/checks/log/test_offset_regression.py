"""KA006: a batch with an offset that had been written, in a recorded log."""

from kaudit.checks.log.damage import offset_regression
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.checks.findings import recorded_findings
from tests.logs import data


def test_offset_regression_is_found_where_it_was_recorded():
    assert recorded_findings(offset_regression, "samples/damaged/flip-base-offset") == [
        ("error", "explosion", None, 986)
    ]


def test_offset_regression_is_not_found_in_a_healthy_log():
    assert recorded_findings(offset_regression, "samples/clean") == []


def test_an_offset_below_zero_is_not_one_that_was_deleted(tmp_path):
    """The CRC does not cover the base offset: its sign bit, flipped, is damage also where a checkpoint says the log start."""
    first, second, third = (bytearray(data(1, 0, offset).at(offset).encode()) for offset in range(3))
    second[0] ^= 0x80
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(first + second + third)
    found = scan(ScanOptions([str(directory)], log_start_offset=0), SilentProgress()).findings
    assert [(each.offset, each.position) for each in found if each.code == "KA006"] == [(1 - 2**63, len(first))]
