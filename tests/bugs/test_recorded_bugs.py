"""What known bugs did to real logs is found: the recordings are real brokers' and clients', the accounts the recorder's."""

import json

import pytest

from kaudit.cli.app import run
from tests.bugs.recipes import RECIPES
from tests.bugs.recorded_bugs import RECORDED, unpack


def test_every_recipe_is_recorded():
    assert sorted(RECIPES) == RECORDED


@pytest.mark.parametrize("bug", RECORDED)
def test_what_the_bug_did_is_found(bug, tmp_path, capsys):
    recorded = unpack(bug, tmp_path)
    found: dict[str, list[dict[str, object]]] = {}
    for expected in recorded.findings:
        command = expected.pop("command", "scan")
        if command not in found:
            run([command, *map(str, recorded.log_dirs), "--output-format", "json", "--reproducible"])
            found[command] = json.loads(capsys.readouterr().out)["findings"]
        assert [finding for finding in found[command] if expected.items() <= finding.items()], (expected, found)
