"""The stories in docs/ still end as they say."""

import re

import pytest
import yaml

from tests.stories import PAGES, ROOT, renewed


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_outputs_are_real(page, tmp_path):
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert renewed(page, tmp_path) == written, "run `python -m tests.stories`, then read the diff"


def test_there_are_five_stories_each_from_symptom_to_action():
    text = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    stories = re.split(r"^## \d\. ", text, flags=re.MULTILINE)[1:]
    assert len(stories) == 5
    for story in stories:
        assert re.findall(r"^\*\*(\w+)\.\*\*", story, re.MULTILINE) == ["Symptom", "Finding", "Action"]
        assert "$ kaudit " in story


def test_the_ci_page_goes_red_on_new_and_green_on_known():
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    runs = re.findall(r"^\$ kaudit scan .*?(?=^\$|^```)", text, re.MULTILINE | re.DOTALL)
    red = ["[exit code 1]" in run for run in runs]
    assert red[:3] == [True, False, True]


@pytest.mark.parametrize("page", ["ci.md"])
def test_pipelines_shown_are_yaml(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 2
    assert all(isinstance(yaml.safe_load(block), dict) for block in blocks)
