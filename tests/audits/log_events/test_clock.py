"""The clock of a server log, estimated from lines whose place among the batches is known."""

import random

import pytest

from kaudit.audits.log_events.clock import Anchor, PartitionAnchors, coordinator_anchors, estimate_clock
from kaudit.model.application_logs import LogEventKind
from kaudit.model.coordinator import TransactionRecord, TransactionStatus, TransactionValue
from tests.audits.log_events.made import batch, event

HOUR = 3_600_000


def anchors(offset, count=20, seed=0):
    """Lines written 1 to 5 ms behind a batch and up to a second before the next, in a log whose clock is `offset` behind."""
    source = random.Random(seed)
    for number in range(count):
        appended = 1_000_000_000 + number * 60_000
        written = appended + source.randint(1, 5)
        yield Anchor(written - offset, appended, appended + source.randint(100, 1_000))


@pytest.mark.parametrize("offset", [0, 1_234, -7_000, 90_000])
def test_the_true_offset_lies_in_the_interval(offset):
    clock = estimate_clock(anchors(offset), zone_known=True)
    assert clock is not None
    assert clock.lower_ms <= offset <= clock.upper_ms
    assert clock.upper_ms - clock.lower_ms < 1_000
    assert abs(clock.likely_ms - offset) <= 5
    assert (clock.anchors, clock.agreeing, clock.zone_minutes) == (20, 20, None)


@pytest.mark.parametrize("minutes", [0, 330, -210, 345, -720, 840])
def test_the_zone_is_distinguished_from_the_skew(minutes):
    clock = estimate_clock(anchors(1_500 - minutes * 60_000), zone_known=False)
    assert clock is not None
    assert clock.zone_minutes == minutes
    assert abs(clock.skew_ms - 1_500) <= 5


def test_a_producer_with_a_wrong_clock_does_not_move_it():
    wrong = [
        Anchor(one.logged_ms, (one.after_ms or 0) + 5 * HOUR, (one.before_ms or 0) + 5 * HOUR)
        for one in anchors(0, 6, 1)
    ]
    clock = estimate_clock([*anchors(800), *wrong], zone_known=True)
    assert clock is not None
    assert clock.lower_ms <= 800 <= clock.upper_ms
    assert (clock.anchors, clock.agreeing) == (26, 20)


def test_where_lines_allow_that_there_is_no_skew_there_is_none():
    # five seconds behind one batch, half a minute before the next
    late = [Anchor(number * HOUR + 5_000, number * HOUR, number * HOUR + 35_000) for number in range(9)]
    clock = estimate_clock(late, zone_known=True)
    assert clock is not None
    assert (clock.lower_ms, clock.likely_ms, clock.upper_ms) == (-5_000, 0, 30_000)


def test_too_few_or_contradicting_lines_say_nothing():
    assert estimate_clock([], zone_known=True) is None
    assert estimate_clock(list(anchors(0))[:2], zone_known=True) is None
    assert estimate_clock([Anchor(number * HOUR, 0, 1) for number in range(20)], zone_known=True) is None


def test_lines_behind_the_last_batch_bound_it_on_one_side_only():
    assert estimate_clock([Anchor(5_000, 1_000, None) for _ in range(9)], zone_known=True) is None


def test_a_log_without_traffic_leaves_the_zone_open():
    far = [Anchor(1_000_000_000, 1_000_000_000 - HOUR, 1_000_000_000 + HOUR) for _ in range(9)]
    clock = estimate_clock(far, zone_known=False)
    assert clock is not None
    assert (clock.lower_ms, clock.upper_ms, clock.zone_minutes) == (-HOUR, HOUR, None)


def test_anchors_are_lines_that_name_an_offset_or_the_last_sequence_of_a_producer():
    by_offset = event(offset=2, timestamp_ms=150)
    at_the_end = event(offset=4, timestamp_ms=450, line=2)
    by_state = event(producer_id=7, last_sequence=1, timestamp_ms=180, line=3)
    found = PartitionAnchors([by_offset, at_the_end, by_state, event(timestamp_ms=5, line=4)])
    for one in (batch(0, 1, 100), batch(2, 2, 200), batch(3, 3, 300)):
        found.take(one)
    assert found.found() == [
        (by_offset, Anchor(150, 100, 200)),
        (at_the_end, Anchor(450, 300, None)),
        (by_state, Anchor(180, 100, 200)),
    ]


def test_a_coordinator_logs_what_it_has_just_written():
    value = TransactionValue(0, 4, 1, 60_000, TransactionStatus.EMPTY, 0, None, 5_000, -1)
    given = event(
        LogEventKind.PRODUCER_ID_ASSIGNED, transactional_id="tx", producer_id=4, producer_epoch=1, timestamp_ms=9
    )
    other = event(
        LogEventKind.PRODUCER_ID_ASSIGNED, transactional_id="tx", producer_id=4, producer_epoch=2, timestamp_ms=9
    )
    assert coordinator_anchors([given, other], {"tx": [TransactionRecord("tx", value)]}) == [
        (given, Anchor(9, 5_000, 6_000))
    ]


MINUTE = 60_000


def between(*intervals):
    """Lines written at 0 by a log's clock, each between batches of these times."""
    return [Anchor(0, after, before) for after, before in intervals]


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([(5, 9)] * 2, None),
        ([(5, 9)] * 3, (5, 9, 5, 3, 3)),
        # three of five agree, three of six do not suffice
        ([*[(5, 9)] * 3, (100, 101), (200, 201)], (5, 9, 5, 5, 3)),
        ([*[(5, 9)] * 3, (100, 101), (200, 201), (300, 301)], None),
        # six hours wide at most
        ([(-3 * HOUR, 3 * HOUR)] * 3, (-3 * HOUR, 3 * HOUR, 0, 3, 3)),
        ([(-3 * HOUR, 3 * HOUR + 1)] * 3, None),
        # both sides must be bounded, by whichever lines
        ([(None, 9)] * 3, None),
        ([(5, None)] * 3, None),
        ([(None, 9), (5, None), (7, None)], (7, 9, 7, 3, 3)),
        # the batch behind a line has an earlier time than the one before
        ([(9, 5)] * 3, (9, 9, 9, 3, 3)),
        # no skew is likely where most lines allow it
        ([(0, 9)] * 3, (0, 9, 0, 3, 3)),
        ([(-9, 0)] * 3, (-9, 0, 0, 3, 3)),
        ([(-9, -1)] * 3, (-9, -1, -9, 3, 3)),
        # what nine of ten allow belongs to it, what eight of nine do not
        ([*[(0, 100)] * 9, (20, 50)], (0, 100, 20, 10, 10)),
        ([*[(0, 100)] * 8, (20, 50)], (20, 50, 20, 9, 9)),
    ],
)
def test_the_interval_that_most_lines_allow(intervals, expected):
    clock = estimate_clock(between(*intervals), zone_known=True)
    found = clock and (clock.lower_ms, clock.upper_ms, clock.likely_ms, clock.anchors, clock.agreeing)
    assert found == expected


@pytest.mark.parametrize(
    ("lower", "upper", "zone_minutes", "likely"),
    [
        (0, 0, 0, 0),
        # a clock is five minutes off at most
        (5 * MINUTE, 5 * MINUTE, 0, 5 * MINUTE),
        (5 * MINUTE + 1, 5 * MINUTE + 1, None, 5 * MINUTE + 1),
        (-5 * MINUTE, -5 * MINUTE, 0, -5 * MINUTE),
        (-5 * MINUTE - 1, -5 * MINUTE - 1, None, -5 * MINUTE - 1),
        (10 * MINUTE - 1, 10 * MINUTE - 1, None, 10 * MINUTE - 1),
        (10 * MINUTE, 10 * MINUTE, -15, 10 * MINUTE),
        # what has to be added to a clock that is behind is a zone west of UTC
        (10 * MINUTE, 20 * MINUTE, -15, 15 * MINUTE),
        (16 * MINUTE, 20 * MINUTE, -15, 16 * MINUTE),
        (-HOUR, -HOUR, 60, -HOUR),
        # several zones explain it
        (0, 10 * MINUTE, None, 0),
        (0, 10 * MINUTE - 1, 0, 0),
        # no zone is further than fourteen hours from UTC
        (14 * HOUR, 14 * HOUR, -840, 14 * HOUR),
        (-14 * HOUR, -14 * HOUR, 840, -14 * HOUR),
        (14 * HOUR + 15 * MINUTE, 14 * HOUR + 15 * MINUTE, None, 14 * HOUR + 15 * MINUTE),
        (-14 * HOUR - 15 * MINUTE, -14 * HOUR - 15 * MINUTE, None, -14 * HOUR - 15 * MINUTE),
    ],
)
def test_zones_are_quarters_of_an_hour(lower, upper, zone_minutes, likely):
    clock = estimate_clock(between(*[(lower, upper)] * 3), zone_known=False)
    assert clock is not None
    assert (clock.zone_minutes, clock.likely_ms) == (zone_minutes, likely)
    assert clock.skew_ms == likely + (zone_minutes or 0) * MINUTE
    assert clock.batch_time(1_000) == 1_000 + likely
    known = estimate_clock(between(*[(lower, upper)] * 3), zone_known=True)
    assert known is not None
    assert known.zone_minutes is None


def test_which_lines_bound_a_clock():
    by_state = [event(producer_id=7, last_sequence=1, timestamp_ms=number, line=number) for number in (180, 181)]
    without_time = event(producer_id=7, last_sequence=1, line=1)
    other_producer = event(producer_id=8, last_sequence=1, timestamp_ms=5, line=2)
    not_reached = event(producer_id=7, last_sequence=9, timestamp_ms=5, line=3)
    found = PartitionAnchors([*by_state, without_time, other_producer, not_reached])
    # a marker and a batch of another producer between the two do not end the state
    for one in (
        batch(0, 1, 100),
        batch(2, 2, 120, last_sequence=-1),
        batch(3, 3, 130, producer_id=-1),
        batch(4, 9, 200),
    ):
        found.take(one)
    assert found.found() == [(one, Anchor(one.timestamp_ms or 0, 100, 200)) for one in by_state]


def test_lines_that_name_an_offset_stand_between_the_batches_around_it():
    lines = [event(offset=offset, timestamp_ms=9, line=offset) for offset in (5, 0, 3, 2, 4)]
    found = PartitionAnchors([*lines, event(offset=2, line=9)])
    for one in (batch(0, 1, 100), batch(2, 3, 200), batch(4, 4, 300)):
        found.take(one)
    assert {one.offset: anchor[1:] for one, anchor in found.found()} == {
        0: (None, 100), 2: (100, 200), 3: (200, 300), 4: (200, 300), 5: (300, None),
    }  # fmt: skip
