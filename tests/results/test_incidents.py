"""What findings of one cause amount to, in the formats for people and for programs."""

import json

import pytest
from msgspec.structs import replace

from kaudit.checks.incident_groups import with_incidents
from kaudit.model.impact import Impact
from kaudit.model.severity import Confidence, Severity
from kaudit.report.console import Console
from kaudit.report.render_options import RenderOptions
from kaudit.report.text import incident_block
from kaudit.report.text.table import topic_counts
from kaudit.results.incidents import describe, distinct, fingerprints, incidents_of, members
from kaudit.results.saved_scan import read_saved
from tests import scan_results as results
from tests.rendered import scan_text


def test_those_that_cost_most_come_first_and_the_most_severe_finding_first_in_each():
    groups = members(results.in_incidents().findings)
    assert [(group[0].code, group[0].topic, len(group)) for group in groups] == [
        ("KA102", "orders", 2),  # the only error that cost anything
        ("KA201", "payments", 2),
        ("KA702", "views", 5),  # five batches of four records, against two
        ("KA702", "clicks", 4),
    ]
    assert [found.offset for found in groups[3]] == [8, 20, 24, 30]


@pytest.mark.parametrize(("dearer", "cheaper"), [
    (Impact(records_lost_at_most=2), Impact(records_lost_at_most=1, offsets_invisible=900)),
    (Impact(records_lost_at_least=2), Impact(records_lost_at_least=1)),
    (Impact(records_lost_at_most=1), Impact(records_lost_at_least=0)),
    (Impact(records_lost_at_least=1, records_lost_at_most=3), Impact(records_lost_at_least=2)),
    (Impact(offsets_invisible=2), Impact(offsets_invisible=1, records_duplicated=900)),
    (Impact(records_duplicated=2), Impact(records_duplicated=1, bytes_truncated=900)),
    (Impact(bytes_truncated=2), Impact(bytes_truncated=1)),
    (Impact(bytes_truncated=1), Impact()),
    (Impact(records_duplicated=1), Impact(records_lost_at_least=0)),
])  # fmt: skip
def test_what_costs_more_comes_first(dearer, cheaper):
    first, second = results.old_duplicate(offset=9, impact=dearer), results.old_duplicate(offset=1, impact=cheaper)
    assert members([first, second]) == members([second, first]) == [[first], [second]]


def test_severity_then_confidence_come_before_the_cost():
    cheap = results.old_duplicate(impact=Impact())
    likely = replace(
        cheap, confidence=Confidence.LIKELY, impact=Impact(records_duplicated=1, records_duplicated_at_most=1)
    )
    possible = replace(
        cheap, confidence=Confidence.POSSIBLE, impact=Impact(records_duplicated=2, records_duplicated_at_most=2)
    )
    warning = replace(
        cheap, severity=Severity.WARNING, impact=Impact(records_duplicated=3, records_duplicated_at_most=3)
    )
    note = replace(cheap, severity=Severity.NOTE, impact=Impact(records_duplicated=4, records_duplicated_at_most=4))
    expected = [cheap, likely, possible, warning, note]
    assert members(reversed(expected)) == [[finding] for finding in expected]
    of_one_cause = [replace(finding, incident="x") for finding in expected]
    assert members(reversed(of_one_cause)) == [of_one_cause]


def test_equal_incidents_lie_in_order_of_their_offsets():
    findings = [results.old_duplicate(offset=number) for number in (3, 1, 2)]
    assert [group[0].offset for group in members(findings)] == [1, 2, 3]


def test_an_incident_is_described_by_all_its_findings():
    first = results.old_duplicate(
        offset=5, last_offset=9, producer_id=None, replica=None,
        evidence={"transactional_id": "b", "first_timestamp": 70, "last_timestamp": 90, "offending": {"timestamp": 0}},
    )  # fmt: skip
    second = results.old_duplicate(
        offset=3, last_offset=None, producer_id=4, replica="2",
        evidence={"transactional_id": "a", "offending": {"timestamp": -1}, "first_timestamp": -1, "last_timestamp": "x"},
    )  # fmt: skip
    third = results.old_duplicate(
        topic="a",
        offset=None,
        last_offset=None,
        producer_id=3,
        replica="1",
        evidence={"transactional_id": 7, "offending": 1},
    )
    nowhere = results.old_duplicate(topic=None, partition=None, offset=1, producer_id=3, replica="1", evidence={})
    described = describe([first, second, third, nowhere, replace(first, replica="9")])
    assert described.findings == 4
    assert described.checks == {"KA102": 4}
    assert [(each.topic, each.partition, each.first_offset, each.last_offset) for each in described.partitions] == [
        ("a", 3, None, None),
        ("orders", 3, 3, 9),
    ]
    assert (described.replicas, described.producer_ids, described.transactional_ids) == (
        ["1", "2", "9"],
        [3, 4],
        ["a", "b"],
    )
    assert (described.first_timestamp, described.last_timestamp) == (0, 90)
    without_time = describe([second])
    assert (without_time.first_timestamp, without_time.last_timestamp) == (None, None)


@pytest.mark.parametrize("number", [4, 5, 6])
def test_five_findings_are_named(number):
    findings = [results.old_duplicate(offset=each) for each in range(number)]
    assert fingerprints([*findings[:1], *findings]) == [finding.fingerprint for finding in findings[:5]]


def test_what_an_incident_amounts_to():
    clicks = describe(members(results.in_incidents().findings)[3])
    assert (clicks.cause, clicks.severity.value, clicks.findings) == ("retries", "warning", 4)
    assert clicks.checks == {"KA702": 2, "KA703": 2}
    assert [(entry.topic, entry.first_offset, entry.last_offset) for entry in clicks.partitions] == [("clicks", 8, 33)]
    assert clicks.impact.records_duplicated == 8
    assert clicks.first_timestamp == results.MORNING + 8000
    assert clicks.last_timestamp == results.MORNING + 30_000


def test_what_replicas_say_alike_counts_once():
    copies = members(results.in_incidents().findings)[0]
    incident = describe(copies)
    assert (incident.findings, incident.replicas, incident.impact.records_duplicated) == (1, ["1", "2"], 5)
    assert distinct(copies) == copies[:1]
    text = scan_text("table", results.in_incidents(), RenderOptions())
    assert text.count("old-duplicate: sequences 57..61") == 1
    assert ", on replicas 1, 2\n" in text


def test_a_finding_that_stands_alone_is_no_incident():
    assert incidents_of(results.many().findings) == []


def test_incidents_left_out_are_counted(monkeypatch):
    monkeypatch.setattr(incident_block, "_BLOCKS", 1)
    text = scan_text("table", results.in_incidents(), RenderOptions())
    assert "3 more incidents with 11 findings (-v shows all)" in text
    assert "more incidents" not in scan_text("table", results.in_incidents(), RenderOptions(verbose=True))


def test_a_ruined_log_gives_a_screenful():
    ruined = [results.old_duplicate(offset=10 * n, last_offset=10 * n, producer_id=n) for n in range(3000)]
    text = scan_text("table", results.scan_result(*ruined), RenderOptions(Console(width=80)))
    assert len(text.splitlines()) < 250
    assert text.startswith("15,000 records written twice in orders-3 (3,000 errors)\n")


def test_saved_incidents_are_kept_and_those_of_older_documents_found():
    result = results.in_incidents()
    ids = [found.incident for found in result.findings]
    document = json.loads(scan_text("json", result, RenderOptions()))
    one_check = {**document, "findings": [found for found in document["findings"] if found["code"] == "KA703"][:1]}
    (kept,) = read_saved(json.dumps(one_check)).result.findings
    assert kept.incident in ids
    for finding in document["findings"]:
        del finding["incident"]
    assert [found.incident for found in read_saved(json.dumps(document)).result.findings] == ids


def test_json_lists_them_and_findings_name_them():
    document = json.loads(scan_text("json", results.in_incidents(), RenderOptions()))
    listed = {incident["id"]: incident for incident in document["incidents"]}
    assert {finding["incident"] for finding in document["findings"]} == set(listed)
    assert sorted(incident["findings"] for incident in listed.values()) == [1, 2, 4, 5]
    assert document["incidents"][2]["impact"] == {"records_duplicated": 20, "records_duplicated_at_most": 20}


def test_github_annotates_an_incident_once():
    text = scan_text("github", results.in_incidents(), RenderOptions())
    assert text.count("::warning") == 2
    assert "and 4 more findings of one cause" in text
    assert "Impact: 20 records" in text


def test_a_hostile_incident_stays_text():
    copies = [
        results.old_duplicate(replica=f"{results.HOSTILE}{number}", incident=results.HOSTILE) for number in (1, 2)
    ]
    others = [replace(copies[0], offset=number, incident=results.HOSTILE) for number in range(5)]
    for verbose in (False, True):
        text = scan_text("table", results.scan_result(*copies, *others), RenderOptions(verbose=verbose))
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert with_incidents(copies)[0].incident == copies[0].fingerprint


def test_the_table_of_topics_leaves_room_for_the_cost_however_long_a_topic_is():
    finding = results.old_duplicate(topic="t" * 48, impact=Impact(records_duplicated=3, records_duplicated_at_most=3))
    lines = topic_counts([finding], Console(width=80))
    assert lines[1:] == [f"{'t' * 48}  KA102 old-duplicate  {1:8}", "    3 records were written twice"]
    assert max(map(len, lines)) <= 80


def test_a_few_findings_of_an_incident_are_named_with_the_replicas_that_have_the_first():
    lead = results.old_duplicate(
        offset=512, incident="x", impact=Impact(records_duplicated=5, records_duplicated_at_most=5)
    )
    other = results.old_duplicate(
        offset=700,
        last_offset=700,
        partition=4,
        incident="x",
        impact=Impact(records_duplicated=1, records_duplicated_at_most=1),
    )
    copies = [replace(lead, replica=name) for name in ("1", "2")]
    lines = incident_block.incident_sections([*copies, other], RenderOptions(), many_inputs=False)
    text = "\n".join(line for section in lines for line in section)
    assert ", on replicas 1, 2" in text
    (also,) = [line for line in text.splitlines() if "also" in line]
    assert also.endswith("(orders-4)")
    # what two replicas say alike costs once
    assert "impact: 6 records were written twice" in text
