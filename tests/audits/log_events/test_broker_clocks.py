"""The clocks of brokers from their logs and their records: which lines go together, and what a line's time comes to."""

import struct
from base64 import urlsafe_b64decode

import pytest
from msgspec.structs import replace

from kaudit.audits.log_events.broker_clocks import BrokerClock, broker_clocks, log_clocks, unaligned_logs
from kaudit.audits.log_events.clock import AnchorSource, ClockOffset
from kaudit.audits.log_events.placement import by_broker
from kaudit.model.application_logs import LogEventKind
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.audits.log_events.made import event
from tests.logs import CONTROL, Batch, Log

KIND = LogEventKind
NOW = 1_700_000_000_000
HOUR = 3_600_000
INCARNATION = "f-gWNmD8NSNSmfyTHNnNvA"


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def compact(value):
    return bytes([len(value) + 1]) + value.encode()


def group(name, generation, state_ms, members=1):
    """Key and value of a group's record (GroupMetadataKey 2, GroupMetadataValue 3)."""
    member = text("m") + struct.pack(">h", -1) + text("c") + text("/h") + struct.pack(">iiii", 1, 1, 0, 0)
    value = struct.pack(">h", 3) + text("consumer") + struct.pack(">i", generation) + text("range") + text("m")
    return struct.pack(">h", 2) + text(name), value + struct.pack(">qi", state_ms, members) + member * members


def epoch_of(name, epoch):
    """ConsumerGroupMetadataKey (3) and its value."""
    return struct.pack(">h", 3) + text(name), struct.pack(">hi", 0, epoch) + b"\0"


def transaction(name, producer_id, epoch, updated_ms, status=0):
    value = struct.pack(">hqhibi", 0, producer_id, epoch, 60_000, status, -1) + struct.pack(">qq", updated_ms, -1)
    return struct.pack(">h", 0) + text(name), value


def registered(broker, epoch, version=3):
    migrating = b"\0" if version >= 2 else b""
    record = struct.pack(">i", broker) + migrating + urlsafe_b64decode(INCARNATION + "==") + struct.pack(">q", epoch)
    # no end points, features or rack; not fenced, not shutting down; no tagged fields
    return None, bytes([1, 0, version]) + record + b"\1\1\0\0" + (b"\0" if version else b"") + b"\0"


def changed(broker, epoch, fenced):
    return None, bytes([1, 17, 0]) + struct.pack(">iq", broker, epoch) + b"\1\0\1" + struct.pack(">b", fenced)


def created(topic):
    return None, bytes([1, 2, 0]) + compact(topic) + bytes(16) + b"\0"


def records(tmp_path, topic, *written):
    """A partition whose batches have one record each: (time, (key, value)); None in place of a record for a control batch."""
    log = Log()
    for number, (at, content) in enumerate(written):
        key, value = content or (b"\0\0\0\2", b"\0\0")
        batch = Batch(timestamp=at, key=key, payload=value, attributes=0 if content else CONTROL, leader_epoch=number)
        log.append(batch, keep_time=True)
    (directory,) = discover([str(log.write(tmp_path / f"{topic}-0"))]).partitions
    return directory


def clock_of(events, *directories):
    (clock,) = broker_clocks(events, directories, open_segment)
    return clock


def sources(clock):
    return [(offset.zone_minutes, offset.anchors) for offset in clock.offsets]


def of_group(kind, generation, at, name="billing"):
    return event(kind, group=name, generation=generation, timestamp_ms=at)


EAST = 345 * 60_000
GROUPS, TRANSACTIONS, QUORUM, METADATA, *_ = AnchorSource


@pytest.mark.parametrize(
    ("line", "record"),
    [
        (of_group(KIND.GROUP_STABILIZED, 4, NOW), group("billing", 4, NOW)),
        (of_group(KIND.GROUP_ASSIGNED, 4, NOW + 70_000), group("billing", 4, NOW)),
        (of_group(KIND.GROUP_EMPTIED, 4, NOW + 70_000), group("billing", 4, NOW, members=0)),
        (of_group(KIND.GROUP_EPOCH_BUMPED, 4, NOW + 70_000), epoch_of("billing", 4)),
    ],
    ids=["stabilised", "assigned", "emptied", "epoch"],
)
def test_a_group_s_line_and_its_record(tmp_path, line, record):
    """The record is written a while after "Stabilized", and has the time of that too."""
    directory = records(tmp_path, "__consumer_offsets", (NOW + 70_000 - EAST, record))
    if line.event is KIND.GROUP_STABILIZED:
        directory = records(tmp_path, "__consumer_offsets", (NOW + 70_000, group("billing", 4, NOW - EAST)))
    assert sources(clock_of([line], directory)) == [(345, {GROUPS: 1})]
    for other in (
        of_group(line.event, 5, line.timestamp_ms),
        of_group(line.event, 4, line.timestamp_ms, "shipping"),
        of_group(KIND.GROUP_EPOCH_BUMPED if record[0][1] == 2 else KIND.GROUP_EMPTIED, 4, line.timestamp_ms),
    ):
        assert clock_of([other], directory).offsets == ()


def test_a_generation_that_recurs_is_of_no_use_unless_the_other_time_is_days_away(tmp_path):
    line = of_group(KIND.GROUP_ASSIGNED, 1, NOW)
    near = records(tmp_path, "__consumer_offsets", (NOW, group("billing", 1, 0)), (NOW + HOUR, group("billing", 1, 0)))
    assert clock_of([line], near).offsets == ()
    far = records(
        tmp_path / "far", "__consumer_offsets", (NOW - 40 * HOUR, group("billing", 1, 0)), (NOW, group("billing", 1, 0))
    )
    assert sources(clock_of([line], far)) == [(0, {GROUPS: 1})]


def test_a_transactional_id_s_line_and_its_record(tmp_path):
    directory = records(tmp_path, "__transaction_state", (NOW + 9, transaction("tx", 7, 2, NOW - EAST)))
    line = event(
        KIND.PRODUCER_ID_ASSIGNED, transactional_id="tx", producer_id=7, producer_epoch=2, timestamp_ms=NOW + 3
    )
    assert sources(clock_of([line], directory)) == [(345, {TRANSACTIONS: 1})]
    ongoing = records(tmp_path / "o", "__transaction_state", (NOW, transaction("tx", 7, 2, NOW - EAST, status=1)))
    assert clock_of([line], ongoing).offsets == ()
    for more in ({"producer_epoch": 3}, {"producer_id": 8}, {"transactional_id": "ty"}, {"transactional_id": None}):
        stated = {"transactional_id": "tx", "producer_id": 7, "producer_epoch": 2, "timestamp_ms": NOW} | more
        assert clock_of([event(KIND.PRODUCER_ID_ASSIGNED, **stated)], directory).offsets == ()


def starting(incarnation=INCARNATION):
    return event(KIND.BROKER_STARTING, broker_id=1, incarnation=incarnation, timestamp_ms=NOW - 900)


REGISTERED = event(KIND.BROKER_REGISTERED, broker_id=1, broker_epoch=1, timestamp_ms=NOW + 800)
UNFENCED = event(KIND.STARTED, timestamp_ms=NOW + 5_000)


def test_a_broker_s_start_and_the_metadata(tmp_path):
    directory = records(
        tmp_path,
        "__cluster_metadata",
        (NOW - 9_000 - EAST, None),
        (NOW - EAST, registered(1, 1)),
        (NOW + 3_000 - EAST, changed(1, 1, 0)),
        (NOW + 4_000 - EAST, changed(1, 1, -1)),
        (NOW + 8_000 - EAST, created("orders")),
    )
    unfenced = replace(UNFENCED, pattern="broker-unfenced")
    log_created = event(KIND.LOG_CREATED, topic="orders", partition=0, timestamp_ms=NOW + 8_100)
    leads = event(KIND.QUORUM_LEADER, leader_epoch=0, offset=0, timestamp_ms=NOW - 9_000)
    for lines, expected in (
        ([starting(), REGISTERED], {METADATA: 1}),
        ([REGISTERED, unfenced], {METADATA: 2}),
        ([unfenced], None),  # of which start?
        ([starting(), unfenced], None),
        # the broker of the same number in another cluster, or another broker: nothing of that metadata is about it
        ([starting(INCARNATION[::-1]), REGISTERED, log_created, leads], None),
        ([replace(REGISTERED, broker_epoch=2), log_created], None),
        ([replace(REGISTERED, broker_epoch=99), log_created], {METADATA: 1}),
        ([REGISTERED, UNFENCED], {METADATA: 1}),
        ([log_created], {METADATA: 1}),
        ([leads], {QUORUM: 1}),
        ([event(KIND.QUORUM_LEADER, leader_epoch=3, timestamp_ms=NOW)], None),
    ):
        assert sources(clock_of(lines, directory)) == ([] if expected is None else [(345, expected)])


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_the_registration_of_every_version(tmp_path, version):
    directory = records(tmp_path, "__cluster_metadata", (NOW, None), (NOW, registered(1, 1, version)))
    assert sources(clock_of([REGISTERED], directory)) == [(0, {METADATA: 1})]


def test_a_broker_epoch_is_the_offset_of_its_record(tmp_path):
    directory = records(tmp_path, "__cluster_metadata", (NOW, registered(1, 1)))
    assert clock_of([REGISTERED], directory).offsets == ()


def test_damaged_records_and_files_that_cannot_be_read_leave_the_rest(tmp_path):
    good = group("billing", 4, 0)
    directory = records(tmp_path, "__consumer_offsets", (NOW, (good[0], good[1][:9])), (NOW, (b"\0", b"")), (NOW, good))
    line = of_group(KIND.GROUP_ASSIGNED, 4, NOW)
    assert sources(clock_of([line], directory)) == [(0, {GROUPS: 1})]

    def refuse(_segment):
        raise PermissionError(13, "Permission denied")

    (clock,) = broker_clocks([line], [directory], refuse)
    assert clock.offsets == ()
    assert [(one.reason, one.anchors) for one in unaligned_logs([clock])] == [("no-anchor", 0)]


def test_brokers_whose_logs_lie_in_one_directory_have_their_own_clocks(tmp_path):
    directory = records(
        tmp_path, "__consumer_offsets", (NOW, group("billing", 1, 0)), (NOW + HOUR, group("billing", 2, 0))
    )
    lines = []
    for broker, generation, at in ((1, 1, NOW + EAST), (2, 2, NOW + HOUR - 2 * HOUR)):
        path = f"logs/server-b{broker}.log"
        lines += [
            event(KIND.STARTED, path=path, broker_id=broker, timestamp_ms=at - 9),
            event(KIND.GROUP_ASSIGNED, path=path, group="billing", generation=generation, timestamp_ms=at),
        ]
    clocks = broker_clocks(lines, [directory], open_segment)
    found = [(each.directory, each.broker_id, each.zone_minutes) for each in log_clocks(clocks)]
    assert found == [("logs", 1, 345), ("logs", 2, -120)]
    assert {path: clock.broker_id for clock in clocks for path in clock.paths} == {
        "logs/server-b1.log": 1, "logs/server-b2.log": 2,
    }  # fmt: skip


def test_a_directory_is_one_broker_s_unless_its_files_name_several():
    one = event(KIND.STARTED, path="logs/server.log", broker_id=1, timestamp_ms=2)
    nameless = event(KIND.TRUNCATED, path="logs/state-change.log", timestamp_ms=1)
    of_controller = event(KIND.BROKER_FENCED, path="logs/controller.log", broker_id=3, timestamp_ms=3)
    assert by_broker([one, nameless, of_controller]) == {("logs", 1): [nameless, one, of_controller]}
    other = event(KIND.STARTED, path="logs/b2.log", broker_id=2)
    assert by_broker([one, other, nameless]) == {("logs", 1): [one], ("logs", 2): [other], ("logs", None): [nameless]}


CHANGE = NOW // HOUR * HOUR


def changing(before, after, set_back=None):
    """A clock that was `before` ms beside the bytes' until CHANGE, and `after` ms from then on."""
    offsets = [ClockOffset(each, each, each, {GROUPS: 2}, {GROUPS: 2}, -each // 60_000) for each in (before, after)]
    offsets[0] = replace(offsets[0], until_ms=CHANGE - 1)
    return BrokerClock(
        "b1", 1, frozenset({"b1/server.log"}), zone_known=False, offsets=offsets, set_back=set_back or {}
    )


def test_times_around_a_change_to_summer_time():
    clock = changing(5 * HOUR, 4 * HOUR)
    for at, of_the_bytes in (
        (CHANGE - 5 * HOUR - 1, CHANGE - 1),
        (CHANGE - 4 * HOUR, CHANGE),  # the hour between was left out
        (CHANGE - 3 * HOUR, CHANGE + HOUR),
        (CHANGE - 8 * HOUR, CHANGE - 3 * HOUR),
    ):
        assert clock.batch_time(event(timestamp_ms=at)) == of_the_bytes
    assert [(one.since_ms, one.until_ms, one.zone_minutes) for one in log_clocks([clock])] == [
        (None, CHANGE - 1, -300), (CHANGE, None, -240),
    ]  # fmt: skip


def test_the_hour_that_passes_twice_is_told_apart_by_where_the_clock_was_set_back():
    clock = changing(-2 * HOUR, -HOUR, {"b1/server.log": [(100, CHANGE + HOUR + 5)]})
    twice = CHANGE + HOUR + 10 * 60_000
    for line, at, of_the_bytes in (
        (1, CHANGE + HOUR - 1, CHANGE - HOUR - 1),
        (99, twice, twice - 2 * HOUR),
        (100, twice, twice - HOUR),
        (101, CHANGE + 2 * HOUR, CHANGE + HOUR),
        (7, CHANGE + 2 * HOUR, CHANGE + HOUR),
    ):
        assert clock.batch_time(event(timestamp_ms=at, line=line)) == of_the_bytes


def test_an_autumn_in_one_log(tmp_path):
    """Two hours east of UTC until CHANGE, then one: what is written in the hour that passes twice has its own time."""
    moments = [
        CHANGE - 50 * 60_000,
        CHANGE - 30 * 60_000,
        CHANGE + 10 * 60_000,
        CHANGE + 40 * 60_000,
        CHANGE + 2 * HOUR,
    ]
    directory = records(
        tmp_path,
        "__consumer_offsets",
        *((at, group("billing", number, 0)) for number, at in enumerate(moments)),
    )
    lines = [
        event(
            KIND.GROUP_ASSIGNED,
            line=10 * number + 10,
            group="billing",
            generation=number,
            timestamp_ms=at + (2 if at < CHANGE else 1) * HOUR,
        )
        for number, at in enumerate(moments)
    ]
    between = event(KIND.TRUNCATED, line=25, timestamp_ms=CHANGE - 20 * 60_000 + 2 * HOUR)
    later = event(KIND.TRUNCATED, line=35, timestamp_ms=CHANGE + 20 * 60_000 + HOUR)
    clock = clock_of([*lines, between, later], directory)
    assert [offset.zone_minutes for offset in clock.offsets] == [120, 60]
    assert [clock.batch_time(line) for line in lines] == moments
    assert (clock.batch_time(between), clock.batch_time(later)) == (CHANGE - 20 * 60_000, CHANGE + 20 * 60_000)


def test_a_line_that_states_its_zone_among_others_keeps_its_time(tmp_path):
    directory = records(tmp_path, "__consumer_offsets", (NOW, group("billing", 1, 0)))
    local = event(KIND.GROUP_ASSIGNED, group="billing", generation=1, timestamp_ms=NOW + EAST)
    stated = event(KIND.TRUNCATED, line=2, timestamp_ms=NOW + 5, zone_known=True)
    clock = clock_of([local, stated], directory)
    assert (clock.batch_time(local), clock.batch_time(stated)) == (NOW, NOW + 5)
    assert clock.batch_time(event(timestamp_ms=None)) is None


def test_without_an_anchor_times_are_taken_as_utc(tmp_path):
    directory = records(tmp_path, "orders", (NOW, (b"k", b"v")))
    line = event(KIND.OUT_OF_ORDER_SEQUENCE, topic="orders", partition=0, offset=0, timestamp_ms=NOW)
    clock = clock_of([line], directory)
    assert (clock.offsets, clock.is_known, clock.batch_time(line)) == ((), False, NOW)
    assert [(one.directory, one.reason) for one in unaligned_logs([clock])] == [("b1", "no-anchor")]
    stated = event(KIND.OUT_OF_ORDER_SEQUENCE, topic="orders", partition=0, offset=0, timestamp_ms=NOW, zone_known=True)
    assert unaligned_logs(broker_clocks([stated], [directory], open_segment)) == []
    assert broker_clocks([event(timestamp_ms=NOW)], [directory], open_segment)[0].is_known is False


def test_lines_of_another_time_or_cluster_contradict(tmp_path):
    directory = records(
        tmp_path, "__consumer_offsets", *((NOW + number * 777_777, group("billing", number, 0)) for number in range(5))
    )
    lines = [of_group(KIND.GROUP_ASSIGNED, number, NOW + 345_678 + number * 60_000) for number in range(5)]
    clock = clock_of(lines, directory)
    assert clock.offsets == ()
    assert [(one.reason, one.anchors) for one in unaligned_logs([clock])] == [("contradiction", 5)]
