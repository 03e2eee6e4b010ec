"""Reading the state of a run, after each event that the sequence diagram shows."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from msgspec import Struct

from kaudit.broker.response import TopicPartition
from kaudit.simulate.application import Application
from kaudit.simulate.cluster.broker import BrokerServer
from kaudit.simulate.cluster.cluster import Cluster
from kaudit.simulate.cluster.partition import ReplicatedPartition
from kaudit.simulate.cluster.transaction_state_manager import TRANSACTION_TOPIC
from kaudit.simulate.producer.kafka_producer import KafkaProducer
from kaudit.simulate.producer_batch import ProducerBatch
from kaudit.simulate.requests import partition_name
from kaudit.simulate.trace import (
    Client,
    ClientPartition,
    Partition,
    QueuedBatch,
    RememberedProducer,
    Replica,
    RunState,
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
                key = (partition.name, producer_id)
                known = self._known.get(key)
                if isinstance(known, RememberedProducer) and known.entry is entry:
                    yield known
                else:
                    yield self._same(key, RememberedProducer(partition.name, producer_id, entry))

    def _transactions(self) -> Iterator[Transaction]:
        ids = {app.spec.config.transactional_id for app in self._applications.values()} - {None}
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
