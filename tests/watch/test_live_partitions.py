"""A watch of kafka:// partitions, with a broker that is scripted."""

import pytest
from hypothesis import HealthCheck, given, settings
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import UsageError
from kaudit.scanning.options import ScanOptions
from kaudit.source.kafka.partitions import client_of
from kaudit.source.layout import FetchedRange, PartitionDirectory, SegmentFile
from kaudit.watch.live_partitions import LivePartitions, _going_on
from kaudit.watch.memory import Memory
from kaudit.watch.watcher import Watcher
from tests.logs import Log, data
from tests.properties.histories import build, starts, steps
from tests.source.kafka.fake_broker import FakeBroker
from tests.watch.growing import findings

KEY = ("orders", 0)
NOT_LEADER = 6


def batches(count, producer_id=7, *, start=0):
    log = Log()
    log.skip(start)
    return [log.append(data(producer_id, 0, start + number, payload=b"%d" % number)) for number in range(count)]


class LiveWatch:
    def __init__(self, broker):
        self.options = ScanOptions(paths=[f"kafka://{broker.address}/orders"])
        self.watcher = Watcher(self.options, LivePartitions(self.options), Memory(), lambda result: result)
        self.reported = []

    def look(self, *, last=False):
        self.reported += self.watcher.round(last=last).new

    def codes(self):
        return [found.code for found in self.reported]

    def end(self):
        self.look(last=True)
        assert self.watcher.result is not None
        return findings(self.watcher.result)

    def scanned(self):
        return findings(local.scan(self.options, SilentProgress()))


@pytest.fixture
def broker():
    with FakeBroker({KEY: [batch.encode() for batch in batches(5)]}) as broker:
        yield broker


@pytest.fixture
def watching(broker):
    watching = LiveWatch(broker)
    watching.look()
    return watching


def append(broker, *more):
    broker.logs[KEY] += [batch.encode() for batch in more]


def test_a_duplicate_is_reported_by_the_look_after_it(broker, watching):
    append(broker, batches(5)[-1].at(5))
    watching.look()
    assert watching.codes() == ["KA101"]
    assert watching.end() == watching.scanned()


def test_a_look_at_a_log_that_stands_still_is_one_request(broker, watching):
    before = len(broker.requests)
    watching.look()
    (asked,) = broker.requests[before:]
    assert isinstance(asked, ListOffsetsRequest)


def test_only_what_was_appended_is_fetched(broker, watching):
    before = len(broker.asked(FetchRequest))
    append(broker, *batches(2, start=5))
    watching.look()
    offsets = [asked.topics[0].partitions[0].fetch_offset for asked in broker.asked(FetchRequest)[before:]]
    assert min(offsets) == 4  # whether the last batch is still there, and from there on
    assert watching.watcher.result.partitions[0].log_end_offset == 7


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, starts)
def test_at_the_end_it_has_found_what_a_scan_finds(actions, first):
    with FakeBroker({KEY: []}) as broker:
        watching = LiveWatch(broker)
        for batch in build(actions, first).batches:
            append(broker, batch)
            watching.look()
        assert watching.end() == watching.scanned()


def test_a_log_that_was_cut_back_and_written_on_is_read_again(broker, watching):
    append(broker, *batches(3, start=5))
    watching.look()
    del broker.logs[KEY][4:]
    append(broker, *(batch.at(batch.base_offset + 4) for batch in batches(6, producer_id=9)))
    assert watching.end() == watching.scanned()
    assert watching.watcher.memory.repeated_readings == 1


def test_each_reading_anew_is_counted_once(broker, watching):
    for producer_id, cut, count in ((9, 3, 10), (10, 2, 20), (11, 1, 30)):
        del broker.logs[KEY][cut:]
        append(broker, *(batch.at(batch.base_offset + cut) for batch in batches(count, producer_id=producer_id)))
        watching.look(last=True)
    assert watching.watcher.memory.repeated_readings == 3


def test_log_starts_are_asked_for_now_and_then(broker):
    partitions = LivePartitions(ScanOptions(paths=[f"kafka://{broker.address}/orders"]))
    (first,) = partitions.look()
    assert first.log_start_offset == 0
    broker.log_start[KEY] = 2
    assert partitions.look() == []
    (moved,) = partitions.look(thoroughly=True)
    assert moved.log_start_offset == 2
    assert partitions.layout is not None
    assert list(partitions.layout.partitions) == [moved]
    assert partitions.look(thoroughly=True) == []


def test_retention_that_overtakes_the_reader_is_no_gap(broker, watching):
    append(broker, *batches(10, start=5))
    watching.watcher.logs.look()  # the end is known, and nothing of it is read
    grown = watching.watcher.logs.layout.partitions
    del broker.logs[KEY][:12]
    broker.log_start[KEY] = 12
    watching.watcher.logs.look = lambda *, thoroughly=False: [] if thoroughly else grown
    watching.look()
    del watching.watcher.logs.look
    watching.look(last=True)
    (missed,) = [entry.reason for entry in watching.watcher.result.not_audited if entry.unreadable]
    assert missed == "offsets 5..11 were removed by retention before they were read"
    assert "KA007" not in watching.codes()
    assert watching.watcher.result.partitions[0].log_end_offset == 15


def test_a_leader_that_moves_is_waited_for(broker, watching):
    append(broker, batches(5)[-1].at(5))
    broker.errors[KEY] = NOT_LEADER
    watching.look()
    assert watching.codes() == []
    broker.errors.clear()
    watching.look()
    assert watching.codes() == ["KA101"]


def test_a_broker_that_is_gone_for_a_while_loses_nothing(broker, watching):
    client_of(broker.address, None)._retry_seconds = 0.3  # a test need not wait for half a minute
    scripts = broker.scripts
    broker.scripts = {key: lambda _: b"no answer" for key in scripts}
    watching.look()
    broker.scripts = scripts
    append(broker, batches(5)[-1].at(5))
    watching.look()
    watching.look()
    assert watching.codes() == ["KA101"]


def test_a_topic_that_is_not_there_is_a_usage_error(broker):
    options = ScanOptions(paths=[f"kafka://{broker.address}/nowhere"])
    with pytest.raises(UsageError, match="nowhere"):
        LivePartitions(options).look()


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        # (base, readable from, end, bytes for each offset): positions stand for the offsets they stood for
        ((0, 0, 10, 7), (4, 5, 30, 9), (0, 5, 30, 7)),
        ((0, 6, 10, 7), (4, 5, 10, 9), (0, 6, 10, 7)),
        ((0, 0, 10, 7), (0, 0, 9, 9), (0, 0, 9, 9)),
        (None, (4, 5, 30, 9), (4, 5, 30, 9)),
    ],
)
def test_a_partition_that_goes_on_keeps_its_positions(before, now, expected):
    def entry(base, readable, end, per_offset):
        fetched = FetchedRange("h:1", "orders", 0, base, readable, end, bytes_per_offset=per_offset)
        segment = SegmentFile("kafka://h:1/orders/0", f"{base:020}.log", base, fetched.size, 1, fetched=fetched)
        return PartitionDirectory("orders", 0, "h:1", "kafka://h:1", "kafka://h:1/orders/0", "", (segment,))

    going_on = _going_on(None if before is None else entry(*before), entry(*now))
    assert going_on.segments == entry(*expected).segments
