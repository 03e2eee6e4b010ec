"""Records dated in the future, in a scan."""

import os

import pytest

from kaudit.checks.replicas.record_times import future_timestamps
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.logs import BASE_TIMESTAMP, Batch, Log

YEAR_MS = 31_536_000_000


@pytest.mark.parametrize(
    ("name", "ahead", "compacted", "records"),
    [("visits-0", YEAR_MS, (), 4), ("visits-0", 1000, (), 0), ("visits-0", YEAR_MS, ("visits",), 0), ("__x-0", YEAR_MS, (), 0)],
    ids=["year", "second", "compacted", "internal"],
)  # fmt: skip
def test_a_year_ahead_is_reported_where_time_retention_deletes(tmp_path, name, ahead, compacted, records):
    log = Log()
    log.append(Batch(-1, -1, -1, 3))
    log.clock = BASE_TIMESTAMP + ahead
    log.append(Batch(-1, -1, -1, 4))
    for file in log.write(tmp_path / name).iterdir():
        os.utime(file, (BASE_TIMESTAMP / 1000, BASE_TIMESTAMP / 1000))
    found = scan(ScanOptions([str(tmp_path)], compacted=compacted), SilentProgress()).findings
    assert [finding.code for finding in found] == [future_timestamps.code] * bool(records)
    for finding in found:
        assert (finding.severity, finding.offset, finding.evidence.records) == (Severity.WARNING, 3, records)
