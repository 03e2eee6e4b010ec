"""Brokers recorded under known time zones and with known wrong clocks (tests/live_brokers/log_clocks.py): what kaudit finds.

The truth is the zone that was set, from Python's zoneinfo at that time, and the seconds by which a broker's clock was wrong.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from kaudit.audits.log_events.application_logs import given_logs, read_application_logs
from kaudit.audits.log_events.broker_clocks import BrokerClock, broker_clocks, unaligned_logs
from kaudit.audits.log_events.clock import AnchorSource
from kaudit.model.application_logs import ONLY_FOR_CLOCKS, LogEvent, LogEventKind
from kaudit.source.discover import discover
from kaudit.source.layout import CLUSTER_METADATA, INTERNAL_TOPICS, Layout, PartitionDirectory
from kaudit.source.schemes import open_segment
from tests.unpacked import unpacked

DATA = Path(__file__).parents[2] / "data" / "log-clocks"
CLOCKS = json.loads((DATA / "clocks.json").read_text())
BROKERS = [(name, int(node)) for name, known in CLOCKS.items() for node in known["clocks"]]
NEAR_MS = 500
KIND = LogEventKind


def recorded(name: str) -> Path:
    """Return the directory of a recording."""
    return unpacked(DATA / f"{name}.tar.xz")


@cache
def partitions_of(home: Path) -> list[PartitionDirectory]:
    return list(discover([str(path) for path in sorted(home.glob("broker*/data"))]).everything)


@cache
def events_of(logs: Path) -> Sequence[LogEvent]:
    return read_application_logs(given_logs(Layout([]), [str(logs)], ())).kept


def clock_of(logs: Path, partitions: list[PartitionDirectory]) -> BrokerClock:
    events = events_of(logs)
    (clock,) = broker_clocks(events, partitions, open_segment)
    return clock


def zone_minutes(name: str, node: int, at_ms: int) -> int:
    """Minutes east of UTC of a broker's zone at a time."""
    zone = ZoneInfo(CLOCKS[name]["clocks"][str(node)][0])
    offset = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds() // 60)


def skew_ms(name: str, node: int) -> int:
    return int(CLOCKS[name]["clocks"][str(node)][1]) * 1000


def newest_ms(partitions: list[PartitionDirectory]) -> int:
    """A time by the clock of the records: the last that a coordinator wrote."""
    from kaudit.audits.coordinator.transaction_state_reader import TRANSACTION_STATE, CoordinatorReader

    reader = CoordinatorReader(open_segment)
    return max(at for one in partitions if one.topic == TRANSACTION_STATE for _, at, _ in reader.records(one))


def test_at_least_ten_brokers_of_zookeeper_and_kraft_are_recorded():
    releases = {known["version"] for known in CLOCKS.values()}
    assert len(BROKERS) >= 10
    assert {"0.11.0.3", "3.9.2", "4.4.0"} <= releases
    zones = {zone for known in CLOCKS.values() for zone, _ in known["clocks"].values()}
    assert len(zones) >= 10
    assert "UTC" not in zones
    assert sum(skew != 0 for known in CLOCKS.values() for _, skew in known["clocks"].values()) >= 4


CLASSIC = {KIND.GROUP_STABILIZED, KIND.GROUP_ASSIGNED, KIND.GROUP_EMPTIED}
KRAFT = {KIND.BROKER_STARTING, KIND.BROKER_REGISTERED, KIND.QUORUM_LEADER, KIND.LOG_CREATED}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("kolkata-0.11", CLASSIC),
        ("new-york-1.1", CLASSIC | {KIND.LOG_CREATED, KIND.LOG_ROLLED}),
        ("eucla-2.0", CLASSIC | {KIND.LOG_CREATED, KIND.LOG_ROLLED}),
        ("kathmandu-2.5", CLASSIC | {KIND.LOG_CREATED, KIND.LOG_ROLLED}),
        ("chatham-2.8", CLASSIC | {KIND.LOG_CREATED, KIND.LOG_ROLLED}),
        ("st-johns-3.6", CLASSIC | KRAFT | {KIND.LOG_ROLLED}),
        ("tehran-3.9", CLASSIC | {KIND.LOG_CREATED, KIND.LOG_ROLLED}),
        ("marquesas-4.0", CLASSIC | KRAFT | {KIND.LOG_ROLLED}),
        ("kiritimati-4.4", KRAFT | {KIND.GROUP_EPOCH_BUMPED}),
    ],
)
def test_the_lines_that_every_release_writes(name, kinds):
    found = {event.event for event in events_of(recorded(name) / "broker1" / "logs")}
    assert found & ONLY_FOR_CLOCKS == kinds
    assert KIND.PRODUCER_ID_ASSIGNED in found


@pytest.mark.parametrize(("name", "node"), BROKERS)
def test_the_clock_of_every_broker_is_found(name, node):
    home = recorded(name)
    partitions = partitions_of(home)
    clock = clock_of(home / f"broker{node}" / "logs", partitions)
    last = clock.offsets[-1]
    own = any(source is not AnchorSource.METADATA and last.agreeing[source] for source in last.anchors
              if source is not AnchorSource.BATCHES)  # fmt: skip
    east = zone_minutes(name, node, newest_ms(partitions))
    # a broker's own records have its own wrong clock; the controller's have the true time
    skew = 0 if own else skew_ms(name, node)
    assert last.exact
    assert last.zone_minutes == east
    assert abs(last.likely_ms - (-east * 60_000 - skew)) <= NEAR_MS
    assert abs(last.skew_ms + skew) <= NEAR_MS
    assert sum(last.agreeing.values()) >= 0.8 * sum(last.anchors.values())
    assert last.spread_ms is not None
    assert last.spread_ms <= 1_000
    if own and last.anchors.get(AnchorSource.METADATA):
        assert last.behind_controller_ms is not None
        assert abs(last.behind_controller_ms + skew_ms(name, node)) <= NEAR_MS


@pytest.mark.parametrize(
    ("name", "changed", "zones"),
    [("autumn-3.7", "2026-10-25T01:00:00", [120, 60]), ("spring-3.8", "2026-03-08T07:00:00", [-300, -240])],
)
def test_the_zone_changes_inside_a_log(name, changed, zones):
    home = recorded(name)
    clock = clock_of(home / "broker1" / "logs", partitions_of(home))
    change = int(datetime.fromisoformat(changed).replace(tzinfo=UTC).timestamp() * 1000)
    assert [(one.zone_minutes, one.until_ms) for one in clock.offsets] == [(zones[0], change - 1), (zones[1], None)]
    # of every file, the lines are in the order of time; the local times of some come twice
    times: dict[str, list[int]] = {}
    for event in events_of(home / "broker1" / "logs"):
        at = clock.batch_time(event)
        if at is not None:
            times.setdefault(event.path, []).append(at)
    assert sum(map(len, times.values())) > 80
    for own in times.values():
        assert all(later >= before - 1_000 for before, later in pairwise(own))
        assert own[-1] - own[0] < 1_200_000


@pytest.mark.parametrize(("name", "node"), BROKERS)
def test_without_internal_topics_no_wrong_value_is_given(name, node):
    """Markers, and batches of a topic with LogAppendTime, leave an interval in which the truth lies, or nothing."""
    home = recorded(name)
    partitions = partitions_of(home)
    clock = clock_of(home / f"broker{node}" / "logs", [one for one in partitions if one.topic not in INTERNAL_TOPICS])
    if not clock.offsets:
        assert len(unaligned_logs([clock])) == 1
        return
    for offset in clock.offsets:
        at = newest_ms(partitions) if offset.until_ms is None else offset.until_ms
        east = zone_minutes(name, node, at)
        skew = max(map(abs, (skew_ms(name, other) for other in map(int, CLOCKS[name]["clocks"]))))
        assert offset.lower_ms - skew - NEAR_MS <= -east * 60_000 <= offset.upper_ms + skew + NEAR_MS
        assert east in offset.zones
        assert offset.zone_minutes in (None, east)


@pytest.mark.parametrize(("name", "node"), BROKERS)
def test_nothing_is_given_by_the_bytes_of_another_cluster(name, node):
    logs = recorded(name) / f"broker{node}" / "logs"
    for other in CLOCKS:
        if other == name:
            continue
        clock = clock_of(logs, partitions_of(recorded(other)))
        assert [offset for offset in clock.offsets if offset.is_known] == [], other


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", CLUSTER_METADATA])
@pytest.mark.parametrize(("name", "node"), BROKERS)
def test_any_one_internal_topic_is_enough_if_the_broker_has_written_about_it(name, node, topic):
    home = recorded(name)
    partitions = partitions_of(home)
    clock = clock_of(home / f"broker{node}" / "logs", [one for one in partitions if one.topic == topic])
    east = zone_minutes(name, node, newest_ms(partitions))
    if topic == CLUSTER_METADATA and len(clock.offsets) == 1:  # which only has the start, before the zone changed
        east = zone_minutes(name, node, newest_ms(partitions) - 600_000)
    for offset in clock.offsets[-1:]:
        assert offset.zone_minutes == east
        assert offset.exact
    if not clock.offsets:
        assert not any(one.topic == topic for one in partitions) or len(CLOCKS[name]["clocks"]) > 1
