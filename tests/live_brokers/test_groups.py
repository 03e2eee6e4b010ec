"""What a scan says of the groups that real clients played (tests/data/groups) compared with what they did and were given."""

import json
import lzma
import re

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.listings.groups import list_groups, list_partition
from kaudit.model.impact import Impact
from kaudit.scanning.options import ScanOptions
from kaudit.source.schemes import open_segment
from tests.checks.groups.scanned import evidence_of, of_groups, scanned
from tests.live_brokers.groups import DATA
from tests.logs import BASE_TIMESTAMP

TRUTHS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(DATA.glob("*.json"))}
SHARED = [name for name in TRUTHS if "-share" in name]
COMMITTED = [name for name in TRUTHS if name not in SHARED and not name.endswith("-restart")]
LATE = [name for name in TRUTHS if name not in SHARED and name.endswith("-restart")]


def by_group(*paths):
    """The one finding of each group."""
    found = {}
    for finding in of_groups(scanned(*paths)):
        group = evidence_of(finding)["group_id"]
        assert group not in found
        found[group] = finding
    return found


def listed(path, group=None):
    """What `kaudit groups` lists."""
    options = ScanOptions([str(path)], jobs=1)

    def read(tasks):
        return [list_partition(task, options, open_segment) for task in tasks]

    return list_groups(options, group, read, commits=True).rows


def steps_of(finding):
    evidence = evidence_of(finding)
    if finding.code == "KA904":
        return [finding.code, finding.severity.value, evidence["committed_offset"], evidence["log_start_offset"], 1]
    first = evidence["changes"][0]
    return [finding.code, finding.severity.value, first["committed_before"], first["committed"], evidence["times"]]


@pytest.mark.parametrize("name", COMMITTED)
def test_each_accident_is_found_with_its_range_and_nothing_else(name):
    found = by_group(DATA / f"{name}.tar.xz")
    accidents = {group: what for group, what in TRUTHS[name].items() if "code" in what}
    assert {group: steps_of(finding) for group, finding in found.items()} == {
        group: [what[key] for key in ("code", "severity", "from", "to", "times")] for group, what in accidents.items()
    }


@pytest.mark.parametrize("name", COMMITTED)
def test_what_was_given_again_is_within_the_impact_and_nothing_was_where_nothing_is_said(name):
    found = by_group(DATA / f"{name}.tar.xz")
    for group, what in TRUTHS[name].items():
        finding = found.get(group)
        if finding is None:
            assert what["given_again"] == 0
        elif finding.code == "KA902":  # planned: no loss
            assert finding.impact == Impact()
        elif finding.code == "KA904":
            assert finding.impact == Impact(records_skipped_at_most=what["skipped"])
        else:
            least, most = finding.impact.records_delivered_again, finding.impact.records_delivered_again_at_most
            assert least <= what["given_again"] <= most


@pytest.mark.parametrize("name", LATE)
def test_a_commit_that_was_late_and_corrected_at_once_is_a_note(name):
    found = of_groups(scanned(DATA / f"{name}.tar.xz"))
    assert {(finding.code, finding.severity.value, finding.impact) for finding in found} == {
        ("KA900", "note", Impact())
    }
    steps = [row for row in listed(DATA / f"{name}.tar.xz") if row["row"] == "step"]
    assert {row["kind"] for row in steps} == {"went back and was corrected at once"}
    assert {row["group"]: (row["committed_before"], row["committed"]) for row in steps} == {
        group: (what["from"], what["to"]) for group, what in TRUTHS[name].items()
    }
    assert not any(what["given_again"] for what in TRUTHS[name].values())


def assigned_by_kafka(printed, group):
    """The member that had the partition when each commit was written, by what kafka-dump-log prints (KIP-848)."""
    had, found = {}, {}
    for offset, key, payload in re.findall(
        r"^\| offset: (\d+) .*? key: (\{.*?\}\}) payload: (.*)$", printed, re.MULTILINE
    ):
        kind, data = (json.loads(key)[name] for name in ("type", "data"))
        if kind == "8" and data["groupId"] == group:
            value = json.loads(payload)["data"] if payload.startswith("{") else {}
            places = [*value.get("assignedPartitions", ()), *value.get("partitionsPendingRevocation", ())]
            had[data["memberId"]] = {number for place in places for number in place["partitions"]}
        if kind == "1" and data["group"] == group:
            (found[int(offset)],) = (member for member, numbers in had.items() if data["partition"] in numbers)
    return found


@pytest.mark.parametrize(
    "kind", ["tar.xz", "txt.xz"]
)  # a text has no topic ids beside it: the members subscribe to one topic
def test_commits_of_the_next_protocol_name_the_member_that_had_the_partition(kind):
    truth = assigned_by_kafka(lzma.decompress((DATA / "4.1.1-confluent.txt.xz").read_bytes()).decode(), "next-protocol")
    rows = listed(DATA / f"4.1.1-confluent.{kind}", "next-protocol")
    assert {row["offset"]: row["member_id"] for row in rows if row["row"] == "commit"} == truth
    assert len(set(truth.values())) == 3


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


@pytest.mark.parametrize("name", SHARED)
def test_brokers_write_no_state_of_what_is_acquired(name):
    printed = lzma.decompress((DATA / f"{name}.txt.xz").read_bytes()).decode()
    assert set(re.findall(r'"deliveryState":(\d)', printed)) <= {"0", "2", "4"}  # 1: acquired


@pytest.mark.parametrize("name", [name for name in SHARED if name.endswith("-restart")])
def test_what_was_acquired_when_the_broker_was_killed_is_available_again(name):
    options = ScanOptions([str(DATA / f"{name}.tar.xz")], jobs=1, now_ms=BASE_TIMESTAMP * 2)
    assert of_groups(scan(options, SilentProgress())) == []
    given_again = {group: what["given_again"] for group, what in TRUTHS[name].items()}
    assert given_again == {"share-killed": 10, "share-acquired": 0}  # the other group never came back


@pytest.mark.parametrize("name", TRUTHS)
def test_a_text_of_kafka_dump_log_gives_the_same_findings_as_the_log(name):
    own, printed = by_group(DATA / f"{name}.tar.xz"), by_group(DATA / f"{name}.txt.xz")
    with_logs = {"KA904"}  # the text is of the groups alone
    assert {group: (each.code, each.offset) for group, each in own.items() if each.code not in with_logs} == {
        group: (finding.code, finding.offset) for group, finding in printed.items()
    }
