"""Which findings are kept where a reader takes no more."""

import pytest

from kaudit.model.severity import Severity, Status
from kaudit.report.text.formatting import omitted_text
from kaudit.results.selection import first_of_checks, most_severe
from tests.scan_results import old_duplicate, scan_result


def finding(number, severity=Severity.ERROR, status=Status.NEW, **changes):
    return old_duplicate(offset=number, severity=severity, status=status, **changes)


FOUND = [
    finding(0, Severity.NOTE),
    finding(1, Severity.ERROR, Status.KNOWN),
    finding(2, Severity.WARNING),
    finding(3, Severity.ERROR),
    finding(4, Severity.WARNING),
    finding(5, Severity.ERROR),
]


@pytest.mark.parametrize(
    ("limit", "kept"),
    [(0, []), (1, [3]), (2, [3, 5]), (3, [2, 3, 5]), (4, [2, 3, 4, 5]), (5, [0, 2, 3, 4, 5]), (6, list(range(6))), (9, list(range(6)))],
)  # fmt: skip
def test_new_and_severe_ones_are_kept_in_their_order(limit, kept):
    assert [found.offset for found in most_severe(FOUND, limit)] == kept


def test_a_few_of_each_check_severity_status_and_partition():
    findings = [
        *(finding(number) for number in range(4)),
        *(finding(number, Severity.WARNING) for number in range(10, 13)),
        *(finding(number, status=Status.KNOWN) for number in range(20, 23)),
        *(finding(number, partition=9) for number in range(30, 33)),
        *(finding(number, topic="x") for number in range(40, 43)),
        *(finding(number, code="KA101") for number in range(50, 52)),
    ]
    result = scan_result(*findings)
    listed = first_of_checks(result, 2)
    assert [found.offset for found in listed.findings] == [0, 1, 10, 11, 20, 21, 50, 51, 30, 31, 40, 41]
    assert listed.summary.omitted == result.summary.omitted + 6
    assert first_of_checks(result, None) == first_of_checks(result, 4) == result


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, ""), (1, "1 more finding, not listed here"), (2000, "2,000 more findings, not listed here")],
)
def test_what_is_left_out_is_counted(number, text):
    assert omitted_text(number) == text
