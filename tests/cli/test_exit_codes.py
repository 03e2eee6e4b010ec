"""Exit codes: the table of the contract, the same for every format and both commands."""

import errno
import json
import sys

import pytest

from kaudit.cli import app
from kaudit.errors import NothingToAuditError, UnreadableInputError, UsageError
from kaudit.model.severity import Status
from kaudit.report.formats import FORMATS
from tests import scan_results as results

ERROR = results.old_duplicate()
WARNING = results.unknown_start()
NOTE = results.fencing()

TABLE = [
    # findings, unreadable file, options, code
    ([], False, [], 0),
    ([NOTE], False, [], 0),
    ([WARNING], False, [], 0),
    ([ERROR], False, [], 1),
    ([ERROR, WARNING, NOTE], False, [], 1),
    ([WARNING], False, ["--fail-on", "warning"], 1),
    ([NOTE], False, ["--fail-on", "warning"], 0),
    ([NOTE], False, ["--fail-on", "note"], 1),
    ([ERROR], False, ["--fail-on", "never"], 0),
    ([ERROR], False, ["--exit-zero"], 0),
    ([], True, [], 4),
    ([WARNING], True, [], 4),
    ([ERROR], True, [], 1),
    ([ERROR], True, ["--fail-on", "never"], 4),
    ([ERROR], True, ["--exit-zero"], 0),
    ([], True, ["--exit-zero"], 4),
    ([ERROR], False, ["--ignore", "KA102"], 0),
    ([ERROR], False, ["--select", "KA0"], 0),
    ([ERROR], True, ["--ignore", "KA1"], 4),
]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("findings", "unreadable", "options", "code"), TABLE)
def test_scan(engine, kaudit, tmp_path, findings, unreadable, options, code, form):
    engine.scan_result = (results.incomplete if unreadable else results.scan_result)(*findings)
    place = f"{form}:{tmp_path}/result" if FORMATS[form].directory else form
    assert kaudit("scan", "/data", "--output-format", place, *options).code == code


def test_timeline_has_the_codes_of_its_scan(engine, kaudit):
    assert kaudit("timeline", "/data").code == 1
    assert kaudit("timeline", "/data", "--fail-on", "never").code == 0
    assert kaudit("timeline", "/data", "--ignore", "KA102,KA001").code == 0


def test_known_findings_do_not_fail(engine, kaudit):
    engine.scan_result = results.scan_result(results.old_duplicate(status=Status.KNOWN))
    assert kaudit("scan", "/data").code == 0


@pytest.mark.parametrize("command", ["scan", "timeline"])
def test_errors_of_the_engine(engine, kaudit, command):
    engine.error = NothingToAuditError("no segment under /data")
    outcome = kaudit(command, "/data")
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err == "kaudit: no segment under /data\n"
    engine.error = UsageError("/date: no such path; did you mean /data?")
    outcome = kaudit(command, "/date")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "kaudit: /date: no such path; did you mean /data?\n"


def test_an_internal_error_is_one_paragraph_and_its_own_code(engine, kaudit, monkeypatch):
    engine.error = ZeroDivisionError("one over \x1b[31mnone")
    outcome = kaudit("scan", "/data")
    assert (outcome.code, outcome.out) == (70, "")
    assert r"internal error: ZeroDivisionError: one over \x1b[31mnone" in outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.err.count("\n") == 1
    monkeypatch.setenv("KAUDIT_DEBUG", "1")
    assert "Traceback" in kaudit("scan", "/data").err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/out\x1b[2J"), 2, r"/out\x1b[2J: No space left on device"),
        (OSError(errno.EACCES, "Permission denied"), 2, "Permission denied"),
        (
            OSError(errno.EIO, "Input/output error", "/out"),
            70,
            "internal error: OSError: [Errno 5] Input/output error: '/out'.",
        ),
        (UnreadableInputError("/data: Permission denied"), 4, "/data: Permission denied"),
    ],
)
def test_what_no_program_can_do_anything_about_is_no_internal_error(engine, kaudit, monkeypatch, error, code, said):
    discarded: list[bool] = []
    monkeypatch.setattr(app, "_discard_stdout", lambda: discarded.append(True))
    engine.error = error
    outcome = kaudit("scan", "/data")
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith(f"kaudit: {said}")
    assert outcome.err.count("\n") == 1
    assert discarded == ([True] if code == 2 else [])


def test_nothing_more_is_written_to_a_stdout_that_refuses(monkeypatch, tmp_path):
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        app._discard_stdout()
        out.write("more")
        out.flush()
        monkeypatch.undo()
    assert (tmp_path / "out").read_text() == ""


@pytest.mark.parametrize(("error", "code"), [(NothingToAuditError, 3), (UnreadableInputError, 4)])
def test_the_document_of_nothing_has_the_code_of_the_run(engine, kaudit, error, code):
    engine.error = error("nothing here")
    outcome = kaudit("scan", "/data", "--output-format", "sarif")
    (invocation,) = json.loads(outcome.out)["runs"][0]["invocations"]
    assert (outcome.code, invocation["exitCode"]) == (code, code)
    assert json.loads(kaudit("producers", "/data", "--output-format", "json").out)["producers"] == []


def test_nothing_to_audit_is_still_a_document_for_programs(engine, kaudit):
    engine.error = NothingToAuditError("no segment under /data")
    outcome = kaudit("scan", "/data", "--output-format", "json")
    document = json.loads(outcome.out)
    assert outcome.code == 3
    assert document["incomplete"] is True
    assert document["not_audited"] == [
        {"path": "/data", "reason": "no segment under /data", "unreadable": False, "asked_for": False}
    ]
    lines = kaudit("timeline", "/data", "--output-format", "jsonl").out.splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["summary"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scn"], "Did you mean 'scan'?"),
        (["scan"], "Missing argument 'PATH'"),
        (["scan", "--selct", "KA1", "/data"], "--select"),
        (["scan", "/data", "--select", "KA99"], "--select KA99: no check has this code, prefix or name"),
        (["scan", "/data", "--select", "duplicate-bach"], "did you mean duplicate-batch or"),
        (["scan", "/data", "--ignore", "KA1O1"], "did you mean KA101"),
        (["scan", "/data", "--output-format", "jsno"], "did you mean json"),
        (["scan", "/data", "--output-format", "xyz"], "there are table, concise, json, jsonl"),
        (["scan", "/data", "--output-format", "json:"], "no file after the colon"),
        (["scan", "/data", "--fail-on", "errors"], "'error', 'warning', 'note', 'never'"),
        (["scan", "/data", "--since", "yesterday"], "--since yesterday: not a time"),
        (["scan", "/data", "--since", "2026-11-21", "--until", "2026-11-20"], "later than --until"),
        (["scan", "/data", "--broker-version", "2.0.9"], "--broker-version 2.0.9: unknown"),
        (["scan", "/data", "--broker-version", "new"], "nearest known: "),
        (["scan", "/data", "--jobs", "0"], "--jobs"),
        (["scan", "/data", "--partition", "-1"], "--partition"),
        (["scan", "/data", "--batches"], "--batches needs --output-format parquet"),
        (["scan", "/data", "--digests", "--depth", "headers"], "--digests needs CRCs that were checked"),
        (["scan", "/data", "--master", "local"], "--master and --spark-conf need --engine spark"),
        (["scan", "/data", "--spark-conf", "a=b"], "--master and --spark-conf need --engine spark"),
        (["inspect", "/data", "--at", "0", "--records"], "--at shows one header: it goes with neither"),
        (["inspect", "/data", "--at", "0", "--around", "0"], "--at shows one header: it goes with neither"),
        (["inspect", "/data", "--since", "2026-11-21", "--until", "2026-11-20"], "later than --until"),
        (["inspect", "/data", "--output-format", "jsno"], "did you mean json"),
        (["inspect", "/data", "--output-format", "xyz"], "there are table, json, jsonl, parquet"),
        (["diff", "/a"], "diff needs two or more directories"),
        (["diff", "/a", "/b", "--name", "/a"], "--name /a: write NAME=DIR, such as b1=/a"),
        (["diff", "/a", "/b", "--name", "=/a"], "--name =/a: write NAME=DIR"),
        (["diff", "/a", "/b", "--name", "x="], "--name x=: write NAME=DIR"),
        (["diff", "/a", "/b", "--name", "x=/c"], "--name x=/c: /c is not among the directories"),
        (["diff", "/a", "/b", "--name", "x=/a", "--name", "y=/a"], "--name y=/a: /a has the name x already"),
        (["replay", "a", "--topic", "t"], "--topic, --partition and --memory belong to --on DIR"),
        (["replay", "a", "--partition", "0"], "--topic, --partition and --memory belong to --on DIR"),
        (["replay", "a", "--memory", "full"], "--topic, --partition and --memory belong to --on DIR"),
        (["replay", "a", "--on", "samples", "--topic", "t"], "--on needs --topic and --partition"),
        (["replay", "a", "--on", "samples", "--partition", "0"], "--on needs --topic and --partition"),
        (["replay"], "ATTEMPTS.jsonl is missing; - reads stdin"),
        (["spark-bundle", "-o", "/dev/null"], "--output /dev/null: is not a file"),
        (["explain", "duplicate-bach"], "did you mean duplicate-batch"),
        (["explain", "KA1O1"], "did you mean KA101"),
        (["explain", "KA101", "--output-format", "yaml"], "'text', 'json'"),
        (["checks", "now"], "unexpected extra argument"),
    ],
)
def test_usage_errors_say_what_to_type(engine, kaudit, arguments, message):
    outcome = kaudit(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert "Traceback" not in outcome.err


BEYOND = str(2**63)  # offsets, ids and times of a log have 64 bits


@pytest.mark.parametrize("number", [BEYOND, "9" * 5000])
@pytest.mark.parametrize(
    ("command", "option"),
    [
        *(("scan", option) for option in ("--producer-id", "--log-start-offset", "--now", "--since")),
        *(("inspect", option) for option in ("--producer-id", "--leader-epoch", "--producer-epoch", "--offset")),
    ],
)
def test_numbers_no_log_can_hold_are_refused(kaudit, tmp_path, command, option, number):
    outcome = kaudit(command, option, number, tmp_path)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert option in outcome.err
