"""Rows of records in parts - runs, windows, places - as loops over the records themselves count them."""

import random
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.audits.records.places import NOWHERE, numbers_of, offsets_of, places
from kaudit.audits.records.reading import IDENTIFIED, ReadPartition
from kaudit.diff.records.assembly import _by_pair
from kaudit.diff.records.side import COPIED, Runs
from kaudit.diff.records.windows import (
    DIGEST,
    RUN,
    EqualRecords,
    Narrowed,
    ReadWindows,
    _to_read,
    _Windows,
    compare_windows,
    counted,
)
from kaudit.model.ledger import SideCounts, WindowDifference

SEEDS = range(12)


def at(number: int, *offsets: int) -> NDArray[np.uint64]:
    return places(number, np.array(offsets, dtype=np.int64), np.zeros(len(offsets), dtype=np.bool_))


def cut(chance: random.Random, count: int) -> list[slice]:
    """Parts of so many rows; one may be empty."""
    edges = sorted({0, count, *(chance.randint(0, count) for _ in range(4))})
    return [slice(0, 0), *map(slice, edges, edges[1:])]


@pytest.mark.parametrize("seed", SEEDS)
def test_neighbours_of_one_kind_are_a_run_over_the_ends_of_parts(seed):
    chance = random.Random(seed)
    count, most = chance.randint(1, 60), chance.choice((0, 1, 3, 100))
    partitions = sorted(chance.choices(range(3), k=count))
    chosen = [chance.random() < chance.choice((0.5, 0.9)) for _ in range(count)]
    rows = np.zeros(count, dtype=COPIED)
    rows["place"] = np.concatenate([at(number, offset) for offset, number in enumerate(partitions)])
    rows["other"] = [chance.randint(0, 99) for _ in range(count)]
    found = Runs(most, ("other",))
    for part in cut(chance, count):
        found.feed(rows[part], np.array(chosen[part], dtype=np.bool_))
    expected: list[list[int]] = []
    for index in range(count):
        if chosen[index]:
            goes_on = index > 0 and chosen[index - 1] and partitions[index - 1] == partitions[index]
            if goes_on:
                expected[-1].append(index)
            else:
                expected.append([index])
    runs = found.finish()
    assert (found.records, found.more) == (sum(chosen), max(len(expected) - most, 0))
    assert [run.records for run in runs] == [len(run) for run in expected[:most]]
    for run, indexes in zip(runs, expected[:most], strict=True):
        own = rows[indexes]
        assert (run.rows["place"][0], run.rows["place"][-1]) == (own["place"][0], own["place"][-1])
        assert {own["other"].min(), own["other"].max()} <= set(run.rows["other"])
        assert len(run.rows) <= 4


def windows_of(
    records: list[tuple[int, int, int]], parts: list[slice], most: int | None = 1000
) -> tuple[_Windows, NDArray[Any]]:
    """Of records (identity, offset, time) of partition 2, by windows of 10 ms."""
    rows = np.zeros(len(records), dtype=IDENTIFIED)
    rows["high"] = [identity * 7919 for identity, _, _ in records]
    rows["low"] = [identity for identity, _, _ in records]
    # the last bit says that a value is null: no part of where the record is
    rows["place"] = [int(at(2, offset)[0]) | identity % 2 for identity, offset, _ in records]
    times = np.array([time for _, _, time in records], dtype=np.int64)
    found = _Windows(10, most)
    for part in parts:
        found.add(rows[part], times[part])
    return found, rows


@pytest.mark.parametrize("seed", SEEDS)
def test_runs_and_counts_of_windows_are_those_of_the_records(seed):
    chance = random.Random(seed)
    offset, records = 0, []
    for _ in range(chance.randint(1, 50)):
        offset += chance.choice((1, 1, 1, 2))
        records.append((chance.randint(1, 5), offset, chance.choice((-1, 0, 9, 10, 25))))
    found, _ = windows_of(records, cut(chance, len(records)))
    expected: list[tuple[int, int, int]] = []
    for _, offset, time in records:
        if expected and (time // 10, offset) == (expected[-1][0], sum(expected[-1][1:])):
            expected[-1] = (*expected[-1][:2], expected[-1][2] + 1)
        else:
            expected.append((time // 10, offset, 1))
    runs = found.runs()
    assert [(int(row["window"]), int(offsets_of(row["first"])), int(row["records"])) for row in runs] == expected
    assert {int(number) for number in numbers_of(runs["first"])} == {2}
    assert all(int(first) % 2 == 0 for first in runs["first"])
    counts: dict[int, int] = defaultdict(int)
    for _, _, time in records:
        counts[time // 10] += 1
    assert [(int(row["window"]), int(row["records"])) for row in found.digests()] == sorted(counts.items())
    again, _ = windows_of(records, [slice(None)])
    assert found.complete
    assert np.array_equal(found.digests(), again.digests())


ONE = [(1, 0, 0), (2, 1, 1), (3, 2, 11), (1, 3, 12)]


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        ([(1, 5, 0), (2, 7, 9), (3, 9, 19), (1, 11, 10)], {0, 1}),  # at other offsets and times of the same windows
        ([(3, 0, 11), (1, 1, 0), (1, 2, 12), (2, 3, 1)], {0, 1}),  # the windows in turns
        ([(2, 0, 0), (1, 1, 1), (3, 2, 11), (1, 3, 12)], {1}),  # another order
        ([(1, 0, 0), (1, 1, 1), (3, 2, 11), (1, 3, 12)], {1}),  # one twice for another
        ([(1, 0, 0), (2, 1, 1), (3, 2, 11)], {0}),
        ([(1, 0, 0), (2, 1, 11), (3, 2, 12), (1, 3, 13)], set()),
    ],
)
def test_digests_are_equal_where_a_window_has_the_same_records_in_their_order(other, alike):
    first, second = (
        {int(row["window"]): row for row in windows_of(each, [slice(None)])[0].digests()} for each in (ONE, other)
    )
    assert {window for window in first if first[window] == second.get(window)} == alike


@pytest.mark.parametrize(("most", "complete"), [(1, False), (2, True)])
def test_of_more_runs_than_are_remembered_nothing_is(most, complete):
    for parts in ([slice(None)], [slice(0, 3), slice(3, 4)]):
        found, _ = windows_of(ONE, parts, most)
        assert (found.complete, len(found.runs()), len(found.digests())) == (complete, 2 * complete, 2 * complete)
    without_runs, _ = windows_of(ONE, [slice(None)], None)
    assert (without_runs.complete, len(without_runs.runs()), len(without_runs.digests())) == (True, 0, 2)


def runs(*rows: tuple[int, int, int, int]) -> NDArray[Any]:
    """Runs: window, partition, first offset, records."""
    return np.array(
        [(window, int(at(number, first)[0]), records) for window, number, first, records in rows], dtype=RUN
    )


def test_equal_records_are_numbered_through_the_runs_of_all_partitions():
    all_runs = [(0, 0, 3, 2), (0, 0, 9, 1), (0, 1, 0, 3)]
    equal = EqualRecords.of(runs(*all_runs))
    listed = [(number, first + step) for _, number, first, records in all_runs for step in range(records)]
    found = equal.at(np.arange(len(listed)))
    assert list(zip(numbers_of(found).tolist(), offsets_of(found).tolist(), strict=True)) == listed
    asked = [(number, offset) for number in (0, 1, 2) for offset in range(12)]
    ranks = equal.ranks(np.concatenate([at(*each) for each in asked]))
    assert ranks.tolist() == [sum(each < one for each in listed) for one in asked]
    assert EqualRecords.of(runs()).ranks(at(0, 5, 7)).tolist() == [0, 0]


def test_the_ends_of_the_equal_records_of_each_partition():
    def ends(*rows: tuple[int, int, int, int]) -> list[int]:
        equal = EqualRecords.of(runs(*rows))
        found: list[int] = Narrowed((), ((), ()), ({}, {}), (equal, equal)).ends().tolist()
        return found

    assert ends((0, 0, 3, 2), (0, 0, 9, 1), (0, 1, 0, 3), (0, 4, 5, 1)) == [0, 2, 3, 5, 6]
    assert ends((0, 0, 3, 1)) == [0]
    assert ends() == []


SUMMARY: Any = SimpleNamespace(records=20, bytes=1000)
READ = ReadPartition(0, 100, SUMMARY, SideCounts(), (), False, False, False, (), ())
NO_DIGESTS = np.empty(0, dtype=DIGEST)


def test_what_is_read_again_are_the_offsets_of_windows_that_differ():
    found = {1: (False, 5, 5), 2: (True, 5, 5), 3: (False, 0, 1)}
    own = runs((1, 0, 0, 2), (3, 0, 2, 3), (2, 0, 5, 5), (1, 0, 10, 1), (1, 0, 12, 4))
    again = _to_read(ReadWindows(READ, NO_DIGESTS, own, complete=True), found)
    # what follows without a gap is one range; 10 of 20 records
    assert again.ranges.tolist() == [[100, 105], [110, 111], [112, 116]]
    assert (again.base, again.bytes) == (100, 500)
    one = replace(READ, summary=SimpleNamespace(records=1, bytes=1000))
    assert _to_read(ReadWindows(one, NO_DIGESTS, own[3:4], complete=True), found).bytes == 1000
    none = _to_read(ReadWindows(READ, NO_DIGESTS, own, complete=True), {2: (True, 5, 5)})
    assert (none.ranges.shape, none.bytes) == ((0, 2), 0)


def digests(*rows: tuple[int, int, int]) -> NDArray[Any]:
    """Windows: number, records, what their content is."""
    return np.array([(window, records, content, content) for window, records, content in rows], dtype=DIGEST)


def test_windows_differ_where_one_partition_has_others():
    source = {0: digests((-1, 2, 7), (1, 3, 8)), 1: digests((1, 4, 9), (5, 1, 1))}
    target = {0: digests((-1, 2, 7), (1, 3, 8)), 1: digests((1, 5, 10), (5, 1, 1)), 2: digests((6, 2, 3))}
    found = compare_windows(source, target)
    assert found == {-1: (True, 2, 2), 1: (False, 7, 8), 5: (True, 1, 1), 6: (False, 0, 2)}
    assert compare_windows(source, {}) == {-1: (False, 2, 0), 1: (False, 7, 0), 5: (False, 1, 0)}
    # the same contents under other numbers
    assert compare_windows(source, {4: source[1], 0: source[0]})[1] == (True, 7, 7)
    counts = counted({**found, -1: (False, 2, 1)}, 60_000, "")
    assert (counts.milliseconds, counts.windows, counts.differing, counts.compared_whole) == (60_000, 4, 3, None)
    assert counts.differences == [
        WindowDifference(None, 2, 1),
        WindowDifference(60_000, 7, 8),
        WindowDifference(360_000, 0, 2),
    ]
    assert counted({0: (False, 1, 0)}, 1000, "why").differences == [WindowDifference(0, 1, 0)]


def test_rows_are_cut_where_another_pair_of_topics_begins():
    rows = np.zeros(6, dtype=COPIED)
    rows["place"] = np.concatenate([at(0, 1, 2), at(1, 0), at(3, 0), at(4, 5, 6)])
    rows["other"] = NOWHERE
    of_number = np.array([7, 7, 0, 9, 7])
    assert [(pair, own["place"].tolist()) for pair, own in _by_pair(rows, of_number)] == [
        (7, rows["place"][:3].tolist()),
        (9, rows["place"][3:4].tolist()),
        (7, rows["place"][4:].tolist()),
    ]
    assert list(_by_pair(rows[:0], of_number)) == []
