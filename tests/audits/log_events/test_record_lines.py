"""Which lines tell of which records, how far apart they may be, and what a log's clock comes to: each rule by itself."""

from itertools import permutations

import pytest
from msgspec.structs import replace

from kaudit.audits.log_events.broker_clocks import BrokerClock, _set_back, broker_clocks, log_clocks
from kaudit.audits.log_events.broker_records import RecordLine, RecordTimes, record_lines
from kaudit.audits.log_events.clock import Anchor, AnchorSource, ClockOffset
from kaudit.model.application_logs import ClockAnchors, LogClock, LogEvent, LogEventKind
from kaudit.source.schemes import open_segment
from tests.audits.log_events.made import event

KIND = LogEventKind
AT = 1_700_000_000_000
HOUR = 3_600_000


def at(kind: LogEventKind, **fields) -> LogEvent:
    made: LogEvent = event(kind, timestamp_ms=AT, **fields)
    return made


@pytest.mark.parametrize(
    ("one", "key"),
    [
        (at(KIND.LOG_CREATED, topic="t"), (KIND.LOG_CREATED, "t")),
        (at(KIND.LOG_CREATED), None),
        (at(KIND.QUORUM_LEADER, leader_epoch=3), (KIND.QUORUM_LEADER, 3)),
        (at(KIND.QUORUM_LEADER), None),
        (at(KIND.GROUP_STABILIZED, group="g", generation=4), (KIND.GROUP_STABILIZED, "g", 4)),
        (at(KIND.GROUP_STABILIZED, group="g"), None),
        (at(KIND.GROUP_STABILIZED, generation=4), None),
        (
            at(KIND.PRODUCER_ID_ASSIGNED, transactional_id="x", producer_id=7, producer_epoch=2),
            (KIND.PRODUCER_ID_ASSIGNED, "x", 7, 2),
        ),
        (at(KIND.PRODUCER_ID_ASSIGNED, transactional_id="x"), (KIND.PRODUCER_ID_ASSIGNED, "x", 0, 0)),
        (at(KIND.PRODUCER_ID_ASSIGNED, producer_id=7, producer_epoch=2), None),
        (at(KIND.BROKER_REGISTERED, broker_id=1, broker_epoch=9), (KIND.BROKER_REGISTERED, 1, 9)),
        (at(KIND.BROKER_REGISTERED, broker_id=1), None),
        (at(KIND.BROKER_REGISTERED, broker_epoch=9), None),
        (replace(at(KIND.STARTED), pattern="broker-unfenced"), None),  # of no registration
        (at(KIND.BROKER_STARTING, incarnation="i"), None),
    ],
)
def test_what_a_line_names(one, key):
    assert [*record_lines([one])] == ([] if key is None else [RecordLine(AT, key)])
    assert [*record_lines([replace(one, timestamp_ms=None)])] == []


def test_a_broker_that_starts_is_another_process():
    unfenced = replace(at(KIND.STARTED), pattern="broker-unfenced")
    registered = at(KIND.BROKER_REGISTERED, broker_id=1, broker_epoch=9)
    lines = [at(KIND.BROKER_STARTING, incarnation="i"), registered, unfenced, at(KIND.STARTED)]
    lines += [at(KIND.BROKER_STARTING, incarnation="j"), unfenced, registered]
    assert [(line.key, line.incarnation) for line in record_lines(lines)] == [
        ((KIND.BROKER_REGISTERED, 1, 9), "i"),
        ((KIND.STARTED, 1, 9), "i"),
        ((KIND.BROKER_REGISTERED, 1, 9), "j"),
    ]


GROUP = (KIND.GROUP_ASSIGNED, "g", 1)
CREATED = (KIND.LOG_CREATED, "t")


@pytest.mark.parametrize(
    ("key", "times", "anchor"),
    [
        # up to a tenth of a second before its record, and nine tenths after it
        (GROUP, [AT - 5], Anchor(AT, AT - 105, AT + 895, AnchorSource.GROUPS)),
        # after a controller's record, and up to three seconds
        (CREATED, [AT - 5], Anchor(AT, AT - 5, AT + 2995, AnchorSource.METADATA)),
        # within 15 hours, before and after
        (GROUP, [AT - 15 * HOUR], Anchor(AT, AT - 15 * HOUR - 100, AT - 15 * HOUR + 900, AnchorSource.GROUPS)),
        (GROUP, [AT + 15 * HOUR], Anchor(AT, AT + 15 * HOUR - 100, AT + 15 * HOUR + 900, AnchorSource.GROUPS)),
        (GROUP, [AT - 15 * HOUR - 1], None),
        (GROUP, [AT + 15 * HOUR + 1], None),
        # of two nobody knows which; one that is far away is another
        (GROUP, [AT, AT + 1], None),
        (GROUP, [AT, AT + 16 * HOUR], Anchor(AT, AT - 100, AT + 900, AnchorSource.GROUPS)),
        (GROUP, [], None),
    ],
)
def test_between_what_times_a_line_was_written(key, times, anchor):
    assert RecordTimes(frozenset({key}), {key: times}).anchor(RecordLine(AT, key)) == anchor


def test_times_are_noted_of_what_was_asked_for_once_each():
    times = RecordTimes(frozenset({GROUP}))
    for key, timestamp in ((GROUP, 5), (GROUP, 5), (CREATED, 5), (GROUP, 0), (GROUP, -1), (GROUP, 1)):
        times._note(key, timestamp)
    assert times.times == {GROUP: [5, 1]}
    assert RecordTimes(frozenset({GROUP, CREATED})).topics == {"__consumer_offsets", "__cluster_metadata"}


@pytest.mark.parametrize(
    ("epoch", "incarnation", "identified", "foreign"),
    [
        (9, "i", True, 0),
        (9, None, False, 0),
        (9, "j", False, 1),  # the epoch was given to another process
        (8, None, False, 1),  # the metadata was read there, and has no such registration
        (20, None, False, 0),  # it was not read there
    ],
)
def test_a_registration_says_whose_metadata_it_is(epoch, incarnation, identified, foreign):
    key = KIND.BROKER_REGISTERED, 1, epoch
    times = RecordTimes(frozenset({key, GROUP}), {key: [AT], GROUP: [AT]}, {9: "i"}, range(5, 20))
    anchors, found = times.anchors([RecordLine(AT, key, incarnation), RecordLine(AT, GROUP)])
    # of another cluster its own groups are as good as before
    expected = [] if foreign else [Anchor(AT, AT, AT + 3000, AnchorSource.METADATA, identified)]
    assert (anchors, found) == ([*expected, Anchor(AT, AT - 100, AT + 900, AnchorSource.GROUPS)], foreign)


# -- clocks -------------------------------------------------------------------------------------------------------------


def offset(likely: int) -> ClockOffset:
    return ClockOffset(likely, likely, likely, {}, {})


def test_lines_at_which_a_clock_was_set_back():
    """By more than a minute, in the order of a file's lines, and only where a later offset turns local times further on."""

    def line(number: int, minutes: float, path: str = "a.log") -> LogEvent:
        made: LogEvent = event(KIND.TRUNCATED, number, path, timestamp_ms=AT + round(minutes * 60_000))
        return made

    events = [
        line(5, 3),
        line(1, 60),
        line(2, 120),
        line(3, 119),
        line(4, 60),
        line(6, 2),
        line(1, 5, "b.log"),
        line(2, 3.99, "b.log"),
    ]
    back = {
        "a.log": [(4, AT + 60 * 60_000), (5, AT + 3 * 60_000)],
        "b.log": [(2, AT + round(3.99 * 60_000))],
    }
    assert _set_back(events, [offset(-HOUR), offset(0)]) == back
    assert _set_back(events, [offset(0), offset(-HOUR), offset(5)]) == back
    for offsets in ([], [offset(0)], [offset(0), offset(-HOUR)], [offset(0), offset(0)]):
        assert _set_back(events, offsets) == {}


def test_clocks_are_in_the_order_of_directories_and_brokers():
    logs = [("b", 1), ("a", 2), ("a", 10), ("c", None), ("a", None)]
    for order in [*permutations(logs)][::17]:
        lines = [
            event(
                KIND.STARTED,
                number,
                f"{directory}/{broker}.log",
                timestamp_ms=AT,
                **({} if broker is None else {"broker_id": broker}),
            )
            for number, (directory, broker) in enumerate(order, 1)
        ]
        found = [(clock.directory, clock.broker_id) for clock in broker_clocks(lines, [], open_segment)]
        assert found == [("a", None), ("a", 2), ("a", 10), ("b", 1), ("c", None)]
    assert broker_clocks([replace(event(KIND.STARTED, timestamp_ms=AT), origin="client")], [], open_segment) == []


def test_what_reports_show_of_a_clock():
    counts = {AnchorSource.TRANSACTIONS: 3, AnchorSource.GROUPS: 5}
    agreeing = {AnchorSource.TRANSACTIONS: 2, AnchorSource.GROUPS: 4}
    first = ClockOffset(-7, 9, 1, counts, agreeing, 330, (330, -60), False, 11, 13, 1000)
    last = ClockOffset(-8, 8, 2, {}, {})
    clock = BrokerClock("logs", 4, frozenset({"logs/a.log"}), zone_known=False, offsets=[first, last])
    assert [*log_clocks([clock])] == [
        LogClock(
            "logs", -7, 9, 1, 330, 8, 6, 4, False, ["UTC+05:30", "UTC-01:00"],
            [ClockAnchors("groups", 5, 4), ClockAnchors("transactions", 3, 2)], 11, 13, None, 1000,
        ),
        LogClock("logs", -8, 8, 2, None, 0, 0, 4, True, [], [], None, None, 1001, None),
    ]  # fmt: skip
