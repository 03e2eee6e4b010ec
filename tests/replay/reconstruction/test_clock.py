"""How the clock of a reconstructed broker follows the timestamps of batches."""

from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.replay.reconstruction.partition_lines import PartitionLines

WRITTEN = 1_700_000_000_000
MINUTE = 60_000


@pytest.mark.parametrize(
    ("timestamp", "of_the_broker", "at"),
    [
        (WRITTEN, False, WRITTEN),
        (WRITTEN + MINUTE, False, WRITTEN + MINUTE),
        (WRITTEN + MINUTE + 1, False, 5),  # a client's clock is wrong
        (WRITTEN + MINUTE + 1, True, WRITTEN + MINUTE + 1),
        (-1, False, 5),
        (-1, True, 5),
        (4, False, 5),  # never back
        (6, False, 6),
    ],
)
@pytest.mark.parametrize("by", ["log_append_time", "commit"])
def test_the_clock_follows_times_up_to_a_minute_behind_the_last_write(timestamp, of_the_broker, at, by):
    """Times that the broker itself gave are exact: of markers, and of topics with LogAppendTime."""
    exact = {"log_append_time": False, "commit": None}
    if of_the_broker:
        exact[by] = by == "log_append_time"  # an abort is no commit, and a marker all the same
    row: Any = SimpleNamespace(timestamp=timestamp, modified_ms=WRITTEN, **exact)
    lines: Any = SimpleNamespace(_at=5)
    PartitionLines._pass_time(lines, row)
    assert lines._at == at


@pytest.mark.parametrize(("timestamp", "at"), [(0, 0), (7, 7), (-1, None)])
def test_the_first_time_sets_the_clock(timestamp, at):
    row: Any = SimpleNamespace(timestamp=timestamp, modified_ms=WRITTEN, log_append_time=False, commit=None)
    lines: Any = SimpleNamespace(_at=None)
    PartitionLines._pass_time(lines, row)
    assert lines._at == at
