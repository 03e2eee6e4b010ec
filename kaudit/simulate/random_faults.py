"""Random faults: lost messages and events within a scenario's bounds, all drawn from the seed."""

import random
from collections.abc import Callable, Iterator
from typing import TypeVar

from kaudit.broker.errors import KafkaError
from kaudit.simulate.network import Loss, MarkerLoss
from kaudit.simulate.producer.client_switches import ACKS_ALL
from kaudit.simulate.requests import API_NAMES, InjectedError, KafkaRequest, ProduceRequest
from kaudit.simulate.scenario.model import (
    TRANSACTION_PARTITION,
    DeleteRecords,
    DisconnectBrokers,
    ErrorResponse,
    Fault,
    IntRange,
    JumpBrokerClock,
    JumpProducerClock,
    KillBroker,
    KillProducer,
    LoseMarker,
    LoseRequest,
    LoseResponse,
    MessageLoss,
    MoveLeader,
    PauseBroker,
    RandomFaults,
    RequestFault,
    Scenario,
    SlowDisk,
    StopBroker,
    UseProducerIds,
)

HALF = 0.5
_PRODUCE = "Produce"
_ANY_ACKS = 2
_PRODUCE_ERRORS = (
    (KafkaError.NOT_LEADER_OR_FOLLOWER, False),
    (KafkaError.CORRUPT_MESSAGE, False),
    (KafkaError.NOT_ENOUGH_REPLICAS, False),
    (KafkaError.NOT_LEADER_OR_FOLLOWER, True),
    (KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
    (KafkaError.REQUEST_TIMED_OUT, True),
)
"""Errors of produce requests, and whether the batch has been appended (DelayedProduce): two of any, all with acks=all."""
_COORDINATOR_ERRORS = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.CONCURRENT_TRANSACTIONS,
)
"""Errors of a transaction coordinator that is being loaded, moves, or still writes markers."""


class ScenarioFaults:
    """What happens to messages: as a scenario lists it, and as drawn by its rates."""

    def __init__(self, faults: tuple[Fault, ...], rates: RandomFaults | None, source: random.Random) -> None:
        self._requests = _numbered(faults, LoseRequest, _loss)
        self._responses = _numbered(faults, LoseResponse, _loss)
        self._errors = _numbered(faults, ErrorResponse, _injected)
        self._markers = {
            (fault.partition, fault.marker + step): MarkerLoss(fault.response, fault.silent)
            for fault in faults
            if isinstance(fault, LoseMarker)
            for step in range(fault.times)
        }
        self._rates = rates or RandomFaults()
        self._source = source

    def request(self, client: str, request: KafkaRequest, number: int) -> Loss | None:
        """Return how a request gets lost."""
        api = API_NAMES[type(request)]
        listed = self._requests.get((client, api, number)) if self._requests else None
        if listed is not None:
            return listed
        return self._draw_loss(self._rates.request_loss if api == _PRODUCE else self._rates.transactional_request_loss)

    def response(self, client: str, request: KafkaRequest, number: int) -> Loss | None:
        """Return how the response to a request gets lost."""
        api = API_NAMES[type(request)]
        listed = self._responses.get((client, api, number)) if self._responses else None
        if listed is not None:
            return listed
        return self._draw_loss(
            self._rates.response_loss if api == _PRODUCE else self._rates.transactional_response_loss
        )

    def error(self, client: str, request: KafkaRequest, number: int) -> InjectedError | None:
        """Return the error a request is answered with."""
        if self._errors:
            listed = self._errors.get((client, API_NAMES[type(request)], number))
            if listed is not None:
                return listed
        return self._draw_error(request) if self._happens(self._rates.error_responses) else None

    def marker(self, partition: str, number: int) -> MarkerLoss | None:
        """Return how the `number`th WriteTxnMarkers to a partition (from 1) gets lost."""
        listed = self._markers.get((partition, number))
        if listed is None and self._happens(self._rates.marker_loss):
            return MarkerLoss(happens(self._source, HALF), happens(self._source, self._rates.silent_share))
        return listed

    def _draw_loss(self, rate: float) -> Loss | None:
        if not self._happens(rate):
            return None
        return Loss(happens(self._source, self._rates.silent_share), happens(self._source, HALF))

    def _happens(self, rate: float) -> bool:
        """Draw only where there is a rate: a scenario without one is the same run."""
        return bool(rate) and happens(self._source, rate)

    def _draw_error(self, request: KafkaRequest) -> InjectedError:
        if not isinstance(request, ProduceRequest):
            return InjectedError(_COORDINATOR_ERRORS[_draw((0, len(_COORDINATOR_ERRORS) - 1), self._source)])
        possible = len(_PRODUCE_ERRORS) if request.acks == ACKS_ALL else _ANY_ACKS
        error, after_append = _PRODUCE_ERRORS[_draw((0, possible - 1), self._source)]
        part = request.parts[_draw((0, len(request.parts) - 1), self._source)]
        return InjectedError(error, part.partition, after_append)


_Listed = TypeVar("_Listed", bound=RequestFault)
_Made = TypeVar("_Made")


def _numbered(
    faults: tuple[Fault, ...], kind: type[_Listed], make: Callable[[_Listed], _Made]
) -> dict[tuple[str, str, int], _Made]:
    return {
        (fault.producer, fault.api, fault.request + step): make(fault)
        for fault in faults
        if isinstance(fault, kind)
        for step in range(fault.times)
    }


def _loss(fault: MessageLoss) -> Loss:
    return Loss(fault.silent, fault.behind)


def _injected(fault: ErrorResponse) -> InjectedError:
    partition = None
    if fault.partition is not None:
        topic, _, number = fault.partition.rpartition("-")
        partition = (topic, int(number))
    return InjectedError(KafkaError[fault.error], partition, fault.after_append)


def draw_faults(scenario: Scenario, source: random.Random) -> Iterator[Fault]:
    """Yield the events a seed picks within a scenario's bounds."""
    bounds = scenario.random_faults
    if bounds is None:
        return
    brokers, producers, topics = scenario.cluster.brokers, scenario.producers, scenario.topics
    for kind, number in ((KillBroker, bounds.kill_brokers), (StopBroker, bounds.stop_brokers)):
        for _ in range(_draw(number, source)):
            at, broker = _draw(bounds.within_ms, source), _draw((1, brokers), source)
            yield kind(at_ms=at, broker=broker, restart_after_ms=_draw(bounds.down_ms, source))
    for _ in range(_draw(bounds.pause_brokers, source)):
        at, broker = _draw(bounds.within_ms, source), _draw((1, brokers), source)
        yield PauseBroker(at_ms=at, broker=broker, for_ms=_draw(bounds.pause_ms, source))
    for _ in range(_draw(bounds.kill_producers, source)):
        producer = producers[_draw((0, len(producers) - 1), source)]
        yield KillProducer(
            at_ms=_draw(bounds.within_ms, source),
            producer=producer.name,
            restart_after_ms=_draw(bounds.down_ms, source),
            resend=_draw(bounds.resend, source),
        )
    for _ in range(_draw(bounds.delete_records, source)):
        topic = topics[_draw((0, len(topics) - 1), source)]
        name = f"{topic.name}-{_draw((0, topic.partitions - 1), source)}"
        yield DeleteRecords(at_ms=_draw(bounds.within_ms, source), partition=name)
    yield from _of_brokers(scenario, bounds, source)


def _of_brokers(scenario: Scenario, bounds: RandomFaults, source: random.Random) -> Iterator[Fault]:
    """Yield what happens to running brokers, their disks and clocks, and to leaders."""
    brokers, producers, topics = scenario.cluster.brokers, scenario.producers, scenario.topics
    for _ in range(_draw(bounds.disconnect_brokers, source)):
        at, broker = _draw(bounds.within_ms, source), _draw((1, brokers), source)
        yield DisconnectBrokers(at_ms=at, brokers=(broker,), for_ms=_draw(bounds.pause_ms, source))
    for _ in range(_draw(bounds.slow_disks, source)):
        at, broker = _draw(bounds.within_ms, source), _draw((1, brokers), source)
        for_ms, delay_ms = _draw(bounds.pause_ms, source), _draw(bounds.disk_delay_ms, source)
        yield SlowDisk(at_ms=at, broker=broker, for_ms=for_ms, delay_ms=delay_ms)
    for _ in range(_draw(bounds.jump_clocks, source)):
        at, who = _draw(bounds.within_ms, source), _draw((1, brokers + len(producers)), source)
        by_ms, for_ms = _draw(bounds.jump_ms, source), _draw(bounds.pause_ms, source)
        if who <= brokers:
            yield JumpBrokerClock(at_ms=at, broker=who, by_ms=by_ms, for_ms=for_ms)
        else:
            name = producers[who - brokers - 1].name
            yield JumpProducerClock(at_ms=at, producer=name, by_ms=by_ms, for_ms=for_ms)
    partitions = [f"{topic.name}-{number}" for topic in topics for number in range(topic.partitions)]
    if scenario.is_transactional:
        partitions.append(TRANSACTION_PARTITION)
    for _ in range(_draw(bounds.move_leaders, source)):
        partition = partitions[_draw((0, len(partitions) - 1), source)]
        yield MoveLeader(at_ms=_draw(bounds.within_ms, source), partition=partition)
    for _ in range(_draw(bounds.use_producer_ids, source)):
        at, broker = _draw(bounds.within_ms, source), _draw((1, brokers), source)
        yield UseProducerIds(at_ms=at, broker=broker)


def happens(source: random.Random, probability: float) -> bool:
    """Draw whether something of this probability happens."""
    return source.random() < probability


def _draw(bounds: IntRange, source: random.Random) -> int:
    low, high = bounds
    return low if low == high else low + int(source.random() * (high - low + 1))
