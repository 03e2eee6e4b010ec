"""One finding of a real log, in every format, from two replicas, by both engines: everywhere the same fingerprint."""

import json
import re
import shutil

import junitparser
import pytest

from kaudit.report.render_options import RenderOptions
from tests.rendered import scan_text

LOGS = ("s29d-late-write-after-abort-0", "__transaction_state-0", "__transaction_state-1")


@pytest.fixture
def replicas(evidence, tmp_path):
    """Two brokers' copies of one partition, the second under another path and with the log rolled at offset 2."""
    source = evidence.oracle("2.0.1", "logdir") / "main"
    for broker in ("b1", "b2"):
        for name in LOGS:
            shutil.copytree(source / name, tmp_path / broker / "data" / name)
    first = tmp_path / "b2" / "data" / LOGS[0] / "00000000000000000000.log"
    whole = first.read_bytes()
    first.write_bytes(whole[:157])
    first.with_name("00000000000000000002.log").write_bytes(whole[157:])
    for stale in (*first.parent.glob("*.index"), *first.parent.glob("*.timeindex")):
        stale.unlink()  # they belong to the log before it was rolled
    return tmp_path / "b1" / "data", tmp_path / "b2" / "data"


def error_fingerprints(name, result):
    """The fingerprints of errors that a format shows."""
    text = scan_text(name, result, RenderOptions())
    if name == "json":
        return {f["fingerprint"] for f in json.loads(text)["findings"] if f["severity"] == "error"}
    if name == "sarif":
        entries = json.loads(text)["runs"][0]["results"]
        return {entry["partialFingerprints"]["kauditFinding/v1"] for entry in entries if entry["level"] == "error"}
    if name == "gitlab":
        return {issue["fingerprint"] for issue in json.loads(text) if issue["severity"] == "critical"}
    if name == "junit":
        cases = [case for suite in junitparser.JUnitXml.fromstring(text.encode()) for case in suite]
        bodies = "".join(
            outcome.text for case in cases for outcome in case.result if isinstance(outcome, junitparser.Failure)
        )
        return set(re.findall(r"fingerprint ([0-9a-f]{16})", bodies))
    return set(re.findall(r"\b[0-9a-f]{16}\b", text))


NAMES = ("json", "sarif", "junit", "gitlab", "github", "concise", "markdown")


def test_one_fingerprint_in_every_format_on_every_replica_and_engine(engine, replicas):
    one, other, both = (
        engine.scan(*paths, broker_version="2.0.1") for paths in ((replicas[0],), (replicas[1],), replicas)
    )
    expected = {finding.fingerprint for finding in one.findings if finding.severity.value == "error"}
    assert [finding.code for finding in one.findings if finding.severity.value == "error"] == ["KA301", "KA304"]
    for name in NAMES:
        assert [error_fingerprints(name, result) for result in (one, other, both)] == [expected] * 3, name


def test_the_replicas_really_differ(local, replicas):
    one, other = ({(f.file, f.position) for f in local.scan(replica).findings} for replica in replicas)
    assert one != other


def test_the_order_of_the_inputs_does_not_matter(engine, replicas):
    def whole(*paths):
        document = json.loads(scan_text("json", engine.scan(*paths), RenderOptions()))
        # commands name the inputs in the order they were given
        return [{**finding, "next": None} for finding in document["findings"]]

    assert whole(*replicas) == whole(*reversed(replicas))
