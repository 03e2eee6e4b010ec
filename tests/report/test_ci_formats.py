"""sarif, junit, github, gitlab, markdown: valid at every size, read back by readers that are not ours."""

import hashlib
import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import jsonschema
import junitparser
import lxml.etree
import pytest
from msgspec.structs import replace
from sarif.loader import load_sarif_file

from kaudit.checks.registry import CHECKS
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.installation import information_uri
from kaudit.model.logged_incidents import LoggedIncident
from kaudit.model.result import BaselineComparison, Expected, NotAudited
from kaudit.model.severity import Severity, Status
from kaudit.report.machine import github, gitlab, junit, sarif
from kaudit.report.machine.locations import shown_path
from kaudit.report.render_options import RenderOptions
from kaudit.report.text import markdown
from kaudit.scanning.options import ScanOptions
from tests import scan_results as results
from tests.rendered import scan_text

SCHEMA = Path(__file__).parents[1] / "schemas" / "sarif-schema-2.1.0.json"
JENKINS = lxml.etree.XMLSchema(file=SCHEMA.with_name("jenkins-junit.xsd"))
SAMPLES = Path(__file__).parents[2] / "samples"
SARIF = jsonschema.Draft4Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
NEW = ("sarif", "junit", "github", "gitlab", "markdown")
COST = "5 records were written twice"
RUN = {"host": "h", "started_at": "2026-11-21T03:00:00.000Z"}
CASES = {
    "empty": results.scan_result,
    "one": lambda: results.scan_result(results.old_duplicate()),
    "many": results.many,
    "incomplete": lambda: results.incomplete(results.old_duplicate()),
    "hostile": results.hostile,
}


def accepted():
    """A scan with one finding of each status, and a baseline with an entry of each fate."""
    entry = Expected("0123456789abcdef", "KA102", "orders-3 @ 7: gone", "ticket 7", "2026-12-01")
    return results.scan_result(
        replace(results.old_duplicate(), status=Status.KNOWN, suppression="in the baseline: ticket 7"),
        replace(results.crc_mismatch(), status=Status.SUPPRESSED, suppression="disk replaced"),
        results.unknown_start(),
        baseline=BaselineComparison("base.json", 1, [entry], [entry], [entry]),
    )


def read_sarif(result, view=None, name="sarif"):
    document = json.loads(scan_text(name, result, view or RenderOptions()))
    SARIF.validate(document)
    return document["runs"][0]


def read_junit(result, view=None):
    text = scan_text("junit", result, view or RenderOptions()).encode()
    JENKINS.assertValid(lxml.etree.fromstring(text))
    return junitparser.JUnitXml.fromstring(text)


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("case", ["one", "incomplete"])
def test_what_each_format_looks_like(name, case, golden):
    text = scan_text(name, CASES[case](), RenderOptions(run=RUN, exit_code=1))
    # How many checks there are is no part of how a format looks.
    if name == "sarif":
        document = json.loads(text)
        document["runs"][0]["tool"]["driver"]["rules"] = "all checks"
        for entry in document["runs"][0]["results"]:
            assert entry.pop("ruleIndex") == list(CHECKS).index(entry["ruleId"])
        text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    assert text == golden


def test_the_schema_is_the_one_oasis_published():
    digest_of_file = hashlib.sha256(SCHEMA.read_bytes()).hexdigest()
    assert digest_of_file in (SCHEMA.parent / "README.md").read_text(encoding="utf-8")
    assert json.loads(SCHEMA.read_text(encoding="utf-8"))["id"] == sarif.SCHEMA_URI


@pytest.mark.parametrize("name", ["sarif", "sarif-github"])
@pytest.mark.parametrize("case", CASES)
def test_sarif_is_valid(name, case):
    result = CASES[case]()
    run = read_sarif(result, RenderOptions(run=RUN, exit_code=0), name)
    assert [entry["partialFingerprints"] for entry in run["results"]] == [
        {"kauditFinding/v1": finding.fingerprint} for finding in result.findings
    ]
    regions = [entry["locations"][0]["physicalLocation"]["region"] for entry in run["results"] if case != "many"]
    assert all(("startLine" in region) is (name == "sarif-github") for region in regions)


def test_sarif_lists_every_check_with_help_and_says_which_were_off():
    rules = read_sarif(results.scan_result(), RenderOptions(codes=frozenset({"KA102"})))["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(CHECKS)
    assert {rule["id"] for rule in rules if rule["defaultConfiguration"]["enabled"]} == {"KA102"}
    assert all(rule["help"]["text"] and "## What to do" in rule["help"]["markdown"] for rule in rules)
    assert all(len(rule["properties"]["tags"]) <= 20 for rule in rules)


def test_sarif_gives_places_in_bytes_and_in_names():
    entry = read_sarif(results.scan_result(results.old_duplicate()))["results"][0]
    place = entry["locations"][0]
    assert place["physicalLocation"]["artifactLocation"] == {
        "uri": "orders-3/00000000000000000000.log", "uriBaseId": "INPUT_1",
    }  # fmt: skip
    assert place["physicalLocation"]["region"] == {"byteOffset": 42496}
    assert [logical["fullyQualifiedName"] for logical in place["logicalLocations"]] == [
        "orders-3", "orders-3/producer 1000 epoch 0",
    ]  # fmt: skip
    steps = entry["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["importance"] for step in steps] == ["important", "essential", "important"]


@pytest.mark.parametrize(
    ("log_dir", "file", "base"),
    [
        ("/data", "orders-3/0.log", {"uri": "file:///data/"}),
        ("/data/b0", "b0/orders-3/0.log", {"uri": "file:///data/"}),
        ("/data", "0.log", {"uri": "file:///data/orders-3/"}),
        ("s3://bucket/data", "orders-3/0.log", {"uri": "s3://bucket/data/"}),
        ("/", "orders-3/0.log", {"uri": "file:///"}),
        ("/data", "elsewhere/0.log", None),
    ],
)
def test_sarif_paths_are_relative_to_a_stated_place(log_dir, file, base):
    run = read_sarif(results.scan_result(results.old_duplicate(log_dir=log_dir, file=file)))
    assert run["originalUriBaseIds"].get("INPUT_1") == base
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == file


REPOSITORY = "/home/me/broker"


@pytest.mark.parametrize(
    ("log_dir", "file", "path"),
    [
        (f"{REPOSITORY}/capture", "orders-3/0.log", "capture/orders-3/0.log"),
        (f"{REPOSITORY}/capture/b0", "b0/orders-3/0.log", "capture/b0/orders-3/0.log"),
        (f"{REPOSITORY}/capture", "replication-offset-checkpoint", "capture/replication-offset-checkpoint"),
        (f"{REPOSITORY}/a b", "0.log", "a b/orders-3/0.log"),
        (f"{REPOSITORY}/capture", None, "capture/orders-3"),
        (f"{REPOSITORY}-other", "orders-3/0.log", f"{REPOSITORY}-other/orders-3/0.log"),
        ("s3://bucket/data", "orders-3/0.log", "s3://bucket/data/orders-3/0.log"),
    ],
)
def test_code_hosts_get_paths_from_the_root_of_the_repository(log_dir, file, path):
    result = results.scan_result(results.old_duplicate(log_dir=log_dir, file=file))
    view = RenderOptions(repository=REPOSITORY)
    assert f",file={path.replace(':', '%3A')}::" in scan_text("github", result, view)
    assert json.loads(scan_text("gitlab", result, view))[0]["location"]["path"] == path
    run = read_sarif(result, view, "sarif-github")
    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    base = run["originalUriBaseIds"].get(artifact.get("uriBaseId"), {}).get("uri", "")
    assert unquote(base.removeprefix("file://") + artifact["uri"]) == path
    assert artifact.get("uriBaseId") == ("INPUT_1" if path.startswith(("/", "s3:")) else "%SRCROOT%")


def test_a_relative_input_is_found_from_the_working_directory(monkeypatch, tmp_path):
    (tmp_path / "tests").mkdir()
    monkeypatch.chdir(tmp_path / "tests")
    for log_dir, path in (("capture", "tests/capture"), ("./capture", "tests/capture"), ("../capture", "capture")):
        issue = json.loads(
            scan_text(
                "gitlab",
                results.scan_result(results.old_duplicate(log_dir=log_dir)),
                RenderOptions(repository=str(tmp_path)),
            )
        )
        assert issue[0]["location"]["path"] == f"{path}/orders-3/00000000000000000000.log"


@pytest.mark.parametrize(
    "inputs", [["."], ["damaged", "zombie"], ["./zombie/x07-old-epoch-after-expiry-0"], ["SAMPLES/side-files"]]
)
def test_every_path_of_the_samples_exists(inputs, monkeypatch):
    monkeypatch.chdir(SAMPLES)
    given = [path.replace("SAMPLES", str(SAMPLES)) for path in inputs]
    findings = scan(ScanOptions(given, jobs=1), SilentProgress()).findings
    assert findings
    # KA305 is about an index that is not there, and lines of logs alone are about no file of a partition
    of_files = [
        finding for finding in findings if finding.code != "KA305" and CHECKS[finding.code].needs != (LoggedIncident,)
    ]
    paths = {shown_path(finding, str(SAMPLES.parent)) for finding in of_files}
    assert {path for path in paths if not (SAMPLES.parent / str(path)).exists()} == set()
    assert not any(str(path).startswith("/") for path in paths)


def test_sarif_names_both_places_a_finding_is_about():
    (entry,) = read_sarif(results.scan_result(results.old_duplicate()))["results"]
    (previous,) = entry["relatedLocations"]
    assert previous["message"]["text"].startswith("previous: offset 507..511")
    assert previous["physicalLocation"]["region"] == {"byteOffset": 507 * 83}
    side_file = results.old_duplicate(
        file="orders-3/00000000000000000000.txnindex", segment="00000000000000000000.log", evidence={}, position=3
    )
    (entry,) = read_sarif(results.scan_result(side_file))["results"]
    (segment,) = entry["relatedLocations"]
    assert segment["physicalLocation"]["artifactLocation"]["uri"] == "orders-3/00000000000000000000.log"
    copies = {"1": {"offset": 6, "last_offset": 7}, "2": {"offset": 6, "last_offset": 9}}
    (entry,) = read_sarif(results.scan_result(results.old_duplicate(evidence={"copies": copies})))["results"]
    assert [place["message"]["text"] for place in entry["relatedLocations"]] == ["the copy of 2: offset 6..9"]


def test_sarif_gives_a_batch_of_another_segment_no_byte_of_this_one():
    finding = results.old_duplicate(file="orders-3/00000000000000000510.log")
    (entry,) = read_sarif(results.scan_result(finding))["results"]
    previous, offending, following = entry["codeFlows"][0]["threadFlows"][0]["locations"]
    assert "physicalLocation" not in previous["location"]
    assert offending["location"]["physicalLocation"]["region"] == {"byteOffset": 42496}
    assert "physicalLocation" in following["location"]


def test_sarif_says_where_to_read_about_kaudit():
    driver = read_sarif(results.scan_result())["tool"]["driver"]
    assert urlsplit(driver["informationUri"]).scheme
    assert driver["informationUri"] == information_uri()


def test_sarif_is_read_by_sarif_tools(tmp_path):
    path = tmp_path / "scan.sarif"
    path.write_text(scan_text("sarif-github", results.many(), RenderOptions()))
    read = load_sarif_file(str(path))
    assert read.get_distinct_tool_names() == ["kaudit"]
    assert read.get_result_count() == 4
    counted = {
        severity: read.get_report().get_issue_count_for_severity(severity) for severity in ("error", "warning", "note")
    }
    assert counted == {"error": 2, "warning": 1, "note": 1}
    record = next(record for record in read.get_records() if record["Code"].startswith("KA102"))
    assert record["Location"].endswith("orders-3/00000000000000000000.log")
    assert "9 batches after" in record["Description"]


def test_sarif_marks_what_was_accepted():
    entries = {entry["ruleId"]: entry for entry in read_sarif(accepted())["results"]}
    assert {code: entry["baselineState"] for code, entry in entries.items()} == {
        "KA102": "unchanged", "KA001": "new", "KA106": "new",
    }  # fmt: skip
    assert entries["KA102"]["suppressions"][0]["justification"] == "in the baseline: ticket 7"
    assert entries["KA001"]["suppressions"][0]["justification"] == "disk replaced"
    assert "suppressions" not in entries["KA106"]
    assert "baselineState" not in read_sarif(results.many())["results"][0]


def test_no_message_of_sarif_is_a_link_or_a_placeholder():
    finding = results.old_duplicate(message="[a](http://b) {0}")
    text = read_sarif(results.scan_result(finding))["results"][0]["message"]["text"]
    assert text.startswith("old-duplicate: [a] (http://b) {{0}} (orders-3 @ offset 512, producer 1000 epoch 0)")


def test_incomplete_is_said_in_every_format():
    result = results.incomplete()
    run = read_sarif(result)
    assert run["invocations"][0]["executionSuccessful"] is False
    assert any(
        "Permission denied" in note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]
    )
    assert read_junit(result).errors == 2
    assert "::warning title=kaudit%3A incomplete audit::" in scan_text("github", result, RenderOptions())
    assert json.loads(scan_text("gitlab", result, RenderOptions()))[0]["check_name"] == "kaudit-incomplete"
    assert "incomplete: the absence of findings proves nothing" in scan_text("markdown", result, RenderOptions())


def test_junit_has_a_case_per_partition_even_when_all_is_well():
    part = results.scan_result().partitions[0]
    parts = [replace(part, partition=number) for number in range(19)]
    xml = read_junit(results.scan_result(partitions=parts, not_audited=()))
    assert [(suite.name, len(list(suite))) for suite in xml] == [("orders", 19), ("evidence", 1)]
    assert {case.name for suite in xml for case in suite} == {"no findings", "the audit is complete"}
    assert (xml.tests, xml.failures, xml.errors, xml.skipped) == (20, 0, 0, 0)


@pytest.mark.parametrize(
    ("fail_on", "failing"),
    [
        (Severity.ERROR, {"KA102", "KA001"}),
        (Severity.WARNING, {"KA102", "KA001", "KA106"}),
        (Severity.NOTE, {"KA102", "KA001", "KA106", "KA203"}),
        (None, set()),
    ],
)
def test_junit_fails_where_the_exit_code_does(fail_on, failing):
    xml = read_junit(results.many(), RenderOptions(fail_on=fail_on))
    failed = {
        case.name.split()[0] for suite in xml for case in suite for outcome in case.result
        if isinstance(outcome, junitparser.Failure)
    }  # fmt: skip
    assert failed == failing
    assert xml.failures == len(failing)
    bodies = "".join(scan_text("junit", results.many(), RenderOptions(fail_on=fail_on)))
    assert all(finding.fingerprint in bodies for finding in results.many().findings)


def test_junit_says_which_checks_were_not_asked_for():
    xml = read_junit(results.scan_result(), RenderOptions(codes=frozenset({"KA102"})))
    (case,) = [case for suite in xml for case in suite if case.name.endswith("not selected")]
    assert case.result[0].message.split(", ") == [code for code in CHECKS if code != "KA102"]


def test_junit_distinguishes_replicas():
    part = results.scan_result().partitions[0]
    result = results.scan_result(results.old_duplicate(), partitions=[part, replace(part, replica="2")])
    cases = [(case.classname, case.name) for suite in read_junit(result) if suite.name == "orders" for case in suite]
    assert cases == [("kaudit.orders-3 on 1", "KA102 old-duplicate"), ("kaudit.orders-3 on 2", "no findings")]


def test_github_escapes_as_documented():
    finding = results.old_duplicate(message="50% of a::b,c", file="a:b,c%/0.log")
    lines = scan_text("github", results.scan_result(finding), RenderOptions()).splitlines()
    assert lines[0].startswith("::error title=kaudit KA102 old-duplicate,file=a%3Ab%2Cc%25/0.log::50%25 of a::b,c (")


def test_no_line_of_a_hostile_log_is_a_workflow_command():
    finding = results.old_duplicate(topic="t\n::stop-commands::x", message="m\r\n::error::x\n##[error]x")
    lines = scan_text("github", results.scan_result(finding), RenderOptions()).splitlines()
    assert [line.split(" ", 1)[0] for line in lines] == ["::error", "kaudit:", "kaudit:"]


def test_github_annotates_ten_a_level_and_says_how_many_more():
    many = [results.old_duplicate(offset=n) for n in range(12)] + [results.unknown_start()]
    lines = scan_text("github", results.scan_result(*many), RenderOptions()).splitlines()
    assert sum(line.startswith("::error") for line in lines) == 10
    assert sum(line.startswith("::warning") for line in lines) == 1
    assert "kaudit: 2 more findings, not listed here; see the step summary or --output-format json" in lines
    assert (
        sum(
            line.startswith("::warning")
            for line in scan_text(
                "github",
                results.incomplete(*[replace(results.unknown_start(), offset=n) for n in range(12)]),
                RenderOptions(),
            ).splitlines()
        )
        == 10
    )


def test_gitlab_has_what_it_needs_and_no_fingerprint_twice():
    other = results.old_duplicate(replica="2", log_dir="/data2")
    issues = json.loads(
        scan_text("gitlab", results.scan_result(results.old_duplicate(), other, results.fencing()), RenderOptions())
    )
    assert len({issue["fingerprint"] for issue in issues}) == len(issues) == 2
    assert {issue["severity"] for issue in issues} == {"critical", "info"}
    assert all(issue["location"]["path"] and issue["location"]["lines"]["begin"] for issue in issues)
    assert issues[0]["description"].endswith(f"also in 1 other replica. Impact: {COST}")
    assert scan_text("gitlab", results.scan_result(), RenderOptions()) == "[]\n"
    assert [issue["check_name"] for issue in json.loads(scan_text("gitlab", accepted(), RenderOptions()))] == ["KA106"]


def test_markdown_is_a_table_whatever_the_topic_is_called():
    finding = results.old_duplicate(topic="a|b`c``d", message="<b>|x|</b> @you [l](http://e)")
    row = scan_text("markdown", results.scan_result(finding), RenderOptions()).splitlines()[7]
    assert len(re.findall(r"(?<!\\)\|", row)) == 6
    assert "``` a\\|b`c``d-3@512..516 ```" in row
    assert "&lt;b&gt;\\|x\\|&lt;/b&gt; &#64;you \\[l\\](http://e)" in row


def test_people_are_shown_only_the_number_of_accepted_findings():
    for name in ("table", "concise", "github", "markdown"):
        text = scan_text(name, accepted(), RenderOptions())
        assert "KA106" in text, name
        assert "KA102 " not in text, name
    for name in ("table", "markdown"):
        text = scan_text(name, accepted(), RenderOptions())
        assert "0123456789abcdef" in text
        assert "out of scope" in text
        assert "(1 warning); 1 finding in the baseline; 1 finding suppressed by the configuration" in text


LIMITS = [
    ("sarif", sarif, "RESULTS_SHOWN"),
    ("junit", junit, "FINDINGS_PER_CASE"),
    ("github", github, "ANNOTATIONS_PER_LEVEL"),
    ("gitlab", gitlab, "ISSUES_SHOWN"),
    ("markdown", markdown, "INCIDENTS_SHOWN"),
]


@pytest.mark.parametrize(("name", "module", "limit"), LIMITS, ids=[limit[0] for limit in LIMITS])
def test_a_limit_is_never_silent(monkeypatch, name, module, limit):
    monkeypatch.setattr(module, limit, 3)
    text = scan_text(name, results.scan_result(*[results.old_duplicate(offset=n) for n in range(5)]), RenderOptions())
    assert "2 more findings, not listed here" in text


@pytest.mark.parametrize("name", [*NEW, "table", "concise"])
def test_findings_left_out_of_the_result_are_counted(name):
    whole = results.scan_result(results.old_duplicate())
    text = scan_text(name, replace(whole, summary=replace(whole.summary, omitted=7)), RenderOptions())
    assert "7 more findings, not listed here" in text
    for machine in ("json", "jsonl"):
        assert '"omitted": 7' in scan_text(
            machine, replace(whole, summary=replace(whole.summary, omitted=7)), RenderOptions()
        )


def test_the_most_severe_are_kept_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(sarif, "RESULTS_SHOWN", 2)
    assert {entry["ruleId"] for entry in read_sarif(results.many())["results"]} == {"KA102", "KA001"}
    monkeypatch.setattr(sarif, "RESULTS_SHOWN", 1)
    assert [entry["ruleId"] for entry in read_sarif(accepted())["results"]] == ["KA106"]


def test_many_healthy_partitions_are_counted_not_listed(monkeypatch):
    monkeypatch.setattr(junit, "HEALTHY_CASES", 2)
    part = results.scan_result().partitions[0]
    xml = read_junit(results.scan_result(partitions=[replace(part, partition=n) for n in range(5)]))
    assert [suite.name for suite in xml] == ["orders", "more partitions", "evidence"]
    assert len(list(next(iter(xml)))) == 2
    assert "3 more partitions without findings" in [case.name for suite in xml for case in suite]


def test_paths_not_audited_are_capped_too(monkeypatch):
    monkeypatch.setattr(junit, "EVIDENCE_CASES", 2)
    monkeypatch.setattr(sarif, "_NOTIFICATIONS_SHOWN", 2)
    assert "4 more paths not checked" in scan_text("junit", results.incomplete(), RenderOptions())
    assert "4 more paths not checked" in scan_text("sarif", results.incomplete(), RenderOptions())


@pytest.mark.parametrize(("number", "left"), [(2, None), (3, "1 more path"), (4, "2 more paths")])
def test_gitlab_lists_some_paths_not_read_and_counts_the_rest_under_the_input(monkeypatch, number, left):
    monkeypatch.setattr(gitlab, "_UNREAD_SHOWN", 2)
    unread = [NotAudited(f"/data/{at}.log", "Permission denied", unreadable=True) for at in range(number)]
    unread.append(NotAudited("/data/old", "magic 1: no producer fields"))
    result = replace(results.scan_result(), inputs=["/data"], incomplete=True, not_audited=unread)
    issues = json.loads(scan_text("gitlab", result, RenderOptions()))
    expected = [(f"/data/{at}.log", "the audit is incomplete: Permission denied") for at in range(2)]
    if left is not None:
        expected.append(("/data", f"{left} could not be audited"))
    assert [(issue["location"]["path"], issue["description"]) for issue in issues] == expected
    assert {(issue["check_name"], issue["severity"]) for issue in issues} == {("kaudit-incomplete", "major")}
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)


@pytest.mark.parametrize(("number", "left"), [(20, None), (21, 1), (1020, "1,000")])
def test_markdown_lists_twenty_paths_and_counts_the_rest(number, left):
    unread = [NotAudited(f"/data/{at}.log", "Permission denied", unreadable=True) for at in range(number)]
    result = replace(results.scan_result(), incomplete=True, not_audited=unread)
    _, _, rest = scan_text("markdown", result, RenderOptions()).partition("Could not be read:\n\n")
    lines = [line for line in rest.splitlines() if line.startswith("- ")]
    expected = [f"- `/data/{at}.log`: Permission denied" for at in range(20)]
    assert lines == expected + ([] if left is None else [f"- … and {left} more"])
