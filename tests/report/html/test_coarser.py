"""What a page leaves out of a partition that is too large for it: which bars are merged, which lanes and transactions stay."""

import numpy as np
import pytest

from kaudit.model.timeline import OUTCOMES
from kaudit.report.html.columns import _in_lanes, _lanes_shown, _merged, _touch, _transactions

NOTHING = np.array([], dtype=np.int64)


def column(*numbers):
    return np.array(numbers, dtype=np.int64)


@pytest.mark.parametrize(("offsets", "touched"), [
    ([], [0, 0, 0]), ([9], [1, 0, 0]), ([10], [1, 0, 0]), ([19], [1, 0, 0]), ([20], [1, 0, 0]), ([8], [0, 0, 0]), ([21], [0, 0, 0]),
    ([50], [0, 0, 1]), ([51], [0, 0, 1]), ([52], [0, 0, 0]), ([0, 35, 100], [0, 1, 0]), ([0, 40, 100], [0, 1, 0]), ([12, 49], [1, 0, 1]),
])  # fmt: skip
def test_a_range_that_holds_an_offset_or_lies_beside_it(offsets, touched):
    assert _touch(column(10, 30, 50), column(19, 39, 50), column(*offsets)).tolist() == [bool(each) for each in touched]


def runs(*rows, **more):
    """Runs as (lane, first, last offset); one batch of ten records each, a second apart."""
    lanes, firsts, lasts = [column(*each) for each in zip(*rows, strict=True)]
    count = len(rows)
    return {
        "lane": lanes,
        "first_offset": firsts,
        "last_offset": lasts,
        "first_sequence": firsts + 1000,
        "last_sequence": lasts + 1000,
        "min_timestamp": np.arange(count) * 1000 + 7,
        "max_timestamp": np.arange(count) * 1000 + 9,
        "batches": np.full(count, 1),
        "records": np.full(count, 10),
        "flags": np.zeros(count, dtype=np.int64),
        **more,
    }


ROWS = ((0, 0, 9), (0, 12, 19), (0, 40, 49), (0, 51, 59), (1, 3, 4))


def bars(merged):
    return list(
        zip(merged["lane"].tolist(), merged["first_offset"].tolist(), merged["last_offset"].tolist(), strict=True)
    )


@pytest.mark.parametrize(("room", "expected", "count"), [
    (9, list(ROWS), 0), (5, list(ROWS), 0),
    # across the smallest gaps: 1, then 2, then 20 offsets lie between
    (4, [(0, 0, 9), (0, 12, 19), (0, 40, 59), (1, 3, 4)], 2),
    (3, [(0, 0, 19), (0, 40, 59), (1, 3, 4)], 4),
    (2, [(0, 0, 59), (1, 3, 4)], 4),
    # never across lanes
    (1, [(0, 0, 59), (1, 3, 4)], 4), (0, [(0, 0, 59), (1, 3, 4)], 4),
])  # fmt: skip
def test_bars_are_merged_across_the_smallest_gaps(room, expected, count):
    merged, number = _merged(runs(*ROWS), room, NOTHING)
    assert (bars(merged), number) == (expected, count)
    assert merged["records"].sum() == 50
    assert merged["batches"].sum() == 5


def test_a_merged_bar_is_the_sum_of_its_runs():
    times = {"min_timestamp": column(5, 3, 8, 4, 1), "max_timestamp": column(6, 9, 8, 7, 2)}
    counts = {"batches": column(1, 2, 4, 8, 16), "records": column(3, 5, 7, 9, 11), "flags": column(1, 0, 0, 0, 0)}
    merged, _ = _merged(runs(*ROWS, **times, **counts), 3, NOTHING)
    assert {name: values.tolist() for name, values in merged.items()} == {
        "lane": [0, 0, 1], "first_offset": [0, 40, 3], "last_offset": [19, 59, 4],
        "first_sequence": [1000, 1040, 1003], "last_sequence": [1019, 1059, 1004],
        "min_timestamp": [3, 4, 1], "max_timestamp": [9, 8, 2],
        "batches": [3, 12, 16], "records": [8, 16, 11],
        # 2 is COARSE: only a bar of several runs
        "flags": [3, 2, 0],
    }  # fmt: skip


@pytest.mark.parametrize(("offset", "expected"), [
    (55, [(0, 0, 49), (0, 51, 59), (1, 3, 4)]),
    (30, [(0, 0, 59), (1, 3, 4)]),
    (15, [(0, 0, 9), (0, 12, 19), (0, 40, 59), (1, 3, 4)]),
    (5, [(0, 0, 9), (0, 12, 59), (1, 3, 4)]),
])  # fmt: skip
def test_what_a_finding_is_about_is_not_merged(offset, expected):
    merged, _ = _merged(runs(*ROWS), 0, column(offset))
    # an offset of lane 0 may touch the run of lane 1 too; that one is alone anyway
    assert bars(merged) == expected


def test_no_runs():
    empty = {name: values[:0] for name, values in runs(*ROWS).items()}
    merged, number = _merged(empty, -1, NOTHING)
    assert (bars(merged), number) == ([], 0)


def lanes(records, ids=(10, 20, 30, 40)):
    return {
        "lanes": {"producer_id": column(*ids), "producer_epoch": column(0, 0, 0, 0), "name": column(-1, -1, -1, -1)},
        "runs": {"lane": column(0, 1, 2, 3, 1), "records": column(*records)},
    }


@pytest.mark.parametrize(("room", "producer_ids", "shown"), [
    (5, [], [1, 1, 1, 1]), (4, [], [1, 1, 1, 1]),
    # records by lane: 5, 9, 6, 7
    (3, [], [0, 1, 1, 1]), (2, [], [0, 1, 0, 1]), (1, [], [0, 1, 0, 0]), (0, [], [0, 0, 0, 0]),
    (1, [10], [1, 0, 0, 0]), (2, [10], [1, 1, 0, 0]), (2, [10, 30], [1, 0, 1, 0]), (2, [10, 30, 40], [0, 0, 1, 1]), (1, [99], [0, 1, 0, 0]),
])  # fmt: skip
def test_lanes_with_findings_then_those_with_most_records(room, producer_ids, shown):
    found = _lanes_shown(lanes((5, 4, 6, 7, 5)), room, column(*producer_ids))
    assert found.tolist() == [bool(each) for each in shown]


OPEN, COMMITTED, ABORTED = (OUTCOMES.index(name) for name in ("open", "committed", "aborted"))


def transactions(*rows):
    names = ("lane", "first_offset", "last_offset", "outcome")
    return {name: column(*values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}


TRANSACTIONS = transactions(
    (0, 0, 99, COMMITTED),
    (0, 100, 300, COMMITTED),
    (1, 310, 311, ABORTED),
    (1, 400, 409, COMMITTED),
    (2, 500, 500, OPEN),
)


@pytest.mark.parametrize(("room", "shown", "offsets", "kept"), [
    (5, [1, 1, 1], [], [1, 1, 1, 1, 1]),
    # those not committed, the longest of them first; then the longest
    (4, [1, 1, 1], [], [1, 1, 1, 0, 1]), (3, [1, 1, 1], [], [0, 1, 1, 0, 1]), (2, [1, 1, 1], [], [0, 0, 1, 0, 1]),
    (1, [1, 1, 1], [], [0, 0, 1, 0, 0]), (0, [1, 1, 1], [], [0, 0, 0, 0, 0]),
    # what a finding is about goes before longer ones
    (3, [1, 1, 1], [405], [0, 0, 1, 1, 1]), (1, [1, 1, 1], [500], [0, 0, 0, 0, 1]), (1, [1, 1, 1], [405], [0, 0, 1, 0, 0]),
    # of lanes that are not shown none, and they take no room
    (5, [1, 0, 1], [], [1, 1, 0, 0, 1]), (2, [1, 0, 1], [], [0, 1, 0, 0, 1]), (1, [0, 0, 1], [], [0, 0, 0, 0, 1]),
    (3, [0, 1, 0], [], [0, 0, 1, 1, 0]),
])  # fmt: skip
def test_transactions_not_committed_then_the_longest(room, shown, offsets, kept):
    mask = np.array(shown, dtype=bool)
    rows, found = _transactions(TRANSACTIONS, mask, room, column(*offsets))
    assert found.tolist() == [bool(each) for each in kept]
    assert rows["first_offset"].tolist() == TRANSACTIONS["first_offset"][found].tolist()


def test_equally_long_transactions_are_taken_from_everywhere():
    many = transactions(*((0, 10 * number, 10 * number + 1, COMMITTED) for number in range(100)))
    _, kept = _transactions(many, np.array([True]), 10, NOTHING)
    places = np.flatnonzero(kept)
    assert len(places) == 10
    # no tenth of the log has more than two of the ten, none of its halves less than four
    assert np.bincount(places // 10, minlength=10).max() <= 2
    assert 4 <= np.count_nonzero(places < 50) <= 6


def test_rows_of_lanes_that_are_shown():
    held = _in_lanes({"lane": column(0, 1, 2, 1), "x": column(5, 6, 7, 8)}, np.array([False, True, False]))
    assert {name: values.tolist() for name, values in held.items()} == {"lane": [1, 1], "x": [6, 8]}
