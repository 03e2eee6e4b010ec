"""The times that brokers stamped around an offset: what reading the whole log gives, found by bisection; and which lines they bound."""

import pytest

from kaudit.audits.log_events import broker_clocks
from kaudit.audits.log_events.broker_clocks import MAX_ANCHORS, _stamped_around, batch_anchors
from kaudit.audits.log_events.clock import Anchor
from kaudit.model.application_logs import LogEventKind
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.audits.log_events.made import event
from tests.logs import Log, data, marker

COUNT = 60


@pytest.fixture(params=[1 << 20, 300, 1])
def near_bytes(request, monkeypatch):
    """How close bisection comes: not at all, some batches, one."""
    monkeypatch.setattr(broker_clocks, "_NEAR_BYTES", request.param)


KIND = LogEventKind


def written(tmp_path, topic="orders", stamped=lambda number: number % 4 == 1):
    """Sixty batches of one to three records and of different sizes, in two segments; of some the time is a broker's."""
    log = Log(next_offset=5)
    sequence = 0
    for number in range(COUNT):
        if stamped(number) and number % 2:
            log.append(marker(9, 0))
            continue
        batch = data(7, 0, sequence, 1 + number % 3, payload=b"x" * (number * 37 % 200))
        sequence += log.append(batch).count
    middle = log.batches[40].base_offset
    (directory,) = discover([str(log.write(tmp_path / f"{topic}-0", segment_starts=(middle,)))]).partitions
    return log.batches, directory


def times(pair):
    return tuple(None if one is None else one.timestamp for one in pair)


def expected(batches, offset, stamps):
    """The last time before the offset, and the first at or after it in the segment that the offset lies in."""
    middle = batches[40].base_offset
    own = [batch for number, batch in enumerate(batches) if stamps(number)]
    before = [batch.timestamp for batch in own if batch.base_offset < offset]
    after = [batch for batch in own if batch.base_offset >= offset]
    here = after and (after[0].base_offset < middle) == (offset < middle)
    return before[-1] if before else None, after[0].timestamp if here else None


@pytest.mark.usefixtures("near_bytes")
def test_every_offset_of_a_log_with_markers(tmp_path):
    batches, directory = written(tmp_path)
    for offset in range(5, batches[-1].last_offset + 3):
        found = times(_stamped_around(directory, open_segment, offset))
        want = expected(batches, offset, lambda number: number % 4 == 1)
        # what lies further away than bisection comes near is not looked for; an earlier time bounds a line too
        assert found[0] is None or found[0] <= (want[0] or 0), offset
        assert found[1] in (None, want[1]), offset
        if broker_clocks._NEAR_BYTES == 1 << 20:
            assert found == want, offset


def test_every_batch_of_an_internal_topic_has_a_broker_s_time(tmp_path):
    batches, directory = written(tmp_path, "__consumer_offsets", lambda _: False)
    for offset in range(5, batches[-1].last_offset + 3):
        assert times(_stamped_around(directory, open_segment, offset)) == expected(batches, offset, lambda _: True)


def test_times_of_producers_say_nothing(tmp_path):
    batches, directory = written(tmp_path, stamped=lambda _: False)
    assert _stamped_around(directory, open_segment, batches[20].base_offset) == (None, None)


def test_an_offset_before_the_log_and_a_log_that_cannot_be_read(tmp_path):
    _, directory = written(tmp_path)
    assert _stamped_around(directory, open_segment, 4) == (None, None)

    def refuse(_segment):
        raise PermissionError(13, "Permission denied")

    assert _stamped_around(directory, refuse, 9) == (None, None)


def line(kind, offset, at=500, **more):
    return event(kind, topic="orders", partition=0, offset=offset, timestamp_ms=at, **more)


def test_a_leader_s_line_stands_between_the_batches_around_the_log_s_end(tmp_path):
    batches, directory = written(tmp_path)
    replicas = {("orders", 0): directory}
    end = batches[3].base_offset
    before, after = batches[1].timestamp, batches[5].timestamp
    for kind in (KIND.OUT_OF_ORDER_SEQUENCE, KIND.BECAME_LEADER):
        assert [one[:3] for one in batch_anchors([line(kind, end)], replicas, open_segment)] == [
            (500, before, after + 100)
        ]
    led = line(KIND.BECAME_LEADER, None, leader_epoch=0)
    for kind in (KIND.LOG_ROLLED, KIND.SNAPSHOT_WRITTEN):
        assert list(batch_anchors([line(kind, end), led], replicas, open_segment)) == [
            Anchor(500, before, after + 1000)
        ]
        # a follower writes the same when it has fetched the batch, some time after it was stamped
        assert list(batch_anchors([line(kind, end)], replicas, open_segment)) == [Anchor(500, before, None)]
    for other in (
        line(KIND.OUT_OF_ORDER_SEQUENCE, None),
        line(KIND.OUT_OF_ORDER_SEQUENCE, end, None),
        line(KIND.TRUNCATED, end),
        event(KIND.OUT_OF_ORDER_SEQUENCE, topic="orders", partition=1, offset=end, timestamp_ms=500),
    ):
        assert list(batch_anchors([other], replicas, open_segment)) == []


def test_of_many_lines_some_are_compared(tmp_path):
    batches, directory = written(tmp_path)
    lines = [line(KIND.OUT_OF_ORDER_SEQUENCE, batches[9].base_offset, at) for at in range(3 * MAX_ANCHORS + 1)]
    found = list(batch_anchors(lines, {("orders", 0): directory}, open_segment))
    assert 0.7 * MAX_ANCHORS <= len(found) <= MAX_ANCHORS
    assert found[-1].logged_ms >= 3 * MAX_ANCHORS - 4
