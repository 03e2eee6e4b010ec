"""What became of a run's records, in lines."""

from kaudit.report.console import Console
from kaudit.report.sequence.run_text import WORDS, outcome_lines, record_facts

SUMMARY = {name: 1000 * number for number, name in enumerate(WORDS)}
BAD = {
    "acknowledged, and lost", "duplicate records", "repeated across sessions", "out of order", "open transactions",
    "hanging transactions",
}  # fmt: skip


def test_counts_that_are_not_zero():
    lines = list(outcome_lines(SUMMARY, [], Console(color=True)))
    assert len(lines) == len(WORDS) - 1
    red = {line.removeprefix("\x1b[1;31m").removesuffix("\x1b[0m")[11:] for line in lines if line.startswith("\x1b")}
    assert red == BAD
    assert lines[0] == "    1,000  acknowledged"
    assert list(record_facts(SUMMARY).items())[:2] == [("acknowledged", "1,000"), ("failed", "2,000")]
    assert list(outcome_lines({"sent": 1}, [], Console())) == ["        1  records sent"]


def test_what_logs_cannot_show():
    hidden = [
        {"what": "absent", "records": 2000, "because": "truncated"},
        {"what": "some_thing", "records": 1, "because": "x"},
    ]
    assert list(outcome_lines({"sent": 0}, hidden, Console())) == [
        "",
        "What the leaders' logs cannot show:",
        "  2,000 not in it: truncated",
        "  1 some thing: x",
    ]
