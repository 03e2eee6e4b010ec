"""`kaudit baseline` and `kaudit report`: accept what is known, be red on what is new, render again without reading logs."""

import io
import json
import sys
from collections import Counter

import pytest

from kaudit.report.formats import FORMATS
from kaudit.report.render_options import RenderOptions
from kaudit.results.saved_scan import SavedScanError, read_saved
from tests import scan_results as results
from tests.html.page_reader import Page


@pytest.fixture
def known(tmp_path):
    return tmp_path / "known.json"


def entries(file):
    return json.loads(file.read_text())["entries"]


def test_green_on_known_red_on_new(engine, kaudit, known):
    assert kaudit("baseline", "create", "--baseline", known, "--reason", "ticket 7", "/data").code == 0
    assert {entry["code"]: entry["reason"] for entry in entries(known)} == dict.fromkeys(
        ("KA001", "KA102", "KA106"), "ticket 7"
    )
    scan = kaudit("scan", "--baseline", known, "/data")
    assert scan.code == 0
    assert "no new findings" not in scan.out  # the note is new, and healthy
    assert "; 3 findings in the baseline" in scan.out
    assert "(1 new, 3 in the baseline)" in scan.err
    engine.scan_result = results.scan_result(*results.many().findings, results.old_duplicate(offset=700))
    scan = kaudit("scan", "--baseline", known, "/data")
    assert scan.code == 1
    assert scan.out.count("error[KA102]") == 1
    assert "@ offset 700" in scan.out


@pytest.mark.parametrize("form", FORMATS)
def test_the_exit_code_is_the_same_in_every_format(engine, kaudit, known, tmp_path, form):
    form = f"{form}:{tmp_path}/result" if FORMATS[form].directory else form
    kaudit("baseline", "create", "--baseline", known, "/data")
    assert kaudit("scan", "--baseline", known, "/data", "--output-format", form).code == 0
    assert kaudit("scan", "/data", "--output-format", form).code == 1
    assert kaudit("scan", "/data", "--output-format", form, "--max-findings", "0").code == 1


def test_create_replaces_nothing_unasked(engine, kaudit, known):
    known.write_text("mine")
    outcome = kaudit("baseline", "create", "--baseline", known, "/data")
    assert (outcome.code, known.read_text()) == (2, "mine")
    assert "'kaudit baseline update' adds to it" in outcome.err
    assert kaudit("baseline", "create", "--force", "--baseline", known, "/data").code == 0
    assert len(entries(known)) == 3


def test_notes_come_in_only_when_asked_for(engine, kaudit, known):
    kaudit("baseline", "create", "-v", "--select", "KA203", "--baseline", known, "/data")
    assert [entry["code"] for entry in entries(known)] == ["KA203"]


def test_update_adds_and_keeps_prune_removes(engine, kaudit, known):
    engine.scan_result = results.scan_result(results.old_duplicate())
    kaudit("baseline", "create", "--baseline", known, "--reason", "old", "--expires", "2099-12-31", "/data")
    engine.scan_result = results.scan_result(results.crc_mismatch())
    outcome = kaudit("baseline", "update", "--baseline", known, "--reason", "disk", "/data")
    assert outcome.err == f"{known}: 2 entries: 1 added, 0 removed\n"
    assert {entry["code"]: (entry["reason"], entry.get("expires")) for entry in entries(known)} == {
        "KA102": ("old", "2099-12-31"), "KA001": ("disk", None),
    }  # fmt: skip
    assert "stale, no longer found" in kaudit("scan", "--baseline", known, "/data").out
    outcome = kaudit("baseline", "prune", "--baseline", known, "/data")
    assert outcome.err == f"{known}: 1 entry: 0 added, 1 removed\n"
    assert [entry["code"] for entry in entries(known)] == ["KA001"]


def test_prune_keeps_what_it_could_not_see(engine, kaudit, known):
    kaudit("baseline", "create", "--baseline", known, "/data")
    before = known.read_text()
    engine.scan_result = results.incomplete()
    assert kaudit("baseline", "prune", "--baseline", known, "/data").code == 4
    engine.scan_result = results.scan_result()
    assert kaudit("baseline", "prune", "--select", "KA99", "--baseline", known, "/data").code == 2
    assert kaudit("baseline", "prune", "--select", "KA203", "--baseline", known, "/data").code == 0
    assert known.read_text() == before


@pytest.mark.parametrize("command", [("scan",), ("timeline",), ("baseline", "update"), ("baseline", "prune")])
def test_a_baseline_that_was_named_must_be_there(engine, kaudit, known, command):
    outcome = kaudit(*command, "--baseline", known, "/data")
    assert outcome.code == 2
    assert "no such file ('kaudit baseline create' writes one)" in outcome.err
    assert engine.options is None


def test_an_expired_entry_fails_again(engine, kaudit, known):
    kaudit("baseline", "create", "--baseline", known, "--expires", "2020-01-01", "/data")
    scan = kaudit("scan", "--baseline", known, "/data")
    assert scan.code == 1
    assert "expired, counted as new again" in scan.out
    assert kaudit("baseline", "create", "--force", "--baseline", known, "--expires", "soon", "/data").code == 2


def test_a_baseline_is_never_written_into_what_is_audited(engine, kaudit, tmp_path):
    outcome = kaudit("baseline", "create", "--baseline", tmp_path / "known.json", tmp_path)
    assert outcome.code == 2
    assert "where kaudit never writes" in outcome.err


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("KA102", "write CODE=LEVEL"),
        ("KA102=fatal", "there is no level fatal; there are note, warning, error"),
        ("KA102=eror", "did you mean error?"),
        ("KA99=note", "no check has this code"),
    ],
)
def test_severities_that_cannot_be(engine, kaudit, option, message):
    outcome = kaudit("scan", "/data", "--severity", option)
    assert (outcome.code, message in outcome.err) == (2, True)


def test_severity_decides_the_exit_code(engine, kaudit):
    assert kaudit("scan", "/data", "--severity", "KA0=note,KA1=warning").code == 0
    assert kaudit("scan", "/data", "--severity", "KA0=note", "--severity", "KA106=error").code == 1


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "html"])
@pytest.mark.parametrize("make", [results.many, results.incomplete, results.hostile, results.scan_result])
def test_a_saved_scan_renders_as_the_scan_did(engine, kaudit, tmp_path, form, make):
    engine.scan_result = make()
    saved = tmp_path / "saved.json"
    scan = kaudit("scan", "/data", "--output-format", form, "--output-format", f"json:{saved}", "-v", "--reproducible")
    report = kaudit("report", saved, "--output-format", form, "-v", "--reproducible")
    assert (report.code, report.out) == (scan.code, scan.out)


@pytest.mark.parametrize("make", [results.many, results.incomplete, results.hostile, results.scan_result])
def test_the_page_of_a_saved_scan_says_that_only_the_logs_have_the_runs(engine, kaudit, tmp_path, make):
    engine.scan_result = make()
    saved = tmp_path / "saved.json"
    scan = kaudit("scan", "/data", "--output-format", "html", "--output-format", f"json:{saved}", "--reproducible")
    report = kaudit("report", saved, "--output-format", "html", "--reproducible")
    before, after = Page(scan.out).model, Page(report.out).model

    runs = {"what": "runs, markers and transactions", "count": None}
    missing = [entry for entry in after["overview"]["left_out"] if entry not in before["overview"]["left_out"]]
    if after["partitions"]:
        assert [{name: entry[name] for name in runs} for entry in missing] == [runs]
        assert missing[0]["how_to_see"].startswith("kaudit scan --output-format html ")
        after["overview"]["left_out"].remove(missing[0])
    assert after == before


def test_a_saved_scan_keeps_the_run_it_came_from(engine, kaudit, tmp_path):
    saved = tmp_path / "saved.json"
    kaudit("scan", "/data", "--output-format", f"json:{saved}")
    assert kaudit("report", saved, "--output-format", "json").out == saved.read_text()
    assert "run" not in json.loads(kaudit("report", saved, "--output-format", "json", "--reproducible").out)


def test_a_saved_scan_is_held_against_a_baseline(engine, kaudit, tmp_path, known):
    saved = tmp_path / "saved.json"
    kaudit("scan", "/data", "--output-format", f"json:{saved}")
    engine.scan_result = None
    assert kaudit("baseline", "create", "--baseline", known, saved).code == 0
    assert kaudit("report", saved, "--baseline", known).code == 0
    assert kaudit("report", saved, "--ignore", "KA0,KA102").code == 0
    assert kaudit("report", saved).code == 1


def test_a_saved_scan_of_nothing_is_still_nothing(kaudit, tmp_path):
    (tmp_path / "logs").mkdir()
    saved = tmp_path / "saved.json"
    assert kaudit("scan", tmp_path / "logs", "--output-format", f"json:{saved}").code == 3
    assert kaudit("report", saved, "--output-format", "sarif").code == 3


def test_a_saved_scan_may_come_from_stdin(engine, kaudit, monkeypatch):
    text = kaudit("scan", "/data", "--output-format", "json").out
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert kaudit("report", "-", "--output-format", "concise").out.startswith("orders-3/")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no", "not JSON"),
        ('{"schema": "kaudit.timeline/1", "findings": []}', "not a saved kaudit scan"),
        (
            '{"schema": "kaudit.scan/2\\u202e", "findings": []}',
            r"saved by another version of kaudit: a kaudit.scan/2\u202e document, this version reads kaudit.scan/1",
        ),
        ('{"schema": "kaudit.scan/1", "findings": [{}]}', "damaged kaudit.scan/1 document"),
    ],
)
def test_what_is_not_a_saved_scan_is_reported(kaudit, tmp_path, text, message):
    saved = tmp_path / "saved.json"
    saved.write_text(text)
    outcome = kaudit("report", saved)
    assert (outcome.code, outcome.out, message in outcome.err) == (2, "", True)
    assert kaudit("report", tmp_path / "none.json").code == 2


def places(value, path=()):
    """Every place in a document; of a list the first entry stands for all."""
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from places(entry, (*path, key))


def test_a_saved_scan_with_anything_anywhere_is_refused_or_rendered(engine, kaudit):
    text = kaudit("scan", "/data", "--output-format", "json").out
    outcomes: Counter[str] = Counter()
    for path in places(json.loads(text)):
        for odd in (None, "x", 7, True, -1.5, [], [1], {}, {"a": 1}):
            document = json.loads(text)
            place = document
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = odd
            try:
                saved = read_saved(json.dumps(document))
            except SavedScanError:
                outcomes["refused"] += 1
                continue
            for name in ("table", "json", "junit"):
                assert FORMATS[name].render("scan", saved.result, RenderOptions(run=saved.run)), (path, odd, name)
            outcomes["rendered"] += 1
    assert min(outcomes["refused"], outcomes["rendered"]) > 100


def test_the_step_summary_is_written_for_github_only_and_appended(engine, kaudit, tmp_path, monkeypatch):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    kaudit("scan", "/data", "--output-format", "markdown")
    assert summary.read_text() == "before\n"
    kaudit("scan", "/data", "--output-format", "github")
    assert summary.read_text().startswith("before\n## kaudit\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    outcome = kaudit("scan", "/data", "--output-format", "github")
    assert (outcome.code, "$GITHUB_STEP_SUMMARY cannot be written" in outcome.err) == (1, True)


@pytest.mark.parametrize("group", ["baseline", "config"])
def test_a_group_alone_is_usage(kaudit, group):
    outcome = kaudit(group)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"kaudit {group} --help" in outcome.err
