"""Equal batches near one another: which are copies, which recur."""

import numpy as np
import pytest

from kaudit.reading.equal_batches import EqualBatches, merged, near_none
from kaudit.reading.record_content import batch_content, with_times


def equal(keys, ordinals):
    return EqualBatches.of(np.array(keys, dtype=np.int64), np.array(ordinals, dtype=np.int64))


def pairs(found):
    return list(zip(*(each.tolist() for each in found), strict=True))


def times(*values):
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("keys", "ordinals", "copies"),
    [
        ([], [], []),
        ([7], [0], []),
        ([7, 8], [0, 1], []),
        ([7, 7], [0, 1], [(0, 1)]),
        ([7, 8, 7, 8, 7], [0, 1, 2, 3, 4], [(0, 2), (0, 4), (1, 3)]),
        # within 1024 batches
        ([7, 7], [5, 1029], [(0, 1)]),
        ([7, 7], [5, 1030], []),
        ([7, 7, 7], [0, 1024, 2048], [(0, 1), (1, 2)]),
        ([7, 7, 7], [0, 1, 1025], [(0, 1), (1, 2)]),
        # an equal one of another group that ends far away is none of this one's
        ([9, 1, 9, 1], [0, 2000, 3000, 3025], []),
    ],
)
def test_copies_of_what_came_within_1024_batches(keys, ordinals, copies):
    assert pairs(equal(keys, ordinals).copies()) == copies


def test_batches_are_equal_in_crc_size_and_count_of_records():
    crcs, sizes, counts = (
        np.array([1, 1, 1, 1, 2], dtype=np.uint32),
        np.array([5, 6, 5, 6, 5]),
        np.array([8, 8, 9, 8, 8]),
    )
    contents = batch_content(crcs, sizes, counts)
    assert pairs(EqualBatches.of(contents, np.arange(5)).copies()) == [(1, 3)]
    assert pairs(EqualBatches.of(with_times(contents, np.array([1, 1, 1, 2, 1])), np.arange(5)).copies()) == []
    assert pairs(EqualBatches.of(with_times(contents, np.array([1, 2, 1, 2, 1])), np.arange(5)).copies()) == [(1, 3)]


@pytest.mark.parametrize(
    ("ordinals", "at", "copies"),
    [
        ([0, 1], [100, 101], [(0, 1)]),
        ([0, 1], [100, 100], []),
        ([0, 1], [100, 99], []),
        ([0, 1], [100, 120_100], [(0, 1)]),
        ([0, 1], [100, 120_101], []),
        ([3, 67], [100, 101], [(0, 1)]),
        ([3, 68], [100, 101], []),
        # of several the last before it
        ([0, 10, 70], [100, 101, 102], [(0, 1), (1, 2)]),
    ],
)
def test_copies_with_later_timestamps_are_near_and_soon(ordinals, at, copies):
    assert pairs(equal([7] * len(ordinals), ordinals).restamped(times(*at))) == copies


def test_under_how_many_times_a_batch_and_its_equals_before_it_are():
    found = equal([7, 8, 7, 7, 8, 7], [0, 1, 2, 3, 4, 1026])
    at = times(100, 100, 101, 100, 100, 102)
    assert found.counts_before(np.arange(6), at) == [1, 1, 2, 2, 1, 3]
    assert found.counts_before(np.array([5, 3]), at) == [3, 2]
    assert found.counts_before(np.array([], dtype=np.intp), at) == []


@pytest.mark.parametrize(
    ("ordinals", "at", "ranges"),
    [
        ([0, 1, 2], [1, 2, 3], []),
        ([0, 1, 2, 3], [1, 2, 3, 4], [[0, 3]]),
        ([0, 1, 2, 3], [1, 2, 3, 1], []),
        # the first with another time counts
        ([0, 1, 2, 3, 4], [1, 2, 3, 4, 1], [[0, 4]]),
        ([0, 1, 2, 3, 4], [1, 1, 2, 1, 1], []),
        ([0, 1, 2, 3, 4], [1, 2, 1, 1, 1], [[1, 4]]),
        ([0, 1, 66], [1, 2, 1], [[1, 66]]),
        ([0, 64], [1, 2], []),
        ([0, 65], [1, 2], [[0, 65]]),
        ([0, 65], [1, 1], []),
        ([5, 1029], [1, 2], [[5, 1029]]),
        ([5, 1030], [1, 2], []),
    ],
)
def test_records_recur_that_are_there_often_or_far_apart_under_other_timestamps(ordinals, at, ranges):
    assert equal([7] * len(ordinals), ordinals).recurring(times(*at)).tolist() == ranges


@pytest.mark.parametrize(
    ("ranges", "together"),
    [
        ([], []),
        ([[5, 9]], [[5, 9]]),
        ([[5, 9], [1033, 1040]], [[5, 1040]]),
        ([[5, 9], [1034, 1040]], [[5, 9], [1034, 1040]]),
        ([[1034, 1040], [5, 9]], [[5, 9], [1034, 1040]]),
        # one that lies within another ends with it
        ([[0, 5000], [10, 20], [6024, 6030]], [[0, 6030]]),
        ([[0, 5000], [10, 20], [6025, 6030]], [[0, 5000], [6025, 6030]]),
        ([[0, 1], [9000, 9001], [20000, 20001]], [[0, 1], [9000, 9001], [20000, 20001]]),
    ],
)
def test_ranges_less_than_1024_apart_are_one(ranges, together):
    assert merged(np.array(ranges, dtype=np.int64).reshape(-1, 2)).tolist() == together


def test_what_is_further_than_1024_from_all_ranges():
    ranges = np.array([[2000, 2010], [9000, 9001]])
    ordinals = np.array([0, 975, 976, 2000, 2005, 3034, 3035, 5000, 7975, 7976, 10025, 10026])
    expected = [True, True, False, False, False, False, True, True, True, False, False, True]
    assert near_none(ordinals, ranges).tolist() == expected
    assert near_none(ordinals, ranges[:0]).tolist() == [True] * len(ordinals)
