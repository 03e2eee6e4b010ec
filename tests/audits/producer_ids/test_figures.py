"""Figures over producer ids, against numbers counted by hand."""

import statistics
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.listings.statistics import IdFigures, Tally

HOUR, DAY = 3_600_000, 86_400_000
NOW = 100 * DAY


def joined(*rows) -> Any:
    """Rows of batches, records, first and last timestamp, epochs, whether transactional."""
    names = ("batches", "records", "first_timestamp", "last_timestamp", "epochs", "is_transactional")
    columns = {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    return SimpleNamespace(ids=np.arange(len(rows)), **columns)


ROWS = [
    (1, 1, NOW - 3 * HOUR, NOW - 3 * HOUR + 999, 1, False),
    (2, 5, NOW - 3 * HOUR + 1, NOW, 2, True),
    (9, 90, NOW - 10 * DAY, NOW - DAY, 1, True),
    (10, 10, NOW - 8 * DAY, NOW - 7 * DAY, 1, False),
    (4, 4, -1, -1, 1, False),
    (1, 7, NOW - HOUR, NOW - DAY + 1 + DAY, 1, False),
]


def figures(chosen):
    return IdFigures.of(joined(*ROWS), np.array(chosen, dtype=np.int64), NOW)


def summary(found):
    steps = found.steps
    return found.summary(steps, np.zeros(0 if steps is None else steps.count, dtype=np.int64))


def test_the_figures_of_all():
    found = figures(range(6))
    assert (found.found, found.chosen) == (6, 6)
    assert (found.first, found.last, found.newest) == (NOW - 10 * DAY, NOW + 1, NOW - HOUR)
    shown: Any = summary(found)
    assert {name: shown[name] for name in ("found", "chosen", "transactional", "batches", "records")} == {
        "found": 6, "chosen": 6, "transactional": 2, "batches": 27, "records": 117,
    }  # fmt: skip
    # alive is what was written less than a day, less than seven days ago
    assert shown["alive"] == {"1d": 3, "7d": 4}
    assert (shown["first_timestamp"], shown["last_timestamp"]) == (NOW - 10 * DAY, NOW + 1)
    # five ids with a time in 240 hours and a millisecond
    assert shown["per_hour"] == 0.02
    assert shown["busiest_hour"] == {"start_timestamp": NOW - 3 * HOUR, "ids": 2}
    assert shown["batches_per_id"] == {"least": 1, "median": 3.0, "mean": 4.5, "most": 10}
    histograms = shown["histograms"]
    assert histograms["batches"] == [
        {"from": 1, "to": 1, "ids": 2}, {"from": 2, "to": 9, "ids": 3}, {"from": 10, "to": 99, "ids": 1},
    ]  # fmt: skip
    assert histograms["epochs"] == [{"from": 1, "to": 1, "ids": 5}, {"from": 2, "to": 9, "ids": 1}]
    assert histograms["lifetime_ms"] == [
        {"from": 0, "to": 999, "ids": 1},
        {"from": 1000, "to": 59_999, "ids": 0},
        {"from": 60_000, "to": HOUR - 1, "ids": 0},
        {"from": HOUR, "to": DAY - 1, "ids": 2},
        {"from": DAY, "to": 7 * DAY - 1, "ids": 1},
        {"from": 7 * DAY, "to": None, "ids": 1},
    ]
    # one that wrote after the directory's clock is not idle
    assert histograms["idle_ms"] == [
        {"from": 0, "to": 59_999, "ids": 2},
        {"from": 60_000, "to": HOUR - 1, "ids": 0},
        {"from": HOUR, "to": DAY - 1, "ids": 1},
        {"from": DAY, "to": 7 * DAY - 1, "ids": 1},
        {"from": 7 * DAY, "to": None, "ids": 1},
    ]
    assert len(histograms["first_seen"]) == found.steps.count


def test_an_id_that_was_seen_once_counts_as_an_hour():
    shown: Any = summary(figures([0]))
    assert (shown["found"], shown["chosen"], shown["per_hour"]) == (6, 1, 1.0)
    assert shown["batches_per_id"] == {"least": 1, "median": 1.0, "mean": 1.0, "most": 1}


def test_without_times_there_is_no_rate():
    found = figures([4])
    assert (found.first, found.last, found.newest, found.steps) == (None, None, None, None)
    shown: Any = summary(found)
    assert (shown["per_hour"], shown["busiest_hour"], shown["first_timestamp"]) == (None, None, None)
    assert (shown["alive"], shown["histograms"]["first_seen"]) == ({"1d": 0, "7d": 0}, [])
    assert shown["histograms"]["idle_ms"] == shown["histograms"]["lifetime_ms"] == []
    assert shown["batches_per_id"] == {"least": 4, "median": 4.0, "mean": 4.0, "most": 4}


def test_of_no_ids_nothing_is_said():
    shown: Any = summary(figures([]))
    assert (shown["found"], shown["chosen"], shown["batches"], shown["batches_per_id"]) == (6, 0, 0, None)


@pytest.mark.parametrize("cut", range(7))
def test_the_figures_of_shares_add_up(cut):
    whole = figures(range(6))
    # each share counts the ids that it holds: those of one partition each
    shares = [IdFigures.of(joined(*rows), np.arange(len(rows)), NOW) for rows in (ROWS[:cut], ROWS[cut:]) if rows]
    together = IdFigures.together(shares)
    assert summary(together) == summary(whole)
    assert IdFigures.together([*shares[::-1]]).newest == whole.newest


@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.lists(st.integers(0, 9), max_size=9))
def test_the_median_of_tallies_is_that_of_the_values(values, more):
    tallies = [Tally.of(np.array(each, dtype=np.int64)) for each in (values, more)]
    assert tallies[0].median == statistics.median(values)
    assert Tally.together(tallies).median == statistics.median([*values, *more])
