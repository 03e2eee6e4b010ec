"""Commands over logs that real brokers wrote: engine, formats and exit codes together."""

import json

import pytest

from kaudit.checks.registry import CHECKS
from kaudit.report.formats import FORMATS

TEXTS = [name for name, form in FORMATS.items() if not form.directory]


@pytest.mark.parametrize("form", TEXTS)
def test_a_log_with_findings_fails_in_every_format(kaudit, evidence, form):
    assert kaudit("scan", evidence.oracle("2.0.1", "logdir"), "--output-format", form).code == 1


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("command", ["scan", "timeline"])
def test_a_healthy_log_passes_in_every_format(kaudit, evidence, command, form):
    logs = evidence.capture("unknown-pid-2.0.1") / "logdirs" / "b0"
    assert kaudit(command, logs, "--output-format", form).code == 0


@pytest.mark.parametrize("command", ["scan", "timeline"])
def test_reproducible_output_is_the_same_whatever_the_number_of_processes(kaudit, evidence, command):
    logs = evidence.oracle("4.2.0", "logdir")
    arguments = (command, logs, "--output-format", "json", "--reproducible", "--jobs")
    assert kaudit(*arguments, 1).out == kaudit(*arguments, 2).out


def test_findings_are_as_the_contract_wants_them(kaudit, evidence):
    document = json.loads(kaudit("scan", evidence.oracle("2.0.1", "logdir"), "--output-format", "json").out)
    assert document["findings"]
    for finding in document["findings"]:
        assert finding["name"] == CHECKS[finding["code"]].name
        assert finding["severity"] in ("error", "warning", "note")
        nulls = {name for name, value in finding.items() if value is None}
        assert set(finding["absent"]) == nulls


def test_commands_that_a_finding_suggests_work(kaudit, evidence):
    import shlex

    document = json.loads(kaudit("scan", evidence.oracle("2.0.1", "logdir"), "--output-format", "json").out)
    commands = {
        command for finding in document["findings"] for command in finding["next"] if command.startswith("kaudit ")
    }
    assert commands
    for command in sorted(commands)[:5]:
        assert kaudit(*shlex.split(command)[1:]).code in (0, 1), command


def test_the_table_of_a_timeline_fits_80_columns(kaudit, evidence, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = kaudit("timeline", evidence.capture("txn-mix-2.8.2") / "logdirs" / "b0").out
    assert max(map(len, out.splitlines())) <= 80


def test_paths_without_a_log(kaudit, tmp_path):
    assert kaudit("scan", tmp_path).code == 3
    (tmp_path / "notes.txt").write_text("nothing")
    assert kaudit("scan", tmp_path).code == 3
    outcome = kaudit("scan", tmp_path / "none")
    assert (outcome.code, outcome.out) == (2, "")
    assert str(tmp_path / "none") in outcome.err


def test_a_segment_that_is_empty_is_no_finding(kaudit, tmp_path):
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "00000000000000000000.log").touch()
    assert kaudit("scan", tmp_path).code == 0
