"""Findings counted by check, and by topic and check."""

import pytest

from kaudit.model.impact import Impact
from kaudit.model.severity import Severity
from kaudit.report.console import Console
from kaudit.report.text.table import check_counts, topic_counts
from tests.scan_results import old_duplicate


def found(code, name, number, severity=Severity.ERROR, **changes):
    return old_duplicate(
        code=code, name=name, offset=number * 10, last_offset=number * 10, severity=severity, **changes
    )


NOTHING = Impact()


def test_checks_the_most_frequent_first_then_by_code():
    findings = [
        found("KA203", "fencing", 1, Severity.NOTE, impact=NOTHING),
        found(
            "KA102",
            "old-duplicate",
            2,
            Severity.WARNING,
            impact=Impact(records_duplicated=2, records_duplicated_at_most=2),
        ),
        found(
            "KA102",
            "old-duplicate",
            3,
            Severity.ERROR,
            impact=Impact(records_duplicated=3, records_duplicated_at_most=3),
        ),
        found("KA101", "duplicate-batch", 4, impact=NOTHING),
    ]
    assert check_counts(findings, Console()) == [
        "2  KA102  old-duplicate    5 records were written twice",
        "1  KA101  duplicate-batch",
        "1  KA203  fencing",
    ]
    colored = check_counts(findings, Console(color=True))
    assert [line.partition("  \x1b[")[2].partition("\x1b")[0] for line in colored] == [
        "1;31mKA102",
        "1;31mKA101",
        "1;36mKA203",
    ]
    assert check_counts([], Console()) == []
    (line,) = check_counts([found("KA102", "like-KA102", 1, impact=NOTHING)], Console(color=True))
    assert line == "1  \x1b[1;31mKA102\x1b[0m  like-KA102"


def test_topics_and_checks():
    findings = [
        found("KA102", "old-duplicate", 1, topic=None, impact=NOTHING),
        found("KA102", "old-duplicate", 2, topic="b\x1b", impact=Impact(bytes_truncated=1)),
        *(
            found(
                "KA101",
                "duplicate-batch",
                number,
                topic="a",
                impact=Impact(records_duplicated=1, records_duplicated_at_most=1),
            )
            for number in (3, 4)
        ),
    ]
    assert topic_counts(findings, Console()) == [
        "topic  check                  findings  cost",
        "a      KA101 duplicate-batch         2  2 records were written twice",
        "-      KA102 old-duplicate           1",
        "b\\x1b  KA102 old-duplicate           1  a broker that recovers this log cuts off 1 byte",
    ]


@pytest.mark.parametrize(
    ("number", "last"), [(20, "t19"), (21, "1 more row (json"), (22, "2 more rows (json lists all findings)")]
)
def test_twenty_rows_are_shown(number, last):
    findings = [found("KA102", "old-duplicate", each, topic=f"t{each:02}") for each in range(number)]
    lines = topic_counts(findings, Console(color=True))
    assert lines[0].startswith("\x1b[2mtopic")
    assert lines[-1].startswith(last)
    assert len(lines) == 1 + min(number, 21)


LEAD = "topic  check                findings  "
COST = ["t      KA102 old-duplicate         1  5 records were", " " * 38 + "written twice"]


@pytest.mark.parametrize(("width", "lines"), [
    (62, [LEAD + "cost", COST[0] + " written", " " * 38 + "twice"]),
    (61, [LEAD + "cost", "t      KA102 old-duplicate         1", "    5 records were written twice"]),
    (42, [LEAD + "cost", "t      KA102 old-duplicate         1", "    5 records were written twice"]),
    (41, [LEAD.rstrip(), "t      KA102 old-duplicate         1", "    5 records were written twice"]),
])  # fmt: skip
def test_a_cost_stands_below_where_there_is_no_room(width, lines):
    finding = old_duplicate(topic="t", impact=Impact(records_duplicated=5, records_duplicated_at_most=5))
    assert topic_counts([finding], Console(width=width)) == lines
