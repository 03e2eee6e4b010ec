"""What was written over time: adds up, whatever the buckets, and partitions add up to what one would have shown."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kaudit.analysis.timelines.activity_over_time import _WIDTHS, activity_over_time, added
from kaudit.analysis.timelines.merged_runs import MERGED_RUN
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
