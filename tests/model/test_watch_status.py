"""How far read_committed consumers of a watched partition are behind."""

import pytest

from kaudit.model.watch_status import WatchedPartition


@pytest.mark.parametrize(("end", "stable", "lag"), [
    (10, 7, 3), (10, 10, 0), (10, 0, 10), (None, 7, 0), (10, None, 0), (None, None, 0),
])  # fmt: skip
def test_the_lag_is_what_lies_behind_the_last_stable_offset(end, stable, lag):
    assert WatchedPartition("t", 0, "r", end, stable, 1, 1, None).last_stable_offset_lag == lag
