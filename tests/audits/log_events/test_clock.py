"""The clock of a server log, estimated from lines about what the bytes have too."""

import random

import pytest

from kaudit.audits.log_events.clock import Anchor, AnchorSource, ClockOffset, Unaligned, estimate_clock

HOUR, MINUTE = 3_600_000, 60_000
NOW = 1_700_000_000_000
GROUPS, TRANSACTIONS, QUORUM, METADATA, BATCHES, _ = AnchorSource


def exact(offset, *times, source=GROUPS, late=5):
    """Lines written `late` ms after their records, in a log to whose times `offset` has to be added."""
    soon = 3000 if source is METADATA else 1000
    return [Anchor(at + late - offset, at, at + soon, source) for at in times]


def one(anchors, *, zone_known=False) -> ClockOffset:
    """The clock, of which there is one."""
    found = estimate_clock(anchors, zone_known=zone_known)
    assert isinstance(found, list), found
    (clock,) = found
    return clock


@pytest.mark.parametrize("source", [GROUPS, TRANSACTIONS, QUORUM, METADATA])
@pytest.mark.parametrize("minutes", [0, 330, 345, 525, 825, 840, -210, -570, -720])
def test_one_event_in_log_and_bytes_gives_the_zone(minutes, source):
    clock = one(exact(-minutes * MINUTE, NOW, source=source))
    assert (clock.likely_ms, clock.zone_minutes, clock.zones, clock.exact) == (
        -minutes * MINUTE, minutes, (minutes,), True,
    )  # fmt: skip
    assert clock.lower_ms <= clock.likely_ms <= clock.upper_ms
    assert (clock.anchors, clock.agreeing, clock.spread_ms) == ({source: 1}, {source: 1}, 0)
    assert clock.is_known
    assert clock.skew_ms == 0


def test_lines_that_come_late_agree_with_the_others_that_do_not():
    anchors = [*exact(-19_800_000, NOW, NOW + HOUR), *exact(-19_800_000, NOW + 5, late=700)]
    clock = one([*anchors, *exact(-19_800_000, NOW + 9, late=60_000)])
    assert (clock.zone_minutes, clock.anchors, clock.agreeing, clock.spread_ms) == (330, {GROUPS: 4}, {GROUPS: 3}, 695)


def test_a_broker_s_own_records_decide_before_the_controller_s_whose_clock_may_differ():
    own = exact(0, NOW)
    others = exact(-40_000, *range(NOW, NOW + 660_000, 60_000), source=METADATA)
    clock = one([*own, *others])
    assert (clock.likely_ms, clock.zone_minutes) == (0, 0)
    # that the controller's clock is 40 s behind is no contradiction
    assert (clock.anchors, clock.agreeing) == ({GROUPS: 1, METADATA: 11}, {GROUPS: 1, METADATA: 11})
    assert clock.behind_controller_ms == pytest.approx(-40_000, abs=5)
    same = one([*own, *exact(0, NOW, source=METADATA)])
    assert (same.behind_controller_ms, same.agreeing) == (0, {GROUPS: 1, METADATA: 1})
    few = one([*own, *exact(-40_000, NOW, source=METADATA)])
    assert (few.behind_controller_ms, few.agreeing) == (None, {GROUPS: 1, METADATA: 0})
    far = one([*own, *exact(-HOUR, *range(NOW, NOW + 660_000, 60_000), source=METADATA)])
    assert (far.behind_controller_ms, far.agreeing) == (None, {GROUPS: 1, METADATA: 0})
    assert one(others).behind_controller_ms is None


@pytest.mark.parametrize("skew", [40_000, -40_000, 4 * MINUTE])
def test_the_controller_s_records_alone_show_a_zone_and_how_the_two_clocks_differ(skew):
    times = range(NOW, NOW + 660_000, 60_000)
    clock = one(exact(skew - 345 * MINUTE, *times, source=METADATA, late=0))
    assert (clock.zone_minutes, clock.skew_ms, clock.exact) == (345, skew, True)


@pytest.mark.parametrize(
    "times",
    [(NOW,), tuple(range(NOW, NOW + 4 * HOUR, HOUR)), tuple(range(NOW, NOW + 600_000, 60_000))],
    ids=["one line", "four lines", "lines of one start"],
)
def test_few_lines_beside_every_zone_are_chance(times):
    assert estimate_clock(exact(40_000, *times, source=METADATA), zone_known=False) == Unaligned(len(times))


def test_one_line_is_enough_where_the_record_names_the_process_that_wrote_it():
    (line,) = exact(40_000 - 345 * MINUTE, NOW, source=METADATA, late=0)
    clock = one([line._replace(identified=True)])
    assert (clock.zone_minutes, clock.skew_ms) == (345, 40_000)


@pytest.mark.parametrize("source", [GROUPS, METADATA])
def test_an_unrelated_cluster_contradicts(source):
    anchors = [
        anchor
        for number, offset in enumerate((17 * MINUTE, 3 * HOUR, 50 * MINUTE, -7 * HOUR))
        for anchor in exact(offset + 123_456, NOW + number * HOUR, source=source)
    ]
    assert estimate_clock(anchors, zone_known=False) == Unaligned(4)


def test_lines_that_allow_anything_and_no_lines_at_all_say_nothing():
    assert estimate_clock([], zone_known=False) == Unaligned()
    assert estimate_clock([Anchor(5, None, None)], zone_known=False) == Unaligned()
    assert estimate_clock([Anchor(5, None, None)], zone_known=True) == Unaligned()


def between(*intervals):
    """Lines written at 0 by a log's clock, each between batches of these times."""
    return [Anchor(0, after, before) for after, before in intervals]


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([(5, 9)], (5, 9, 5, 1, 1)),
        # three of five agree; three of six do not suffice
        ([*[(5, 9)] * 3, (20_000, 20_001), (30_000, 30_001)], (5, 9, 5, 5, 3)),
        ([*[(5, 9)] * 3, (20_000, 20_001), (30_000, 30_001), (40_000, 40_001)], None),
        # both sides must be bounded, by whichever lines
        ([(None, 9)] * 3, None),
        ([(5, None)] * 3, None),
        ([(None, 9), (5, None), (7, None)], (7, 9, 7, 3, 3)),
        # the batch after a line has an earlier time than the one before
        ([(9, 5)] * 3, (9, 9, 9, 3, 3)),
        # no difference is likely where most lines allow it
        ([(0, 9)] * 3, (0, 9, 0, 3, 3)),
        ([(-9, 0)] * 3, (-9, 0, 0, 3, 3)),
        ([(-9, -1)] * 3, (-9, -1, -1, 3, 3)),
        # what nine of ten allow belongs to it, what eight of nine do not
        ([*[(0, 100)] * 9, (20, 50)], (0, 100, 20, 10, 10)),
        ([*[(0, 100)] * 8, (20, 50)], (20, 50, 20, 9, 9)),
        # of two ranges that as many allow, the higher: lines may be late
        ([(0, 9), (20_000, 20_009)], None),
    ],
)
def test_the_interval_that_most_lines_allow(intervals, expected):
    found = estimate_clock(between(*intervals), zone_known=True)
    clock = found[0] if isinstance(found, list) else None
    assert expected == (
        clock
        and (
            clock.lower_ms,
            clock.upper_ms,
            clock.likely_ms,
            sum(clock.anchors.values()),
            sum(clock.agreeing.values()),
        )
    )


@pytest.mark.parametrize(
    ("lower", "upper", "zones", "likely"),
    [
        (-20 * MINUTE, -10 * MINUTE, (15,), -15 * MINUTE),
        (-330 * MINUTE - 3_000, -330 * MINUTE + 9_000, (330,), -330 * MINUTE),
        # a record is stamped before it is appended, a line before it is written
        (-15 * MINUTE + 1_000, -5 * MINUTE, (15,), -15 * MINUTE),
        (-15 * MINUTE + 1_001, -5 * MINUTE, None, None),
        # several zones: taken as UTC, if that is one of them
        (-HOUR, HOUR, (-60, -45, -30, -15, 0, 15, 30, 45, 60), 0),
        (-2 * HOUR, -90 * MINUTE, (90, 105, 120), -90 * MINUTE),
        # local times are at most twelve hours behind and fourteen ahead of UTC
        (11 * HOUR + 50 * MINUTE, 20 * HOUR, (-720,), 12 * HOUR),
        (-20 * HOUR, -13 * HOUR - 50 * MINUTE, (840,), -14 * HOUR),
        (13 * HOUR, 20 * HOUR, None, None),
        (None, -13 * HOUR - 50 * MINUTE, (840,), -14 * HOUR),
        (11 * HOUR + 50 * MINUTE, None, (-720,), 12 * HOUR),
    ],
)
def test_an_interval_has_the_zones_in_it(lower, upper, zones, likely):
    found = estimate_clock(between((lower, upper)), zone_known=False)
    if zones is None:
        assert found == Unaligned(1)
        return
    narrow = lower is not None and upper is not None and upper - lower < 15 * MINUTE
    for lines in (1, 2, 3):
        clock = one(between(*[(lower, upper)] * lines))
        assert (clock.zones, clock.likely_ms) == (zones, likely)
        # offsets recur in every cluster: one or two lines are not enough
        assert clock.is_known == (len(zones) == 1 and narrow and lines == 3)
        assert clock.zone_minutes == (zones[0] if clock.is_known else None)
        assert clock.exact == (clock.is_known and upper - lower < 5_000)
        assert clock.spread_ms is None
        assert clock.agreeing == {BATCHES: lines}


def test_a_log_that_states_its_zone_has_none_to_be_found():
    clock = one(exact(1_500, NOW, NOW + HOUR), zone_known=True)
    assert (clock.zone_minutes, clock.zones, clock.exact, clock.likely_ms) == (None, (), True, 1_495)
    assert one(exact(0, NOW, late=-5), zone_known=True).likely_ms in range(6)


def test_a_change_of_the_zone_inside_one_log():
    change = NOW // HOUR * HOUR
    winter, summer = exact(5 * HOUR, change - 900_000, change - 60_000), exact(4 * HOUR, change + 5, change + MINUTE)
    found = estimate_clock([*summer, *winter], zone_known=False)
    assert isinstance(found, list)
    assert [(each.zone_minutes, each.until_ms, each.agreeing) for each in found] == [
        (-300, change - 1, {GROUPS: 2}),
        (-240, None, {GROUPS: 2}),
    ]


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (-10 * MINUTE, 10 * MINUTE, 0),
        (25 * MINUTE, 35 * MINUTE, 30 * MINUTE),  # Lord Howe's clocks change at half past
        (5 * MINUTE, 9 * MINUTE, 9 * MINUTE),  # somebody set it by hand
    ],
)
def test_the_zone_changes_at_a_full_hour_where_one_lies_between(before, after, changed):
    hour = NOW // HOUR * HOUR
    found = estimate_clock(
        [
            *exact(0, hour + before - 9, hour + before),
            *exact(-HOUR, hour + after, hour + after + 9),
        ],
        zone_known=False,
    )
    assert isinstance(found, list)
    assert found[0].until_ms == hour + changed - 1


def test_single_lines_in_another_zone_and_leaps_of_hours_are_no_change():
    assert one([*exact(0, *range(NOW, NOW + 10)), *exact(HOUR, NOW + HOUR)]).zone_minutes == 0
    apart = [*exact(0, NOW, NOW + 1, NOW + 2), *exact(5 * HOUR, NOW + HOUR, NOW + HOUR + 1, NOW + HOUR + 2)]
    assert estimate_clock(apart, zone_known=False) == Unaligned(6)


def test_records_of_one_s_own_and_lines_of_many_delays():
    source = random.Random(7)
    for _ in range(50):
        zone = 15 * source.randint(-48, 56)
        anchors = [
            anchor
            for number in range(20)
            for anchor in exact(-zone * MINUTE, NOW + number * 70_000, late=source.choice((0, 3, 40, 300, 2_500)))
        ]
        clock = one(anchors)
        assert (clock.zone_minutes, clock.likely_ms) == (zone, -zone * MINUTE)
