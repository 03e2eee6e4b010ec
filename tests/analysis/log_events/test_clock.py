"""The clock of a server log, estimated from lines whose place among the batches is known."""

import random

import pytest

from kaudit.analysis.log_events.anchors import PartitionAnchors, coordinator_anchors
from kaudit.analysis.log_events.clock import Anchor, estimate_clock
from kaudit.model.log_event import LogEventKind
from kaudit.model.transaction_state import TransactionRecord, TransactionStatus, TransactionValue
from tests.analysis.log_events.made import batch, event

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
