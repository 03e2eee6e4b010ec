"""The stories in docs/ still end as they say."""

import json
import re

import pytest
import yaml

from tests.stories import PAGES, ROOT, renewed


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_outputs_are_real(page, tmp_path):
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert renewed(page, tmp_path) == written, "run `python -m tests.stories`, then read the diff"


def stories():
    text = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    return re.split(r"^## \d+\. ", text, flags=re.MULTILINE)[1:]


def test_each_story_goes_from_symptom_to_action():
    assert len(stories()) == 44
    for story in stories():
        assert re.findall(r"^\*\*(\w+)\.\*\*", story, re.MULTILINE) == ["Symptom", "Finding", "Action"]
        assert "$ kaudit " in story


def test_figures_of_the_stories_are_those_of_the_captures_accounts(evidence):
    lost = json.loads((evidence.capture("failover-acks1") / "truth.json").read_text(encoding="utf-8"))
    idempotent, acks1 = stories()[2], stories()[3]
    assert f"\n{lost['all-idem-unclean']['lost_acked_count']:,} records lost" in idempotent
    assert f"\n{lost['acks1']['lost_acked_count']:,} records lost" in acks1
    steps = [last - first + 1 for first, last in lost["acks1-unclean"]["lost_acked_offsets_as_reported"]]
    assert sum(steps) == lost["acks1-unclean"]["lost_acked_count"]
    for records in steps:
        assert f"= impact: {records:,} records lost\n" in acks1
    written = json.loads((evidence.capture("retry-dup") / "truth.json").read_text(encoding="utf-8"))
    for topic, account in written.items():
        if account.get("duplicate_records"):
            cost = f"{account['duplicate_records']} records were written twice"
            assert re.search(rf"^{topic} +KA702 .* {cost}$", stories()[6], re.MULTILINE), topic
        else:
            assert f"\n{topic} " not in stories()[6]


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
