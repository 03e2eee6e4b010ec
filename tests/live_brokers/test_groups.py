"""What a scan says of the groups that real clients played (tests/data/groups) compared with what they did."""

import json

import pytest

from tests.checks.groups.scanned import evidence_of, of_groups, scanned
from tests.live_brokers.groups import DATA, TOPIC

RELEASES = [path.stem for path in sorted(DATA.glob("*.json"))]


@pytest.mark.parametrize("release", RELEASES)
def test_each_accident_is_found_with_its_range_and_nothing_else(release):
    truth = json.loads((DATA / f"{release}.json").read_text(encoding="utf-8"))
    found = {}
    for finding in of_groups(scanned(DATA / f"{release}.tar.xz")):
        evidence = evidence_of(finding)
        assert (evidence["topic"], evidence["partition"]) == (TOPIC, 0)
        first = evidence["changes"][0]
        assert evidence["group_id"] not in found
        found[evidence["group_id"]] = {
            "code": finding.code,
            "severity": finding.severity.value,
            "from": first["committed_before"],
            "to": first["committed"],
            "times": evidence["times"],
        }
    assert found == {group: what for group, what in truth.items() if what}
