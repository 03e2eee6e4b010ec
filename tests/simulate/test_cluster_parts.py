"""The parts of the cluster, each alone, held to what the broker's class of that name does."""

import json
from itertools import accumulate
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.broker.config import TopicLimits
from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_ids.allocators import Controller, Znode
from kaudit.broker.producer_state.producer_state_entry import UNKNOWN, DataBatch, ProducerStateEntry
from kaudit.broker.releases.profile import profile_for
from kaudit.model.leader_epochs import EpochEntry
from kaudit.simulate.clock import Clock
from kaudit.simulate.cluster.brokers import AttemptRecorder, Brokers, RunContext
from kaudit.simulate.cluster.partition import PartitionConfig, ProduceCompletion, ReplicatedPartition
from kaudit.simulate.cluster.producer_id_manager import GrantedBlocks, RPCProducerIdManager, ZkProducerIdManager
from kaudit.simulate.cluster.replica_log import LogConfig, ReplicaLog, StoredBatch
from kaudit.simulate.network import Network
from kaudit.simulate.producer_batch import Payload, ProducerBatch
from kaudit.simulate.scenario.reading import parse_scenario
from kaudit.simulate.simulation import Simulation
from kaudit.simulate.trace import Copy, EventKind, Trace
from tests.simulate.test_sender import NoFaults

PROFILE = profile_for("3.9.1")
DELAY = 1
LAG_MS = 100


def context(faults: NoFaults | None = None, delay: int = DELAY) -> RunContext:
    """Every message takes a millisecond, and none is lost, unless said otherwise."""
    clock, trace = Clock(), Trace(10_000)
    network = Network(clock, (delay, delay), Random(1), faults or NoFaults(), trace)
    return RunContext(clock, network, AttemptRecorder(clock), trace)


def run(clock: Clock, until: int) -> None:
    clock.run(until)
    clock.now = until


# -- ReplicaLog: UnifiedLog, LeaderEpochFileCache -----------------------------------------------------------------------


def stored(base: int, last: int, epoch: int, size: int = 10) -> StoredBatch:
    state = DataBatch(7, 0, base, last, base, last, 0, False)
    return StoredBatch(base, last, epoch, 0, b"x" * size, state, None)


def log_of(batches: list[tuple[int, int]], segment_bytes: int = 1 << 30, size: int = 10) -> ReplicaLog:
    """A log of batches of (records, leader epoch), fetched from a leader."""
    log = ReplicaLog(LogConfig(PROFILE, segment_bytes, 86_400_000, 600_000))
    base = 0
    for count, epoch in batches:
        log.follow([stored(base, base + count - 1, epoch, size)])
        base += count
    return log


@st.composite
def batches_of_epochs(draw: st.DrawFn) -> list[tuple[int, int]]:
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=8))
    steps = draw(st.lists(st.sampled_from((0, 0, 1, 2)), min_size=len(counts), max_size=len(counts)))
    return list(zip(counts, accumulate(steps), strict=True))


@settings(max_examples=150, deadline=None)
@given(batches_of_epochs(), st.integers(0, 24), st.sampled_from((10, 20, 35, 1000)))
def test_a_log_is_what_was_appended_and_not_cut_off_since(made, end, segment_bytes):
    log = log_of(made, segment_bytes)
    log.high_watermark = log.log_end
    bases = [0, *accumulate(count for count, _ in made)]
    starts = {
        epoch: min(base for base, (_, other) in zip(bases, made, strict=False) if other == epoch) for _, epoch in made
    }
    assert (log.log_end, len(log.batches)) == (bases[-1], len(made))
    assert log.epochs == [EpochEntry(epoch, start) for epoch, start in sorted(starts.items())]
    # a segment takes what fits (UnifiedLog.maybeRoll), and a producer snapshot is taken where one begins
    each = segment_bytes // 10
    assert log.segments == bases[:-1][::each]
    assert sorted(log.snapshots) == log.segments[1:]
    for base, snapshot in log.snapshots.items():
        assert [(entry.producer_id, entry.last_offset) for entry in snapshot] == [(7, base - 1)]
    for offset in range(bases[-1] + 2):
        assert log.position(offset) == sum(base <= offset for base in bases[1:])
    assert all(log.holds(batch) for batch in log.batches)
    # fetched batches are cut between, never inside
    end = bases[end % len(bases)]
    log.truncate(end, 0)
    kept = [base for base in bases if base <= end]
    assert (log.log_end, log.high_watermark) == (end, end)
    assert [batch.base_offset for batch in log.batches] == kept[:-1]
    assert log.epochs == [EpochEntry(epoch, start) for epoch, start in sorted(starts.items()) if start < end]
    assert log.segments == [base for base in bases[:-1][::each] if base <= end]
    assert set(log.snapshots) <= set(log.segments)
    # and filled again as if it had never been longer
    again = log_of(made[: len(kept) - 1], segment_bytes)
    for grown in (log, again):
        grown.follow([stored(end, end, 99), stored(end + 1, end + 1, 99)])
    assert set(again.segments) <= set(log.segments)
    assert log.epochs == again.epochs


@pytest.mark.parametrize(("log_start", "found"), [(0, [2, 4, 6]), (2, [4, 6]), (3, [4, 6])])
def test_a_log_that_is_loaded_has_snapshots_where_segments_begin_and_at_its_end(log_start, found):
    """ProducerStateManager.removeStraySnapshots, and UnifiedLog.rebuildProducerState, which takes one at the end."""
    log = log_of([(1, 0)] * 6, 20)
    log.high_watermark = log.log_end
    log.snapshots[5] = log.snapshots[4]
    log.delete_records(log_start, 0)
    log.stop_cleanly()
    log.start(0, clean=True, without_snapshots=False)
    assert (log.segments, sorted(log.snapshots)) == ([0, 2, 4], found)
    assert [entry.last_offset for entry in log.snapshots[6]] == [5]


# -- ReplicatedPartition: Partition, DelayedProduce, AbstractFetcherThread ----------------------------------------------


class FewBrokers(Brokers):
    """Brokers 1 to 3: running, paused or gone, cut off, with slow disks."""

    def __init__(self):
        super().__init__({})
        self.gone: set[int] = set()
        self.paused: set[int] = set()
        self.cut: set[int] = set()
        self.slow: dict[int, int] = {}

    def reaches(self, broker, other):
        return (broker in self.cut) == (other in self.cut)

    def disk_delay_ms(self, broker):
        return self.slow.get(broker, 0)

    def timestamp(self, broker):
        return 0

    def is_up(self, broker):
        return broker not in self.gone

    def is_running(self, broker):
        return broker not in self.gone | self.paused


class Replicated:
    """A partition led by broker 1 with followers 2 and 3, which wait for data from the start."""

    def __init__(self, *, min_insync: int = 2, shared: RunContext | None = None):
        self.context = shared or context()
        self.clock = self.context.clock
        self.brokers = FewBrokers()
        log = LogConfig(PROFILE, 1 << 30, 86_400_000, 600_000)
        config = PartitionConfig(TopicLimits(), log, min_insync, unclean_elections=False, replica_lag_ms=LAG_MS)
        self.partition = ReplicatedPartition(("orders", 0), (1, 2, 3), config, self.brokers, self.context)
        self.partition.elect(1, [1, 2, 3], unclean=False)
        self.run(10)
        self.done: list[tuple[int, ProduceCompletion]] = []

    def run(self, until):
        run(self.clock, until)

    def write(self, count=1):
        """Let the leader append so many records in a batch; returns its base offset."""
        base = self.partition.leader_log().memory.log_end
        self.partition.leader_log().memory.log_end += count
        batch = StoredBatch(base, base + count - 1, self.partition.leader_epoch, 0, b"x", None, None)
        self.partition.appended(batch, UNKNOWN)
        return base

    def produce(self, count=1, timeout=30_000):
        """Let a client write with acks=all."""
        base = self.write(count)
        self.partition.await_replicas(
            base, base + count - 1, timeout, lambda done: self.done.append((self.clock.now, done))
        )

    @property
    def watermarks(self):
        return [self.partition.logs[broker].high_watermark for broker in (1, 2, 3)]

    @property
    def ends(self):
        return [self.partition.logs[broker].log_end for broker in (1, 2, 3)]


def test_a_batch_is_committed_when_every_replica_asks_for_what_follows():
    """A follower's next fetch says what it has (Replica.updateFetchState): one way for the data, one for the fetch."""
    replicated = Replicated()
    replicated.produce(count=3)
    assert (replicated.ends, replicated.watermarks) == ([3, 0, 0], [0, 0, 0])
    replicated.run(10 + DELAY)
    assert (replicated.ends, replicated.watermarks) == ([3, 3, 3], [0, 0, 0])
    assert replicated.done == []
    replicated.run(10 + 2 * DELAY)
    assert replicated.watermarks[0] == 3
    assert replicated.done == [(10 + 2 * DELAY, ProduceCompletion(KafkaError.NONE, 0))]
    replicated.produce()
    replicated.run(100)
    # a follower learns of it with the next answer
    assert replicated.watermarks[0] == 4
    assert min(replicated.watermarks) >= 3
    assert replicated.done[1:] == [(12 + 2 * DELAY, ProduceCompletion(KafkaError.NONE, 3))]
    found = [event for event in replicated.context.trace.events if event.kind is EventKind.REPLICATION]
    assert [(event.source, event.target, event.text) for event in found] == [
        ("broker 1", f"broker {broker}", f"orders-0 up to offset {last}") for last in (2, 3) for broker in (2, 3)
    ]


def test_the_slowest_disk_in_the_isr_decides_when_a_batch_is_committed():
    replicated = Replicated()
    replicated.brokers.slow[3] = 40
    replicated.produce()
    replicated.run(200)
    assert replicated.done == [(10 + 2 * DELAY + 40, ProduceCompletion(KafkaError.NONE, 0))]


def test_a_produce_that_waits_for_replicas_ends_with_its_timeout_or_its_leader():
    replicated = Replicated()
    replicated.brokers.paused = {3}
    replicated.produce(timeout=50)
    replicated.produce(timeout=5000)
    replicated.run(59)
    assert replicated.done == []
    replicated.run(60)
    ((at, timed_out),) = replicated.done
    assert (at, timed_out.error, timed_out.base_offset) == (60, KafkaError.REQUEST_TIMED_OUT, -1)
    replicated.partition.elect(2, [2, 3], unclean=False)
    replicated.run(7000)
    (at, failed) = replicated.done[-1]
    assert (at, failed.error, failed.base_offset) == (60, KafkaError.NOT_LEADER_OR_FOLLOWER, -1)
    assert len(replicated.done) == 2


def test_a_follower_leaves_the_isr_when_it_has_not_caught_up_for_the_lag_and_comes_back_when_it_has():
    """Partition.maybeShrinkIsr, maybeExpandIsr. What is committed without it: NOT_ENOUGH_REPLICAS_AFTER_APPEND."""
    replicated = Replicated(min_insync=3)
    partition = replicated.partition
    replicated.brokers.paused = {3}
    replicated.produce()
    replicated.run(10 + LAG_MS - 1)
    assert (partition.isr, replicated.done) == ([1, 2, 3], [])
    replicated.run(10 + LAG_MS)
    assert (partition.isr, partition.logs[1].high_watermark) == ([1, 2], 1)
    ((_, done),) = replicated.done
    assert (done.error, done.base_offset) == (KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1)
    refused = partition.refuse_produce(1, -1)
    assert refused is not None
    assert refused.error is KafkaError.NOT_ENOUGH_REPLICAS
    assert refused.why == "2 in-sync replicas, min.insync.replicas is 3"
    assert partition.refuse_produce(1, 1) is None  # acks=1 asks nobody
    replicated.brokers.paused = set()
    replicated.run(1000)
    assert sorted(partition.isr) == [1, 2, 3]
    assert partition.refuse_produce(1, -1) is None
    assert replicated.ends == [1, 1, 1]


def test_a_follower_that_catches_up_in_between_has_not_lagged():
    replicated = Replicated()
    replicated.brokers.slow[3] = LAG_MS * 3 // 4
    for at in range(20, 20 + 6 * LAG_MS, LAG_MS):
        replicated.run(at)
        replicated.write()
    replicated.run(2000)
    assert replicated.partition.isr == [1, 2, 3]
    replicated.partition.leave_isr(3)
    replicated.partition.leave_isr(2)
    replicated.partition.leave_isr(1)
    assert replicated.partition.isr == [1]  # the last one stays


@pytest.mark.parametrize(("broker", "why"), [(2, "broker 1 leads orders-0, leader epoch 0"), (3, "broker 1 leads")])
def test_who_does_not_lead_refuses(broker, why):
    replicated = Replicated()
    refused = replicated.partition.refuse_produce(broker, 0)
    assert refused is not None
    assert (refused.error, refused.why.startswith(why)) == (KafkaError.NOT_LEADER_OR_FOLLOWER, True)
    replicated.partition.elect(None, [1], unclean=False)
    refused = replicated.partition.refuse_produce(1, 0)
    assert refused is not None
    assert refused.why == "no broker leads orders-0, leader epoch 1"


def test_a_new_leader_lacks_what_was_not_fetched_and_the_old_one_cuts_it_off():
    replicated = Replicated()
    partition = replicated.partition
    replicated.write()
    replicated.run(50)
    replicated.brokers.cut = {1}
    replicated.write(count=2)
    replicated.run(60)
    assert replicated.ends == [3, 1, 1]
    replicated.brokers.cut = set()
    election = partition.elect(2, [2, 3], unclean=True)
    assert (election.moved, election.lost_from_offset, election.regained, election.log_end) == (True, 1, False, 1)
    replicated.write()
    replicated.run(200)
    assert replicated.ends == [2, 2, 2]
    (cut,) = partition.truncations
    assert (cut.broker, cut.offset, cut.log_end, cut.leader_epoch) == (1, 1, 3, 1)
    assert sorted(partition.isr) == [1, 2, 3]
    assert [entry.epoch for entry in partition.logs[1].epochs] == [0, 1]
    back = partition.elect(1, [1, 2, 3], unclean=False)
    assert (back.lost_from_offset, back.regained, back.old_leader) == (None, False, 2)
    assert not partition.elect(1, [1, 2, 3], unclean=False).moved
    assert not partition.elect(None, [1], unclean=False).moved


def test_copies_of_a_batch_are_those_that_the_leader_has_still():
    replicated = Replicated()
    partition, payload = replicated.partition, Payload("app", 20, "app", 1)
    batch, other = (ProducerBatch.created(("orders", 0), payload, 0) for _ in range(2))
    for base, producer in enumerate(((7, 0), (7, 1), None, (8, 0))):
        state = None if producer is None else DataBatch(*producer, 0, 0, base, base, 0, False)
        partition.leader_log().memory.log_end += 1
        partition.appended(StoredBatch(base, base, 0, 0, b"x", state, batch), UNKNOWN)
    assert partition.copies_of(batch) == (Copy(0, 7, 0), Copy(1, 7, 1), Copy(2, -1, -1), Copy(3, 8, 0))
    assert partition.copies_of(other) == ()
    partition.leader_log().truncate(2, 0)
    assert partition.copies_of(batch) == (Copy(0, 7, 0), Copy(1, 7, 1))


def test_records_that_a_leader_lacked_come_back_with_an_older_replica():
    replicated = Replicated()
    partition = replicated.partition
    replicated.write(count=2)
    replicated.run(50)
    # broker 3 alone has them still when it is elected behind a leader that lost its log
    replicated.brokers.paused = {3}
    partition.logs[2].truncate(0, 0)
    assert partition.elect(2, [2], unclean=True).regained is False
    assert partition.elect(3, [3], unclean=True).regained is True


def test_a_broker_that_is_gone_fetches_again_when_it_is_back():
    replicated = Replicated()
    partition = replicated.partition
    replicated.brokers.gone = {3}
    partition.stop_following(3)
    replicated.write()
    replicated.run(50)
    assert replicated.ends == [1, 1, 0]
    partition.follow_again(3)
    replicated.run(60)
    assert replicated.ends == [1, 1, 0]  # it is not up yet
    replicated.brokers.gone = set()
    partition.follow_again(3)
    replicated.run(100)
    assert replicated.ends == [1, 1, 1]
    partition.follow_again(1)  # a leader follows nobody
    replicated.write()
    replicated.run(200)
    assert (replicated.ends, replicated.watermarks[0]) == ([2, 2, 2], 2)


@pytest.mark.parametrize("broker", [1, 3])
def test_nothing_is_fetched_while_either_side_is_paused_or_they_are_cut_off(broker):
    for fault in ("paused", "cut"):
        replicated = Replicated()
        replicated.partition.stop_following(3)
        replicated.write()
        setattr(replicated.brokers, fault, {broker})
        replicated.partition.follow_again(3)
        replicated.run(60)
        assert replicated.ends[2] == 0
        setattr(replicated.brokers, fault, set())
        replicated.run(250)
        assert replicated.ends == [1, 1, 1]


def test_a_follower_deletes_what_its_leader_deleted():
    """ReplicaFetcherThread.processPartitionData: the leader's log start comes with every answer."""
    replicated = Replicated()
    replicated.write(count=4)
    replicated.run(50)
    replicated.partition.leader_log().delete_records(3, 0)
    replicated.write()
    replicated.run(100)
    assert [log.log_start for log in replicated.partition.logs.values()] == [3, 3, 3]


# -- ProducerIdManager --------------------------------------------------------------------------------------------------


def allocated(manager, clock: Clock, count: int) -> list[int]:
    """Ids as clients get them, who ask again until there is one."""
    found: list[int] = []
    while len(found) < count:
        manager.generate(lambda granted: found.append(granted) if granted is not None else None)
        run(clock, clock.now + 20)
    return found


@pytest.mark.parametrize("kind", [ZkProducerIdManager, RPCProducerIdManager])
def test_ids_follow_one_another_and_each_block_is_granted_once(kind):
    shared = context()
    blocks = GrantedBlocks(shared.clock)
    store = Znode() if kind is ZkProducerIdManager else Controller()
    one, other = (kind(broker, store, blocks, shared) for broker in (4, 5))
    assert allocated(one, shared.clock, 3) == [0, 1, 2]
    assert allocated(other, shared.clock, 2) == [1000, 1001]
    assert allocated(one, shared.clock, 998) == [*range(3, 1000), 2000]
    one.restart()
    ((last,), (first,)) = allocated(other, shared.clock, 1), allocated(one, shared.clock, 1)
    assert (last, first) == (1002, 3000)
    lines = [json.loads(line) for line in blocks.text().splitlines()]
    if kind is ZkProducerIdManager:
        values = [json.loads(line["data"]) for line in lines]
        granted = [(value["broker"], int(value["block_start"]), int(value["block_end"])) for value in values]
        assert [line["version"] for line in lines] == [1, 2, 3, 4]
        times = [line["mtime"] for line in lines]
    else:
        granted = [
            (line["broker"], line["producer_id_start"], line["producer_id_start"] + line["producer_id_len"] - 1)
            for line in lines
        ]
        times = [line["at_ms"] for line in lines]
    assert granted == [(4, 0, 999), (5, 1000, 1999), (4, 2000, 2999), (4, 3000, 3999)]
    assert times == sorted(times)
    assert times[0] >= shared.clock.base


@pytest.mark.parametrize("delay", [DELAY, 3])
def test_an_exchange_with_zookeeper_takes_a_round_trip_and_the_controllers_answer_too(delay):
    shared = context(delay=delay)
    zookeeper = ZkProducerIdManager(1, Znode(), GrantedBlocks(shared.clock), shared)
    got: list[tuple[int, int | None]] = []
    zookeeper.generate(lambda granted: got.append((shared.clock.now, granted)))
    run(shared.clock, 100)
    # reads the znode, writes it
    assert got == [(4 * delay, 0)]
    quorum = RPCProducerIdManager(1, Controller(), GrantedBlocks(shared.clock), shared)
    arrives = 100 + 2 * delay
    for at in (100, arrives - 1, arrives):
        run(shared.clock, at)
        quorum.generate(lambda granted: got.append((shared.clock.now, granted)))
    # who asks before there is a block asks again (COORDINATOR_LOAD_IN_PROGRESS)
    assert got[1:] == [(100, None), (arrives - 1, None), (arrives, 0)]


@pytest.mark.parametrize(("kind", "first"), [(ZkProducerIdManager, 0), (RPCProducerIdManager, 1000)])
def test_one_answer_is_lost(kind, first):
    """A broker finds its own value in the znode; the controller's block is granted, and nobody uses it."""
    shared = context()
    manager = kind(1, Znode() if kind is ZkProducerIdManager else Controller(), GrantedBlocks(shared.clock), shared)
    manager.lose_response()
    for _ in range(3):
        run(shared.clock, shared.clock.now + 200)
        manager.generate(lambda _: None)
    run(shared.clock, shared.clock.now + 200)
    assert allocated(manager, shared.clock, 1005)[-1] > first + 1000
    lost = [event for event in shared.trace.events if event.kind is EventKind.LOST]
    assert len(lost) == 1
    assert lost[0].text.endswith("the answer is lost")


def test_what_brokers_ask_zookeeper_is_in_the_sequence_diagram():
    shared = context()
    znode, blocks = Znode(), GrantedBlocks(shared.clock)
    one, other = (ZkProducerIdManager(broker, znode, blocks, shared) for broker in (4, 5))
    other.lose_response()
    one.generate(lambda _: None)
    other.generate(lambda _: None)
    run(shared.clock, 1000)
    events = [event for event in shared.trace.events if event.source == "broker 5" and event.target != "broker 5"]
    assert [event.kind for event in shared.trace.events if event.source == "broker 4"] == [
        EventKind.REQUEST, EventKind.REQUEST, EventKind.NOTE,
    ]  # fmt: skip
    texts = [event.text for event in shared.trace.events if event.source == "broker 4"]
    assert texts[1].endswith(": written")
    assert texts[2] == "takes the block 0 to 999"
    (refused,) = [event for event in events if event.text.endswith(": refused, the answer is lost")]
    assert refused.kind is EventKind.LOST
    assert [event.text.rpartition(": ")[2] for event in events if event.text.endswith("written")] == ["written"]
    assert len(blocks.text().splitlines()) == 2


def test_a_broker_that_starts_again_forgets_who_waited_and_what_is_on_its_way():
    """The znode has not been written yet; the controller has granted a block that nobody uses."""
    shared = context()
    got: list[int | None] = []
    for manager, first in (
        (ZkProducerIdManager(1, Znode(), GrantedBlocks(shared.clock), shared), 0),
        (RPCProducerIdManager(1, Controller(), GrantedBlocks(shared.clock), shared), 1000),
    ):
        got.clear()
        manager.generate(got.append)
        manager.restart()
        run(shared.clock, shared.clock.now + 100)
        assert got in ([], [None])
        manager.generate(got.append)
        run(shared.clock, shared.clock.now + 100)
        manager.generate(got.append)
        run(shared.clock, shared.clock.now + 100)
        assert next(granted for granted in got if granted is not None) == first


# -- the controller: KafkaController, ReplicationControlManager ----------------------------------------------------------

CLUSTER = """
[cluster]
version = "3.9.1"
brokers = {brokers}
detect_ms = 100
[[topics]]
name = "orders"
partitions = {partitions}
{topic}
[[producers]]
name = "later"
start_ms = 3000000
{producer}
[network]
delay_ms = 1
"""


class Controlled:
    """A cluster that nobody writes to, in which brokers come and go."""

    def __init__(self, brokers=3, partitions=1, topic="", producer=""):
        text = CLUSTER.format(brokers=brokers, partitions=partitions, topic=topic, producer=producer)
        self.simulation = Simulation(parse_scenario(text, "cluster"), 1, trace_limit=1000)
        self.cluster, self.clock = self.simulation.cluster, self.simulation.clock
        self.run(10)

    def run(self, until):
        run(self.clock, until)

    def led(self, number=0):
        """Leader, leader epoch and ISR of a partition."""
        partition = self.cluster.partitions["orders", number]
        return partition.leader, partition.leader_epoch, sorted(partition.isr)

    @property
    def faults(self):
        return [
            (event.at, event.source, event.text)
            for event in self.simulation.trace.events
            if event.kind is EventKind.FAULT
        ]


def test_partitions_are_led_by_the_brokers_in_turn():
    controlled = Controlled(partitions=4, topic="replication_factor = 2")
    partitions = [controlled.cluster.partitions["orders", number] for number in range(4)]
    assert [partition.replicas for partition in partitions] == [(1, 2), (2, 3), (3, 1), (1, 2)]
    assert controlled.cluster.leaders() == {("orders", number): led for number, led in enumerate((1, 2, 3, 1))}


def test_leadership_of_a_broker_that_is_killed_moves_when_that_is_noticed_and_at_once_when_it_stops():
    killed = Controlled()
    killed.cluster.kill(1)
    killed.run(109)
    assert killed.led() == (1, 0, [1, 2, 3])
    killed.run(110)
    assert killed.led() == (2, 1, [2, 3])
    killed.cluster.kill(3)
    killed.run(300)
    assert killed.led() == (2, 1, [2])  # a follower only leaves the ISR
    killed.cluster.start(1)
    killed.cluster.start(1)
    killed.run(400)
    assert killed.led() == (2, 1, [1, 2])
    stopped = Controlled()
    stopped.cluster.stop(1)
    assert stopped.led() == (2, 1, [2, 3])
    stopped.cluster.stop(1)
    stopped.cluster.kill(1)
    assert [text for _, _, text in stopped.faults] == [
        "stops cleanly",
        "leads orders-0, epoch 1, from offset 0",
    ]
    stopped.cluster.start(1)
    assert stopped.faults[-1] == (10, "broker 1", "starts")
    killed.cluster.start(3, without_snapshots=True)
    assert killed.faults[-1][2] == "starts, recovers its logs, snapshots deleted"


def test_a_clean_stop_writes_snapshots_of_the_replicas_there_are():
    controlled = Controlled(partitions=4, topic="replication_factor = 2")
    for number in (2, 3):
        controlled.cluster.stop(number)
        written = {
            (key[1], broker)
            for key, partition in controlled.cluster.partitions.items()
            for broker, log in partition.logs.items()
            if log.snapshots and key[0] == "orders"
        }
        replicas = {(0, 1, 2), (1, 2, 3), (2, 3, 1), (3, 1, 2)}
        stopped = range(2, number + 1)
        assert written == {(part, broker) for part, *both in replicas for broker in both if broker in stopped}


def test_a_broker_that_is_back_before_anybody_notices_leads_again_in_a_new_epoch():
    controlled = Controlled()
    controlled.cluster.kill(1)
    controlled.run(50)
    controlled.cluster.start(1)
    controlled.run(500)
    leader, epoch, isr = controlled.led()
    assert (leader, epoch, isr) == (1, 2, [1, 2, 3])
    elections = controlled.cluster.partitions["orders", 0].elections
    assert [(election.leader, election.unclean) for election in elections] == [(1, False), (None, False), (1, False)]


@pytest.mark.parametrize(("for_ms", "expected"), [(100, (1, 0, [1, 2, 3])), (101, (2, 1, [1, 2, 3]))])
def test_a_broker_that_is_paused_for_longer_than_that_is_taken_for_dead(for_ms, expected):
    controlled = Controlled()
    controlled.cluster.pause(1, for_ms)
    controlled.cluster.pause(1, 5000)  # it is paused
    assert (controlled.cluster.status.is_up(1), controlled.cluster.status.is_running(1)) == (True, False)
    controlled.run(1000)
    assert controlled.led() == expected
    assert controlled.cluster.status.is_running(1)
    assert controlled.faults[-1] == (10 + for_ms, "broker 1", "resumes")


def test_a_pause_ends_with_the_process():
    controlled = Controlled()
    controlled.cluster.pause(1, 500)
    controlled.cluster.kill(1)
    controlled.run(1000)
    assert not controlled.cluster.status.is_up(1)
    assert "resumes" not in [text for _, _, text in controlled.faults]


def test_without_a_replica_in_sync_there_is_no_leader_unless_an_unclean_one_may_be():
    unclean = 'config = { "unclean.leader.election.enable" = true }'
    for topic, expected, event in (
        ("", (None, 2, [2]), ("controller", "orders-0 has no leader")),
        (unclean, (3, 3, [3]), ("broker 3", "unclean: leads orders-0, epoch 3, from offset 0")),
    ):
        controlled = Controlled(topic=topic)
        for broker in (3, 1):
            controlled.cluster.kill(broker)
            controlled.run(controlled.clock.now + 200)
        assert controlled.led() == (2, 1, [2])
        controlled.cluster.kill(2)
        controlled.run(controlled.clock.now + 200)
        assert controlled.led() == (None, 2, [2])
        assert controlled.cluster.leaders() is None  # nobody is there to be asked
        controlled.cluster.start(3)
        assert controlled.led() == expected
        assert controlled.faults[-1 if topic else -2][1:] == event
        controlled.cluster.start(2)
        assert controlled.led()[0] == (3 if topic else 2)


def test_after_an_unclean_election_its_leader_is_the_only_one_in_sync():
    unclean = 'config = { "unclean.leader.election.enable" = true }'
    controlled = Controlled(topic=unclean)
    controlled.cluster.partitions["orders", 0].isr = [1]
    controlled.cluster.kill(1)
    controlled.run(110)
    assert controlled.led() == (2, 1, [2])
    assert controlled.faults[-1][1:] == ("broker 2", "unclean: leads orders-0, epoch 1, from offset 0")
    controlled.run(200)
    assert controlled.led() == (2, 1, [2, 3])  # a follower that has all of its log is in sync again


@pytest.mark.parametrize("apart", ["gone", "cut"])
def test_the_transaction_log_reaches_the_replicas_that_are_there(apart):
    replicated = Replicated()
    getattr(replicated.brokers, apart).add(3)
    replicated.write(2)
    replicated.partition.replicate_at_once()
    assert replicated.ends == [2, 2, 0]
    assert replicated.watermarks[0] == 0
    getattr(replicated.brokers, apart).clear()
    replicated.partition.isr.remove(2)
    replicated.write()
    replicated.partition.replicate_at_once()
    assert (replicated.ends, replicated.watermarks[0]) == ([3, 2, 3], 3)


def test_leadership_is_moved_to_a_replica_in_sync_that_runs():
    controlled = Controlled()
    partition = controlled.cluster.partitions["orders", 0]
    for broker, leader in ((None, 2), (3, 3), (3, 3), (7, 3), (None, 1)):
        controlled.cluster.move_leader(partition, broker)
        assert partition.leader == leader
    controlled.cluster.pause(2, 50)
    controlled.cluster.move_leader(partition, 2)
    assert partition.leader == 1
    controlled.cluster.move_leader(partition, None)
    assert partition.leader == 3


def test_brokers_that_are_cut_off_reach_one_another_and_no_other():
    controlled = Controlled(brokers=4)
    cluster = controlled.cluster
    cluster.disconnect((1, 2), 100)
    cluster.disconnect((2,), 50)

    def reached():
        return {
            (one, other) for one in range(1, 5) for other in range(one + 1, 5) if cluster.status.reaches(one, other)
        }

    assert reached() == {(3, 4)}
    controlled.run(61)
    assert reached() == {(1, 2), (3, 4)}
    controlled.run(111)
    assert len(reached()) == 6
    assert controlled.faults[0] == (10, "controller", "broker 1, broker 2 and the others cannot reach one another")
    assert controlled.faults[-1] == (110, "controller", "broker 1, broker 2 and the others reach one another again")


def test_disks_are_slow_for_a_while_and_clocks_as_far_ahead_as_they_jumped():
    controlled = Controlled()
    cluster = controlled.cluster
    cluster.slow_disk(2, 40, 100)
    cluster.slow_disk(2, 5, 50)
    cluster.jump_clock(2, 3_600_000)
    cluster.jump_clock(2, -600_000)
    assert [cluster.status.disk_delay_ms(broker) for broker in (1, 2)] == [0, 45]
    assert cluster.status.timestamp(2) - cluster.status.timestamp(1) == 3_000_000
    controlled.run(60)
    assert cluster.status.disk_delay_ms(2) == 40
    controlled.run(110)
    assert cluster.status.disk_delay_ms(2) == 0
    assert cluster.status.timestamp(1) == controlled.clock.timestamp == controlled.clock.base + 110
    assert "its clock jumps by +3,600,000 ms" in [text for _, _, text in controlled.faults]


def test_other_clients_take_producer_ids_while_the_broker_runs():
    controlled = Controlled()
    controlled.cluster.use_producer_ids(1, 1500)
    controlled.cluster.pause(2, 50)
    controlled.cluster.use_producer_ids(2, 5)  # nobody is answered
    controlled.run(1000)
    assert allocated(controlled.cluster.brokers[1].producer_ids, controlled.clock, 1) == [1500]
    assert allocated(controlled.cluster.brokers[2].producer_ids, controlled.clock, 1) == [2000]
    assert [text for _, _, text in controlled.faults if "other clients" in text] == [
        "other clients take 1500 producer ids"
    ]


@pytest.mark.parametrize(("epochs", "described"), [((), True), ((-1, 0), True), ((0, 1), False), ((1, 0), False)])
def test_the_state_is_described_unless_a_producer_has_seen_another_coordinator(epochs, described):
    """Attempts cannot say that the coordinator moved, whichever of the producers saw it."""
    controlled = Controlled()
    recorder = controlled.simulation.recorder
    log = controlled.cluster.partitions["orders", 0].leader_log()
    for number, epoch in enumerate(epochs):
        log.memory.producers.states[number] = ProducerStateEntry(0, epoch, controlled.clock.base)
    before = len(recorder.lines)
    controlled.cluster.describe()
    assert len(recorder.lines) - before == int(described)


def test_without_a_coordinator_there_is_no_producer_id():
    controlled = Controlled()
    given: list[object] = []
    assert controlled.cluster.transactions.broker is None
    controlled.cluster.with_producer_id(given.append)
    assert given == [None]
