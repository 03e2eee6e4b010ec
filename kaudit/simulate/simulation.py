"""One run: a scenario and a seed determine a cluster, its clients and everything that happens to them.

Reading the state of a run, after each event that the sequence diagram shows.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TypeVar

from msgspec import Struct

from kaudit.broker.releases.profile import profile_for
from kaudit.broker.response import TopicPartition
from kaudit.simulate.application import Application
from kaudit.simulate.clock import Clock
from kaudit.simulate.cluster.broker import BrokerServer
from kaudit.simulate.cluster.brokers import AttemptRecorder, RunContext
from kaudit.simulate.cluster.cluster import Cluster
from kaudit.simulate.cluster.partition import ReplicatedPartition
from kaudit.simulate.cluster.transaction_state_manager import TRANSACTION_TOPIC
from kaudit.simulate.network import Network
from kaudit.simulate.producer.kafka_producer import KafkaProducer
from kaudit.simulate.producer_batch import ProducerBatch
from kaudit.simulate.random_faults import ScenarioFaults, draw_faults
from kaudit.simulate.requests import partition_name
from kaudit.simulate.scenario.model import (
    BrokerEnd,
    BrokerFault,
    DeleteRecords,
    DisconnectBrokers,
    JumpBrokerClock,
    JumpProducerClock,
    KillBroker,
    KillProducer,
    LoseAllocation,
    MoveLeader,
    PauseBroker,
    PauseProducer,
    Scenario,
    SlowDisk,
    StartBroker,
    StopBroker,
    TimedFault,
    UseProducerIds,
)
from kaudit.simulate.trace import (
    DEFAULT_LIMIT,
    Client,
    ClientPartition,
    Partition,
    QueuedBatch,
    RememberedProducer,
    Replica,
    RunState,
    Trace,
    Transaction,
    numbers_text,
)

_SHOWN_BATCHES = 12
"""How many waiting batches of a partition are described; more are counted."""
_Part = TypeVar("_Part", bound=Struct)


class Observer:
    """Reads the state of a run. What has not changed since the last reading is the same object, so that it is kept once."""

    def __init__(self, applications: Mapping[str, Application], cluster: Cluster, base: int) -> None:
        """`base` is the wall clock when the run began, ms since 1970."""
        self._applications = applications
        self._cluster = cluster
        self._base = base
        self._known: dict[object, Struct] = {}

    def read(self) -> RunState:
        """Return the state now."""
        cluster = self._cluster
        partitions = [item for key, item in cluster.partitions.items() if key[0] != TRANSACTION_TOPIC]
        return RunState(
            tuple(self._same(("client", app.spec.name), _client(app)) for app in self._applications.values()),
            tuple(self._same(item.name, _partition(item, cluster.brokers)) for item in partitions),
            tuple(self._remembered(partitions)),
            tuple(self._transactions()),
        )

    def _same(self, key: object, part: _Part) -> _Part:
        known = self._known.get(key)
        if known == part:
            return known
        self._known[key] = part
        return part

    def _remembered(self, partitions: Iterable[ReplicatedPartition]) -> Iterator[RememberedProducer]:
        for partition in partitions:
            leader = partition.leader if partition.leader is not None else partition.last_leader
            if leader is None:
                continue
            for producer_id, entry in partition.logs[leader].memory.producers.states.items():
                remembered = RememberedProducer(partition.name, producer_id, entry)
                yield self._same((partition.name, producer_id), remembered)

    def _transactions(self) -> Iterator[Transaction]:
        ids = {app.spec.config.transactional_id for app in self._applications.values()}
        for transactional_id in sorted(filter(None, ids)):
            transaction = self._cluster.transactions.coordinator.transaction(transactional_id)
            if transaction is not None:
                state = Transaction(
                    transactional_id,
                    str(transaction.producer_id),
                    transaction.epoch,
                    transaction.state.label,
                    tuple(map(partition_name, transaction.partitions)),
                    None if transaction.started_at is None else transaction.started_at - self._base,
                    transaction.timeout_ms,
                )
                yield self._same(("transaction", transactional_id), state)


def _client(application: Application) -> Client:
    config = application.spec.config
    producer = application.producer
    if producer is None:
        process = "killed" if application.sessions else "not started"
        return Client(application.spec.name, process, "-1", -1, config.max_in_flight, config.transactional_id, None, ())
    manager = producer.manager
    producer_id, epoch = (-1, -1) if manager is None else manager.producer
    state = None
    if config.transactional_id is not None and producer.transactions is not None:
        state = producer.transactions.state.value
    return Client(
        application.spec.name,
        "running" if producer.is_running else "paused",
        str(producer_id),
        epoch,
        config.max_in_flight,
        config.transactional_id,
        state,
        tuple(_client_partition(producer, key) for key in producer.accumulator.queues),
    )


def _client_partition(producer: KafkaProducer, key: TopicPartition) -> ClientPartition:
    accumulator, manager = producer.accumulator, producer.manager
    queue = accumulator.queues[key]
    in_flight = [batch for batch in producer.in_flight if batch.partition == key]
    sequences = None if manager is None else manager.partitions.get(key)
    next_sequence = -1 if manager is None else 0
    return ClientPartition(
        partition_name(key),
        tuple(map(_batch, islice(queue, _SHOWN_BATCHES))),
        len(queue),
        tuple(map(_batch, in_flight[:_SHOWN_BATCHES])),
        len(in_flight),
        key in accumulator.muted,
        manager is not None and manager.is_unresolved(key),
        next_sequence if sequences is None else sequences.next_sequence,
        -1 if sequences is None else sequences.last_acknowledged,
    )


def _batch(batch: ProducerBatch) -> QueuedBatch:
    sequences = numbers_text(batch.base_sequence, batch.last_sequence) if batch.has_sequence else ""
    return QueuedBatch(numbers_text(batch.numbers[0], batch.numbers[-1]), sequences, batch.epoch, batch.attempts)


def _partition(partition: ReplicatedPartition, brokers: Mapping[int, BrokerServer]) -> Partition:
    leader = partition.leader
    log = None if leader is None else partition.logs[leader]
    return Partition(
        partition.name,
        leader,
        partition.leader_epoch,
        partition.config.min_insync_replicas,
        None if log is None else str(min(log.memory.last_stable_offset, log.high_watermark)),
        tuple(
            Replica(
                broker,
                brokers[broker].process.value,
                broker in partition.isr,
                str(log.log_start),
                str(log.log_end),
                str(log.high_watermark),
            )
            for broker, log in partition.logs.items()
        ),
    )


class Simulation:
    """A run of `scenario` under `seed`: the same two give the same run, everywhere."""

    def __init__(self, scenario: Scenario, seed: int, trace_limit: int = DEFAULT_LIMIT) -> None:
        self.scenario = scenario
        self.seed = seed
        self.clock = Clock(scenario.starts_at)
        self.trace = Trace(trace_limit)
        self.recorder = AttemptRecorder(self.clock)
        self.faults = (*scenario.faults, *draw_faults(scenario, self._random("faults")))
        faults = ScenarioFaults(self.faults, scenario.random_faults, self._random("losses"))
        network = Network(self.clock, scenario.network.delay_ms, self._random("delays"), faults, self.trace)
        self.cluster = Cluster(
            scenario.cluster,
            scenario.topics,
            profile_for(scenario.cluster.version),
            RunContext(self.clock, network, self.recorder, self.trace),
            transactional=scenario.is_transactional,
        )
        self.applications: dict[str, Application] = {}
        topics = {topic.name: topic for topic in scenario.topics}
        for spec in scenario.producers:
            source = self._random(f"producer/{spec.name}")
            self.applications[spec.name] = Application(spec, topics[spec.topic], self.cluster, network, source)

    def _random(self, what: str) -> random.Random:
        """Return a separate random source, so that draws for one thing do not shift those for another."""
        return random.Random(f"{self.seed}/{what}")  # noqa: S311 - a model, not a secret

    def run(self) -> "Simulation":
        """Run the scenario to its end and return self."""
        for fault in self.faults:
            if isinstance(fault, TimedFault):
                self.clock.at(fault.at_ms, partial(self._apply, fault))
        for application in self.applications.values():
            application.start()
        if self.trace.limit:
            self.trace.observe = Observer(self.applications, self.cluster, self.clock.base).read
        self.clock.run(self.scenario.duration_ms, self.trace.settle if self.trace.limit else None)
        for application in self.applications.values():
            application.finish()
        self.cluster.describe()
        if self.scenario.stop_at_end:
            self.cluster.shut_down()
        return self

    # -- faults ------------------------------------------------------------------------------------------------------
    def _apply(self, fault: TimedFault) -> None:
        match fault:
            case KillProducer():
                self.applications[fault.producer].kill(fault.restart_after_ms, fault.resend)
            case PauseProducer():
                self.applications[fault.producer].pause(fault.for_ms)
            case DeleteRecords():
                self.cluster.delete_records(self._partition(fault.partition), fault.before_offset)
            case JumpProducerClock():
                self._for_a_while(self.applications[fault.producer].jump_clock, fault.by_ms, fault.for_ms)
            case MoveLeader():
                self.cluster.move_leader(self._partition(fault.partition), fault.broker)
            case DisconnectBrokers():
                self.cluster.disconnect(fault.brokers, fault.for_ms)
            case BrokerFault():
                number = fault.broker if fault.leader_of is None else self._partition(fault.leader_of).leader
                if number is not None:
                    self._apply_to_broker(fault, number)

    def _for_a_while(self, jump: Callable[[int], None], by_ms: int, for_ms: int | None) -> None:
        """Set a clock, and back again after a while unless that is None."""
        jump(by_ms)
        if for_ms is not None:
            self.clock.after(for_ms, partial(jump, -by_ms))

    def _partition(self, name: str) -> ReplicatedPartition:
        return next(partition for partition in self.cluster.partitions.values() if partition.name == name)

    def _apply_to_broker(self, fault: BrokerFault, number: int) -> None:
        cluster = self.cluster
        match fault:
            case KillBroker():
                cluster.kill(number)
            case StopBroker():
                cluster.stop(number)
            case PauseBroker():
                cluster.pause(number, fault.for_ms)
            case StartBroker():
                cluster.start(number, without_snapshots=fault.without_snapshots)
            case SlowDisk():
                cluster.slow_disk(number, fault.delay_ms, fault.for_ms)
            case JumpBrokerClock():
                self._for_a_while(partial(cluster.jump_clock, number), fault.by_ms, fault.for_ms)
            case UseProducerIds():
                cluster.use_producer_ids(number, fault.count)
            case LoseAllocation():
                cluster.brokers[number].producer_ids.lose_response()
        if isinstance(fault, BrokerEnd) and fault.restart_after_ms is not None:
            start = partial(cluster.start, number, without_snapshots=fault.without_snapshots)
            self.clock.after(fault.restart_after_ms, start)
