"""The pages about the rules agree with the code."""

import re
from pathlib import Path

import pytest

from kaudit.broker.releases.switches import switches
from kaudit.report.text.generated_pages import switches_table, write_pages
from tests.broker.producer_state import test_why_five

DOCS = Path(__file__).parents[3] / "docs"


def test_each_thought_experiment_of_the_page_is_a_test():
    headings = [line[3:] for line in (DOCS / "why-five.md").read_text().splitlines() if line.startswith("## ")]
    tests = " ".join(name for name in vars(test_why_five) if name.startswith("test_"))
    words = {
        "Five in flight": "five_in_flight",
        "Six in flight": "six_in_flight",
        "A gap": "after_a_gap",
        "A retry after the window": "behind_the_window",
        "Lost state": "lost_state",
        "Overlaps": "overlapping",
        "A new epoch": "new_epoch",
        "Where sequences wrap": "sequences_wrap",
    }
    assert len(headings) == len(words)
    for (beginning, word), heading in zip(words.items(), headings, strict=True):
        assert heading.startswith(beginning)
        assert word in tests


@pytest.fixture
def written(tmp_path):
    """The pages, written anew."""
    for name in ("broker-rules.md", "attempts.md"):
        (tmp_path / name).write_text((DOCS / name).read_text())
    write_pages(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["broker-rules.md", "attempts.md", "columns.md"])
def test_the_page_is_as_generated(written, name):
    assert (written / name).read_text() == (DOCS / name).read_text(), (
        "run: python -m kaudit.report.text.generated_pages docs"
    )


def test_the_table_of_switches_is_in_the_page_once(written):
    assert (written / "broker-rules.md").read_text().count(switches_table(switches(), "switch")) == 1


def test_the_page_cites_only_files_that_exist():
    text = (DOCS / "broker-rules.md").read_text()
    for path in re.findall(r"`((?:kaudit|tests)/[\w/.]+)`", text):
        assert (DOCS.parent / path).exists(), path


def test_the_page_of_the_attempts_format_has_every_op(written):
    for op in ("produce", "txn_offset_commit", "expire_producers", "restart"):
        assert f"### {op}\n" in (written / "attempts.md").read_text()
