"""Which findings are of what was asked for: of producers, and of a window of time."""

from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.scanning.findings import _is_chosen, _is_in_time


def finding(producer_id: int | None = None, **evidence: Any) -> Any:
    parts = {"coordinator": None, "first_timestamp": None, "last_timestamp": None, "offending": None} | evidence
    return SimpleNamespace(producer_id=producer_id, evidence=SimpleNamespace(**parts))


def options(producer_ids: tuple[int, ...] = (), since: int | None = None, until: int | None = None) -> Any:
    return SimpleNamespace(producer_ids=producer_ids, since_ms=since, until_ms=until)


@pytest.mark.parametrize(
    ("producer_id", "asked", "chosen"),
    [(7, (), True), (None, (), True), (7, (7, 8), True), (9, (7, 8), False), (None, (7, 8), True)],
)
def test_findings_about_producers_that_were_asked_for_and_about_none(producer_id, asked, chosen):
    assert _is_chosen(finding(producer_id), options(asked)) is chosen


def offending(timestamp: int) -> Any:
    return SimpleNamespace(timestamp=timestamp)


@pytest.mark.parametrize(
    ("evidence", "since", "until"),
    [
        # from 10 to 20: in every window that ends at 10 or later, and begins at 20 or before
        ({"first_timestamp": 10, "last_timestamp": 20}, 20, 10),
        ({"first_timestamp": 10}, 10, 10),
        ({"last_timestamp": 20}, 20, 20),
        # a batch that is the matter says when it began; it may go on
        ({"offending": offending(15)}, 15, 15),
        ({"offending": offending(15), "first_timestamp": 3, "last_timestamp": 20}, 20, 15),
        ({"offending": offending(15), "last_timestamp": 20}, 20, 15),
    ],
)
def test_a_finding_is_in_every_window_that_it_meets(evidence, since, until):
    """`since`: the latest start of a window that has it, `until` the earliest end."""
    one = finding(**evidence)
    assert _is_in_time(one, options())
    for begin, end, within in (
        (since, None, True),
        (since + 1, None, False),
        (None, until, True),
        (None, until - 1, False),
        (since, until if until >= since else None, True),
        (0, 99, True),
        (since + 1, 99, False),
        (0, until - 1, False),
    ):
        assert _is_in_time(one, options(since=begin, until=end)) is within, (begin, end)


def test_an_open_transaction_lasts_to_the_end_of_the_log():
    one = finding(coordinator="state", first_timestamp=10, last_timestamp=20)
    for since, until, within in ((99, None, True), (None, 10, True), (None, 9, False), (99, 9, False), (99, 10, True)):
        assert _is_in_time(one, options(since=since, until=until)) is within
    unknown = finding(coordinator="state")
    assert _is_in_time(unknown, options(since=1, until=2))


def test_what_has_no_time_is_in_every_window():
    for since, until in ((None, None), (5, None), (None, 5), (5, 6)):
        assert _is_in_time(finding(), options(since=since, until=until))
