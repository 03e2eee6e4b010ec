"""What was written over time: adds up, whatever the buckets, and partitions add up to what one would have shown."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.listings.activity import _WIDTHS, ActivityOverTime, activity_over_time, added
from kaudit.listings.merged_runs import MERGED_RUN
from kaudit.model.columns import Columns

_LATEST = 253_402_300_799_999
_TIMES = st.one_of(st.integers(0, 5_000), st.integers(1_700_000_000_000, 1_700_000_500_000), st.integers(0, _LATEST))
_RUNS = st.lists(st.tuples(st.integers(0, 5), _TIMES, st.integers(0, 100_000), st.integers(1, 10**9)), min_size=1)


def runs(rows):
    """Rows of (producer id, first time, how long in ms, bytes) as MERGED_RUN, by producer id."""
    rows = sorted(rows)
    ids, first, length, size = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    columns: dict[str, np.ndarray | int] = dict.fromkeys(MERGED_RUN.names or (), 0)
    columns |= {"producer_id": ids, "min_timestamp": first, "max_timestamp": np.minimum(first + length, _LATEST)}
    return Columns(MERGED_RUN, len(rows), {**columns, "bytes": size})


def test_each_width_divides_the_next():
    assert all(wide % narrow == 0 for narrow, wide in pairwise(_WIDTHS))


@given(_RUNS)
def test_bytes_add_up_and_no_producer_is_counted_twice(rows):
    activity = activity_over_time(runs(rows))

    assert activity is not None
    assert sum(activity.bytes) == sum(size for *_, size in rows)
    assert len(activity.bytes) == len(activity.began) == len(activity.ended) <= 256
    assert sum(activity.began) == sum(activity.ended) == len({number for number, *_ in rows})
    assert all(0 <= active <= len({number for number, *_ in rows}) for active in activity.active)
    assert activity.start_ms % activity.bucket_ms == 0


@given(_RUNS)
def test_a_producer_is_active_from_its_first_batch_to_its_last(rows):
    activity = activity_over_time(runs(rows))
    assert activity is not None
    spans: dict[int, tuple[int, int]] = {}
    for number, first, length, _ in rows:
        low, high = spans.get(number, (first, 0))
        spans[number] = min(low, first), max(high, min(first + length, _LATEST))

    for bucket, active in enumerate(activity.active):
        begins = activity.start_ms + bucket * activity.bucket_ms
        ends = begins + activity.bucket_ms - 1
        assert active == sum(low <= ends and high >= begins for low, high in spans.values())


@given(st.lists(_RUNS, min_size=1, max_size=3))
def test_partitions_add_up(partitions):
    parts = [activity_over_time(runs(rows)) for rows in partitions]
    total = added([part for part in parts if part is not None])

    assert total is not None
    assert sum(total.bytes) == sum(size for rows in partitions for *_, size in rows)
    assert sum(total.began) == sum(len({number for number, *_ in rows}) for rows in partitions)
    assert total.bytes[0] >= 0
    assert len(total.bytes) <= 256


def test_what_has_no_time_is_not_shown():
    rows = runs([(1, 0, 0, 10)])
    untimed = Columns(
        MERGED_RUN, 1, {**{name: rows[name] for name in MERGED_RUN.names or ()}, "min_timestamp": np.array([-1])}
    )

    assert activity_over_time(untimed) is None
    assert added([]) is None


def test_the_bytes_of_a_run_are_spread_over_its_time():
    # 10 ms of 10 bytes each from 1000 on, and 5 ms of 3 from 1008 on; both ends of a run are its own
    activity = activity_over_time(runs([(1, 1000, 9, 100), (2, 1008, 4, 15)]))
    assert activity is not None
    assert (activity.start_ms, activity.bucket_ms) == (1000, 1)
    assert activity.bytes == [10] * 8 + [13] * 2 + [3] * 3
    assert activity.began == [1, *[0] * 7, 1, *[0] * 4]
    assert activity.ended == [*[0] * 9, 1, 0, 0, 1]
    assert activity.active == [1] * 8 + [2] * 2 + [1] * 3


@pytest.mark.parametrize(
    ("first", "last", "width", "count"),
    [(0, 255, 1, 256), (0, 256, 5, 52), (3, 258, 1, 256), (4, 1279, 5, 256), (4, 1280, 10, 129), (7, 7, 1, 1)],
)
def test_the_least_width_that_needs_no_more_than_256_aligned_buckets(first, last, width, count):
    activity = activity_over_time(runs([(1, first, last - first, 7)]))
    assert activity is not None
    assert (activity.bucket_ms, len(activity.bytes)) == (width, count)
    assert activity.start_ms == first - first % width


def test_widths_of_everything_from_a_millisecond_to_a_hundred_years():
    second, minute, hour, day = 1000, 60 * 1000, 60 * 60 * 1000, 24 * 60 * 60 * 1000
    assert (
        *(1, 5, 10, 50, 100, 500),
        *(second, 5 * second, 10 * second, 30 * second, minute, 5 * minute, 10 * minute, 30 * minute),
        *(hour, 3 * hour, 6 * hour, 12 * hour, day, 7 * day, 28 * day, 364 * day, 3640 * day, 36_400 * day),
    ) == _WIDTHS


def test_runs_whose_times_are_no_times_are_left_out():
    assert activity_over_time(runs([(1, -1, 5, 10)])) is None
    late = activity_over_time(runs([(1, _LATEST, 0, 10), (2, -1, 5, 99)]))
    assert late is not None
    assert (late.start_ms, late.bytes, late.began) == (_LATEST, [10], [1])


def test_narrow_buckets_are_added_up_to_the_wider_ones():
    narrow = ActivityOverTime(995, 1, [1, 2, 4, 8, 16, 32], [1, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1])
    wide = ActivityOverTime(1000, 5, [100, 200], [3, 0], [0, 3])
    assert added([narrow, wide]) == ActivityOverTime(995, 5, [31, 132, 200], [2, 3, 0], [1, 1, 3])
    assert added([narrow]) == narrow
    far = ActivityOverTime(995 + 256, 1, [7], [1], [1])
    assert added([narrow, far]) == ActivityOverTime(
        995, 5, [31, 32, *[0] * 49, 7], [2, *[0] * 50, 1], [1, 1, *[0] * 49, 1]
    )
