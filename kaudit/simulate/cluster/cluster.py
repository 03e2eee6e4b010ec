"""All brokers and partitions, and the controller that elects leaders.

Source: KafkaController, ReplicationControlManager: a leader out of the ISR where it can be, out of any replica where
unclean.leader.election.enable says so.
"""

from collections.abc import Mapping
from functools import partial

from kaudit.broker import attempts
from kaudit.broker.attempts.describe import describe
from kaudit.broker.attempts.produce import ProduceHandler
from kaudit.broker.config import DEFAULT_SEGMENT_BYTES, BrokerConfig, TopicLimits, config_number
from kaudit.broker.coordinator.verification import TransactionVerifier
from kaudit.broker.producer_ids.allocators import Controller, Znode
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import TopicPartition
from kaudit.simulate.cluster.broker import BrokerServer, ReplicaManager
from kaudit.simulate.cluster.brokers import Brokers, ProcessState, RunContext
from kaudit.simulate.cluster.partition import Election, PartitionConfig, ReplicatedPartition
from kaudit.simulate.cluster.producer_id_manager import (
    GrantedBlocks,
    OnProducerId,
    ProducerIdManager,
    RPCProducerIdManager,
    ZkProducerIdManager,
)
from kaudit.simulate.cluster.replica_log import LogConfig
from kaudit.simulate.cluster.transaction_marker_channel_manager import TransactionMarkerChannelManager
from kaudit.simulate.cluster.transaction_state_manager import TRANSACTION_TOPIC, TransactionStateManager
from kaudit.simulate.scenario.model import ClusterSpec, TopicSpec

_DEFAULT_LAG_MS = 30_000
_DEFAULT_SWEEP_MS = 600_000
_FIRST_WITHOUT_ZOOKEEPER_IDS = (3, 0)
_TRANSACTION_REPLICAS = 3
_RETRY_MS = 100
"""retry.backoff.ms of clients that are not simulated one by one."""
_HOW = {
    ProcessState.KILLED: "kill9",
    ProcessState.STOPPED: "clean",
    ProcessState.PAUSED: "paused",
    ProcessState.RUNNING: "clean",
}


class Cluster:
    """Brokers, partitions, controller."""

    def __init__(
        self,
        spec: ClusterSpec,
        topics: tuple[TopicSpec, ...],
        profile: Profile,
        context: RunContext,
        *,
        transactional: bool,
    ) -> None:
        self.profile = profile
        self._spec = spec
        self._context = context
        self._clock = context.clock
        self._network = context.network
        self._recorder = context.recorder
        self._trace = context.trace
        self.partitions: dict[TopicPartition, ReplicatedPartition] = {}
        self.brokers: dict[int, BrokerServer] = {}
        self.status = Brokers(self.brokers)
        self.granted_blocks = GrantedBlocks(context.clock)
        config = spec.config
        broker_config = BrokerConfig.of(config, profile)
        markers = TransactionMarkerChannelManager(self.partitions, self.status, context)
        self.transactions = TransactionStateManager(profile, broker_config, markers, self.status, context)
        self.transactions.with_producer_id = self.with_producer_id
        verifier = TransactionVerifier(profile, self.transactions.coordinator, verifies=broker_config.verifies)
        replica_manager = ReplicaManager(self.partitions, ProduceHandler(profile, verifier), self.status)
        znode, controller = Znode(), Controller()
        for number in range(1, spec.brokers + 1):
            producer_ids = self._producer_id_manager(number, znode, controller)
            self.brokers[number] = BrokerServer(number, replica_manager, self.transactions, producer_ids, context)
        self._recorder.broker(str(profile.version), config)
        self._create(topics, config)
        if transactional:
            self._create_transaction_log(config)

    def _producer_id_manager(self, number: int, znode: Znode, controller: Controller) -> ProducerIdManager:
        if self.profile.version.numbers < _FIRST_WITHOUT_ZOOKEEPER_IDS:
            return ZkProducerIdManager(number, znode, self.granted_blocks, self._context)
        return RPCProducerIdManager(number, controller, self.granted_blocks, self._context)

    def _create(self, topics: tuple[TopicSpec, ...], config: Mapping[str, str]) -> None:
        count = len(self.brokers)
        for topic in topics:
            merged = {**config, **topic.config}
            settings = PartitionConfig(
                TopicLimits.of(dict(topic.config), self.profile),
                LogConfig(
                    self.profile,
                    config_number(merged, "segment.bytes", DEFAULT_SEGMENT_BYTES),
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
                line = self._recorder.attempt(
                    attempts.ConfigureTopic, key, config=dict(topic.config), replicas=len(replicas)
                )
                self._recorder.record(line, {"outcome": "ok"})
                self._start(key, replicas, settings)

    def _create_transaction_log(self, config: dict[str, str]) -> None:
        key = (TRANSACTION_TOPIC, 0)
        replicas = tuple(sorted(self.brokers))[:_TRANSACTION_REPLICAS]
        settings = PartitionConfig(
            TopicLimits.of({"cleanup.policy": "compact"}, self.profile),
            LogConfig(self.profile, DEFAULT_SEGMENT_BYTES, self.profile.expiration_default_ms, _DEFAULT_SWEEP_MS),
            1,
            False,
            config_number(config, "replica.lag.time.max.ms", _DEFAULT_LAG_MS),
        )
        self.transactions.log = self._start(key, replicas, settings)

    def _start(self, key: TopicPartition, replicas: tuple[int, ...], settings: PartitionConfig) -> ReplicatedPartition:
        partition = ReplicatedPartition(key, replicas, settings, self.status, self._context)
        self.partitions[key] = partition
        partition.elect(replicas[0], list(replicas), unclean=False)
        return partition

    def with_producer_id(self, use: OnProducerId) -> None:
        """Call `use` with a new producer id of the coordinator's broker, or with None while there is none."""
        number = self.transactions.broker
        if number is None or not self.brokers[number].is_running:
            use(None)
        else:
            self.brokers[number].producer_ids.generate(use)

    # -- cluster metadata --------------------------------------------------------------------------------------------
    def leaders(self) -> dict[TopicPartition, int | None] | None:
        """Return the leaders of all partitions, None when no broker can be asked."""
        if not any(broker.is_running for broker in self.brokers.values()):
            return None
        return {key: partition.leader for key, partition in self.partitions.items()}

    @property
    def coordinator(self) -> int | None:
        """The broker that coordinates transactions."""
        return self.transactions.broker

    # -- faults of brokers -------------------------------------------------------------------------------------
    def kill(self, number: int) -> None:
        """End a broker's process at once, as kill -9 does; the controller notices later."""
        broker = self.brokers[number]
        if not broker.is_up:
            return
        self._trace.fault(self._clock.now, broker.name, "killed")
        self._down(broker, ProcessState.KILLED)
        self._clock.after(self._spec.detect_ms, partial(self._failure_detected, number, broker.incarnation))

    def stop(self, number: int) -> None:
        """Stop a broker: its leaderships move first, if they can (controlled shutdown)."""
        broker = self.brokers[number]
        if not broker.is_running:
            return
        self._trace.fault(self._clock.now, broker.name, "stops cleanly")
        for partition in self.partitions.values():
            if number in partition.replicas:
                partition.logs[number].stop_cleanly()
        self._down(broker, ProcessState.STOPPED)
        self._failure_detected(number, broker.incarnation)

    def pause(self, number: int, for_ms: int) -> None:
        """Stop a broker's process for a while, as SIGSTOP does; after a while the controller takes it for dead."""
        broker = self.brokers[number]
        if not broker.is_running:
            return
        self._trace.fault(self._clock.now, broker.name, f"paused for {for_ms} ms")
        broker.process = ProcessState.PAUSED
        if for_ms > self._spec.detect_ms:
            self._clock.after(self._spec.detect_ms, partial(self._failure_detected, number, broker.incarnation))
        self._clock.after(for_ms, partial(self._resume, number, broker.incarnation))

    def _resume(self, number: int, incarnation: int) -> None:
        broker = self.brokers[number]
        if broker.incarnation != incarnation or broker.process is not ProcessState.PAUSED:
            return
        self._trace.fault(self._clock.now, broker.name, "resumes")
        broker.process = ProcessState.RUNNING
        self.transactions.write_unwritten()
        for key in self.partitions:
            self.transactions.markers.write_waiting(key)
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
        clean = broker.process is ProcessState.STOPPED
        how = "starts" if clean else "starts, recovers its logs"
        self._trace.fault(self._clock.now, broker.name, f"{how}{', snapshots deleted' if without_snapshots else ''}")
        broker.process = ProcessState.RUNNING
        broker.started_at = self._clock.now
        broker.producer_ids.restart()
        for partition in self.partitions.values():
            if number in partition.replicas:
                self._load(partition, number, clean=clean, without_snapshots=without_snapshots)
        self.transactions.clock_changed()

    def disconnect(self, brokers: tuple[int, ...], for_ms: int) -> None:
        """Cut `brokers` off from the others for a while; clients and the controller still reach them all.

        So leaders stay, followers leave the ISR when they lag (Partition.maybeShrinkIsr), markers wait, and a leader that
        cannot ask the coordinator refuses to begin a transaction (AddPartitionsToTxnManager).
        """
        cut = frozenset(brokers)
        names = ", ".join(f"broker {number}" for number in sorted(cut))
        self.status.cuts.append(cut)
        self._trace.fault(self._clock.now, CONTROLLER, f"{names} and the others cannot reach one another")
        self._clock.after(for_ms, partial(self._reconnect, cut, names))

    def _reconnect(self, cut: frozenset[int], names: str) -> None:
        self.status.cuts.remove(cut)
        self._trace.fault(self._clock.now, CONTROLLER, f"{names} and the others reach one another again")

    def slow_disk(self, number: int, delay_ms: int, for_ms: int) -> None:
        """Let a broker take longer for each write, as leader and as follower, for a while."""
        broker = self.brokers[number]
        broker.disk_delay_ms += delay_ms
        self._trace.fault(self._clock.now, broker.name, f"its disk is slow, {delay_ms} ms a write")
        self._clock.after(for_ms, partial(self._disk_recovered, broker, delay_ms))

    def _disk_recovered(self, broker: BrokerServer, delay_ms: int) -> None:
        broker.disk_delay_ms -= delay_ms
        self._trace.fault(self._clock.now, broker.name, "its disk is fast again")

    def jump_clock(self, number: int, by_ms: int) -> None:
        """Set a broker's wall clock: by it producer ids expire, transactions time out, and markers get their times.

        What a broker does every so often goes on as before (KafkaScheduler counts by System.nanoTime).
        """
        broker = self.brokers[number]
        broker.clock_offset_ms += by_ms
        self._trace.fault(self._clock.now, broker.name, f"its clock jumps by {by_ms:+,} ms")
        self._recorder.end(f"the clock of broker {number} jumped: attempts know of one clock")
        if number == self.coordinator:
            self.transactions.clock_changed()

    def use_producer_ids(self, number: int, count: int) -> None:
        """Let other clients take `count` producer ids of a broker, so that it needs a new block."""
        broker = self.brokers[number]
        if not broker.is_running:
            return
        self._trace.fault(self._clock.now, broker.name, f"other clients take {count} producer ids")
        self._use_producer_id(broker, broker.incarnation, count)

    def _use_producer_id(self, broker: BrokerServer, incarnation: int, count: int) -> None:
        while count and broker.incarnation == incarnation:
            answers: list[int | None] = []
            broker.producer_ids.generate(answers.append)
            if answers == [None]:
                self._clock.after(_RETRY_MS, partial(self._use_producer_id, broker, incarnation, count))
                return
            count -= 1  # where there is no answer yet, one comes with the next block

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
            if log.log_start and not clean:
                attempt.log_start_offset = log.log_start  # a simulated broker checkpoints it at once
            self._recorder.record(attempt, {"outcome": "ok"})
            self.transactions.restarted(partition.key, number)
        elif recorded and partition.last_leader != number:
            self._recorder.record(
                self._recorder.attempt(
                    attempts.FollowerRestart, partition.key, clean=clean, replica=number, log_end_offset=log.log_end
                ),
                {"outcome": "ok"},
            )
        log.start(self.brokers[number].timestamp, clean=clean, without_snapshots=without_snapshots)
        if partition.leader is None:
            self._elect(partition)
        if partition.leader not in (None, number):
            partition.follow_again(number)

    def _down(self, broker: BrokerServer, process: ProcessState) -> None:
        broker.process = process
        broker.incarnation += 1
        self._network.broker_died(broker.number)
        for partition in self.partitions.values():
            if broker.number in partition.replicas:
                partition.stop_following(broker.number)

    # -- the controller ----------------------------------------------------------------------------------------------
    def _failure_detected(self, number: int, incarnation: int) -> None:
        """Move leaderships away from a broker that is gone, and take it out of the ISRs."""
        broker = self.brokers[number]
        if broker.incarnation != incarnation or broker.is_running:
            return
        for partition in self.partitions.values():
            if partition.leader == number:
                self._elect(partition)
            elif number in partition.isr:
                partition.leave_isr(number)

    def move_leader(self, partition: ReplicatedPartition, broker: int | None) -> None:
        """Elect another in-sync replica, `broker` or the next one, if there is one (ElectLeaders, a reassignment)."""
        others = [number for number in partition.isr if number != partition.leader and self.brokers[number].is_running]
        if partition.leader is None or not others or broker not in (None, *others):
            return
        leader = others[0] if broker is None else broker
        self._announce(partition, partition.elect(leader, list(partition.isr), unclean=False))

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
        self._announce(partition, election)

    def _announce(self, partition: ReplicatedPartition, election: Election) -> None:
        if election.leader is None:
            self._trace.fault(self._clock.now, CONTROLLER, f"{partition.name} has no leader", partition.name)
            return
        kind = "unclean: " if election.unclean else ""
        name = f"broker {election.leader}"
        text = f"{kind}leads {partition.name}, epoch {election.epoch}, from offset {election.log_end}"
        if election.lost_from_offset is not None:
            text += f"; broker {election.old_leader} had more from {election.lost_from_offset} on"
        self._trace.fault(self._clock.now, name, text, partition.name)
        if partition.key[0] == TRANSACTION_TOPIC:
            if election.moved:
                self.transactions.moved()
            self.transactions.write_unwritten()
            return
        if not election.moved:
            self.transactions.markers.write_waiting(partition.key)
            return
        assert election.old_leader is not None
        if election.regained:
            self._recorder.end(
                f"an unclean election brought records back to {partition.name} that its leader before lacked"
            )
        old = self.brokers[election.old_leader]
        how = "unclean" if election.unclean else _HOW[old.process]
        attempt = self._recorder.attempt(
            attempts.LeaderChange,
            partition.key,
            how=how,
            old_leader=election.old_leader,
            new_leader=election.leader,
            lost_from_offset=election.lost_from_offset,
        )
        if old.process is ProcessState.STOPPED:
            attempt.via = "controlled_shutdown"
        self._recorder.record(attempt, {"outcome": "ok"})
        if election.lost_from_offset is not None:
            committed = partition.logs[election.old_leader].high_watermark
            self.transactions.markers.write_lost(partition.key, election.lost_from_offset, committed)
        else:
            self.transactions.markers.write_waiting(partition.key)

    # -- other things done to it -------------------------------------------------------------------------------------
    def delete_records(self, partition: ReplicatedPartition, before_offset: int) -> None:
        """Delete records up to an offset, -1 for the high watermark, on every replica (DeleteRecords)."""
        if partition.leader is None:
            return
        log = partition.leader_log()
        before = log.high_watermark if before_offset < 0 else min(before_offset, log.high_watermark)
        attempt = self._recorder.attempt(attempts.DeleteRecords, partition.key, before_offset=before)
        self._recorder.record(attempt, {"outcome": "ok", "error": "NONE", "error_code": 0})
        for broker, replica in partition.logs.items():
            replica.delete_records(min(before, replica.log_end), self.brokers[broker].timestamp)
        text = f"{partition.name}: deletes up to {before}"
        self._trace.fault(self._clock.now, f"broker {partition.leader}", text, partition.name)

    def shut_down(self) -> None:
        """Stop every broker that runs, cleanly, all at once: no leadership moves any more."""
        for broker in self.brokers.values():
            if broker.is_running:
                for partition in self.partitions.values():
                    if broker.number in partition.replicas:
                        partition.logs[broker.number].stop_cleanly()
                broker.process = ProcessState.STOPPED

    def describe(self) -> None:
        """Record the leaders' state as the last attempts."""
        for key, partition in self.partitions.items():
            if partition.leader is None or key[0] == TRANSACTION_TOPIC:
                continue
            memory = partition.leader_log().memory
            memory.pass_time(self.brokers[partition.leader].timestamp)
            if any(state.coordinator_epoch > 0 for state in memory.producers.states.values()):
                continue  # attempts cannot express that the coordinator moved
            aborted = memory.producers.aborted_between(memory.log_start, memory.last_stable_offset)
            answer = describe(memory, self.profile, aborted)
            if any(election.moved for election in partition.elections):
                answer["leader"] = partition.leader
            self._recorder.record(self._recorder.attempt(attempts.Describe, key), answer)


CONTROLLER = "controller"
