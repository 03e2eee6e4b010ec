"""Severities, topics and limits: what a team makes of findings, and that nothing disappears."""

import pytest
from msgspec.structs import replace

from kaudit.analysis.scan.options import ScanOptions
from kaudit.model.finding import Finding, Severity, Status
from kaudit.policy.comparison import Scope
from kaudit.policy.policy import Policy
from kaudit.policy.severities import Severities
from kaudit.policy.topics import Accepted, TopicRule
from tests import scan_results as results

SCOPE = Scope(lambda code: True)


def flood(number):
    return replace(results.fencing(), code="KA405", name="producer-id-flood", evidence={"count": number})


def test_a_severity_changes_what_is_counted_and_not_who_it_is():
    policy = Policy(Severities({"KA1": Severity.NOTE, "KA106": Severity.ERROR}))
    result = policy.apply(results.many(), SCOPE)
    assert {f.code: f.severity.value for f in result.findings} == {
        "KA001": "error", "KA102": "note", "KA106": "error", "KA203": "note",
    }  # fmt: skip
    assert result.summary.findings == {"error": 2, "warning": 0, "note": 2}
    assert [f.fingerprint for f in result.findings] == [f.fingerprint for f in results.many().findings]


@pytest.mark.parametrize(
    ("pattern", "applies"), [("orders", True), ("ord*", True), ("Orders", False), ("order", False)]
)
def test_a_topic_accepts_codes_with_a_reason(pattern, applies):
    policy = Policy(topics=[TopicRule(pattern, accepted=[Accepted(["KA1"], "old client")])])
    result = policy.apply(results.many(), SCOPE)
    suppressed = {f.code: f.suppression for f in result.findings if f.status is Status.SUPPRESSED}
    assert suppressed == ({"KA102": "old client", "KA106": "old client"} if applies else {})
    assert len(result.findings) == 4
    assert result.summary.statuses["suppressed"] == len(suppressed)


@pytest.mark.parametrize(("number", "status"), [(800, Status.SUPPRESSED), (801, Status.NEW)])
def test_as_many_producers_as_expected_are_no_flood(number, status):
    policy = Policy(topics=[TopicRule("orders", expected_producers=800)])
    result = policy.apply(results.scan_result(flood(number), results.old_duplicate()), SCOPE)
    assert {f.code: f.status for f in result.findings} == {"KA405": status, "KA102": Status.NEW}


def test_a_finding_about_no_topic_is_no_topics_business():
    lost = Finding("KA402", "block-overlap", Severity.ERROR, results.old_duplicate().confidence, "m")
    policy = Policy(topics=[TopicRule("*", accepted=[Accepted(["KA"], "all")])])
    assert policy.apply(results.scan_result(lost), SCOPE).findings[0].status is Status.NEW


def test_a_limit_leaves_the_most_severe_and_counts_all():
    limited = Policy(max_findings=2).limit(Policy().apply(results.many(), SCOPE))
    assert [f.severity.value for f in limited.findings] == ["error", "error"]
    assert limited.summary.omitted == 2
    assert limited.summary.findings == {"error": 2, "warning": 1, "note": 1}
    assert Policy(max_findings=4).limit(results.many()).summary.omitted == 0


def test_compacted_topics_are_names_or_patterns():
    options = ScanOptions(["/data"], compacted_topics=["state-*"])
    assert options.says_compacted("state-a")
    assert not options.says_compacted("orders")
    assert ScanOptions(["/data"], compacted=True).says_compacted("orders")
