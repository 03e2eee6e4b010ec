"""Severities, topics and limits: what a team makes of findings, and that nothing disappears."""

import pytest
from msgspec.structs import replace

from kaudit.model.evidence import StoredEvidence
from kaudit.model.finding import Finding
from kaudit.model.result import UnlistedFindings
from kaudit.model.severity import Severity, Status
from kaudit.policy.baseline import Baseline, Entry
from kaudit.policy.comparison import Scope
from kaudit.policy.policy import Accepted, Decision, NamedBaseline, Policy, Severities, TopicRule
from kaudit.results.selection import Selection
from kaudit.scanning.options import ScanOptions
from tests import scan_results as results

SCOPE = Scope(lambda code: True)
LATE = Accepted(["KA1"], "what no rule before it accepted")


def flood(number):
    return replace(
        results.fencing(), code="KA405", name="producer-id-flood", evidence=StoredEvidence({"count": number})
    )


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
    rules = [TopicRule(pattern, accepted=[Accepted(["KA9", "KA1"], "old client")]), TopicRule(pattern, accepted=[LATE])]
    policy = Policy(topics=rules)
    result = policy.apply(results.many(), SCOPE)
    suppressed = {f.code: f.suppression for f in result.findings if f.status is Status.SUPPRESSED}
    assert suppressed == ({"KA102": "old client", "KA106": "old client"} if applies else {})
    assert len(result.findings) == 4
    assert result.summary.statuses["suppressed"] == len(suppressed)


@pytest.mark.parametrize(
    ("number", "expected", "status"), [(800, 800, Status.SUPPRESSED), (801, 800, Status.NEW), (1, None, Status.NEW)]
)
def test_as_many_producers_as_expected_are_no_flood(number, expected, status):
    policy = Policy(topics=[TopicRule("orders", expected_producers=expected)])
    result = policy.apply(results.scan_result(flood(number), results.old_duplicate()), SCOPE)
    assert {f.code: f.status for f in result.findings} == {"KA405": status, "KA102": Status.NEW}


def test_findings_that_are_only_counted_are_decided_by_code_and_topic():
    rules = [TopicRule("orders", accepted=[LATE])]
    policy = Policy(Severities({"KA1": Severity.NOTE, "KA102": Severity.WARNING}), topics=rules)
    more = [
        UnlistedFindings(code, severity, topic, list(range(number)))
        for number, (code, severity, topic) in enumerate(
            [
                ("KA102", Severity.ERROR, "orders"),
                ("KA102", Severity.ERROR, "x"),
                ("KA104", Severity.ERROR, "x"),
                ("KA203", Severity.NOTE, "x"),
                ("KA301", Severity.ERROR, "orders"),
            ],
            start=1,
        )
    ]
    result = policy.apply(results.scan_result(unlisted=more), SCOPE)
    assert [(each.count, each.severity, each.status) for each in result.unlisted] == [
        (1, Severity.WARNING, Status.SUPPRESSED),
        (2, Severity.WARNING, Status.NEW),
        (3, Severity.NOTE, Status.NEW),
        (4, Severity.NOTE, Status.NEW),
        (5, Severity.ERROR, Status.NEW),
    ]
    assert result.summary.findings == {"error": 5, "warning": 3, "note": 7}
    assert result.summary.statuses["suppressed"] == 1


def test_an_engines_tasks_decide_as_the_whole_result_is_decided():
    found = results.many().findings
    known = NamedBaseline("b", Baseline([Entry.of(found[0])]))
    policy = Policy(Severities({"KA102": Severity.NOTE}), known=known)
    for decided in (policy, replace(policy, known=None)):
        every = decided.apply(results.many(), SCOPE).findings
        assert Decision(Selection(), decided)(found) == every
        only = Selection(select=["KA1"])
        assert Decision(only, decided)(found) == [each for each in every if each.code.startswith("KA1")]


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
