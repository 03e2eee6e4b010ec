"""Random faults: lost messages and events within a scenario's bounds, all drawn from the seed."""

import random
from collections.abc import Iterator

from kaudit.simulate.network import Loss
from kaudit.simulate.scenario.model import (
    DeleteRecords,
    Fault,
    IntRange,
    KillBroker,
    KillProducer,
    LoseRequest,
    LoseResponse,
    MessageLoss,
    PauseBroker,
    RandomFaults,
    Scenario,
    StopBroker,
)

_HALF = 0.5


class ScenarioLosses:
    """The losses a scenario lists, and those drawn by its rates."""

    def __init__(self, faults: tuple[Fault, ...], rates: RandomFaults | None, source: random.Random) -> None:
        self._requests = _numbered(faults, LoseRequest)
        self._responses = _numbered(faults, LoseResponse)
        self._rates = rates
        self._source = source

    def request(self, client: str, broker: int, number: int) -> Loss | None:  # noqa: ARG002 - the same for every broker
        """Return how a produce request gets lost."""
        listed = self._requests.get((client, number))
        if listed is not None or self._rates is None:
            return listed
        return self._draw_loss(self._rates.request_loss)

    def response(self, client: str, broker: int, number: int) -> Loss | None:  # noqa: ARG002 - the same for every broker
        """Return how the response to a produce request gets lost."""
        listed = self._responses.get((client, number))
        if listed is not None or self._rates is None:
            return listed
        return self._draw_loss(self._rates.response_loss)

    def _draw_loss(self, rate: float) -> Loss | None:
        assert self._rates is not None
        if rate <= 0 or self._source.random() >= rate:
            return None
        return Loss(self._source.random() < self._rates.silent_share, self._source.random() < _HALF)


def _numbered(faults: tuple[Fault, ...], kind: type[MessageLoss]) -> dict[tuple[str, int], Loss]:
    return {
        (fault.producer, fault.request + step): Loss(fault.silent, fault.behind)
        for fault in faults
        if isinstance(fault, kind)
        for step in range(fault.times)
    }


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


def _draw(bounds: IntRange, source: random.Random) -> int:
    low, high = bounds
    return low if low == high else low + int(source.random() * (high - low + 1))
