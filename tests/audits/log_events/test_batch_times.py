"""The times of the batches around an offset: what reading the whole segment gives, found by bisection."""

from dataclasses import replace

import pytest

from kaudit.audits.log_events import batch_times
from kaudit.audits.log_events.batch_times import _times_around
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.logs import Log, data

COUNT = 60


@pytest.fixture(params=[1 << 20, 300, 1])
def near_bytes(request, monkeypatch):
    """How close bisection comes: not at all, some batches, one."""
    monkeypatch.setattr(batch_times, "_NEAR_BYTES", request.param)


def written(tmp_path, timeless=()):
    """Sixty batches of one to three records and of different sizes, in two segments."""
    log = Log(next_offset=5)
    sequence = 0
    for number in range(COUNT):
        batch = data(7, 0, sequence, 1 + number % 3, payload=b"x" * (number * 37 % 200))
        without = number in timeless
        placed = log.append(replace(batch, timestamp=-1) if without else batch, keep_time=without)
        sequence += placed.count
    middle = log.batches[40].base_offset
    (directory,) = discover([str(log.write(tmp_path / "orders-0", segment_starts=(middle,)))]).partitions
    return log.batches, middle, directory


def expected(batches, middle, offset):
    """Of the segment the offset lies in: the last time before it, and that of the first batch at it or behind it."""
    first = 0 if offset < middle else middle
    own = [batch for batch in batches if (batch.base_offset < middle) == (first < middle)]
    before = [batch.timestamp for batch in own if batch.base_offset < offset and batch.timestamp >= 0]
    behind = [batch.timestamp for batch in own if batch.base_offset >= offset]
    pair = (before[-1] if before else None, behind[0] if behind and behind[0] >= 0 else None)
    return None if pair == (None, None) else pair


@pytest.mark.usefixtures("near_bytes")
def test_every_offset_of_a_log(tmp_path):
    batches, middle, directory = written(tmp_path)
    for offset in range(5, batches[-1].last_offset + 3):
        assert _times_around(directory, open_segment, offset) == expected(batches, middle, offset), offset


def test_batches_without_a_time_are_passed_over(tmp_path):
    batches, middle, directory = written(tmp_path, timeless={0, 6, 7, 40, 59})
    for offset in range(5, batches[-1].last_offset + 3):
        assert _times_around(directory, open_segment, offset) == expected(batches, middle, offset), offset


def test_an_offset_before_the_log_and_a_log_that_cannot_be_read(tmp_path):
    _, _, directory = written(tmp_path)
    assert _times_around(directory, open_segment, 4) is None

    def refuse(_segment):
        raise PermissionError(13, "Permission denied")

    assert _times_around(directory, refuse, 9) is None
