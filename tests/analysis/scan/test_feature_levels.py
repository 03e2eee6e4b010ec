"""Feature levels as evidence of the version."""

import pytest

from kaudit.analysis.scan.options import ScanOptions, SilentProgress
from kaudit.broker.releases.version_evidence import VersionEvidence, infer_range
from kaudit.engines.local import scan


@pytest.mark.parametrize(("version", "level", "at_least"), [("3.9.1", 21, "3.9.0"), ("4.2.0", 29, "4.2.0")])
def test_feature_levels_of_real_clusters_bound_the_version(evidence, version, level, at_least):
    result = scan(ScanOptions([str(evidence.oracle(version, "logdir") / "main")]), SilentProgress())
    assert result.broker_version.at_least == at_least
    assert any(f"metadata.version {level} " in reason for reason in result.broker_version.because)


def test_a_level_of_a_later_release_is_the_newest_known():
    found, _ = infer_range(VersionEvidence(metadata_version=10**4))
    assert found.at_least <= found.at_most
