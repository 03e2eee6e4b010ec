"""What known bugs did to real logs is found: the recordings are real brokers' and clients', the accounts the recorder's."""

import json

import pytest

from kaudit.cli.app import run
from tests.bugs.recipes import RECIPES
from tests.bugs.recorded_bugs import FIXED, RECORDED, recorded_bug


def test_every_recipe_is_recorded():
    assert sorted(RECIPES) == RECORDED


@pytest.mark.parametrize("bug", RECORDED)
def test_what_the_bug_did_is_found(bug, capsys):
    recorded = recorded_bug(bug)
    found = _found(recorded, capsys)
    for expected in recorded.findings:
        reported = found[expected.pop("command", "scan")]
        assert [finding for finding in reported if expected.items() <= finding.items()], (expected, reported)


@pytest.mark.parametrize("bug", FIXED)
def test_nothing_of_it_is_found_in_the_log_of_a_release_without_it(bug, capsys):
    """What was sent is the same, so this is the healthy log that looks most like the other."""
    fixed = recorded_bug(bug, fixed=True)
    traces = {finding["code"] for finding in fixed.findings}
    reported = [finding for each in _found(fixed, capsys).values() for finding in each]
    assert [finding for finding in reported if finding["code"] in traces and finding["severity"] != "note"] == []
    assert [finding for finding in reported if finding["known_bugs"]] == []


def _found(recorded, capsys):
    """What each command that a finding is expected of reports."""
    found = {}
    for command in {finding.get("command", "scan") for finding in recorded.findings}:
        logs = [text for path in recorded.server_logs for text in ("--server-log", str(path)) if command == "scan"]
        run([command, *map(str, recorded.log_dirs), *logs, "--output-format", "json", "--reproducible"])
        found[command] = json.loads(capsys.readouterr().out)["findings"]
    return found
