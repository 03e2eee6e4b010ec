"""What came first: where in a partition's order the lines of server logs stand."""

from kaudit.audits.log_events.placement import Certainty, EventPlacer, EventSource, by_broker
from kaudit.model.application_logs import LogEventKind
from tests.audits.log_events.made import batch, event

BATCHES = [batch(0, 1, 100), batch(2, 2, 200, producer_id=9, last_sequence=0), batch(3, 4, 300), batch(5, 5, 400)]


def placed(*sources, batches=BATCHES):
    """(line, offset before, offset behind, certainty) of every event, in order."""
    placer = EventPlacer([EventSource(events, clock) for events, clock in sources])
    found = [one for each in batches for one in placer.before(each)]
    found += placer.rest()
    return [(one.event.line, one.after_offset, one.before_offset, one.certainty) for one in found]


def same(one):
    return one.timestamp_ms


def test_a_line_that_names_the_end_of_the_log_stands_there_whatever_the_clocks_say():
    events = [
        event(line=1, offset=2, timestamp_ms=999),
        event(line=2, offset=5, timestamp_ms=1),
        event(line=3, offset=6),
    ]
    assert placed((events, same)) == [
        (1, 1, 2, Certainty.OFFSET),
        (2, 4, 5, Certainty.OFFSET),
        (3, 5, None, Certainty.OFFSET),
    ]


def test_a_line_that_names_the_last_sequence_stands_before_the_next_batch_of_its_producer():
    # its clock says it is behind all batches
    events = [event(producer_id=7, last_sequence=1, timestamp_ms=9_999)]
    assert placed((events, same)) == [(1, 2, 3, Certainty.SEQUENCE)]


def test_other_lines_stand_where_their_time_says():
    events = [event(line=1, timestamp_ms=50), event(line=2, timestamp_ms=250), event(line=3, timestamp_ms=260)]
    assert placed((events, same)) == [
        (1, -1, 0, Certainty.TIME),
        (2, 2, 3, Certainty.TIME),
        (3, 2, 3, Certainty.TIME),
    ]


def test_the_clock_of_the_log_is_corrected():
    events = [event(timestamp_ms=1_000_250)]
    assert placed((events, lambda one: one.timestamp_ms - 1_000_000)) == [(1, 2, 3, Certainty.TIME)]


def test_without_a_clock_lines_stand_between_their_neighbours():
    events = [
        event(line=1, offset=2, timestamp_ms=7),
        event(line=2, timestamp_ms=8),
        event(line=3, offset=3, timestamp_ms=9),
    ]
    assert placed((events, None)) == [
        (1, 1, 2, Certainty.OFFSET),
        (2, 2, 3, Certainty.ORDER),
        (3, 2, 3, Certainty.OFFSET),
    ]


def test_lines_of_one_log_keep_their_order():
    events = [event(line=1, offset=5, timestamp_ms=350), event(line=2, timestamp_ms=10)]
    assert placed((events, same)) == [(1, 4, 5, Certainty.OFFSET), (2, 4, 5, Certainty.TIME)]


def test_lines_of_two_brokers_come_by_time():
    first = [event(line=1, offset=2, timestamp_ms=190, path="b1/server.log")]
    second = [
        event(line=2, timestamp_ms=150, path="b2/server.log"),
        event(line=3, timestamp_ms=195, path="b2/server.log"),
    ]
    assert [line for line, *_ in placed((first, same), (second, same))] == [2, 1, 3]


def test_what_a_leader_said_of_offsets_that_its_successor_lacks_is_lost():
    events = [event(line=1, offset=9, timestamp_ms=250)]
    batches = [batch(0, 1, 100), batch(2, 2, 300, leader_epoch=4)]
    placer = EventPlacer([EventSource(events, same)])
    found = [one for each in batches for one in placer.before(each)]
    assert [(one.event.line, one.lost, one.before_offset) for one in found] == [(1, True, 2)]


def test_the_files_of_a_directory_are_one_log():
    events = [
        event(line=1, path="b1/server.log", timestamp_ms=30),
        event(line=2, path="b1/server.log"),
        event(line=9, path="b1/server.log.2026-11-22-17", timestamp_ms=10),
        event(line=4, path="b1/state-change.log", timestamp_ms=20, kind=LogEventKind.BECAME_LEADER),
        event(line=1, path="b2/server.log", timestamp_ms=1),
    ]
    found = by_broker(events)
    assert [one.line for one in found["b1", None]] == [9, 4, 1, 2]
    assert list(found) == [("b1", None), ("b2", None)]


def test_files_of_one_directory_are_merged_by_time_and_lines_without_one_follow_the_line_before():
    events = [
        event(line=1, path="b1/a.log"),
        event(line=2, path="b1/a.log", timestamp_ms=20),
        event(line=3, path="b1/a.log", timestamp_ms=10),
        event(line=4, path="b1/a.log"),
        event(line=5, path="b1/a.log", timestamp_ms=30),
        event(line=6, path="b1/b.log", timestamp_ms=20),
        event(line=7, path="b1/b.log", timestamp_ms=0),
        event(line=8, path="b1/b.log", timestamp_ms=29),
    ]
    assert [one.line for one in by_broker(events)["b1", None]] == [1, 2, 3, 4, 6, 7, 8, 5]


def test_lines_of_two_brokers_without_times_keep_the_order_of_their_logs():
    first = [event(line=1, offset=2, timestamp_ms=190, path="b1/s.log"), event(line=2, offset=2, path="b1/s.log")]
    second = [event(line=3, offset=2, path="b2/s.log"), event(line=4, offset=2, timestamp_ms=191, path="b2/s.log")]
    assert [line for line, *_ in placed((first, same), (second, same))] == [3, 1, 2, 4]
    # one broker's later time does not hold up what it wrote behind it, nor the other's
    first = [
        event(line=1, offset=2, timestamp_ms=190, path="b1/s.log"),
        event(line=2, offset=2, timestamp_ms=5, path="b1/s.log"),
    ]
    assert [line for line, *_ in placed((first, same), (second, same))] == [3, 1, 2, 4]


def test_a_sequence_that_the_producer_repeats_places_nothing():
    batches = [batch(0, 1, 100), batch(2, 2, 200, last_sequence=1), batch(3, 3, 300, last_sequence=2)]
    events = [event(producer_id=7, last_sequence=1, timestamp_ms=9_999)]
    assert placed((events, same), batches=batches) == [(1, 2, 3, Certainty.SEQUENCE)]
    for other in (event(producer_id=8, last_sequence=1), event(producer_id=7, last_sequence=5), event(last_sequence=1)):
        assert placed(([other], same), batches=batches) == [(1, 3, None, Certainty.ORDER)]


def test_a_line_of_the_time_of_a_batch_stands_behind_it():
    events = [event(line=1, timestamp_ms=199), event(line=2, timestamp_ms=200), event(line=3, timestamp_ms=201)]
    assert placed((events, same)) == [(1, 1, 2, Certainty.TIME), (2, 2, 3, Certainty.TIME), (3, 2, 3, Certainty.TIME)]


def test_an_end_that_is_not_reached_yet_is_lost_only_where_the_leader_changes():
    def found(time, epochs, offset=9):
        batches = [batch(0, 1, 100, leader_epoch=epochs[0]), batch(2, 2, 300, leader_epoch=epochs[1])]
        placer = EventPlacer([EventSource([event(offset=offset, timestamp_ms=time)], same)])
        placed = [one for each in batches for one in placer.before(each)]
        return [(one.lost, one.before_offset) for one in [*placed, *placer.rest()]]

    assert found(250, (3, 4)) == [(True, 2)]
    assert found(250, (3, 3)) == [(True, None)]
    assert found(300, (3, 4)) == [(True, None)]
    assert found(250, (3, 4), offset=2) == [(False, 2)]
    assert found(250, (3, 3), offset=3) == [(False, None)]
    assert found(250, (3, 3), offset=4) == [(True, None)]


def test_behind_the_last_batch_only_a_line_that_names_the_logs_end_can_be_lost():
    # TRUNCATED names the offset that was cut back to, not the end of the log that batches are appended at
    truncated = event(LogEventKind.TRUNCATED, line=1, offset=99)
    placer = EventPlacer([EventSource([truncated, event(line=2, offset=99), event(line=3)], None)])
    assert [one for each in BATCHES for one in placer.before(each)] == []
    assert [(one.event.line, one.lost, one.certainty) for one in placer.rest()] == [
        (1, False, Certainty.ORDER),
        (2, True, Certainty.OFFSET),
        (3, False, Certainty.ORDER),
    ]
    assert list(placer.rest()) == []
