"""The producer states in leaders' memory (DescribeProducers, KIP-664), compared with those that their logs yield."""

import time
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from kaudit.model.producer_listing import (
    COMPARED,
    ComparedPartition,
    ComparedProducer,
    DescribedState,
    Producer,
    Relation,
)
from kaudit.model.result import PartitionSummary
from kaudit.source.kafka.answers import ActiveProducer, TopicPartition
from kaudit.source.kafka.client import KafkaClient
from kaudit.source.kafka.failures import AccessDeniedError

_EXPIRATION_SETTINGS: Final = ("producer.id.expiration.ms", "transactional.id.expiration.ms")
"""Brokers before 3.4 use the second one (KIP-854)."""
Described = Mapping[TopicPartition, Mapping[int, DescribedState]]


class Expiration(Struct, frozen=True):
    """How long a broker remembers a silent producer, in ms, and the setting that says so."""

    setting: str
    ms: int


def describe(client: KafkaClient, partitions: Iterable[TopicPartition]) -> Described:
    """Ask the leaders for the states they hold, by producer id. Raises OSError (UnsupportedRequestError before 2.8)."""
    return {
        partition: {each.producer_id: _state(each) for each in client.describe_producers(partition)}
        for partition in partitions
    }


def expiration_of(client: KafkaClient, node: int) -> Expiration | None:
    """Return a broker's setting, None where this principal may not read it (DescribeConfigs on the cluster)."""
    try:
        config = client.describe_broker_configs(node)
    except AccessDeniedError:
        return None
    name = next((name for name in _EXPIRATION_SETTINGS if name in config), None)
    return None if name is None else Expiration(name, int(config[name]))


def rebuilt_states(producers: Iterable[Producer]) -> dict[TopicPartition, dict[int, DescribedState]]:
    """Return the states that the logs yield, by partition and producer id, without ids of which a broker remembers nothing."""
    states: dict[TopicPartition, dict[int, DescribedState]] = {}
    for producer in producers:
        for place in producer.partitions:
            if place.state.producer_epoch >= 0:
                state = DescribedState(*(getattr(place.state, name) for name in COMPARED))
                states.setdefault(TopicPartition(place.topic, place.partition), {})[producer.producer_id] = state
    return states


class PartitionStates(Struct, frozen=True):
    """The states of one partition by producer id: of the log, and of its leader before the log was read and after."""

    log: Mapping[int, DescribedState]
    before: Mapping[int, DescribedState]
    after: Mapping[int, DescribedState]


def compare_states(
    summary: PartitionSummary,
    node: int,
    states: PartitionStates,
    expiration: Expiration | None,
    now_ms: int | None = None,
) -> ComparedPartition:
    """Compare one partition's states. Silence is measured up to `now_ms`, ms since the epoch; None: the clock's."""
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    compared = []
    for producer_id in sorted({*states.log, *states.after}):
        log, broker = states.log.get(producer_id), states.after.get(producer_id)
        moved = states.before.get(producer_id) != broker
        differing: tuple[str, ...] = ()
        if log is None:
            relation = Relation.BROKER_ONLY
            explanation = _only_on_broker(summary, moved=moved)
        elif broker is None:
            relation = Relation.LOG_ONLY
            explanation = _only_in_log(log, expiration, now)
        else:
            differing = tuple(name for name in COMPARED if getattr(log, name) != getattr(broker, name))
            relation = Relation.DIFFERENT if differing else Relation.IDENTICAL
            explanation = "the producer went on while the log was read" if differing and moved else None
        compared.append(ComparedProducer(producer_id, relation, log, broker, differing, explanation))
    return ComparedPartition(summary.topic, summary.partition, node, compared)


def _only_in_log(state: DescribedState, expiration: Expiration | None, now: int) -> str | None:
    """Return why a broker forgot a producer: it was silent for too long and has no open transaction; None if unknown."""
    if expiration is None or state.current_txn_start_offset >= 0:
        return None
    silent = now - state.last_timestamp
    if silent < expiration.ms:
        return None
    return f"expired: silent for {silent // 1000} s, and {expiration.setting} is {expiration.ms / 1000:g} s"


def _only_on_broker(summary: PartitionSummary, *, moved: bool) -> str | None:
    """Return why a log has no batch of a producer that the broker remembers, None if unknown."""
    if moved:
        return "the producer began while the log was read"
    if summary.log_start_offset:
        return (
            f"the log begins at offset {summary.log_start_offset}: its batches were deleted, and brokers remember the "
            "producer until it expires"
        )
    if summary.compacted:
        return "the topic is compacted: its batches may be gone"
    return None


def _state(active: ActiveProducer) -> DescribedState:
    return DescribedState(*(getattr(active, name) for name in COMPARED))
