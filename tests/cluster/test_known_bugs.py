"""Known bugs, provoked on live brokers: the same recipes as the recordings of tests/bugs."""

import json

import pytest

from tests.bugs.recipes import RECIPES
from tests.cluster.conftest import kaudit

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("bug", ["KAFKA-12671", "KAFKA-14034", "KAFKA-17754"])
def test_what_a_bug_does_is_found(bug, tmp_path):
    recipe = RECIPES[bug]
    outcome = recipe.play(recipe.affected, tmp_path)
    assert outcome.happened, outcome.account
    scanned = kaudit("scan", *outcome.log_dirs.values(), "--output-format", "json")
    found = json.loads(scanned.stdout)["findings"]
    for expected in outcome.findings:
        assert [finding for finding in found if expected.items() <= finding.items()], (outcome.account, found)
