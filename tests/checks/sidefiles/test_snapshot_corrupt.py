"""KA501: snapshots cut short."""

import pytest

from tests.checks.sidefiles.findings import side_findings


@pytest.mark.parametrize("size", [0, 9, 20])
def test_short_snapshots_name_the_one_the_broker_falls_back_to(explosion, size):
    path = explosion / "00000000000000001322.snapshot"
    path.write_bytes(path.read_bytes()[:size])
    (found,) = side_findings(explosion)
    assert (found.code, found.evidence["older_snapshot"]) == ("KA501", "00000000000000000662.snapshot")
