"""--select and --ignore: which findings a report is about, and that its counts follow."""

import pytest
from msgspec.structs import replace

from kaudit.errors import UsageError
from kaudit.model.replicas import DiffResult
from kaudit.model.result import UnlistedFindings
from kaudit.model.severity import Severity, Status
from kaudit.results.selection import Selection, count, count_statuses, parse_codes
from tests import scan_results as results
from tests.timelines import timelines_of


@pytest.mark.parametrize(("typed", "codes"), [
    ([], ()), ([""], ()), ([" , ,"], ()), (["KA102"], ("KA102",)), (["ka102, ka5"], ("KA102", "KA5")),
    (["k", "old-duplicate"], ("K", "KA102")), (["KA1,", "KA2"], ("KA1", "KA2")),
])  # fmt: skip
def test_codes_as_typed(typed, codes):
    assert parse_codes(typed, "--select") == codes


@pytest.mark.parametrize("typed", ["KA9999", "KB", "old-duplicates"])
def test_what_is_no_code_is_refused(typed):
    with pytest.raises(UsageError, match=f"--ignore {typed}: no check"):
        parse_codes(["KA102", typed], "--ignore")


@pytest.mark.parametrize(("select", "ignore", "included"), [
    ([], [], True), (["KA1"], [], True), (["KA2"], [], False), (["KA2", "KA1"], [], True), ([], ["KA1"], False), ([], ["KA2"], True),
    (["KA1"], ["KA102"], False), (["KA102"], ["KA1"], True), (["KA1"], ["KA1"], False), (["KA2", "KA102"], ["KA10"], True),
    (["KA"], ["KA10", "K"], False), (["KA10"], ["K"], True),
])  # fmt: skip
def test_the_longest_prefix_decides(select, ignore, included):
    selection = Selection(select, ignore)
    assert selection.includes("KA102") is included
    codes = selection.codes()
    assert (codes is None) is (not select and not ignore)
    assert codes is None or ("KA102" in codes) is included


def test_codes_are_those_of_checks():
    assert Selection(["KA10"]).codes() == frozenset({"KA101", "KA102", "KA103", "KA104", "KA105", "KA106", "KA107"})
    assert Selection(ignore=["KA"]).codes() == frozenset()


def test_counts_follow_the_findings():
    result = results.many()
    selected = Selection(["KA1"]).of_scan(result)
    assert [finding.code for finding in selected.findings] == ["KA106", "KA102"]
    assert selected.summary.findings == {"error": 1, "warning": 1, "note": 0}
    assert selected.summary == replace(result.summary, findings=selected.summary.findings, omitted=0)
    assert Selection().of_scan(result) is result
    assert Selection(ignore=["KA7"]).of_scan(result) is result


def test_what_is_counted_without_being_listed():
    more = [
        UnlistedFindings("KA102", Severity.ERROR, "orders", [1, 2, 3, 4, 5]),
        UnlistedFindings("KA203", Severity.NOTE, "orders", [6] * 7, Status.KNOWN),
    ]
    result = results.scan_result(results.old_duplicate(), unlisted=more)
    selected = Selection(["KA102"]).of_scan(result)
    assert (list(selected.findings), list(selected.unlisted)) == (list(result.findings), more[:1])
    assert selected.summary.findings == {"error": 6, "warning": 0, "note": 0}
    assert selected.summary.omitted == 5
    others = Selection(ignore=["KA102"]).of_scan(result)
    assert (others.findings, others.unlisted) == ([], more[1:])
    assert others.summary.findings == {"error": 0, "warning": 0, "note": 7}
    assert count_statuses([*result.findings, *more]) == {"new": 6, "known": 7, "suppressed": 0}
    assert count([]) == {"error": 0, "warning": 0, "note": 0}


def test_timelines_lose_the_findings_left_out_and_nothing_else():
    result = results.timeline_result()
    before = timelines_of(result.histories)
    kept = Selection(["KA203"]).of_timeline(result)
    assert [finding.code for finding in kept.scan.findings] == ["KA203"]
    first, second = timelines_of(kept.histories)
    assert first.entries == [entry for entry in before[0].entries if entry.to_dict().get("code") != "KA102"]
    assert replace(first, entries=before[0].entries) == before[0]
    assert second == before[1]
    all_of_them = Selection(["KA"]).of_timeline(result)
    assert all_of_them.histories is result.histories
    assert all_of_them == result


def test_producers_and_replicas():
    listed = Selection(["KA401"]).of_producers(results.producers_result())
    assert [finding.code for finding in listed.scan.findings] == ["KA401"]
    assert listed.summary["findings"] == {"error": 1, "warning": 0, "note": 0}
    assert listed.summary["ids"] == results.producers_result().summary["ids"]
    compared = Selection(["KA001"]).of_comparison(DiffResult(results.many(), []))
    assert [finding.code for finding in compared.scan.findings] == ["KA001"]
