"""What a scan says of the groups that real clients played (tests/data/groups) compared with what they did and were given."""

import json

import pytest

from kaudit.model.impact import Impact
from tests.checks.groups.scanned import evidence_of, of_groups, scanned
from tests.live_brokers.groups import DATA

TRUTHS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(DATA.glob("*.json"))}
SHARED = [name for name in TRUTHS if name.endswith("-share")]
COMMITTED = [name for name in TRUTHS if name not in SHARED]


def by_group(*paths):
    """The one finding of each group."""
    found = {}
    for finding in of_groups(scanned(*paths)):
        group = evidence_of(finding)["group_id"]
        assert group not in found
        found[group] = finding
    return found


def steps_of(finding):
    evidence = evidence_of(finding)
    first = evidence["changes"][0]
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "from": first["committed_before"],
        "to": first["committed"],
        "times": evidence["times"],
    }


@pytest.mark.parametrize("name", COMMITTED)
def test_each_accident_is_found_with_its_range_and_nothing_else(name):
    found = by_group(DATA / f"{name}.tar.xz")
    accidents = {group: what for group, what in TRUTHS[name].items() if "code" in what}
    assert {
        group: steps_of(finding) | {"given_again": accidents[group]["given_again"]} for group, finding in found.items()
    } == accidents


@pytest.mark.parametrize("name", COMMITTED)
def test_what_was_given_again_is_within_the_impact_and_nothing_was_where_nothing_is_said(name):
    found = by_group(DATA / f"{name}.tar.xz")
    for group, what in TRUTHS[name].items():
        finding = found.get(group)
        if finding is None:
            assert what["given_again"] == 0
        elif finding.code == "KA902":  # planned: no loss
            assert finding.impact == Impact()
        elif (
            finding.code == "KA901"
        ):  # who is assigned the partition next reads again; both programs went on where they were
            assert finding.impact.records_delivered_again_at_most >= what["given_again"]
        else:
            assert finding.impact == Impact(records_delivered_again_at_most=what["given_again"])


@pytest.mark.parametrize("name", SHARED)
def test_what_share_groups_are_never_given_again_is_found_offset_by_offset(name):
    found = by_group(DATA / f"{name}.tar.xz")
    truth = {group: what for group, what in TRUTHS[name].items() if "code" in what}
    assert {group: (finding.code, finding.severity.value) for group, finding in found.items()} == {
        group: (what["code"], what["severity"]) for group, what in truth.items()
    }
    for group, what in truth.items():
        evidence = evidence_of(found[group])
        if what["code"] == "KA910":
            said = [
                offset
                for each in evidence["offsets"]
                for offset in range(each["first_offset"], each["last_offset"] + 1)
            ]
            assert said == sorted(what["rejected"] + what["exhausted"])
            assert (evidence["rejected"], evidence["exhausted"]) == (len(what["rejected"]), len(what["exhausted"]))
        else:
            jumps = [(jump["before"], jump["after"], jump["unread"]) for jump in evidence["start_jumps"]]
            assert jumps == [(what["from"], what["to"], what["unread"])]


@pytest.mark.parametrize("name", TRUTHS)
def test_a_text_of_kafka_dump_log_gives_the_same_findings_as_the_log(name):
    own, printed = by_group(DATA / f"{name}.tar.xz"), by_group(DATA / f"{name}.txt.xz")
    assert {group: (finding.code, finding.offset) for group, finding in own.items()} == {
        group: (finding.code, finding.offset) for group, finding in printed.items()
    }
