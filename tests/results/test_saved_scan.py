"""Saved scans read back: what a document must have, and what is said of one that has not."""

import json

import pytest
from msgspec.structs import replace

from kaudit.model.audit_clock import AuditClock, ClockSource
from kaudit.report.render_options import RenderOptions
from kaudit.results.saved_scan import SavedScanError, read_saved
from tests import scan_results as results
from tests.rendered import scan_text


def document(**changes):
    return json.loads(scan_text("json", results.in_incidents(), RenderOptions())) | changes


def refused(text):
    with pytest.raises(SavedScanError) as raised:
        read_saved(text if isinstance(text, str) else json.dumps(text))
    assert "\n" not in str(raised.value)
    assert "\x1b" not in str(raised.value)
    return str(raised.value)


def test_a_saved_scan_is_the_scan():
    saved, scan = read_saved(json.dumps(document())).result, results.in_incidents()
    assert [found.fingerprint for found in saved.findings] == [found.fingerprint for found in scan.findings]
    assert (saved.summary, saved.partitions, saved.not_audited) == (scan.summary, scan.partitions, scan.not_audited)


@pytest.mark.parametrize(
    "clock",
    [
        None,
        AuditClock(1_700_000_000_123, ClockSource.BROKERS, 1_700_000_000_456),
        AuditClock(0, ClockSource.FILES, -1, 5),
        AuditClock(10**17, ClockSource.CLIENTS, 10**17),  # a time that no calendar reaches
    ],
)
def test_the_clock_is_read_back(clock):
    whole = scan_text("json", replace(results.in_incidents(), clock=clock), RenderOptions())
    assert read_saved(whole).result.clock == clock


def test_a_clock_that_is_none_is_refused():
    for clock in ({"now_timestamp": "soon"}, {"now_timestamp": 1, "source": "sun", "newest_timestamp": 1}, 7, [None]):
        assert "damaged" in refused(document(clock=clock))


@pytest.mark.parametrize("name", ["code", "name", "fingerprint", "incident"])
@pytest.mark.parametrize("value", ["KA1 02", "", "x\n", "<b>", "x\x1b[2J", "\u202e"])
def test_codes_names_and_fingerprints_are_letters_digits_and_hyphens(name, value):
    """They are written into pages and annotations as they are."""
    whole = document()
    whole["findings"][1][name] = value
    if (name, value) == ("incident", ""):
        assert read_saved(json.dumps(whole)).result.findings
    else:
        assert "letters, digits and hyphens" in refused(whole)


def test_a_finding_alone_needs_no_incident():
    whole = document()
    whole["findings"][0]["incident"] = None
    assert read_saved(json.dumps(whole)).result.findings[0].incident is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a saved kaudit scan (a kaudit.scan/1 document)"),
        ({"schema": "kaudit.scan/1"}, "not a saved kaudit scan"),
        ({"schema": "kaudit.timeline/1", "findings": []}, "not a saved kaudit scan"),
        ({"schema": 1, "findings": []}, "not a saved kaudit scan"),
        ({"schema": "kaudit.scan/2"}, "a kaudit.scan/2 document, this version reads kaudit.scan/1"),
        ({"schema": "kaudit.scan/\x1b2"}, "saved by another version"),
        ({"schema": "kaudit.scan/1", "findings": []}, "damaged kaudit.scan/1 document"),
        ({"schema": "kaudit.scan/1", "findings": [1]}, "damaged kaudit.scan/1 document"),
        ({"schema": "kaudit.scan/1", "findings": None}, "damaged kaudit.scan/1 document"),
    ],
)
def test_what_is_no_saved_scan(text, said):
    assert said in refused(text)


@pytest.mark.parametrize("name", ["summary", "partitions", "findings", "incomplete", "broker_version"])
def test_what_a_saved_scan_must_have(name):
    whole = document()
    del whole[name]
    assert ("not a saved" if name == "findings" else "damaged") in refused(whole)
