"""Feature levels as evidence of the version."""

from pathlib import Path

import pytest

from kaudit.analysis.scan.options import ScanOptions, SilentProgress
from kaudit.broker.releases.version_evidence import VersionEvidence, infer_range
from kaudit.engines.local import scan
from tests.logs import Batch, Log, data

RECORDED = Path(__file__).parents[2] / "data" / "recorded"


@pytest.mark.parametrize(("version", "level", "at_least"), [("3.9.1", 21, "3.9.0"), ("4.2.0", 29, "4.2.0")])
def test_feature_levels_of_real_clusters_bound_the_version(evidence, version, level, at_least):
    result = scan(ScanOptions([str(evidence.oracle(version, "logdir") / "main")]), SilentProgress())
    assert result.broker_version.at_least == at_least
    assert any(f"metadata.version {level} " in reason for reason in result.broker_version.because)


def test_a_level_of_a_later_release_is_the_newest_known():
    found, _ = infer_range(VersionEvidence(metadata_version=10**4))
    assert found.at_least <= found.at_most


def test_a_client_that_sets_the_delete_horizon_bit_is_no_evidence(tmp_path):
    """The cleaner writes a horizon that lies ahead of the records; a client's batch has its first timestamp there."""
    log = Log()
    log.append(Batch(1, 0, 0, attributes=0x40))
    log.next_offset += 1
    log.append(data(1, 0, 1))
    result = scan(ScanOptions([str(log.write(tmp_path / "orders-0"))]), SilentProgress())
    assert result.broker_version.at_least == "0.11.0.0"
    assert "KA007" in {finding.code for finding in result.findings}  # and so the gap is not taken for the cleaner's


def test_the_cleaners_own_horizons_are_evidence():
    """A segment that a broker of 4.1.0 cleaned (tests/conformance/recorder, scenario s39c)."""
    result = scan(ScanOptions([str(RECORDED / "4.1.0" / "s39c-compacted-txn-0")]), SilentProgress())
    assert result.broker_version.at_least == "3.1.0"
    assert any("a batch with a delete horizon" in reason for reason in result.broker_version.because)
