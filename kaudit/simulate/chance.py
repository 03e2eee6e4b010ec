"""What chance does to a run: lost messages and events within a scenario's bounds, all from the seed."""

import random
from collections.abc import Iterator

from kaudit.simulate.network import Loss
from kaudit.simulate.scenario.model import Between, Fault, FaultKind, RandomFaults, Scenario

_HALF = 0.5


class ChanceLosses:
    """Losses a scenario asks for, and those its rates bring about."""

    def __init__(self, faults: tuple[Fault, ...], chance: RandomFaults | None, source: random.Random) -> None:
        self._requests = _numbered(faults, FaultKind.LOSE_REQUEST)
        self._responses = _numbered(faults, FaultKind.LOSE_RESPONSE)
        self._chance = chance
        self._source = source

    def request(self, client: str, broker: int, number: int) -> Loss | None:  # noqa: ARG002 - any broker's alike
        """Return how a produce request gets lost."""
        asked = self._requests.get((client, number))
        if asked is not None or self._chance is None:
            return asked
        return self._drawn(self._chance.request_loss)

    def response(self, client: str, broker: int, number: int) -> Loss | None:  # noqa: ARG002 - any broker's alike
        """Return how the response to a produce request gets lost."""
        asked = self._responses.get((client, number))
        if asked is not None or self._chance is None:
            return asked
        return self._drawn(self._chance.response_loss)

    def _drawn(self, rate: float) -> Loss | None:
        assert self._chance is not None
        if rate <= 0 or self._source.random() >= rate:
            return None
        return Loss(self._source.random() < self._chance.silent_share, self._source.random() < _HALF)


def _numbered(faults: tuple[Fault, ...], kind: FaultKind) -> dict[tuple[str, int], Loss]:
    return {
        (fault.producer, fault.request + step): Loss(fault.silent, fault.behind)
        for fault in faults
        if fault.kind is kind
        for step in range(fault.times)
    }


def drawn_faults(scenario: Scenario, source: random.Random) -> Iterator[Fault]:
    """Yield the events a seed picks within a scenario's bounds."""
    chance = scenario.chance
    if chance is None:
        return
    brokers, producers, topics = scenario.cluster.brokers, scenario.producers, scenario.topics
    for kind, bounds in (
        (FaultKind.KILL_BROKER, chance.kills),
        (FaultKind.STOP_BROKER, chance.stops),
        (FaultKind.PAUSE_BROKER, chance.pauses),
    ):
        for _ in range(_draw(bounds, source)):
            at, broker = _draw(chance.within_ms, source), _draw(Between(1, brokers), source)
            if kind is FaultKind.PAUSE_BROKER:
                yield Fault(kind, at, broker, for_ms=_draw(chance.pause_ms, source))
            else:
                yield Fault(kind, at, broker, restart_after_ms=_draw(chance.down_ms, source))
    for _ in range(_draw(chance.producer_kills, source)):
        producer = producers[_draw(Between(0, len(producers) - 1), source)]
        yield Fault(
            FaultKind.KILL_PRODUCER,
            _draw(chance.within_ms, source),
            producer=producer.name,
            restart_after_ms=_draw(chance.down_ms, source),
            resend=_draw(chance.resend, source),
        )
    for _ in range(_draw(chance.deletions, source)):
        topic = topics[_draw(Between(0, len(topics) - 1), source)]
        key = (topic.name, _draw(Between(0, topic.partitions - 1), source))
        yield Fault(FaultKind.DELETE_RECORDS, _draw(chance.within_ms, source), partition=key)


def _draw(bounds: Between, source: random.Random) -> int:
    if bounds.low == bounds.high:
        return bounds.low
    return bounds.low + int(source.random() * (bounds.high - bounds.low + 1))
