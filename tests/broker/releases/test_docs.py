"""The pages about the rules say what the code does."""

from pathlib import Path

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


def test_the_rules_page_names_no_switch_that_does_not_exist():
    text = (DOCS / "broker-rules.md").read_text()
    assert "kaudit/broker/releases/profile.py" in text
    assert (DOCS.parent / "kaudit/broker/releases/profile.py").exists()
    assert (DOCS.parent / "kaudit/broker/releases/changes.py").exists()
