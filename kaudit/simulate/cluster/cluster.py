"""All brokers and partitions, and the controller that elects leaders.

Source: KafkaController, ReplicationControlManager: a leader out of the ISR where it can be, out of any replica where
unclean.leader.election.enable says so.
"""

from collections.abc import Callable, Mapping
from functools import partial

from kaudit.broker import attempts
from kaudit.broker.coordinator.transaction_coordinator import CoordinatorLimits
from kaudit.broker.partition.produce import ProduceHandler
from kaudit.broker.partition.topic_config import TopicLimits, config_number
from kaudit.broker.producer_ids.controller_allocator import Controller
from kaudit.broker.producer_ids.zookeeper_allocator import Znode
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import TopicPartition
from kaudit.simulate.clock import Clock
from kaudit.simulate.cluster.allocator import Allocator, BlockHistory, ControllerAllocator, ZooKeeperAllocator
from kaudit.simulate.cluster.broker import Broker, Life
from kaudit.simulate.cluster.coordination import TRANSACTION_TOPIC, Coordination
from kaudit.simulate.cluster.partition import Election, PartitionConfig, ReplicatedPartition
from kaudit.simulate.cluster.recorder import Recorder
from kaudit.simulate.cluster.replica_log import LogConfig
from kaudit.simulate.network import Network
from kaudit.simulate.scenario.model import ClusterSpec, TopicSpec
from kaudit.simulate.trace import Trace

_DEFAULT_SEGMENT_BYTES = 1 << 30
_DEFAULT_LAG_MS = 30_000
_DEFAULT_SWEEP_MS = 600_000
_FIRST_WITHOUT_ZOOKEEPER_IDS = (3, 0)
_TRANSACTION_REPLICAS = 3
_HOW = {Life.KILLED: "kill9", Life.STOPPED: "clean", Life.PAUSED: "paused", Life.RUNNING: "clean"}


class Cluster:
    """Brokers, partitions, controller."""

    def __init__(
        self,
        spec: ClusterSpec,
        topics: tuple[TopicSpec, ...],
        profile: Profile,
        clock: Clock,
        network: Network,
        recorder: Recorder,
        trace: Trace,
        *,
        transactional: bool,
    ) -> None:
        self.profile = profile
        self._spec = spec
        self._clock = clock
        self._network = network
        self._recorder = recorder
        self._trace = trace
        self.partitions: dict[TopicPartition, ReplicatedPartition] = {}
        self.brokers: dict[int, Broker] = {}
        self.history = BlockHistory(clock)
        config = dict(spec.config)
        limits = CoordinatorLimits()
        self.coordination = Coordination(
            profile,
            CoordinatorLimits(
                config_number(config, "transaction.max.timeout.ms", limits.max_timeout_ms),
                config_number(config, "transactional.id.expiration.ms", limits.expiration_ms),
                config_number(
                    config, "transaction.remove.expired.transaction.cleanup.interval.ms", limits.cleanup_interval_ms
                ),
            ),
            self.partitions,
            clock,
            recorder,
            trace,
            self.is_running,
            self._with_producer_id,
        )
        path = ProduceHandler(
            profile,
            self.coordination.coordinator,
            verifies=config.get("transaction.partition.verification.enable", "true") == "true",
        )
        store, controller = Znode(), Controller()
        for number in range(1, spec.brokers + 1):
            allocator = self._allocator(number, store, controller)
            self.brokers[number] = Broker(number, clock, self.partitions, path, self.coordination, allocator, recorder)
        recorder.broker(str(profile.version), config)
        self._create(topics, config)
        if transactional:
            self._create_transaction_log(config)

    def _allocator(self, number: int, store: Znode, controller: Controller) -> Allocator:
        network = self._network
        if self.profile.version.numbers[:2] < _FIRST_WITHOUT_ZOOKEEPER_IDS:
            return ZooKeeperAllocator(number, store, self.history, self._clock, network.delay, self._trace)
        return ControllerAllocator(number, controller, self.history, self._clock, network.delay, self._trace)

    def _create(self, topics: tuple[TopicSpec, ...], config: Mapping[str, str]) -> None:
        count = len(self.brokers)
        for topic in topics:
            merged = {**config, **topic.config}
            settings = PartitionConfig(
                TopicLimits.of(dict(topic.config), self.profile),
                LogConfig(
                    config_number(merged, "segment.bytes", _DEFAULT_SEGMENT_BYTES),
                    config_number(merged, self.profile.expiration_config, self.profile.expiration_default_ms),
                    config_number(merged, "producer.id.expiration.check.interval.ms", _DEFAULT_SWEEP_MS),
                ),
                config_number(merged, "min.insync.replicas", 1),
                merged.get("unclean.leader.election.enable", "false") == "true",
                config_number(merged, "replica.lag.time.max.ms", _DEFAULT_LAG_MS),
            )
            for number in range(topic.partitions):
                key = (topic.name, number)
                replicas = tuple((number + step) % count + 1 for step in range(topic.replication_factor))
                self._recorder.record(
                    self._recorder.attempt(attempts.ConfigureTopic, key, config=dict(topic.config)), {"outcome": "ok"}
                )
                self._start(key, replicas, settings)

    def _create_transaction_log(self, config: dict[str, str]) -> None:
        key = (TRANSACTION_TOPIC, 0)
        replicas = tuple(sorted(self.brokers))[:_TRANSACTION_REPLICAS]
        settings = PartitionConfig(
            TopicLimits.of({"cleanup.policy": "compact"}, self.profile),
            LogConfig(_DEFAULT_SEGMENT_BYTES, self.profile.expiration_default_ms, _DEFAULT_SWEEP_MS),
            1,
            False,
            config_number(config, "replica.lag.time.max.ms", _DEFAULT_LAG_MS),
        )
        self.coordination.log = self._start(key, replicas, settings)

    def _start(self, key: TopicPartition, replicas: tuple[int, ...], settings: PartitionConfig) -> ReplicatedPartition:
        partition = ReplicatedPartition(key, replicas, self.profile, settings, self._clock, self, self._trace)
        self.partitions[key] = partition
        partition.elect(replicas[0], list(replicas), unclean=False)
        return partition

    def _with_producer_id(self, use: Callable[[int | None], None]) -> None:
        """Let the coordinator have a producer id of its broker's."""
        number = self.coordination.broker
        if number is None or not self.is_running(number):
            use(None)
        else:
            self.brokers[number].allocator.generate(use)

    # -- what others want to know ------------------------------------------------------------------------------------
    def is_up(self, broker: int) -> bool:
        """Tell whether a broker's process is there."""
        return self.brokers[broker].is_up

    def is_running(self, broker: int) -> bool:
        """Tell whether a broker handles requests."""
        return self.brokers[broker].is_running

    def delay(self) -> int:
        """Return how long a message between brokers travels, in ms."""
        return self._network.delay()

    def leaders(self) -> dict[TopicPartition, int | None] | None:
        """Return the leaders of all partitions, None when no broker can be asked."""
        if not any(broker.is_running for broker in self.brokers.values()):
            return None
        return {key: partition.leader for key, partition in self.partitions.items()}

    @property
    def coordinator(self) -> int | None:
        """The broker that coordinates transactions."""
        return self.coordination.broker

    # -- what happens to brokers -------------------------------------------------------------------------------------
    def kill(self, number: int) -> None:
        """End a broker's process at once, as kill -9 does; the controller notices later."""
        broker = self.brokers[number]
        if not broker.is_up:
            return
        self._trace.fault(self._clock.now, broker.name, "killed")
        self._down(broker, Life.KILLED)
        self._clock.after(self._spec.detect_ms, partial(self._notice, number, broker.generation))

    def stop(self, number: int) -> None:
        """Stop a broker: its leaderships move first, if they can (controlled shutdown)."""
        broker = self.brokers[number]
        if not broker.is_running:
            return
        self._trace.fault(self._clock.now, broker.name, "stops cleanly")
        for partition in self.partitions.values():
            if number in partition.replicas:
                partition.logs[number].stop_cleanly()
        self._down(broker, Life.STOPPED)
        self._notice(number, broker.generation)

    def pause(self, number: int, for_ms: int) -> None:
        """Stop a broker's process for a while, as SIGSTOP does; after a while the controller takes it for dead."""
        broker = self.brokers[number]
        if not broker.is_running:
            return
        self._trace.fault(self._clock.now, broker.name, f"paused for {for_ms} ms")
        broker.life = Life.PAUSED
        if for_ms > self._spec.detect_ms:
            self._clock.after(self._spec.detect_ms, partial(self._notice, number, broker.generation))
        self._clock.after(for_ms, partial(self._resume, number, broker.generation))

    def _resume(self, number: int, generation: int) -> None:
        broker = self.brokers[number]
        if broker.generation != generation or broker.life is not Life.PAUSED:
            return
        self._trace.fault(self._clock.now, broker.name, "goes on")
        broker.life = Life.RUNNING
        self.coordination.write_unwritten()
        for key in self.partitions:
            self.coordination.write_waiting_markers(key)
        self._network.broker_resumed(number)
        for partition in self.partitions.values():
            if number in partition.replicas:
                if partition.leader is None:
                    self._elect(partition)
                elif partition.leader != number and number not in partition.isr:
                    partition.follow_again(number)

    def start(self, number: int, *, without_snapshots: bool = False) -> None:
        """Start a broker that was killed or stopped. `without_snapshots`: its producer snapshots were deleted."""
        broker = self.brokers[number]
        if broker.is_up:
            return
        clean = broker.life is Life.STOPPED
        how = "starts" if clean else "starts, recovers its logs"
        self._trace.fault(self._clock.now, broker.name, f"{how}{', snapshots deleted' if without_snapshots else ''}")
        broker.life = Life.RUNNING
        broker.allocator.restart()
        for partition in self.partitions.values():
            if number in partition.replicas:
                self._load(partition, number, clean=clean, without_snapshots=without_snapshots)

    def _load(self, partition: ReplicatedPartition, number: int, *, clean: bool, without_snapshots: bool) -> None:
        log = partition.logs[number]
        if partition.leader == number:
            # It is back before the controller noticed: its registration is a new one, and so is its leadership.
            partition.elect(None, list(partition.isr), unclean=False)
        if without_snapshots and len(partition.replicas) > 1:
            self._recorder.end(f"broker {number} lost the snapshots of {partition.name}, one of several replicas")
        if log.log_start >= log.log_end > 0 and len(partition.replicas) > 1:
            self._recorder.end(
                f"broker {number} starts with {partition.name} deleted to its end: it forgets open transactions"
            )
        recorded = partition.key[0] != TRANSACTION_TOPIC
        if recorded and partition.leader is None and partition.last_leader == number:
            deleted = [f"{offset:020d}.snapshot" for offset in {*log.snapshots, log.log_end}]
            attempt = self._recorder.attempt(attempts.Restart, partition.key, clean=clean)
            if without_snapshots:
                attempt.tamper = attempts.Tamper(deleted=deleted)
            self._recorder.record(attempt, {"outcome": "ok"})
            self.coordination.coordinator.reload(partition.key, self._clock.timestamp)
        elif recorded and partition.last_leader != number:
            self._recorder.record(
                self._recorder.attempt(
                    attempts.FollowerRestart, partition.key, clean=clean, replica=number, log_end_offset=log.log_end
                ),
                {"outcome": "ok"},
            )
        log.start(self._clock.timestamp, clean=clean, without_snapshots=without_snapshots)
        if partition.leader is None:
            self._elect(partition)
        if partition.leader not in (None, number):
            partition.follow_again(number)

    def _down(self, broker: Broker, life: Life) -> None:
        broker.life = life
        broker.generation += 1
        self._network.broker_died(broker.number)
        for partition in self.partitions.values():
            if broker.number in partition.replicas:
                partition.stop_following(broker.number)

    # -- the controller ----------------------------------------------------------------------------------------------
    def _notice(self, number: int, generation: int) -> None:
        """Move leaderships away from a broker that is gone, and take it out of the ISRs."""
        broker = self.brokers[number]
        if broker.generation != generation or broker.is_running:
            return
        for partition in self.partitions.values():
            if partition.leader == number:
                self._elect(partition)
            elif number in partition.isr:
                partition.leave_isr(number)

    def _elect(self, partition: ReplicatedPartition) -> None:
        alive = [broker for broker in partition.replicas if self.brokers[broker].is_running]
        in_sync = [broker for broker in alive if broker in partition.isr]
        unclean = False
        if in_sync:
            leader: int | None = in_sync[0]
            isr = in_sync
        elif alive and partition.config.unclean_elections:
            leader, isr, unclean = alive[0], alive[:1], True
        else:
            leader, isr = None, list(partition.isr)
            if partition.leader is None:
                return
        election = partition.elect(leader, isr, unclean=unclean)
        self._tell(partition, election)

    def _tell(self, partition: ReplicatedPartition, election: Election) -> None:
        if election.leader is None:
            self._trace.fault(self._clock.now, CONTROLLER, f"{partition.name} has no leader")
            return
        kind = "unclean: " if election.unclean else ""
        name = f"broker {election.leader}"
        text = f"{kind}leads {partition.name}, epoch {election.epoch}, from offset {election.log_end}"
        if election.lost_from_offset is not None:
            text += f"; broker {election.old_leader} had more from {election.lost_from_offset} on"
        self._trace.fault(self._clock.now, name, text)
        if partition.key[0] == TRANSACTION_TOPIC:
            self.coordination.write_unwritten()
            return
        if not election.moved:
            self.coordination.write_waiting_markers(partition.key)
            return
        assert election.old_leader is not None
        if election.regained:
            self._recorder.end(
                f"an unclean election brought records back to {partition.name} that its leader before lacked"
            )
        old = self.brokers[election.old_leader]
        how = "unclean" if election.unclean else _HOW[old.life]
        attempt = self._recorder.attempt(
            attempts.LeaderChange,
            partition.key,
            how=how,
            old_leader=election.old_leader,
            new_leader=election.leader,
            lost_from_offset=election.lost_from_offset,
        )
        if old.life is Life.STOPPED:
            attempt.via = "controlled_shutdown"
        self._recorder.record(attempt, {"outcome": "ok"})
        if election.lost_from_offset is not None:
            committed = partition.logs[election.old_leader].high_watermark
            self.coordination.write_lost_markers(partition.key, election.lost_from_offset, committed)
        else:
            self.coordination.write_waiting_markers(partition.key)

    # -- other things done to it -------------------------------------------------------------------------------------
    def delete_records(self, key: TopicPartition, before_offset: int) -> None:
        """Delete records up to an offset, -1 for the high watermark, on every replica (DeleteRecords)."""
        partition = self.partitions[key]
        if partition.leader is None:
            return
        log = partition.leader_log()
        before = log.high_watermark if before_offset < 0 else min(before_offset, log.high_watermark)
        attempt = self._recorder.attempt(attempts.DeleteRecords, key, before_offset=before)
        self._recorder.record(attempt, {"outcome": "ok", "error": "NONE", "error_code": 0})
        for replica in partition.logs.values():
            replica.delete_records(min(before, replica.log_end))
        self._trace.fault(self._clock.now, f"broker {partition.leader}", f"{partition.name}: deletes up to {before}")

    def shut_down(self) -> None:
        """Stop every broker that runs, cleanly, all at once: no leadership moves any more."""
        for broker in self.brokers.values():
            if broker.is_running:
                for partition in self.partitions.values():
                    if broker.number in partition.replicas:
                        partition.logs[broker.number].stop_cleanly()
                broker.life = Life.STOPPED

    def describe(self) -> None:
        """Write down what the leaders know, as the last word of the attempts."""
        for key, partition in self.partitions.items():
            if partition.leader is None or key[0] == TRANSACTION_TOPIC:
                continue
            memory = partition.leader_log().memory
            if memory.next_sweep is None or self._clock.timestamp >= memory.next_sweep:
                memory.pass_time(self._clock.timestamp)
            states = sorted(memory.producers.states.items())
            if any(state.coordinator_epoch > 0 for _, state in states):
                continue  # attempts do not tell where the coordinator moved
            stable = memory.last_stable_offset
            answer: dict[str, object] = {
                "outcome": "ok",
                "high_watermark": memory.log_end,
                "log_start_offset": memory.log_start,
                "last_stable_offset": stable,
                "aborted": [
                    {"producer_id": row.producer_id, "first_offset": row.first_offset}
                    for row in memory.producers.aborted_between(memory.log_start, stable)
                ],
            }
            if self.profile.describes_producers:
                answer["producers"] = [
                    {
                        "producer_id": producer_id,
                        "producer_epoch": state.epoch,
                        "last_sequence": state.last_sequence,
                        "last_timestamp": state.last_timestamp,
                        "coordinator_epoch": state.coordinator_epoch,
                        "current_txn_start_offset": state.current_txn_first_offset,
                    }
                    for producer_id, state in states
                ]
            if any(election.moved for election in partition.elections):
                answer["leader"] = partition.leader
            self._recorder.record(self._recorder.attempt(attempts.Describe, key), answer)


CONTROLLER = "controller"
